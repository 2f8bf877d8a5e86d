//! What a StatefulSet needs next, in its order. Pure.
//!
//! Follows: kubernetes/pkg/controller/statefulset/stateful_set_control.go (v1.35).

use super::pods::{is_identified, new_pod, ordinal, ordinals, revision_of, spec};
use crate::common::pods::{available_at, is_available, is_ready, phase};
use crate::common::until;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use pintle_client::Object as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Something to do, in order.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Make the claims and the pod.
    Create(Box<Pod>),
    Delete(Arc<Pod>),
    /// See to labels, claims and the owners of claims.
    Keep(Arc<Pod>),
}

/// A revision by name, with its template.
pub(super) struct Revision<'a> {
    pub(super) name: &'a str,
    pub(super) template: &'a PodTemplateSpec,
}

/// The acts, and the status before them.
pub(super) struct Plan {
    pub(super) acts: Vec<Act>,
    pub(super) status: StatefulSetStatus,
}

fn is_created(pod: &Pod) -> bool {
    !phase(pod).is_empty()
}

fn is_running_and_ready(pod: &Pod) -> bool {
    phase(pod) == "Running" && is_ready(pod)
}

fn min_ready_seconds(set: &StatefulSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

fn is_rolling(set: &StatefulSet) -> bool {
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
}

fn partition(set: &StatefulSet) -> i32 {
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.partition).unwrap_or_default()
}

/// What is to be done.
pub(super) fn plan(
    set: &StatefulSet,
    current: &Revision<'_>,
    update: &Revision<'_>,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> Plan {
    let mut status = status(set, current, update, pods, now);
    let mut acts = Vec::new();
    if !set.is_terminating() {
        let at = |pod: &Arc<Pod>| ordinal(set.name(), pod.name()).map(|ordinal| (ordinal, Arc::clone(pod)));
        let by_ordinal: BTreeMap<i32, Arc<Pod>> = pods.iter().filter_map(at).collect();
        let round = Round { set, current, update, by_ordinal, now };
        let goes_on = round.fill(&mut acts) && round.condemn(&mut acts);
        if goes_on && is_rolling(set) && round.replace(&mut acts, update.name) {
            status.current_replicas = status.current_replicas.map(|n| n - 1).filter(|n| *n != 0);
        }
    }
    Plan { acts, status }
}

struct Round<'a> {
    set: &'a StatefulSet,
    current: &'a Revision<'a>,
    update: &'a Revision<'a>,
    by_ordinal: BTreeMap<i32, Arc<Pod>>,
    now: Timestamp,
}

impl Round<'_> {
    /// One after the other, each waiting for the one before.
    fn is_ordered(&self) -> bool {
        spec(self.set).pod_management_policy.as_deref() != Some("Parallel")
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        pod.is_terminating() || !is_available(pod, min_ready_seconds(self.set), self.now)
    }

    /// Makes what is missing and mends what is broken. Whether the rest may follow.
    fn fill(&self, acts: &mut Vec<Act>) -> bool {
        for ordinal in ordinals(self.set) {
            let Some(pod) = self.by_ordinal.get(&ordinal) else {
                acts.push(Act::Create(Box::new(self.new_pod(ordinal))));
                if self.is_ordered() {
                    return false;
                }
                continue;
            };
            if matches!(phase(pod), "Failed" | "Succeeded") {
                if !pod.is_terminating() {
                    acts.push(Act::Delete(Arc::clone(pod)));
                }
                if self.is_ordered() {
                    return false;
                }
                continue;
            }
            if !is_identified(pod) || spec(self.set).volume_claim_templates.is_some_and(|claims| !claims.is_empty()) {
                acts.push(Act::Keep(Arc::clone(pod)));
            }
            let is_waited_for = !is_running_and_ready(pod) || self.is_unavailable(pod);
            if is_waited_for && self.is_ordered() {
                return false;
            }
        }
        true
    }

    /// A pod below the partition stays of the current revision.
    fn new_pod(&self, ordinal: i32) -> Pod {
        let is_current = is_rolling(self.set) && ordinal < ordinals(self.set).start + partition(self.set);
        let revision = if is_current { self.current } else { self.update };
        new_pod(self.set, revision.template, revision.name, ordinal)
    }

    /// Deletes what is too much, the highest ordinal first. Whether the rest may follow.
    fn condemn(&self, acts: &mut Vec<Act>) -> bool {
        let wanted = ordinals(self.set);
        let condemned: Vec<&Arc<Pod>> =
            self.by_ordinal.iter().rev().filter(|(ordinal, _)| !wanted.contains(ordinal)).map(|(_, pod)| pod).collect();
        let has_policy = spec(self.set).persistent_volume_claim_retention_policy.is_some();
        if has_policy && spec(self.set).volume_claim_templates.is_some() {
            acts.extend(condemned.iter().map(|pod| Act::Keep(Arc::clone(pod))));
        }
        let in_range = self.by_ordinal.iter().filter(|(ordinal, _)| wanted.contains(ordinal)).map(|(_, pod)| pod);
        let mut unavailable = in_range.chain(condemned.iter().rev().copied()).filter(|pod| self.is_unavailable(pod));
        let first_unavailable = unavailable.next().map(|pod| pod.uid());
        for pod in condemned {
            if pod.is_terminating() {
                if self.is_ordered() {
                    return false;
                }
                continue;
            }
            let is_waited_for = !is_running_and_ready(pod) || !is_available(pod, min_ready_seconds(self.set), self.now);
            if is_waited_for && self.is_ordered() && first_unavailable != Some(pod.uid()) {
                return false;
            }
            acts.push(Act::Delete(Arc::clone(pod)));
            if self.is_ordered() {
                return false;
            }
        }
        true
    }

    /// Deletes the next pod of an old revision, the highest ordinal first, down to the partition.
    fn replace(&self, acts: &mut Vec<Act>, revision: &str) -> bool {
        let wanted = ordinals(self.set);
        for ordinal in wanted.clone().rev().take_while(|ordinal| *ordinal >= wanted.start + partition(self.set)) {
            let Some(pod) = self.by_ordinal.get(&ordinal) else { return false };
            if revision_of(pod) != revision && !pod.is_terminating() {
                acts.push(Act::Delete(Arc::clone(pod)));
                return true;
            }
            if self.is_unavailable(pod) {
                return false;
            }
        }
        false
    }
}

fn status(
    set: &StatefulSet,
    current: &Revision<'_>,
    update: &Revision<'_>,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> StatefulSetStatus {
    let n = |keep: &dyn Fn(&Pod) -> bool| {
        i32::try_from(pods.iter().filter(|pod| is_created(pod) && keep(pod)).count()).unwrap_or(i32::MAX)
    };
    let some = |n: i32| Some(n).filter(|n| *n != 0);
    let is_of = |pod: &Pod, name: &str| !pod.is_terminating() && revision_of(pod) == name;
    let known = set.status.clone().unwrap_or_default();
    let replicas = n(&|_| true);
    let ready = n(&is_running_and_ready);
    let updated = n(&|pod| is_of(pod, update.name));
    let mut status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas,
        ready_replicas: some(ready),
        available_replicas: Some(n(&|pod| is_running_and_ready(pod) && is_available(pod, min_ready_seconds(set), now))),
        current_replicas: some(n(&|pod| is_of(pod, current.name))),
        updated_replicas: some(updated),
        current_revision: Some(current.name.to_owned()),
        update_revision: Some(update.name.to_owned()),
        collision_count: Some(known.collision_count.unwrap_or_default()),
        conditions: known.conditions,
    };
    let wanted = spec(set).replicas.unwrap_or(1);
    if is_rolling(set) && updated == wanted && ready == wanted && replicas == wanted {
        // the update is over: what was new is current
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
    status
}

/// When a pod that is ready will have been so long enough.
pub(super) fn next_look(set: &StatefulSet, pods: &[Arc<Pod>], now: Timestamp) -> Option<Duration> {
    let seconds = min_ready_seconds(set);
    let waiting = pods.iter().filter(|pod| seconds > 0 && is_ready(pod) && !is_available(pod, seconds, now));
    let next = waiting.filter_map(|pod| available_at(pod, seconds)).min()?;
    Some(until(now, next) + Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(spec: Value) -> StatefulSet {
        let mut whole = json!({"selector": {}, "serviceName": "db", "template": {}, "replicas": 3,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json!({"metadata": {"name": "db", "namespace": "ns"}, "spec": whole})).unwrap()
    }

    /// `0=r1` is a ready pod of a revision, `0-r1` one that is not ready, `0xr1` one that goes away, `0!r1` a failed one.
    fn pods(line: &str) -> Vec<Arc<Pod>> {
        let pod = |word: &str| -> Arc<Pod> {
            let at = word.find(['=', '-', 'x', '!']).unwrap();
            let (ordinal, revision) = (&word[..at], &word[at + 1..]);
            let name = format!("db-{ordinal}");
            let is_ready = if word[at..].starts_with('=') { "True" } else { "False" };
            let phase = if word[at..].starts_with('!') { "Failed" } else { "Running" };
            let mut pod = json!({
                "metadata": {"name": name, "uid": name, "labels": {"statefulset.kubernetes.io/pod-name": name, "controller-revision-hash": revision}},
                "status": {"phase": phase, "conditions": [{"type": "Ready", "status": is_ready}]},
            });
            if word[at..].starts_with('x') {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        line.split_whitespace().map(pod).collect()
    }

    fn look(set: &StatefulSet, line: &str) -> String {
        let template = PodTemplateSpec::default();
        let revision = |name| Revision { name, template: &template };
        let plan = plan(set, &revision("r1"), &revision("r2"), &pods(line), Timestamp::UNIX_EPOCH);
        let act = |act: &Act| match act {
            Act::Create(pod) => format!("create {} of {}", pod.name(), revision_of(pod)),
            Act::Delete(pod) => format!("delete {}", pod.name()),
            Act::Keep(pod) => format!("keep {}", pod.name()),
        };
        let acts: Vec<String> = plan.acts.iter().map(act).collect();
        let s = plan.status;
        let n = |n: Option<i32>| n.unwrap_or_default();
        format!(
            "{line}: {} | {} ready {} current {} updated {}\n",
            acts.join(", "),
            s.replicas,
            n(s.ready_replicas),
            n(s.current_replicas),
            n(s.updated_replicas)
        )
    }

    #[test]
    fn in_order() {
        let ordered = set(json!({}));
        let lines = [
            "",
            "0-r2",
            "0=r2",
            "0=r1 1=r1 2=r1",
            "0=r1 1=r1 2xr1",
            "0=r1 1=r1",
            "0=r1 1=r1 2=r2",
            "0=r2 1=r2 2=r2",
            "0=r2 1!r2 2=r2",
            "0=r2 1=r2 2=r2 3=r2 4=r2",
            "0=r2 1=r2 2=r2 3=r2 4xr2",
        ];
        let log: String = lines.into_iter().map(|line| look(&ordered, line)).collect();
        expect_test::expect![[r#"
            : create db-0 of r2 | 0 ready 0 current 0 updated 0
            0-r2:  | 1 ready 0 current 0 updated 1
            0=r2: create db-1 of r2 | 1 ready 1 current 0 updated 1
            0=r1 1=r1 2=r1: delete db-2 | 3 ready 3 current 2 updated 0
            0=r1 1=r1 2xr1:  | 3 ready 2 current 2 updated 0
            0=r1 1=r1: create db-2 of r2 | 2 ready 2 current 2 updated 0
            0=r1 1=r1 2=r2: delete db-1 | 3 ready 3 current 1 updated 1
            0=r2 1=r2 2=r2:  | 3 ready 3 current 3 updated 3
            0=r2 1!r2 2=r2: delete db-1 | 3 ready 2 current 0 updated 3
            0=r2 1=r2 2=r2 3=r2 4=r2: delete db-4 | 5 ready 5 current 0 updated 5
            0=r2 1=r2 2=r2 3=r2 4xr2:  | 5 ready 4 current 0 updated 4
        "#]]
        .assert_eq(&log);
    }

    #[test]
    fn in_parallel_and_partitioned() {
        let parallel = set(json!({"podManagementPolicy": "Parallel"}));
        let mut log: String =
            ["", "0-r2", "0=r2 1-r2 2=r2 3=r2 4=r2"].into_iter().map(|line| look(&parallel, line)).collect();
        let partitioned = set(json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}));
        log += &look(&partitioned, "0=r1 1=r1 2=r1");
        log += &look(&partitioned, "0=r1 2=r2");
        log += &look(&partitioned, "0=r1 1=r1 2=r2");
        let manual = set(json!({"updateStrategy": {"type": "OnDelete"}, "ordinals": {"start": 1}}));
        log += &look(&manual, "1=r1 2=r1");
        expect_test::expect![[r#"
            : create db-0 of r2, create db-1 of r2, create db-2 of r2 | 0 ready 0 current 0 updated 0
            0-r2: create db-1 of r2, create db-2 of r2 | 1 ready 0 current 0 updated 1
            0=r2 1-r2 2=r2 3=r2 4=r2: delete db-4, delete db-3 | 5 ready 4 current 0 updated 5
            0=r1 1=r1 2=r1: delete db-2 | 3 ready 3 current 2 updated 0
            0=r1 2=r2: create db-1 of r1 | 2 ready 2 current 1 updated 1
            0=r1 1=r1 2=r2:  | 3 ready 3 current 2 updated 1
            1=r1 2=r1: create db-3 of r2 | 2 ready 2 current 2 updated 0
        "#]]
        .assert_eq(&log);
    }
}
