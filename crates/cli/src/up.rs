//! `pintle up`: a whole cluster in one process.

use crate::cluster::Cluster;
use crate::flags::UpFlags;
use crate::serve::{Purpose, Server, interrupted};
use anyhow::Result;
use pintle_informer::CancellationToken;
use tokio::time::Instant;

/// Runs the cluster until it is interrupted.
pub(crate) async fn up(flags: UpFlags) -> Result<()> {
    let begun = Instant::now();
    let server = Server::open(&flags.server, Purpose::Cluster).await?;
    let kubeconfig = std::fs::canonicalize(&server.kubeconfig).unwrap_or_else(|_| server.kubeconfig.clone());
    println!(
        "Pintle {} is ready after {} ms: the Kubernetes {} API at {}\n\n\
         Try, in another terminal:\n\
         \x20 export KUBECONFIG={}\n\
         \x20 kubectl create deployment web --image=nginx --replicas=3\n\
         \x20 kubectl get pods -w\n\n\
         Ctrl-C stops it. What it holds stays in {}.",
        env!("CARGO_PKG_VERSION"),
        begun.elapsed().as_millis(),
        pintle_apiserver::documents::GIT_VERSION,
        server.url,
        kubeconfig.display(),
        kubeconfig.parent().unwrap_or(&kubeconfig).display(),
    );
    let agents = server.simulated_nodes.clone();
    let (stop, stop_serving) = (CancellationToken::new(), CancellationToken::new());
    let serving = tokio::spawn(server.run(stop_serving.clone().cancelled_owned()));
    let started = Cluster::start(&kubeconfig, &flags.cluster, agents, &stop).await;
    if let Ok(cluster) = started {
        interrupted().await;
        // first those who use the server, then the server
        stop.cancel();
        cluster.stopped().await;
        stop_serving.cancel();
        return serving.await.map_err(anyhow::Error::from);
    }
    stop_serving.cancel();
    serving.await?;
    started.map(drop)
}
