//! A pod on its node: what its status is to be next, from what it is now, its specification, and the time.
//!
//! [`step`] is pure and keeps nothing: a node that starts again goes on from what the server has.

mod conditions;
mod containers;
mod names;
mod patch;

pub(crate) use patch::status_patch;

use crate::profile::Profile;
use crate::program;
use containers::Containers;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{HostIP, Pod, PodIP, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pintle_apimachinery::time::floor_second;
use std::net::Ipv4Addr;
use std::time::Duration;

/// What a node knows of a pod beside the pod itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight {
    /// When the node first saw the pod on it; after a restart of the node, later than what the pod says.
    pub(crate) first_seen: Timestamp,
    /// When the node first saw that the pod is to go.
    pub(crate) terminating_seen: Option<Timestamp>,
    /// The pod's address, unless it has its host's.
    pub(crate) pod_ip: Ipv4Addr,
    /// The node's address.
    pub(crate) host_ip: Ipv4Addr,
}

/// What is to be done about a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// The status as it should be.
    pub(crate) status: PodStatus,
    /// When to look again, if nothing happens before.
    pub(crate) wake: Option<Timestamp>,
    /// Nothing of the pod is left on the node: it may be removed.
    pub(crate) is_finished: bool,
    /// What happened, for people.
    pub(crate) events: Vec<PodEvent>,
}

/// Something that happened to a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodEvent {
    /// Whether it is bad news.
    pub(crate) is_warning: bool,
    /// One word for machines.
    pub(crate) reason: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
    /// The field that the container has in the pod: `spec.containers{web}`.
    pub(crate) field_path: String,
}

/// The next status of a pod.
pub(crate) fn step(pod: &Pod, sight: &Sight, profile: &Profile, now: Timestamp) -> Step {
    let old = pod.status.clone().unwrap_or_default();
    let is_over = matches!(old.phase.as_deref(), Some("Succeeded" | "Failed"));
    let is_terminating = pod.metadata.deletion_timestamp.is_some();
    if is_over {
        return Step { status: old, wake: None, is_finished: is_terminating, events: Vec::new() };
    }
    let mut status = old.clone();
    status.observed_generation = pod.metadata.generation.or(status.observed_generation);
    status.start_time.get_or_insert_with(|| Time(floor_second(now)));
    status.host_ip = Some(sight.host_ip.to_string());
    status.host_ips = Some(vec![HostIP { ip: sight.host_ip.to_string() }]);
    let mut containers = Containers::new(pod, &old, profile, now);

    let stop = sight.terminating_seen.map(|seen| later(seen, stop_time(pod, profile)));
    if is_terminating && (stop.is_none_or(|stop| stop <= now) || !containers.any_is_running()) {
        containers.stop_all(is_terminating);
    } else if is_terminating {
        containers.wake_at(stop);
        containers.announce_killing(sight.terminating_seen == Some(now));
    } else if let Some(message) = deadline_passed(pod, &status, now) {
        containers.stop_all(false);
        status.reason = Some("DeadlineExceeded".to_owned());
        status.message = Some(message);
    } else {
        let ready_at = later(sight.first_seen, start_time(pod, profile));
        let reason = program::annotation(pod, program::WAITING_REASON, "").filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            containers.never_start(reason);
        } else if now < ready_at && !containers.has_begun() {
            containers.wake_at(Some(ready_at));
        } else {
            containers.advance();
            containers.wake_at(deadline(pod, &status).filter(|at| *at > now));
        }
    }

    let mut is_finished = false;
    let phase = if is_terminating && containers.all_are_stopped() {
        is_finished = true;
        containers.final_phase()
    } else if status.reason.as_deref() == Some("DeadlineExceeded") {
        "Failed"
    } else {
        containers.phase()
    };
    if containers.has_begun() {
        let is_host = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
        let ip = if is_host { sight.host_ip } else { sight.pod_ip }.to_string();
        status.pod_ips = Some(vec![PodIP { ip: ip.clone() }]);
        status.pod_ip = Some(ip);
    }
    status.phase = Some(phase.to_owned());
    let (wake, events) = containers.write(&mut status);
    conditions::set_conditions(pod, &mut status, now);
    Step { status, wake, is_finished, events }
}

/// The moment that is `pause` later; the end of time, if it would be beyond.
fn later(at: Timestamp, pause: Duration) -> Timestamp {
    at.checked_add(pause).unwrap_or(Timestamp::MAX)
}

fn start_time(pod: &Pod, profile: &Profile) -> Duration {
    program::seconds(pod, program::START_SECONDS, "").unwrap_or(profile.start_time)
}

/// How long the pod takes to stop: never more than it may.
fn stop_time(pod: &Pod, profile: &Profile) -> Duration {
    let wanted = program::seconds(pod, program::STOP_SECONDS, "").unwrap_or(profile.stop_time);
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
    wanted.min(Duration::from_secs(u64::try_from(grace).unwrap_or_default()))
}

/// When the pod has been active for as long as it may.
fn deadline(pod: &Pod, status: &PodStatus) -> Option<Timestamp> {
    let seconds = pod.spec.as_ref()?.active_deadline_seconds?;
    let started = status.start_time.as_ref()?.0;
    started.checked_add(jiff::SignedDuration::from_secs(seconds)).ok()
}

fn deadline_passed(pod: &Pod, status: &PodStatus, now: Timestamp) -> Option<String> {
    deadline(pod, status).filter(|deadline| *deadline <= now)?;
    Some("Pod was active on the node longer than the specified deadline".to_owned())
}

#[cfg(test)]
mod tests;
