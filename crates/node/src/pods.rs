//! The pods of all nodes, through one queue: what [`pod::step`](crate::pod::step) says is written to the server.

use crate::identity::{Identity, TakenAddresses};
use crate::nodes::Shared;
use crate::pod::{self, PodEvent, Sight, Step};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use parking_lot::Mutex;
use pintle_client::{Api, Object as _, Patch, Result};
use pintle_informer::handler::enqueue_by;
use pintle_informer::record::{EventRecorder, EventType, Recorder as _, reference};
use pintle_informer::workqueue::{Action, WorkQueue, run_workers};
use pintle_informer::{Cached, Lister, ObjectName, ResourceEventHandler};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// Pods whose status is written at once. More pods than this wait for each other.
const WRITES_MAX: usize = 16;

/// Who owns the fields that nodes write.
pub(crate) const MANAGER: &str = "kubelet";

/// What is known of a pod beside the pod itself.
#[derive(Clone, Debug)]
struct Memo {
    uid: String,
    node: Identity,
    first_seen: Timestamp,
    terminating_seen: Option<Timestamp>,
    /// Which of its node's addresses it has.
    address: u32,
    /// The version from which the last write was made: what is in the cache is stale as long as it is this.
    acted_upon: String,
}

#[derive(Debug, Default)]
struct Table {
    memos: BTreeMap<ObjectName, Memo>,
    addresses: BTreeMap<Identity, TakenAddresses>,
}

/// The pods of all simulated nodes.
#[derive(Clone)]
pub(crate) struct Pods {
    shared: Arc<Shared>,
    lister: Lister<Cached<Pod>>,
    queue: WorkQueue<ObjectName>,
    recorder: EventRecorder,
    table: Arc<Mutex<Table>>,
}

impl Pods {
    pub(crate) fn new(shared: &Arc<Shared>, lister: Lister<Cached<Pod>>, recorder: EventRecorder) -> Pods {
        let queue = WorkQueue::new("simulated-pods");
        Pods { shared: Arc::clone(shared), lister, queue, recorder, table: Arc::default() }
    }

    /// Hears of the pods that are on simulated nodes.
    pub(crate) fn handler(&self) -> impl ResourceEventHandler<Cached<Pod>> + use<> {
        let shared = Arc::clone(&self.shared);
        enqueue_by(&self.queue, move |pod: &Cached<Pod>| {
            let node = pod.text_at(&["spec", "nodeName"])?;
            shared.identity_of(&node).map(|_| pod.object_name())
        })
    }

    /// Carries the pods through their phases. Ends only when it is dropped.
    pub(crate) async fn run(self) {
        let queue = self.queue.clone();
        self.learn_addresses();
        run_workers(&queue, WRITES_MAX, move |name| {
            let this = self.clone();
            async move { this.reconcile(&name).await }
        })
        .await;
    }

    /// Marks the addresses that pods have from before, so that they are not given away.
    fn learn_addresses(&self) {
        let mut table = self.table.lock();
        for pod in self.lister.list() {
            let node = pod.text_at(&["spec", "nodeName"]).and_then(|node| self.shared.identity_of(&node));
            let ip = pod.text_at(&["status", "podIP"]).and_then(|ip| ip.parse::<Ipv4Addr>().ok());
            let (Some(node), Some(ip)) = (node, ip) else { continue };
            if let Some(index) = node.index_of_pod_ip(ip) {
                table.addresses.entry(node).or_default().mark(index, true);
            }
        }
    }

    async fn reconcile(&self, name: &ObjectName) -> Result<Action> {
        let Some(cached) = self.lister.get_by_key(name) else {
            self.table.lock().forget(name);
            return Ok(Action::Done);
        };
        let node = cached.text_at(&["spec", "nodeName"]).and_then(|node| self.shared.identity_of(&node));
        let Some(node) = node.filter(|node| self.shared.registered.read().contains_key(&node.number())) else {
            return Ok(self.not_yet_registered(node));
        };
        let now = self.shared.env.clock.now();
        let Some(sight) = self.table.lock().sight(name, node, &cached, now) else {
            return Ok(Action::Done);
        };
        let pod = cached.object()?;
        let step = pod::step(&pod, &sight, &self.shared.options.profile, now);
        let api = Api::<Pod>::namespaced(&self.shared.client, cached.namespace());
        let mut is_written = false;
        if let Some(patch) = pod::status_patch(&pod, &step.status) {
            match api.patch_status(cached.name(), &Patch::Strategic(patch)).field_manager(MANAGER).await {
                Ok(written) => is_written = written.resource_version() != cached.resource_version(),
                // it is gone, or another one by now: the cache will say so
                Err(error) if error.is_not_found() || error.is_conflict() => return Ok(Action::Done),
                Err(error) => return Err(error),
            }
            if is_written {
                self.table.lock().acted_upon(name, cached.resource_version());
                self.tell(&pod, node, &step.events);
            }
        }
        if step.is_finished {
            remove(&api, &cached).await?;
            return Ok(Action::Done);
        }
        Ok(next_look(&step, is_written, now))
    }

    /// Pods may be there before their node has registered, after a restart.
    fn not_yet_registered(&self, node: Option<Identity>) -> Action {
        /// How long to wait for the node's registration.
        const PAUSE: Duration = Duration::from_secs(1);
        if node.is_some() { Action::RequeueAfter(PAUSE) } else { Action::Done }
    }

    fn tell(&self, pod: &Pod, node: Identity, events: &[PodEvent]) {
        if events.is_empty() || !self.shared.options.profile.has_pod_events {
            return;
        }
        let recorder = self.recorder.clone().on_host(&self.shared.name_of(node));
        for event in events {
            let about = ObjectReference { field_path: Some(event.field_path.clone()), ..reference(pod) };
            let event_type = if event.is_warning { EventType::Warning } else { EventType::Normal };
            recorder.event(&about, event_type, event.reason, &event.message);
        }
    }
}

/// After a write the change itself comes back and says when to look again.
fn next_look(step: &Step, is_written: bool, now: Timestamp) -> Action {
    match step.wake {
        Some(wake) if !is_written => {
            Action::RequeueAfter(Duration::try_from(wake.duration_since(now)).unwrap_or_default())
        }
        Some(_) | None => Action::Done,
    }
}

/// Takes a pod away whose containers have ended.
async fn remove(api: &Api<Pod>, pod: &Cached<Pod>) -> Result<()> {
    match api.delete(pod.name()).grace_period(0).uid(pod.uid()).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}

impl Table {
    /// What is known of a pod; `None` when the cache has only what was acted upon already.
    fn sight(&mut self, name: &ObjectName, node: Identity, pod: &Cached<Pod>, now: Timestamp) -> Option<Sight> {
        if self.memos.get(name).is_some_and(|memo| memo.uid != pod.uid()) {
            self.forget(name);
        }
        if !self.memos.contains_key(name) {
            let addresses = self.addresses.entry(node).or_default();
            let known = pod.text_at(&["status", "podIP"]).and_then(|ip| ip.parse().ok());
            let known = known.and_then(|ip| node.index_of_pod_ip(ip));
            // a node that is full shares its last address: better than a pod that hangs for a simulated reason
            let address = known.or_else(|| addresses.take()).unwrap_or(crate::profile::PODS_MAX - 1);
            addresses.mark(address, true);
            let memo = Memo {
                uid: pod.uid().to_owned(),
                node,
                first_seen: now,
                terminating_seen: None,
                address,
                acted_upon: String::new(),
            };
            self.memos.insert(name.clone(), memo);
        }
        let memo = self.memos.get_mut(name)?;
        if memo.acted_upon == pod.resource_version() {
            return None;
        }
        if pod.is_terminating() {
            memo.terminating_seen.get_or_insert(now);
        }
        Some(Sight {
            first_seen: memo.first_seen,
            terminating_seen: memo.terminating_seen,
            pod_ip: node.pod_ip(memo.address),
            host_ip: node.internal_ip(),
        })
    }

    fn acted_upon(&mut self, name: &ObjectName, version: &str) {
        if let Some(memo) = self.memos.get_mut(name) {
            version.clone_into(&mut memo.acted_upon);
        }
    }

    fn forget(&mut self, name: &ObjectName) {
        let Some(memo) = self.memos.remove(name) else { return };
        if let Some(addresses) = self.addresses.get_mut(&memo.node) {
            addresses.mark(memo.address, false);
        }
    }
}
