//! A pod's conditions, which follow from its containers.
//!
//! Follows: kubernetes pkg/kubelet/status/generate.go (v1.35).

use super::containers::is_sidecar;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pintle_apimachinery::time::floor_second;

/// Status, reason and message of a condition.
struct Verdict {
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl Verdict {
    const TRUE: Verdict = Verdict { is_true: true, reason: "", message: String::new() };

    fn not(reason: &'static str, message: String) -> Verdict {
        Verdict { is_true: false, reason, message }
    }
}

/// Sets the conditions that are a node's business; those of others stay as they are.
pub(super) fn set_conditions(pod: &Pod, status: &mut PodStatus, now: Timestamp) {
    let Some(spec) = &pod.spec else { return };
    let containers = containers_ready(spec, status);
    let all = [
        ("PodReadyToStartContainers", Verdict { is_true: has_sandbox(status), ..Verdict::TRUE }),
        ("Initialized", initialized(spec, status)),
        ("Ready", ready(spec, status, &containers)),
        ("ContainersReady", containers),
        ("PodScheduled", Verdict::TRUE),
    ];
    let generation = pod.metadata.generation;
    let conditions = status.conditions.get_or_insert_default();
    for (type_, verdict) in all {
        set(conditions, type_, verdict, generation, now);
    }
}

fn set(conditions: &mut Vec<PodCondition>, type_: &str, verdict: Verdict, generation: Option<i64>, now: Timestamp) {
    let text = if verdict.is_true { "True" } else { "False" };
    let found = conditions.iter_mut().find(|condition| condition.type_ == type_);
    let mut fresh = PodCondition {
        type_: type_.to_owned(),
        status: text.to_owned(),
        reason: Some(verdict.reason.to_owned()).filter(|reason| !reason.is_empty()),
        message: Some(verdict.message).filter(|message| !message.is_empty()),
        last_transition_time: Some(Time(floor_second(now))),
        observed_generation: generation,
        last_probe_time: None,
    };
    match found {
        None => conditions.push(fresh),
        Some(old) => {
            if old.status == text {
                fresh.last_transition_time.clone_from(&old.last_transition_time);
            }
            *old = fresh;
        }
    }
}

fn has_sandbox(status: &PodStatus) -> bool {
    let is_over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    !is_over && status.pod_ip.is_some()
}

fn find<'a>(statuses: &'a Option<Vec<ContainerStatus>>, name: &str) -> Option<&'a ContainerStatus> {
    statuses.as_ref()?.iter().find(|status| status.name == name)
}

/// A list of names as Go prints it.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", names.collect::<Vec<_>>().join(" "))
}

fn initialized(spec: &PodSpec, status: &PodStatus) -> Verdict {
    let is_incomplete = |container: &&Container| {
        let found = find(&status.init_container_statuses, &container.name);
        !found.is_some_and(|found| if is_sidecar(container) { found.started == Some(true) } else { is_done(found) })
    };
    if status.phase.as_deref() == Some("Succeeded") {
        return Verdict { is_true: true, reason: "PodCompleted", message: String::new() };
    }
    let mut incomplete = spec.init_containers.iter().flatten().filter(is_incomplete).peekable();
    let main_has_begun =
        status.container_statuses.iter().flatten().any(|status| {
            status.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
        });
    if incomplete.peek().is_none() || main_has_begun && status.phase.as_deref() != Some("Failed") {
        return Verdict::TRUE;
    }
    let list = names(incomplete.map(|container| container.name.as_str()));
    Verdict::not("ContainersNotInitialized", format!("containers with incomplete status: {list}"))
}

fn is_done(status: &ContainerStatus) -> bool {
    let terminated = status.state.as_ref().and_then(|state| state.terminated.as_ref());
    terminated.is_some_and(|terminated| terminated.exit_code == 0)
}

fn containers_ready(spec: &PodSpec, status: &PodStatus) -> Verdict {
    match status.phase.as_deref() {
        Some("Succeeded") => return Verdict::not("PodCompleted", String::new()),
        Some("Failed") => return Verdict::not("PodFailed", String::new()),
        _ => {}
    }
    let sidecars = spec.init_containers.iter().flatten().filter(|container| is_sidecar(container));
    let sidecars = sidecars.map(|container| (container, find(&status.init_container_statuses, &container.name)));
    let mains = spec.containers.iter().map(|c| (c, find(&status.container_statuses, &c.name)));
    let mut unready = sidecars
        .chain(mains)
        .filter(|(_, status)| !status.is_some_and(|status| status.ready))
        .map(|(container, _)| container.name.as_str())
        .peekable();
    if unready.peek().is_none() {
        return Verdict::TRUE;
    }
    Verdict::not("ContainersNotReady", format!("containers with unready status: {}", names(unready)))
}

/// Ready: all containers are, and what the readiness gates ask for is so.
fn ready(spec: &PodSpec, status: &PodStatus, containers: &Verdict) -> Verdict {
    if !containers.is_true {
        return Verdict::not(containers.reason, containers.message.clone());
    }
    let mut messages = Vec::new();
    for gate in spec.readiness_gates.iter().flatten() {
        let type_ = &gate.condition_type;
        match status.conditions.iter().flatten().find(|condition| condition.type_ == *type_) {
            None => messages.push(format!("corresponding condition of pod readiness gate \"{type_}\" does not exist.")),
            Some(condition) if condition.status != "True" => messages.push(format!(
                "the status of pod readiness gate \"{type_}\" is not \"True\", but {}",
                condition.status
            )),
            Some(_) => {}
        }
    }
    if messages.is_empty() { Verdict::TRUE } else { Verdict::not("ReadinessGatesNotReady", messages.join(", ")) }
}
