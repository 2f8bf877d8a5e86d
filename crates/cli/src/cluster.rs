//! What `pintle up` runs beside the API server: the scheduler and simulated nodes, in this process, over its API.

use anyhow::{Context, Result};
use pintle_client::{Client, Config};
use pintle_informer::{CancellationToken, SharedInformerFactory};
use pintle_node::{Nodes, NodesOptions};
use pintle_scheduler::{Scheduler, SchedulerOptions};
use std::path::Path;

/// Everything that works on the server's objects.
pub(crate) struct Cluster {
    factory: SharedInformerFactory,
    scheduler: Scheduler,
    nodes: Nodes,
}

impl Cluster {
    /// Starts everything, as the user of this kubeconfig. It works until `stop`.
    pub(crate) fn start(kubeconfig: &Path, n_nodes: u32, stop: &CancellationToken) -> Result<Cluster> {
        let config = Config::from_file(kubeconfig).context("cannot read the kubeconfig just written")?;
        let client = Client::new(config.with_user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION"))))?;
        // one cache of each kind for all
        let factory = SharedInformerFactory::new(&client);
        let scheduler = Scheduler::start(&factory, SchedulerOptions::default(), stop);
        let nodes = Nodes::start(&factory, NodesOptions::new(n_nodes), stop).context("--nodes")?;
        Ok(Cluster { factory, scheduler, nodes })
    }

    /// Waits until everything has ended, after its `stop`.
    pub(crate) async fn stopped(self) {
        self.scheduler.stopped().await;
        self.nodes.stopped().await;
        self.factory.shutdown().await;
    }
}
