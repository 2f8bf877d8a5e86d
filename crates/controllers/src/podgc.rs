//! Deletes pods that nobody will finish: those whose node is gone, and those that were deleted before they had a node.
//!
//! Follows: kubernetes/pkg/controller/podgc (v1.35). Differs: changes are followed instead of looking at every pod every
//! twenty seconds; ended pods are not deleted for being many.

use crate::common::pods::is_finished;
use crate::context::{Context, synced};
use k8s_openapi::api::core::v1::{Node, Pod};
use pintle_apimachinery::Str;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::time::format_time;
use pintle_client::{Api, Client, Patch, Result};
use pintle_informer::handler::enqueue_by;
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Deleted, Lister, ObjectName, ResourceEventHandlerFuncs};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Pods looked at once.
const WORKERS: usize = 4;

/// A node that is gone may come back within this time.
const QUARANTINE: Duration = Duration::from_secs(40);

/// The index of pods by node.
const BY_NODE: &str = "podgc.node";

fn node_of(pod: &Cached<Pod>) -> Option<Str> {
    pod.text_at(&["spec", "nodeName"]).filter(|name| !name.is_empty()).map(Str::from)
}

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("podgc");
    let (pods, nodes) = (ctx.factory.informer::<Pod>(), ctx.factory.informer::<Node>());
    pods.add_index(BY_NODE, |pod| node_of(pod).into_iter().collect());
    let (known, later) = (nodes.lister(), queue.clone());
    pods.add_event_handler(enqueue_by(&queue, move |pod: &Cached<Pod>| match node_of(pod) {
        None => pod.is_terminating().then(|| pod.object_name()),
        Some(node) => {
            if known.get(&node).is_none() {
                later.add_after(pod.object_name(), QUARANTINE);
            }
            None
        }
    }));
    let (lister, later) = (pods.lister(), queue.clone());
    nodes.add_event_handler(ResourceEventHandlerFuncs::new().on_delete(move |deleted: &Deleted<Cached<Node>>| {
        for pod in lister.by_index(BY_NODE, deleted.object().name()).unwrap_or_default() {
            later.add_after(pod.object_name(), QUARANTINE);
        }
    }));
    let collector = Arc::new(PodCollector {
        client: ctx.client_of("pod-garbage-collector"),
        pods: pods.lister(),
        nodes: nodes.lister(),
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(pods, nodes), move |name| {
        let collector = Arc::clone(&collector);
        async move { collector.sync(&name).await }
    });
}

struct PodCollector {
    client: Client,
    pods: Lister<Cached<Pod>>,
    nodes: Lister<Cached<Node>>,
    env: Env,
}

impl PodCollector {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(pod) = self.pods.get_by_key(name) else { return Ok(Action::Done) };
        match node_of(&pod) {
            None if pod.is_terminating() => self.delete(&pod, None).await,
            None => Ok(Action::Done),
            Some(node) => {
                let is_cached = self.nodes.get(&node).is_some();
                if is_cached || Api::<Node>::all(&self.client).get_opt(&node).await?.is_some() {
                    return Ok(Action::Done);
                }
                self.delete(&pod, Some("PodGC: node no longer exists")).await
            }
        }
    }

    /// Marks a pod as failed and deletes it at once.
    async fn delete(&self, pod: &Cached<Pod>, disruption: Option<&str>) -> Result<Action> {
        let api = Api::<Pod>::namespaced(&self.client, pod.namespace());
        if !is_finished(pod.object()?.as_ref()) {
            let mut status = json!({"phase": "Failed"});
            if let Some(message) = disruption {
                status["conditions"] = json!([{
                    "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": message,
                    "lastTransitionTime": format_time(self.env.clock.now()).as_str(),
                }]);
            }
            let patch = Patch::Strategic(json!({"metadata": {"uid": pod.uid()}, "status": status}));
            match api.patch_status(pod.name(), &patch).await {
                Err(error) if error.is_not_found() => return Ok(Action::Done),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        match api.delete(pod.name()).grace_period(0).uid(pod.uid()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Action::Done),
        }
    }
}
