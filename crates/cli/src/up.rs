//! `pintle up`: a whole cluster in one process.

use crate::flags::UpFlags;
use crate::serve::{Server, interrupted};
use anyhow::Result;
use tokio::time::Instant;

/// Runs the cluster until it is interrupted.
pub(crate) async fn up(flags: UpFlags) -> Result<()> {
    let begun = Instant::now();
    let server = Server::open(&flags.server).await?;
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
    server.run(interrupted()).await;
    Ok(())
}
