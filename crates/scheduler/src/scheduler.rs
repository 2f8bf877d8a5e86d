//! [`Scheduler`]: informers fill the cache and the queue, one loop decides, tasks tell the server.

use crate::cache::{Cache, NodeChange};
use crate::filters::Plugins;
use crate::pod_info::PodInfo;
use crate::preempt::preempt;
use crate::queue::SchedulingQueue;
use crate::select::{Cursor, Unschedulable, select};
use k8s_openapi::api::core::v1::{Namespace, Node, ObjectReference, Pod};
use parking_lot::Mutex;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::time::format_time;
use pintle_client::api::Bind;
use pintle_client::{Api, Client, Error, Patch};
use pintle_informer::fifo::Deleted;
use pintle_informer::record::{EventBroadcaster, EventRecorder, EventType, Recorder as _};
use pintle_informer::{Cached, CancellationToken, ResourceEventHandler, SharedInformerFactory};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Requests to the server that may be under way at once. At the limit no further decision is made.
const REQUESTS_MAX: usize = 64;

/// Who owns the fields that the scheduler writes.
const MANAGER: &str = "kube-scheduler";

/// How the scheduler behaves.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// The `schedulerName`s of the pods that it schedules. It reports under the first.
    pub names: Vec<String>,
}

impl Default for SchedulerOptions {
    fn default() -> SchedulerOptions {
        SchedulerOptions { names: vec!["default-scheduler".to_owned()] }
    }
}

/// A scheduler at work.
#[derive(Debug)]
pub struct Scheduler {
    task: JoinHandle<()>,
}

impl Scheduler {
    /// Starts scheduling; it ends at `stop`. Nodes, pods and namespaces come from the informers of `factory`, which may
    /// be shared with others and need not be started.
    pub fn start(factory: &SharedInformerFactory, options: SchedulerOptions, stop: &CancellationToken) -> Scheduler {
        let client = factory.client().clone();
        let env = client.env().clone();
        let broadcaster = EventBroadcaster::new(env.clone());
        broadcaster.start_recording_to_sink(&client, stop.clone());
        let name = options.names.first().map_or("default-scheduler", String::as_str);
        let shared = Arc::new(Shared {
            recorder: broadcaster.recorder(name),
            state: Mutex::default(),
            changed: Notify::new(),
            permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
            client,
            env,
            options,
        });
        let (nodes, pods, namespaces) =
            (factory.informer::<Node>(), factory.informer::<Pod>(), factory.informer::<Namespace>());
        let registrations = (
            nodes.add_event_handler(Handler(Arc::clone(&shared))),
            pods.add_event_handler(Handler(Arc::clone(&shared))),
            namespaces.add_event_handler(Handler(Arc::clone(&shared))),
        );
        factory.start(stop);
        let stopping = stop.clone();
        let task = tokio::spawn(async move {
            let work = async {
                // no decision before everything that is there has been heard of
                registrations.0.synced().await;
                registrations.1.synced().await;
                registrations.2.synced().await;
                shared.run().await;
            };
            stopping.run_until_cancelled(work).await;
        });
        Scheduler { task }
    }

    /// Waits until it has ended, after its `stop`.
    pub async fn stopped(self) {
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the scheduler ended badly");
        }
    }
}

/// What the handlers write and the loop reads.
#[derive(Debug, Default)]
struct State {
    cache: Cache,
    queue: SchedulingQueue,
    cursor: Cursor,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    env: Env,
    options: SchedulerOptions,
    recorder: EventRecorder,
    /// Held for one decision or one change at a time, never across an await.
    state: Mutex<State>,
    /// Told of every change that may give the loop something to do.
    changed: Notify,
    permits: Arc<Semaphore>,
}

/// What was decided about a pod.
enum Decision {
    Bind(Arc<PodInfo>),
    /// No node; if there are victims, they make room on the pod's nominated node.
    Fail(Arc<PodInfo>, Box<Unschedulable>, Vec<Arc<PodInfo>>),
}

impl Shared {
    async fn run(self: Arc<Self>) {
        loop {
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return };
            let decision = self.state.lock().decide(&self.env, Instant::now());
            let Some(decision) = decision else {
                drop(permit);
                self.wait().await;
                continue;
            };
            let this = Arc::clone(&self);
            tokio::spawn(async move {
                match decision {
                    Decision::Bind(pod) => this.bind(&pod).await,
                    Decision::Fail(pod, why, victims) => {
                        this.evict(&pod, &victims).await;
                        this.report(&pod, &why, !victims.is_empty()).await;
                    }
                }
                drop(permit);
            });
        }
    }

    /// Waits until there may be something to do.
    async fn wait(&self) {
        let deadline = self.state.lock().queue.next_deadline();
        let changed = self.changed.notified();
        match deadline {
            Some(deadline) => {
                // both ends mean the same: look again
                let _ = tokio::time::timeout_at(deadline, changed).await;
            }
            None => changed.await,
        }
    }

    async fn bind(&self, pod: &PodInfo) {
        let api = Api::<Pod>::namespaced(&self.client, &pod.name.namespace);
        let bind = Bind { node: pod.node.to_string(), uid: Some(pod.uid.to_string()), ..Bind::default() };
        match api.bind(&pod.name.name, bind).field_manager(MANAGER).await {
            Ok(()) => {
                self.state.lock().queue.done(&pod.name);
                let message = format!("Successfully assigned {}/{} to {}", pod.name.namespace, pod.name.name, pod.node);
                self.tell(pod, EventType::Normal, "Scheduled", &message);
            }
            Err(error) => self.bind_failed(pod, &error),
        }
    }

    fn bind_failed(&self, pod: &PodInfo, error: &Error) {
        let mut state = self.state.lock();
        state.cache.forget(&pod.name);
        let now = Instant::now();
        // what was assumed has kept others away
        state.queue.on_event(Plugins::NODE_RESOURCES_FIT | Plugins::NODE_PORTS, now);
        if error.is_not_found() || error.is_conflict() {
            // it is gone, or on a node: the informer will say so, or has
            let is_stale = state.queue.get(&pod.name).is_some_and(|waiting| waiting.uid == pod.uid);
            if is_stale {
                state.queue.failed(&pod.name, Plugins::NONE, now);
            }
        } else {
            state.queue.failed(&pod.name, Plugins::NONE, now);
        }
        drop(state);
        self.changed.notify_one();
        if !error.is_not_found() {
            let message = format!("binding rejected: {error}");
            self.tell(pod, EventType::Warning, "FailedScheduling", &message);
        }
    }

    /// Makes pods go so that there is room for another.
    async fn evict(&self, pod: &PodInfo, victims: &[Arc<PodInfo>]) {
        let scheduler = self.options.names.first().map_or("default-scheduler", String::as_str);
        for victim in victims.iter().filter(|victim| !victim.is_terminating) {
            let api = Api::<Pod>::namespaced(&self.client, &victim.name.namespace);
            let condition = json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": format!("{scheduler}: preempting to accommodate a higher priority pod"),
                "lastTransitionTime": format_time(self.env.clock.now()).as_str(),
            });
            let patch = json!({"metadata": {"uid": victim.uid.as_str()}, "status": {"conditions": [condition]}});
            let told = api.patch_status(&victim.name.name, &Patch::Strategic(patch)).field_manager(MANAGER).await;
            let deleted = match told {
                Ok(_) => api.delete(&victim.name.name).uid(victim.uid.as_str()).await.map(drop),
                Err(error) => Err(error),
            };
            match deleted {
                Ok(()) => {
                    let message = format!("Preempted by pod {} on node {}", pod.uid, pod.nominated_node);
                    self.tell(victim, EventType::Normal, "Preempted", &message);
                }
                // it has gone by itself
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                Err(error) => tracing::warn!(victim = %victim.name, %error, "the pod cannot be made to go"),
            }
        }
    }

    /// Tells the server and people why a pod has no node.
    async fn report(&self, pod: &PodInfo, why: &Unschedulable, is_nominated: bool) {
        let message = why.to_string();
        self.tell(pod, EventType::Warning, "FailedScheduling", &message);
        let demands = pod.demands.as_deref();
        let is_told = demands
            .and_then(|demands| demands.told.as_ref())
            .is_some_and(|told| *told == ("Unschedulable".to_owned(), message.clone()));
        if is_told && !is_nominated {
            return;
        }
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "observedGeneration": demands.and_then(|demands| demands.generation),
            "lastProbeTime": null,
            "lastTransitionTime": format_time(self.env.clock.now()).as_str(),
        });
        let mut patch = json!({"metadata": {"uid": pod.uid.as_str()}, "status": {"conditions": [condition]}});
        if is_nominated {
            patch["status"]["nominatedNodeName"] = json!(pod.nominated_node.as_str());
        }
        let api = Api::<Pod>::namespaced(&self.client, &pod.name.namespace);
        if let Err(error) = api.patch_status(&pod.name.name, &Patch::Strategic(patch)).field_manager(MANAGER).await
            && !error.is_not_found()
            && !error.is_conflict()
        {
            tracing::warn!(pod = %pod.name, %error, "cannot say that the pod is unschedulable");
        }
    }

    fn tell(&self, pod: &PodInfo, event_type: EventType, reason: &str, message: &str) {
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(pod.name.namespace.to_string()),
            name: Some(pod.name.name.to_string()),
            uid: Some(pod.uid.to_string()),
            ..ObjectReference::default()
        };
        self.recorder.event(&about, event_type, reason, message);
    }
}

impl State {
    /// Takes the next pod and decides.
    fn decide(&mut self, env: &Env, now: Instant) -> Option<Decision> {
        loop {
            let pod = self.queue.pop(now)?;
            let Some(demands) = pod.demands.as_deref().filter(|_| !pod.is_terminating) else {
                self.queue.done(&pod.name);
                continue;
            };
            return Some(match select(&self.cache, &pod, demands, &mut self.cursor, env.ids.random_u64()) {
                Ok(node) => {
                    let assumed = Arc::new(pod.on_node(&node));
                    self.cache.denominate(&pod.name);
                    self.cache.assume(Arc::clone(&assumed));
                    Decision::Bind(assumed)
                }
                Err(mut why) => {
                    let room = preempt(&self.cache, &pod, demands, &mut why);
                    let (pod, victims) = match room {
                        Some(room) => {
                            let nominated = Arc::new(PodInfo { nominated_node: room.node, ..PodInfo::clone(&pod) });
                            self.cache.nominate(&nominated);
                            self.queue.replace(Arc::clone(&nominated));
                            (nominated, room.victims)
                        }
                        None => (pod, Vec::new()),
                    };
                    // without nodes nothing objects, and a node is what the pod waits for
                    let plugins = if why.n_nodes == 0 { Plugins::ALL } else { why.plugins() };
                    self.queue.failed(&pod.name, plugins, now);
                    Decision::Fail(pod, why, victims)
                }
            });
        }
    }

    fn on_pod(&mut self, names: &[String], pod: PodInfo, is_over: bool, now: Instant) {
        if is_over {
            self.on_pod_gone(&pod, now);
            return;
        }
        if !pod.node.is_empty() {
            self.queue.remove(&pod.name);
            self.cache.denominate(&pod.name);
            let pod = Arc::new(pod);
            let was_assumed = self.cache.is_assumed(&pod.name);
            let before = self.cache.set_pod(Arc::clone(&pod));
            let nearby = Plugins::INTER_POD_AFFINITY | Plugins::POD_TOPOLOGY_SPREAD;
            match before {
                None => self.queue.on_event(nearby, now),
                Some(_) if was_assumed => self.queue.on_event(nearby, now),
                Some(before) => {
                    if before.labels != pod.labels {
                        self.queue.on_event(nearby, now);
                    }
                    if before.requests != pod.requests {
                        self.queue.on_event(Plugins::NODE_RESOURCES_FIT, now);
                    }
                }
            }
            return;
        }
        let is_ours = pod.demands.as_ref().is_some_and(|demands| names.contains(&demands.scheduler_name));
        // an assumed pod is on its way to a node: the news is older than the decision
        if is_ours && !pod.is_terminating && !self.cache.is_assumed(&pod.name) {
            let pod = Arc::new(pod);
            if !pod.nominated_node.is_empty() {
                self.cache.nominate(&pod);
            }
            self.queue.set(pod, now);
        } else if pod.is_terminating {
            self.queue.remove(&pod.name);
        }
    }

    fn on_pod_gone(&mut self, pod: &PodInfo, now: Instant) {
        self.queue.remove(&pod.name);
        self.cache.denominate(&pod.name);
        if self.cache.remove_pod(&pod.name).is_some() {
            let room = Plugins::NODE_RESOURCES_FIT | Plugins::NODE_PORTS;
            let nearby = Plugins::INTER_POD_AFFINITY | Plugins::POD_TOPOLOGY_SPREAD | Plugins::VOLUME_BINDING;
            self.queue.on_event(room | nearby, now);
        }
    }

    fn on_node(&mut self, node: &Node, now: Instant) {
        let change = self.cache.set_node(node);
        self.queue.on_event(helped_by(change), now);
    }
}

/// What a change of a node may clear out of the way.
fn helped_by(change: NodeChange) -> Plugins {
    let mut plugins = Plugins::NONE;
    if change.is_new {
        return Plugins::ALL;
    }
    if change.has_more {
        plugins = plugins | Plugins::NODE_RESOURCES_FIT;
    }
    if change.labels {
        plugins = plugins | Plugins::NODE_AFFINITY | Plugins::POD_TOPOLOGY_SPREAD | Plugins::INTER_POD_AFFINITY;
    }
    if change.taints {
        plugins = plugins | Plugins::TAINT_TOLERATION | Plugins::NODE_UNSCHEDULABLE | Plugins::POD_TOPOLOGY_SPREAD;
    }
    plugins
}

/// Puts what informers say into the state.
struct Handler(Arc<Shared>);

impl Handler {
    fn change(&self, change: impl FnOnce(&mut State, &Shared, Instant)) {
        change(&mut self.0.state.lock(), &self.0, Instant::now());
        self.0.changed.notify_one();
    }

    fn set_pod(&self, cached: &Cached<Pod>) {
        let pod = match cached.object() {
            Ok(pod) => pod,
            Err(error) => return tracing::warn!(%error, "the pod is not scheduled"),
        };
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let is_over = matches!(phase, Some("Succeeded" | "Failed"));
        let info = PodInfo::new(&pod);
        self.change(|state, shared, now| state.on_pod(&shared.options.names, info, is_over, now));
    }
}

impl ResourceEventHandler<Cached<Pod>> for Handler {
    fn on_add(&self, pod: &Cached<Pod>, _: bool) {
        self.set_pod(pod);
    }

    fn on_update(&self, _: &Cached<Pod>, pod: &Cached<Pod>) {
        self.set_pod(pod);
    }

    fn on_delete(&self, deleted: &Deleted<Cached<Pod>>) {
        let name = deleted.object().object_name();
        self.change(|state, _, now| {
            if let Some(pod) = state.cache.pod(&name).or_else(|| state.queue.get(&name)).cloned() {
                state.on_pod_gone(&pod, now);
            }
        });
    }
}

impl ResourceEventHandler<Cached<Node>> for Handler {
    fn on_add(&self, node: &Cached<Node>, _: bool) {
        match node.object() {
            Ok(node) => self.change(|state, _, now| state.on_node(&node, now)),
            Err(error) => tracing::warn!(%error, "the node gets no pods"),
        }
    }

    fn on_update(&self, _: &Cached<Node>, node: &Cached<Node>) {
        self.on_add(node, false);
    }

    fn on_delete(&self, deleted: &Deleted<Cached<Node>>) {
        let name = deleted.object().name().to_owned();
        self.change(|state, _, now| {
            state.cache.remove_node(&name);
            state.queue.on_event(Plugins::POD_TOPOLOGY_SPREAD | Plugins::INTER_POD_AFFINITY, now);
        });
    }
}

impl ResourceEventHandler<Cached<Namespace>> for Handler {
    fn on_add(&self, namespace: &Cached<Namespace>, _: bool) {
        let labels = namespace.labels().map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
        self.change(|state, _, now| {
            state.cache.namespaces.set(namespace.name(), labels);
            state.queue.on_event(Plugins::INTER_POD_AFFINITY, now);
        });
    }

    fn on_update(&self, _: &Cached<Namespace>, namespace: &Cached<Namespace>) {
        self.on_add(namespace, false);
    }

    fn on_delete(&self, deleted: &Deleted<Cached<Namespace>>) {
        let name = deleted.object().name().to_owned();
        self.change(|state, _, _| state.cache.namespaces.remove(&name));
    }
}
