//! [`Nodes`]: starts and stops all simulated nodes of a process.

use crate::heartbeat::Heartbeat;
use crate::identity::{Identity, NODES_MAX};
use crate::kubelet::Kubelet;
use crate::pods::Pods;
use crate::profile::Profile;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::RwLock;
use pintle_client::Client;
use pintle_client::apimachinery::env::Env;
use pintle_informer::record::EventBroadcaster;
use pintle_informer::{CancellationToken, SharedInformerFactory};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Which nodes to simulate.
#[derive(Clone, Debug)]
pub struct NodesOptions {
    /// How many; no more than [`NODES_MAX`].
    pub n_nodes: u32,
    /// How they behave.
    pub profile: Profile,
    /// Where the nodes' own API answers (logs, `exec`); `None` for nowhere.
    pub endpoint: Option<AgentsEndpoint>,
}

/// Where the API of all simulated nodes answers.
#[derive(Clone)]
pub struct AgentsEndpoint {
    /// The address to listen on. Port 0 takes any free one.
    pub address: SocketAddr,
    /// The certificate to show, and which clients to let in.
    pub tls: Arc<rustls::ServerConfig>,
}

impl std::fmt::Debug for AgentsEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentsEndpoint").field("address", &self.address).finish_non_exhaustive()
    }
}

impl NodesOptions {
    /// So many nodes that behave as usual.
    pub fn new(n_nodes: u32) -> NodesOptions {
        NodesOptions { n_nodes, profile: Profile::default(), endpoint: None }
    }
}

/// Why nodes cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There are no addresses for so many.
    #[error("{0} nodes are too many: one process simulates at most {NODES_MAX}")]
    TooMany(u32),
    /// The port of their API cannot be had.
    #[error("cannot listen on {address} for the API of simulated nodes")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// What all simulated nodes of a process share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) options: NodesOptions,
    pub(crate) env: Env,
    /// The uids of the nodes that are registered, by number.
    pub(crate) registered: RwLock<BTreeMap<u32, String>>,
    /// Where the nodes' API answers; 0 for nowhere.
    pub(crate) port: u16,
}

impl Shared {
    /// The simulated node of this name.
    pub(crate) fn identity_of(&self, node: &str) -> Option<Identity> {
        let identity = Identity::of_name(&self.options.profile.name_prefix, node)?;
        (identity.number() <= self.options.n_nodes).then_some(identity)
    }

    pub(crate) fn name_of(&self, identity: Identity) -> String {
        identity.name(&self.options.profile.name_prefix)
    }
}

/// Simulated nodes at work.
#[derive(Debug)]
pub struct Nodes {
    tasks: JoinSet<()>,
}

impl Nodes {
    /// Starts the nodes; they work until `stop`. Returns before they have registered: they do as soon as the server lets
    /// them.
    ///
    /// The pods come from the informer of `factory`, which may be shared with others and need not be started.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(
        factory: &SharedInformerFactory,
        options: NodesOptions,
        stop: &CancellationToken,
    ) -> Result<Nodes, StartError> {
        if options.n_nodes > NODES_MAX {
            return Err(StartError::TooMany(options.n_nodes));
        }
        let listener = match &options.endpoint {
            Some(endpoint) => Some(listen(endpoint).await?),
            None => None,
        };
        let port = listener.as_ref().map_or(0, |(_, port, _)| *port);
        let client = factory.client().clone();
        let env = client.env().clone();
        let broadcaster = EventBroadcaster::new(env.clone());
        if options.profile.has_pod_events {
            broadcaster.start_recording_to_sink(&client, stop.clone());
        }
        let shared = Arc::new(Shared { client, options, env, registered: RwLock::default(), port });
        let informer = factory.informer::<Pod>();
        let pods = Pods::new(&shared, informer.lister(), broadcaster.recorder("kubelet"));
        informer.add_event_handler(pods.handler());
        factory.start(stop);
        let mut tasks = JoinSet::new();
        if let Some((listener, _, tls)) = listener {
            let kubelet = Kubelet { pods: informer.lister(), env: shared.env.clone() };
            tasks.spawn(kubelet.serve(listener, tls, stop.clone()));
        }
        let heartbeat = Heartbeat::new(&shared);
        let stopping = stop.clone();
        tasks.spawn(async move {
            stopping.run_until_cancelled(heartbeat.run()).await;
        });
        let stopping = stop.clone();
        tasks.spawn(async move {
            informer.synced().await;
            stopping.run_until_cancelled(pods.run()).await;
        });
        Ok(Nodes { tasks })
    }

    /// Waits until the nodes have ended, after their `stop`.
    pub async fn stopped(mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "simulated nodes ended badly");
            }
        }
    }
}

async fn listen(endpoint: &AgentsEndpoint) -> Result<(TcpListener, u16, TlsAcceptor), StartError> {
    let failed = |source| StartError::Listen { address: endpoint.address, source };
    let listener = TcpListener::bind(endpoint.address).await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    Ok((listener, port, TlsAcceptor::from(Arc::clone(&endpoint.tls))))
}
