//! What a DaemonSet needs on its nodes. Pure.
//!
//! Follows: kubernetes/pkg/controller/daemon (v1.35).

use super::nodes::{pinned_to, should_run};
use crate::common::history::REVISION_LABEL;
use crate::common::intstr::scaled;
use crate::common::pods::{is_available, is_ready, phase};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus, RollingUpdateDaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use pintle_client::Object as _;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nodes that need a pod, and pods that must go.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) create_on: Vec<String>,
    pub(super) delete: Vec<Arc<Pod>>,
    /// Pods of these that are replaced because they have ended.
    pub(super) ended: Vec<Arc<Pod>>,
}

/// A pod of the template, and one of an older template.
type NewAndOld = (Option<Arc<Pod>>, Option<Arc<Pod>>);

/// A set, its nodes, and its pods by node.
pub(super) struct View<'a> {
    pub(super) set: &'a DaemonSet,
    pub(super) nodes: &'a [Arc<Node>],
    /// The hash of the template.
    pub(super) hash: &'a str,
    pub(super) now: Timestamp,
    by_node: BTreeMap<String, Vec<Arc<Pod>>>,
}

fn min_ready_seconds(set: &DaemonSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

/// The node that a pod is on or is meant for.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    spec.node_name.as_deref().filter(|name| !name.is_empty()).or_else(|| pinned_to(spec))
}

impl<'a> View<'a> {
    pub(super) fn new(
        set: &'a DaemonSet,
        nodes: &'a [Arc<Node>],
        pods: &[Arc<Pod>],
        hash: &'a str,
        now: Timestamp,
    ) -> View<'a> {
        let mut by_node: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in pods {
            if let Some(node) = node_of(pod) {
                by_node.entry(node.to_owned()).or_default().push(Arc::clone(pod));
            }
        }
        for pods in by_node.values_mut() {
            let is_assigned = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
            pods.sort_by(|a, b| {
                is_assigned(b).cmp(&is_assigned(a)).then(created(a).cmp(&created(b))).then(a.name().cmp(b.name()))
            });
        }
        View { set, nodes, hash, now, by_node }
    }

    fn should_run(&self, node: &Node) -> (bool, bool) {
        let template = self.set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        template.map_or((false, false), |template| should_run(template, node))
    }

    fn pods_on(&self, node: &Node) -> &[Arc<Pod>] {
        self.by_node.get(node.name()).map(Vec::as_slice).unwrap_or_default()
    }

    fn is_updated(&self, pod: &Pod) -> bool {
        let labels = pod.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(REVISION_LABEL)).is_some_and(|hash| hash == self.hash)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        is_available(pod, min_ready_seconds(self.set), self.now)
    }

    /// Pods where they are missing, and none where they should not be.
    pub(super) fn manage(&self) -> Step {
        let mut step = Step::default();
        for node in self.nodes {
            let pods = self.pods_on(node);
            match self.should_run(node) {
                (true, _) if pods.is_empty() => step.create_on.push(node.name().to_owned()),
                (_, false) => step.delete.extend(pods.iter().filter(|pod| !pod.is_terminating()).cloned()),
                (_, true) => self.keep_one(pods, &mut step),
            }
        }
        let is_node = |name: &str| self.nodes.iter().any(|node| node.name() == name);
        for (_, pods) in self.by_node.iter().filter(|(node, _)| !is_node(node)) {
            // waits for a node that is no more; what ran on it is the pod garbage collector's
            let is_waiting = |pod: &&Arc<Pod>| pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none());
            step.delete.extend(pods.iter().filter(is_waiting).cloned());
        }
        step
    }

    /// Of the pods on a node that run or will run, the oldest stays; with a surge, also one that is new.
    fn keep_one(&self, pods: &[Arc<Pod>], step: &mut Step) {
        let mut running = Vec::new();
        for pod in pods.iter().filter(|pod| !pod.is_terminating()) {
            if matches!(phase(pod), "Failed" | "Succeeded") {
                step.ended.push(Arc::clone(pod));
                step.delete.push(Arc::clone(pod));
            } else {
                running.push(pod);
            }
        }
        let surplus: Vec<&Arc<Pod>> = if self.limits().0 == 0 {
            running.into_iter().skip(1).collect()
        } else {
            let (new, old): (Vec<_>, Vec<_>) = running.into_iter().partition(|pod| self.is_updated(pod));
            old.into_iter().skip(1).chain(new.into_iter().skip(1)).collect()
        };
        step.delete.extend(surplus.into_iter().cloned());
    }

    /// How many pods may be there twice, and how many may be missing, during an update.
    fn limits(&self) -> (usize, usize) {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone());
        let RollingUpdateDaemonSet { max_surge, max_unavailable } = rolling.unwrap_or_default();
        let desired = self.nodes.iter().filter(|node| self.should_run(node).0).count();
        let desired = i32::try_from(desired).unwrap_or(i32::MAX);
        let count = |value: Option<_>| {
            let count = value.and_then(|value| scaled(&value, desired, true)).unwrap_or_default();
            usize::try_from(count).unwrap_or_default()
        };
        let (surge, unavailable) = (count(max_surge), count(max_unavailable));
        // both are zero only by rounding
        if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
    }

    /// The next step of a rolling update.
    pub(super) fn roll(&self) -> Step {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return Step::default();
        }
        let (surge, unavailable) = self.limits();
        if surge == 0 { self.replace(unavailable) } else { self.surge(surge) }
    }

    /// The pod of the template and the pod of an older one; `None` when there are too many.
    fn new_and_old(&self, pods: &[Arc<Pod>]) -> Option<NewAndOld> {
        let (mut new, mut old) = (None, None);
        for pod in pods.iter().filter(|pod| !pod.is_terminating()) {
            let place = if self.is_updated(pod) { &mut new } else { &mut old };
            if place.replace(Arc::clone(pod)).is_some() {
                return None;
            }
        }
        Some((new, old))
    }

    /// Deletes old pods, as many as may be missing; those that do not work in any case.
    fn replace(&self, max_unavailable: usize) -> Step {
        let mut n_unavailable = 0;
        let (mut delete, mut candidates) = (Vec::new(), Vec::new());
        for pods in self.by_node.values() {
            match self.new_and_old(pods) {
                None | Some((None, None) | (Some(_), Some(_))) => n_unavailable += 1,
                Some((Some(new), None)) => n_unavailable += usize::from(!self.is_available(&new)),
                Some((None, Some(old))) if self.is_available(&old) => candidates.push(old),
                Some((None, Some(old))) => {
                    n_unavailable += 1;
                    delete.push(old);
                }
            }
        }
        delete.extend(candidates.into_iter().take(max_unavailable.saturating_sub(n_unavailable)));
        Step { delete, ..Step::default() }
    }

    /// Makes new pods beside old ones, and deletes the old ones when the new ones work.
    fn surge(&self, max_surge: usize) -> Step {
        let mut step = Step::default();
        let (mut n_surge, mut candidates) = (0, Vec::new());
        for (node, pods) in &self.by_node {
            match self.new_and_old(pods) {
                None => n_surge += 1,
                Some((Some(new), Some(old))) if self.is_available(&new) => step.delete.push(old),
                Some((Some(_), Some(_))) => n_surge += 1,
                Some((None, Some(old))) => {
                    let is_wanted = self.nodes.iter().any(|known| known.name() == node && self.should_run(known).0);
                    match (is_wanted, self.is_available(&old)) {
                        (false, _) => step.delete.push(old),
                        (true, false) => step.create_on.push(node.clone()),
                        (true, true) => candidates.push(node.clone()),
                    }
                }
                Some((_, None)) => {}
            }
        }
        step.create_on.extend(candidates.into_iter().take(max_surge.saturating_sub(n_surge)));
        step
    }

    /// The status.
    pub(super) fn status(&self, has_observed: bool) -> DaemonSetStatus {
        let known = self.set.status.clone().unwrap_or_default();
        let mut status = DaemonSetStatus {
            observed_generation: if has_observed { self.set.metadata.generation } else { known.observed_generation },
            collision_count: known.collision_count,
            conditions: known.conditions,
            ..DaemonSetStatus::default()
        };
        let (mut n_updated, mut n_available) = (0, 0);
        for node in self.nodes {
            let first = self.pods_on(node).first();
            match (self.should_run(node).0, first) {
                (true, first) => {
                    status.desired_number_scheduled += 1;
                    let Some(pod) = first else { continue };
                    status.current_number_scheduled += 1;
                    status.number_ready += i32::from(is_ready(pod));
                    n_available += i32::from(self.is_available(pod));
                    n_updated += i32::from(self.is_updated(pod));
                }
                (false, Some(_)) => status.number_misscheduled += 1,
                (false, None) => {}
            }
        }
        let some = |n: i32| Some(n).filter(|n| *n != 0);
        status.updated_number_scheduled = some(n_updated);
        status.number_available = some(n_available);
        status.number_unavailable = some(status.desired_number_scheduled - n_available);
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn look(rolling: Value, nodes: &str, pods: &str) -> String {
        let set: DaemonSet = serde_json::from_value(json!({
            "metadata": {"name": "d", "generation": 1},
            "spec": {"selector": {}, "template": {"spec": {"containers": []}}, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}},
        }))
        .unwrap();
        // `n!` is a node that takes no pods
        let node = |word: &str| -> Arc<Node> {
            let taints = if word.ends_with('!') { json!([{"key": "k", "effect": "NoExecute"}]) } else { json!([]) };
            Arc::new(
                serde_json::from_value(
                    json!({"metadata": {"name": word.trim_end_matches('!')}, "spec": {"taints": taints}}),
                )
                .unwrap(),
            )
        };
        let nodes: Vec<Arc<Node>> = nodes.split_whitespace().map(node).collect();
        // `n=h1` is a ready pod of a hash on a node, `n-h1` one that is not ready, `n!h1` a failed one
        let pod =
            |(idx, word): (usize, &str)| -> Arc<Pod> {
                let at = word.find(['=', '-', '!']).unwrap();
                let is_ready = if word[at..].starts_with('=') { "True" } else { "False" };
                let phase = if word[at..].starts_with('!') { "Failed" } else { "Running" };
                Arc::new(serde_json::from_value(json!({
                "metadata": {"name": format!("{}.{idx}", &word[..at]), "labels": {REVISION_LABEL: &word[at + 1..]}},
                "spec": {"containers": [], "nodeName": &word[..at]},
                "status": {"phase": phase, "conditions": [{"type": "Ready", "status": is_ready}]},
            })).unwrap())
            };
        let parsed: Vec<Arc<Pod>> = pods.split_whitespace().enumerate().map(pod).collect();
        let view = View::new(&set, &nodes, &parsed, "h2", Timestamp::UNIX_EPOCH);
        let show = |step: Step| {
            format!(
                "create {:?} delete {:?}",
                step.create_on,
                step.delete.iter().map(|pod| pod.name()).collect::<Vec<_>>()
            )
        };
        let s = view.status(true);
        format!(
            "{pods}: {}; roll {}; desired {} current {} ready {} misscheduled {} updated {:?}\n",
            show(view.manage()),
            show(view.roll()),
            s.desired_number_scheduled,
            s.current_number_scheduled,
            s.number_ready,
            s.number_misscheduled,
            s.updated_number_scheduled
        )
    }

    #[test]
    fn every_node_has_its_pod() {
        let mut log = String::new();
        for pods in ["", "a=h2 b=h2", "a=h1 b=h1 c=h1", "a=h1 b=h1 c-h1", "a=h2 b=h1 c-h2", "a=h2 a=h2 b!h2 c=h2"] {
            log += &look(json!({"maxUnavailable": 1, "maxSurge": 0}), "a b c! d", pods);
        }
        for pods in ["a=h1 b=h1", "a=h1 a-h2 b=h1", "a=h1 a=h2 b=h1"] {
            log += &look(json!({"maxUnavailable": 0, "maxSurge": 1}), "a b", pods);
        }
        expect_test::expect![[r#"
            : create ["a", "b", "d"] delete []; roll create [] delete []; desired 3 current 0 ready 0 misscheduled 0 updated None
            a=h2 b=h2: create ["d"] delete []; roll create [] delete []; desired 3 current 2 ready 2 misscheduled 0 updated Some(2)
            a=h1 b=h1 c=h1: create ["d"] delete ["c.2"]; roll create [] delete ["a.0"]; desired 3 current 2 ready 2 misscheduled 1 updated None
            a=h1 b=h1 c-h1: create ["d"] delete ["c.2"]; roll create [] delete ["c.2"]; desired 3 current 2 ready 2 misscheduled 1 updated None
            a=h2 b=h1 c-h2: create ["d"] delete ["c.2"]; roll create [] delete []; desired 3 current 2 ready 2 misscheduled 1 updated Some(1)
            a=h2 a=h2 b!h2 c=h2: create ["d"] delete ["a.1", "b.2", "c.3"]; roll create [] delete []; desired 3 current 2 ready 1 misscheduled 1 updated Some(2)
            a=h1 b=h1: create [] delete []; roll create ["a"] delete []; desired 2 current 2 ready 2 misscheduled 0 updated None
            a=h1 a-h2 b=h1: create [] delete []; roll create [] delete []; desired 2 current 2 ready 2 misscheduled 0 updated None
            a=h1 a=h2 b=h1: create [] delete []; roll create ["b"] delete ["a.0"]; desired 2 current 2 ready 2 misscheduled 0 updated None
        "#]].assert_eq(&log);
    }
}
