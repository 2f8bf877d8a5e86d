//! Registration, leases and status reports of all nodes, through one queue.

use crate::identity::Identity;
use crate::nodes::Shared;
use crate::objects;
use crate::pods::MANAGER;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Taint};
use pintle_client::{Api, Object as _, Patch, Result};
use pintle_informer::workqueue::{Action, WorkQueue, run_workers};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Requests that may be under way at once. More nodes than this wait for each other.
const REQUESTS_MAX: usize = 16;

/// The taint that new nodes get, until they are ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// What a node has to do from time to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Beat {
    /// Be there.
    Register(Identity),
    /// Renew the lease.
    Lease(Identity),
    /// Report the status.
    Status(Identity),
}

/// The heartbeats of all nodes.
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    queue: WorkQueue<Beat>,
}

impl Heartbeat {
    pub(crate) fn new(shared: &Arc<Shared>) -> Heartbeat {
        Heartbeat { shared: Arc::clone(shared), queue: WorkQueue::new("simulated-nodes") }
    }

    /// Registers the nodes, then keeps them alive. Ends only when it is dropped.
    pub(crate) async fn run(self) {
        for identity in (1..=self.shared.options.n_nodes).filter_map(Identity::new) {
            self.queue.add(Beat::Register(identity));
        }
        let (shared, queue) = (Arc::clone(&self.shared), self.queue.clone());
        run_workers(&self.queue, REQUESTS_MAX, move |beat| beat_once(Arc::clone(&shared), queue.clone(), beat)).await;
    }
}

async fn beat_once(shared: Arc<Shared>, queue: WorkQueue<Beat>, beat: Beat) -> Result<Action> {
    let profile = &shared.options.profile;
    match beat {
        Beat::Register(identity) => {
            register(&shared, identity).await?;
            // the nodes take turns within the interval
            let spread = |interval: Duration| interval * identity.number() / shared.options.n_nodes.max(1);
            renew_lease(&shared, identity).await?;
            queue.add_after(Beat::Lease(identity), spread(profile.lease_renew_interval));
            queue.add_after(Beat::Status(identity), spread(profile.status_report_interval));
            Ok(Action::Done)
        }
        Beat::Lease(identity) => {
            let is_there = renew_lease(&shared, identity).await?;
            Ok(if is_there { Action::RequeueAfter(profile.lease_renew_interval) } else { Action::Done })
        }
        Beat::Status(identity) => {
            let is_there = report_status(&shared, identity).await?;
            Ok(if is_there { Action::RequeueAfter(profile.status_report_interval) } else { Action::Done })
        }
    }
}

/// Makes the Node, or takes over the one that is there.
async fn register(shared: &Shared, identity: Identity) -> Result<()> {
    let api = Api::<Node>::all(&shared.client);
    let node = objects::node(identity, &shared.options.profile, shared.port, shared.env.clock.now());
    let registered = match api.create(&node).field_manager(MANAGER).await {
        Ok(made) => made,
        Err(error) if error.is_already_exists() => {
            let found = api.get(node.name()).await?;
            update_status(shared, identity, &found).await?
        }
        Err(error) => return Err(error),
    };
    remove_not_ready_taint(&api, &registered).await?;
    shared.registered.write().insert(identity.number(), registered.uid().to_owned());
    Ok(())
}

/// A node is ready from its first moment on. In a cluster without a controller of node life cycles nobody else would
/// take the taint away.
async fn remove_not_ready_taint(api: &Api<Node>, node: &Node) -> Result<()> {
    let taints: &[Taint] = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    if !taints.iter().any(|taint| taint.key == NOT_READY) {
        return Ok(());
    }
    let rest: Vec<&Taint> = taints.iter().filter(|taint| taint.key != NOT_READY).collect();
    let change = json!({
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "spec": {"taints": if rest.is_empty() { None } else { Some(rest) }},
    });
    match api.patch(node.name(), &Patch::Merge(change)).field_manager(MANAGER).await {
        Ok(_) => Ok(()),
        // somebody else does it
        Err(error) if error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}

async fn update_status(shared: &Shared, identity: Identity, found: &Node) -> Result<Node> {
    let now = shared.env.clock.now();
    let mut status = objects::status(identity, &shared.options.profile, shared.port, now);
    objects::keep_transition_times(&mut status, found.status.as_ref());
    let change = json!({"metadata": {"uid": found.metadata.uid}, "status": status});
    Api::<Node>::all(&shared.client).patch_status(found.name(), &Patch::Strategic(change)).field_manager(MANAGER).await
}

/// Reports the node's status; gives `false` when the node was deleted. A deleted node does not come back by itself.
async fn report_status(shared: &Shared, identity: Identity) -> Result<bool> {
    let name = shared.name_of(identity);
    let Some(found) = Api::<Node>::all(&shared.client).get_opt(&name).await? else {
        forget(shared, identity);
        return Ok(false);
    };
    match update_status(shared, identity, &found).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(true),
        Err(error) => Err(error),
    }
}

/// Renews the node's lease or makes it; gives `false` when the node was deleted.
async fn renew_lease(shared: &Shared, identity: Identity) -> Result<bool> {
    let Some(uid) = shared.registered.read().get(&identity.number()).cloned() else { return Ok(false) };
    let api = Api::<Lease>::namespaced(&shared.client, objects::LEASE_NAMESPACE);
    let lease = objects::lease(identity, &uid, &shared.options.profile, shared.env.clock.now());
    let Some(spec) = &lease.spec else { return Ok(true) };
    match api.patch(lease.name(), &Patch::Merge(json!({"spec": spec}))).field_manager(MANAGER).await {
        Ok(_) => return Ok(true),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error),
    }
    if Api::<Node>::all(&shared.client).get_opt(lease.name()).await?.is_none() {
        forget(shared, identity);
        return Ok(false);
    }
    match api.create(&lease).field_manager(MANAGER).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_already_exists() => Ok(true),
        Err(error) => Err(error),
    }
}

fn forget(shared: &Shared, identity: Identity) {
    shared.registered.write().remove(&identity.number());
    tracing::info!(node = shared.name_of(identity), "the node was deleted and is simulated no longer");
}
