//! What a ReplicaSet needs, from the set and its pods. Pure.

use crate::common::pods::{available_at, compare_for_deletion, is_active, is_available, is_ready};
use crate::common::until;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pintle_apimachinery::time::floor_second;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The condition that says that pods cannot be made or deleted.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// What is to be done about the number of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    Create(usize),
    Delete(usize),
}

fn replicas(set: &ReplicaSet) -> usize {
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    usize::try_from(wanted).unwrap_or_default()
}

fn min_ready_seconds(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

/// What is to be done, at most `burst` pods at once.
pub(super) fn step(set: &ReplicaSet, active: &[Arc<Pod>], burst: usize) -> Step {
    let (has, wants) = (active.len(), replicas(set));
    if has < wants {
        Step::Create((wants - has).min(burst))
    } else if has > wants {
        Step::Delete((has - wants).min(burst))
    } else {
        Step::Nothing
    }
}

/// The `count` pods that are given up. `related` are the pods of the set and its siblings.
pub(super) fn doomed(active: &[Arc<Pod>], related: &[Arc<Pod>], count: usize, now: Timestamp) -> Vec<Arc<Pod>> {
    let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    let mut on_node: BTreeMap<String, usize> = BTreeMap::new();
    for pod in related.iter().filter(|pod| is_active(pod)) {
        *on_node.entry(node(pod)).or_default() += 1;
    }
    let rank = |pod: &Pod| on_node.get(&node(pod)).copied().unwrap_or_default();
    let mut pods = active.to_vec();
    pods.sort_by(|a, b| compare_for_deletion((a, rank(a)), (b, rank(b)), now));
    pods.truncate(count);
    pods
}

/// The status, from the pods as they were before anything was made or deleted.
pub(super) fn status(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    n_terminating: usize,
    failure: Option<&str>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let count = |keep: &dyn Fn(&Pod) -> bool| active.iter().filter(|pod| keep(pod)).count();
    let template_labels = set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.as_ref()?.metadata.as_ref()?.labels.clone())
        .unwrap_or_default();
    let is_labelled = |pod: &Pod| {
        let labels = pod.metadata.labels.as_ref();
        template_labels.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    };
    let some = |n: usize| Some(to_i32(n)).filter(|n| *n != 0);
    let old = set.status.clone().unwrap_or_default();
    ReplicaSetStatus {
        replicas: to_i32(active.len()),
        fully_labeled_replicas: some(count(&is_labelled)),
        ready_replicas: some(count(&is_ready)),
        available_replicas: some(count(&|pod| is_available(pod, min_ready_seconds(set), now))),
        terminating_replicas: Some(to_i32(n_terminating)),
        observed_generation: set.metadata.generation,
        conditions: conditions(old.conditions, active.len(), replicas(set), failure, now),
    }
}

fn to_i32(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn conditions(
    old: Option<Vec<ReplicaSetCondition>>,
    has: usize,
    wants: usize,
    failure: Option<&str>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let mut conditions = old.unwrap_or_default();
    let is_known = conditions.iter().any(|condition| condition.type_ == REPLICA_FAILURE);
    match failure {
        None => conditions.retain(|condition| condition.type_ != REPLICA_FAILURE),
        Some(message) if !is_known => conditions.push(ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(if has < wants { "FailedCreate" } else { "FailedDelete" }.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: Some(Time(floor_second(now))),
        }),
        Some(_) => {}
    }
    Some(conditions).filter(|conditions| !conditions.is_empty())
}

/// When a pod that is ready will have been so long enough, if the set waits for one.
pub(super) fn next_look(set: &ReplicaSet, active: &[Arc<Pod>], now: Timestamp) -> Option<Duration> {
    let seconds = min_ready_seconds(set);
    let waiting = active.iter().filter(|pod| seconds > 0 && is_ready(pod) && !is_available(pod, seconds, now));
    let next = waiting.filter_map(|pod| available_at(pod, seconds)).min()?;
    // whole seconds are compared: not too early
    Some(until(now, next) + Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn set(replicas: i32, min_ready_seconds: i32) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "generation": 3},
            "spec": {
                "replicas": replicas, "minReadySeconds": min_ready_seconds, "selector": {},
                "template": {"metadata": {"labels": {"app": "web"}}},
            },
        }))
        .unwrap()
    }

    /// `name node phase ready-since age`, with `-` for what is missing. Now is second 1000.
    fn pod(line: &str) -> Arc<Pod> {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let time = |second: &str| Timestamp::from_second(second.parse().unwrap()).unwrap().to_string();
        let mut pod = json!({
            "metadata": {"name": parts[0], "uid": parts[0], "labels": {"app": "web"}, "creationTimestamp": time(parts[4])},
            "spec": {"containers": [], "nodeName": if parts[1] == "-" { "" } else { parts[1] }},
            "status": {"phase": parts[2]},
        });
        if parts[3] != "-" {
            pod["status"]["conditions"] =
                json!([{"type": "Ready", "status": "True", "lastTransitionTime": time(parts[3])}]);
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1000).unwrap()
    }

    #[test]
    fn the_least_valuable_pods_go_first() {
        let pods: Vec<Arc<Pod>> = [
            "old n1 Running 100 100",
            "young n2 Running 990 980",
            "crowded1 n3 Running 100 100",
            "crowded2 n3 Running 100 100",
            "pending n4 Pending - 500",
            "unready n5 Running - 100",
            "unassigned - Pending - 100",
        ]
        .map(pod)
        .to_vec();
        let order: Vec<String> =
            doomed(&pods, &pods, 7, now()).iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
        expect_test::expect!["unassigned pending unready crowded1 crowded2 young old"].assert_eq(&order.join(" "));
    }

    #[test]
    fn statuses() {
        let pods: Vec<Arc<Pod>> =
            ["a n1 Running 100 100", "b n1 Running 995 100", "c n1 Pending - 100"].map(pod).to_vec();
        let status = super::status(&set(5, 10), &pods, 2, Some("quota"), now());
        expect_test::expect![[r#"{"availableReplicas":1,"conditions":[{"lastTransitionTime":"1970-01-01T00:16:40Z","message":"quota","reason":"FailedCreate","status":"True","type":"ReplicaFailure"}],"fullyLabeledReplicas":3,"observedGeneration":3,"readyReplicas":2,"replicas":3,"terminatingReplicas":2}"#]]
        .assert_eq(&serde_json::to_string(&status).unwrap());
        assert_eq!(next_look(&set(5, 10), &pods, now()), Some(Duration::from_secs(6)));
        assert_eq!(next_look(&set(5, 0), &pods, now()), None);
    }

    proptest! {
        /// Whatever is there, steps lead to what is wanted, and no step goes beyond.
        #[test]
        fn steps_lead_to_the_number(has in 0..40_usize, wants in 0..40_i32, burst in 1..9_usize) {
            let (set, mut has, wants_n) = (set(wants, 0), has, usize::try_from(wants).unwrap());
            let one = pod("a n Running 1 1");
            for _ in 0..40 {
                match step(&set, &vec![Arc::clone(&one); has], burst) {
                    Step::Nothing => break,
                    Step::Create(n) => { prop_assert!(n <= burst && has + n <= wants_n); has += n; }
                    Step::Delete(n) => { prop_assert!(n <= burst && has - n >= wants_n); has -= n; }
                }
            }
            prop_assert_eq!(has, wants_n);
        }
    }
}
