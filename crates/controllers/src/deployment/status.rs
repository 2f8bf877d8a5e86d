//! A deployment's status, from its ReplicaSets. Pure.

use super::plan::{actual, available, is_complete, max_unavailable, replicas, size};
use crate::common::{after_seconds, until};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pintle_apimachinery::time::floor_second;
use pintle_client::Object as _;
use std::time::Duration;

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The reasons of `Progressing`.
pub(super) mod reason {
    pub(in crate::deployment) const UPDATED: &str = "ReplicaSetUpdated";
    pub(in crate::deployment) const CREATE_ERROR: &str = "ReplicaSetCreateError";
    pub(in crate::deployment) const CREATED: &str = "NewReplicaSetCreated";
    pub(in crate::deployment) const FOUND: &str = "FoundNewReplicaSet";
    pub(in crate::deployment) const AVAILABLE: &str = "NewReplicaSetAvailable";
    pub(in crate::deployment) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
    pub(in crate::deployment) const PAUSED: &str = "DeploymentPaused";
    pub(in crate::deployment) const RESUMED: &str = "DeploymentResumed";
}

fn new_condition(type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> DeploymentCondition {
    let now = Time(floor_second(now));
    DeploymentCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(now.clone()),
        last_transition_time: Some(now),
    }
}

/// What `Progressing` is to say.
pub(super) fn progressing(status: &str, reason: &str, message: &str, now: Timestamp) -> DeploymentCondition {
    new_condition(PROGRESSING, status, reason, message, now)
}

fn condition<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

/// What `Progressing` says.
pub(super) fn progress_of(deployment: &Deployment) -> Option<&DeploymentCondition> {
    condition(deployment.status.as_ref()?, PROGRESSING)
}

fn has_reason(condition: Option<&DeploymentCondition>, reason: &str) -> bool {
    condition.is_some_and(|condition| condition.reason.as_deref() == Some(reason))
}

/// Sets a condition; one that says the same already stays, with its times.
pub(super) fn set_condition(status: &mut DeploymentStatus, mut new: DeploymentCondition) {
    if let Some(old) = condition(status, &new.type_)
        && old.status == new.status
    {
        if old.reason == new.reason {
            return;
        }
        new.last_transition_time = old.last_transition_time.clone();
    }
    remove_condition(status, &new.type_);
    status.conditions.get_or_insert_default().push(new);
}

fn remove_condition(status: &mut DeploymentStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != type_);
        if conditions.is_empty() {
            status.conditions = None;
        }
    }
}

/// Seconds within which a rollout must progress, if it must.
pub(super) fn progress_deadline(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)
}

/// Counts and availability.
pub(super) fn calculate(
    deployment: &Deployment,
    new: Option<&ReplicaSet>,
    old: &[ReplicaSet],
    now: Timestamp,
) -> DeploymentStatus {
    let total = |count: &dyn Fn(&ReplicaSet) -> i32| -> i32 { old.iter().chain(new).map(count).sum() };
    let some = |n: i32| Some(n).filter(|n| *n != 0);
    let ready = |set: &ReplicaSet| set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default();
    let n_available = total(&available);
    let known = deployment.status.clone().unwrap_or_default();
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(total(&actual)),
        updated_replicas: some(new.map(actual).unwrap_or_default()),
        ready_replicas: some(total(&ready)),
        available_replicas: some(n_available),
        unavailable_replicas: some((total(&size) - n_available).max(0)),
        terminating_replicas: terminating(new, old),
        collision_count: known.collision_count,
        conditions: known.conditions,
    };
    let is_available = n_available >= replicas(deployment) - max_unavailable(deployment);
    let (told, reason, message) = if is_available {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set_condition(&mut status, new_condition(AVAILABLE, told, reason, message, now));
    status
}

/// Pods that are going away; `None` when a set does not say.
fn terminating(new: Option<&ReplicaSet>, old: &[ReplicaSet]) -> Option<i32> {
    let mut n_terminating = 0;
    for set in old.iter().chain(new) {
        let status = set.status.as_ref();
        match status.and_then(|status| status.terminating_replicas) {
            Some(n) => n_terminating += n,
            // not looked at yet
            None if status.and_then(|status| status.observed_generation).unwrap_or_default() == 0 => {}
            None => return None,
        }
    }
    Some(n_terminating)
}

/// Counts, availability and how the rollout goes.
pub(super) fn rollout(
    deployment: &Deployment,
    new: Option<&ReplicaSet>,
    old: &[ReplicaSet],
    now: Timestamp,
) -> DeploymentStatus {
    let mut status = calculate(deployment, new, old, now);
    let current = progress_of(deployment);
    match progress_deadline(deployment) {
        None => remove_condition(&mut status, PROGRESSING),
        Some(deadline) => {
            let is_over = status.replicas == status.updated_replicas && has_reason(current, reason::AVAILABLE);
            if !is_over {
                tell_progress(deployment, new, &mut status, deadline, now);
            }
        }
    }
    let failure = |set: &ReplicaSet| {
        let conditions = set.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().find(|condition| condition.type_ == REPLICA_FAILURE).cloned()
    };
    match new.and_then(failure).or_else(|| old.iter().find_map(failure)) {
        None => remove_condition(&mut status, REPLICA_FAILURE),
        Some(failed) => set_condition(
            &mut status,
            DeploymentCondition {
                type_: failed.type_,
                status: failed.status,
                reason: failed.reason,
                message: failed.message,
                last_update_time: failed.last_transition_time.clone(),
                last_transition_time: failed.last_transition_time,
            },
        ),
    }
    status
}

fn tell_progress(
    deployment: &Deployment,
    new: Option<&ReplicaSet>,
    status: &mut DeploymentStatus,
    deadline: i32,
    now: Timestamp,
) {
    let who = match new {
        Some(new) => format!("ReplicaSet {:?}", new.name()),
        None => format!("Deployment {:?}", deployment.name()),
    };
    if is_complete(deployment, status) {
        let message = format!("{who} has successfully progressed.");
        set_condition(status, progressing("True", reason::AVAILABLE, &message, now));
    } else if has_progressed(deployment, status) {
        let mut condition = progressing("True", reason::UPDATED, &format!("{who} is progressing."), now);
        if let Some(current) = progress_of(deployment).filter(|current| current.status == "True") {
            condition.last_transition_time = current.last_transition_time.clone();
        }
        // its time is to be the last progress even when it says the same
        remove_condition(status, PROGRESSING);
        set_condition(status, condition);
    } else if has_timed_out(status, deadline, now) {
        let message = format!("{who} has timed out progressing.");
        set_condition(status, progressing("False", reason::TIMED_OUT, &message, now));
    }
}

/// Whether there are more new pods, fewer old ones, or more that work than the stored status tells.
fn has_progressed(deployment: &Deployment, new: &DeploymentStatus) -> bool {
    let stored = deployment.status.clone().unwrap_or_default();
    let n_old =
        |status: &DeploymentStatus| status.replicas.unwrap_or_default() - status.updated_replicas.unwrap_or_default();
    new.updated_replicas > stored.updated_replicas
        || n_old(new) < n_old(&stored)
        || new.ready_replicas > stored.ready_replicas
        || new.available_replicas > stored.available_replicas
}

fn has_timed_out(status: &DeploymentStatus, deadline: i32, now: Timestamp) -> bool {
    let Some(current) = condition(status, PROGRESSING) else { return false };
    if has_reason(Some(current), reason::AVAILABLE) {
        return false;
    }
    let since = current.last_update_time.as_ref().map(|time| time.0);
    has_reason(Some(current), reason::TIMED_OUT)
        || since.is_some_and(|since| after_seconds(since, i64::from(deadline)) < now)
}

/// When a rollout that makes no progress is to be looked at again.
pub(super) fn next_progress_check(
    deployment: &Deployment,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let deadline = progress_deadline(deployment)?;
    let current = condition(status, PROGRESSING)?;
    if is_complete(deployment, status) || has_reason(Some(current), reason::TIMED_OUT) {
        return None;
    }
    let since = current.last_update_time.as_ref()?.0;
    Some(until(now, after_seconds(since, i64::from(deadline))) + Duration::from_secs(1))
}

/// What a pause or its end makes `Progressing` say; `None` when it says so already.
pub(super) fn pause_condition(deployment: &Deployment, now: Timestamp) -> Option<DeploymentCondition> {
    progress_deadline(deployment)?;
    let current = progress_of(deployment);
    if has_reason(current, reason::TIMED_OUT) {
        return None;
    }
    let is_paused = deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or_default();
    match (is_paused, has_reason(current, reason::PAUSED)) {
        (true, false) => Some(progressing("Unknown", reason::PAUSED, "Deployment is paused", now)),
        (false, true) => Some(progressing("Unknown", reason::RESUMED, "Deployment is resumed", now)),
        (true, true) | (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment() -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "generation": 2},
            "spec": {"replicas": 2, "progressDeadlineSeconds": 60, "selector": {}, "template": {},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
        }))
        .unwrap()
    }

    fn set(name: &str, size: i32, has: i32, ready: i32) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": {"replicas": size, "selector": {}},
            "status": {"replicas": has, "readyReplicas": ready, "availableReplicas": ready, "observedGeneration": 1, "terminatingReplicas": 0},
        }))
        .unwrap()
    }

    #[test]
    fn a_rollout_is_told() {
        let mut deployment = deployment();
        let mut log = String::new();
        let mut tell = |second: i64, new: ReplicaSet, old: &[ReplicaSet]| {
            let now = Timestamp::from_second(second).unwrap();
            let status = rollout(&deployment, Some(&new), old, now);
            for condition in status.conditions.iter().flatten() {
                let second = |time: &Option<Time>| time.as_ref().unwrap().0.as_second();
                let (updated, since) = (second(&condition.last_update_time), second(&condition.last_transition_time));
                let (reason, message) = (condition.reason.as_ref().unwrap(), condition.message.as_ref().unwrap());
                log.push_str(&format!(
                    "{}={} {reason} @{updated} since {since}: {message}\n",
                    condition.type_, condition.status
                ));
            }
            let check = next_progress_check(&deployment, &status, now);
            log.push_str(&format!(
                "replicas {:?} updated {:?} unavailable {:?} check {check:?}\n\n",
                status.replicas, status.updated_replicas, status.unavailable_replicas
            ));
            deployment.status = Some(status);
        };
        tell(1, set("web-1", 1, 1, 0), &[set("web-0", 2, 2, 2)]);
        tell(2, set("web-1", 1, 1, 1), &[set("web-0", 2, 2, 2)]);
        tell(63, set("web-1", 1, 1, 1), &[set("web-0", 2, 2, 2)]);
        tell(64, set("web-1", 2, 2, 2), &[set("web-0", 0, 0, 0)]);
        expect_test::expect![[r#"
            Available=True MinimumReplicasAvailable @1 since 1: Deployment has minimum availability.
            Progressing=True ReplicaSetUpdated @1 since 1: ReplicaSet "web-1" is progressing.
            replicas Some(3) updated Some(1) unavailable Some(1) check Some(61s)

            Available=True MinimumReplicasAvailable @1 since 1: Deployment has minimum availability.
            Progressing=True ReplicaSetUpdated @2 since 1: ReplicaSet "web-1" is progressing.
            replicas Some(3) updated Some(1) unavailable None check Some(61s)

            Available=True MinimumReplicasAvailable @1 since 1: Deployment has minimum availability.
            Progressing=False ProgressDeadlineExceeded @63 since 63: ReplicaSet "web-1" has timed out progressing.
            replicas Some(3) updated Some(1) unavailable None check None

            Available=True MinimumReplicasAvailable @1 since 1: Deployment has minimum availability.
            Progressing=True NewReplicaSetAvailable @64 since 64: ReplicaSet "web-1" has successfully progressed.
            replicas Some(2) updated Some(2) unavailable None check None

        "#]]
        .assert_eq(&log);
    }

    #[test]
    fn pauses_are_told_once() {
        let mut deployment = deployment();
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(pause_condition(&deployment, now), None);
        deployment.spec.as_mut().unwrap().paused = Some(true);
        let condition = pause_condition(&deployment, now).unwrap();
        set_condition(deployment.status.get_or_insert_default(), condition);
        assert_eq!(pause_condition(&deployment, now), None);
        deployment.spec.as_mut().unwrap().paused = None;
        assert_eq!(pause_condition(&deployment, now).unwrap().reason.as_deref(), Some("DeploymentResumed"));
    }
}
