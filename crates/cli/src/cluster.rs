//! What `pintle up` runs beside the API server: the control loops, the scheduler and simulated nodes, in this process,
//! over its API.

use crate::flags::ClusterFlags;
use anyhow::{Context, Result};
use pintle_client::{Client, Config};
use pintle_controllers::{ControllerSelection, Controllers, Options};
use pintle_informer::{CancellationToken, SharedInformerFactory};
use pintle_node::{AgentsEndpoint, Nodes, NodesOptions};
use pintle_scheduler::{Scheduler, SchedulerOptions};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

/// Everything that works on the server's objects.
pub(crate) struct Cluster {
    controllers: Controllers,
    factory: SharedInformerFactory,
    scheduler: Scheduler,
    nodes: Nodes,
}

impl Cluster {
    /// Starts everything, as the user of this kubeconfig. It works until `stop`.
    pub(crate) async fn start(
        kubeconfig: &Path,
        flags: &ClusterFlags,
        agents: Option<Arc<rustls::ServerConfig>>,
        stop: &CancellationToken,
    ) -> Result<Cluster> {
        let config = Config::from_file(kubeconfig).context("cannot read the kubeconfig just written")?;
        let controllers = controllers(config.clone(), flags, stop)?;
        let client = Client::new(config.with_user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION"))))?;
        // one cache of each kind for all
        let factory = SharedInformerFactory::new(&client);
        let scheduler = Scheduler::start(&factory, SchedulerOptions::default(), stop);
        // any free port: the nodes say which it is
        let endpoint = agents.map(|tls| AgentsEndpoint { address: (Ipv4Addr::LOCALHOST, 0).into(), tls });
        let options = NodesOptions { endpoint, ..NodesOptions::new(flags.nodes) };
        let nodes = Nodes::start(&factory, options, stop).await.context("--nodes")?;
        Ok(Cluster { controllers, factory, scheduler, nodes })
    }

    /// Waits until everything has ended, after its `stop`.
    pub(crate) async fn stopped(self) {
        self.controllers.shutdown().await;
        self.scheduler.stopped().await;
        self.nodes.stopped().await;
        self.factory.shutdown().await;
    }
}

fn controllers(config: Config, flags: &ClusterFlags, stop: &CancellationToken) -> Result<Controllers> {
    let selection = ControllerSelection::parse(&flags.controllers.join(",")).context("--controllers")?;
    let options = Options {
        controllers: selection,
        root_ca: config.tls.certificate_authority_pem.clone(),
        use_service_account_credentials: false,
    };
    let config = Config { qps: None, ..config.with_user_agent("kube-controller-manager/pintle") };
    Ok(Controllers::start(&Client::new(config)?, options, stop.clone()))
}
