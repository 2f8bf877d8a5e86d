//! Validation of updates through `ephemeralcontainers` and `resize`.
//!
//! Follows: pkg/apis/core/validation/validation.go, ValidatePodEphemeralContainersUpdate and ValidatePodResize (v1.35).

use super::is_mirror;
use super::options::PodOptions;
use super::prepare::is_windows;
use super::resources::{compute_qos_class, is_sidecar, qos_class};
use super::update::validate_pod_and_annotations;
use super::validate::validate_pod;
use crate::common::At;
use crate::common::diff::unified;
use crate::common::equality::semantic;
use crate::common::goform::pretty;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// What is forbidden to a pod as a whole. Upstream shows the path of one empty name like this.
pub(super) fn forbidden_pod(rule: &str) -> FieldError {
    FieldError::forbidden(&Path::new("[]"), rule)
}

/// An update through `ephemeralcontainers`: containers are only added.
pub(super) fn validate_ephemeral_update(pod: &Value, old: &Value, errors: &mut ErrorList) {
    if is_mirror(&old["metadata"]) {
        errors.push(forbidden_pod("static pods do not support ephemeral containers"));
        return;
    }
    validate_pod_and_annotations(pod, old, &PodOptions::of_pod(old), errors);
    let spec = At::top(pod, "spec");
    let at = spec.child("ephemeralContainers");
    for before in old["spec"]["ephemeralContainers"].items() {
        let name = go_quote(before["name"].str_or_empty());
        match at.items().iter().rfind(|now| now["name"] == before["name"]) {
            None => errors.push(at.forbidden(format!("existing ephemeral containers {name} may not be removed\n"))),
            Some(now) if !semantic(before, now, "core/v1.EphemeralContainer") => {
                const TYPE: &str = "core/v1.EphemeralContainer";
                let diff = unified(&pretty(before, TYPE), &pretty(now, TYPE));
                errors.push(at.forbidden(format!("existing ephemeral containers {name} may not be changed\n{diff}")));
            }
            Some(_) => {}
        }
    }
}

/// An update through `resize`: CPU and memory of containers change, and nothing else.
pub(super) fn validate_resize(pod: &Value, old: &Value, errors: &mut ErrorList) {
    if is_mirror(&old["metadata"]) {
        errors.push(forbidden_pod("static pods cannot be resized"));
        return;
    }
    if is_windows(&old["spec"]) {
        errors.push(forbidden_pod("windows pods cannot be resized"));
        return;
    }
    let n_before = errors.len();
    validate_pod(pod, &PodOptions::of_pod(old), errors);
    let spec = At::top(pod, "spec");
    if qos_class(old) != compute_qos_class(&spec) {
        let class = pod["status"]["qosClass"].str_or_empty();
        errors.push(spec.invalid_showing(class, "Pod QOS Class may not change as a result of resizing"));
    }
    if !can_node_resize(old) {
        errors.push(spec.forbidden("Pod running on node without support for resize"));
    }
    let has_pod_resources =
        |spec: &Value| !spec["resources"]["limits"].is_empty() || !spec["resources"]["requests"].is_empty();
    if has_pod_resources(&old["spec"]) || has_pod_resources(&spec) {
        errors.push(forbidden_pod(
            "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled",
        ));
        return;
    }
    if validate_order(&spec, &old["spec"], errors) {
        validate_nothing_removed(&spec, &old["spec"], errors);
        validate_only_resources_change(&spec, &old["spec"], n_before, errors);
    }
}

/// Whether the node has shown that it can resize: a running container whose resources it reports. Without running
/// containers it is taken for able.
fn can_node_resize(pod: &Value) -> bool {
    let statuses = pod["status"]["containerStatuses"].items();
    let running = statuses.iter().find(|status| !status["state"]["running"].is_null());
    running.is_none_or(|status| !status["resources"].is_null())
}

/// Answers whether the containers are the same ones in the same order.
fn validate_order(spec: &At<'_>, old: &Value, errors: &mut ErrorList) -> bool {
    let n_before = errors.len();
    for list in ["containers", "initContainers"] {
        let at = spec.child(list);
        if at.items().len() != old[list].items().len() {
            errors.push(at.forbidden(format!("{list} may not be added or removed on resize")));
            continue;
        }
        for (container, before) in at.each().zip(old[list].items()) {
            if container["name"] != before["name"] {
                errors.push(
                    container.child("name").forbidden(format!("{list} may not be renamed or reordered on resize")),
                );
            }
        }
    }
    errors.len() == n_before
}

fn validate_nothing_removed(spec: &At<'_>, old: &Value, errors: &mut ErrorList) {
    let mut check = |list: &str, is_checked: fn(&Value) -> bool| {
        for (container, before) in spec.child(list).each().zip(old[list].items()) {
            for (kind, what) in [("requests", "requests"), ("limits", "limits")] {
                let at = container.child("resources");
                let at = at.child(kind);
                let was = &before["resources"][kind];
                let is_removed =
                    was.entries().len() > at.entries().len() || was.entries().any(|(name, _)| !at.has(name));
                if is_checked(before) && is_removed {
                    errors.push(at.forbidden(format!("resource {what} cannot be removed")));
                }
            }
        }
    };
    check("initContainers", is_sidecar);
    check("containers", |_| true);
}

/// `n_before` is how many errors there were before this validation began.
fn validate_only_resources_change(spec: &At<'_>, old: &Value, n_before: usize, errors: &mut ErrorList) {
    const ONLY: &str = "only cpu and memory resources are mutable";
    let mut masked = spec.value().clone();
    for (container, before) in masked["containers"].items_mut().iter_mut().zip(old["containers"].items()) {
        put_back_resources(container, before);
        if !semantic(container, before, "core/v1.Container") {
            errors.push(spec.forbidden(ONLY));
        }
    }
    let init_containers = masked.get_mut("initContainers").map(Value::items_mut).unwrap_or_default();
    for (container, before) in init_containers.iter_mut().zip(old["initContainers"].items()) {
        let is_sidecar = is_sidecar(container);
        if is_sidecar {
            put_back_resources(container, before);
        }
        if !semantic(container, before, "core/v1.Container") {
            errors.push(spec.forbidden(if is_sidecar {
                "only cpu and memory resources for sidecar containers are mutable"
            } else {
                "resources for non-sidecar init containers are immutable"
            }));
        }
    }
    if errors.len() == n_before && !semantic(&masked, old, "core/v1.PodSpec") {
        errors.push(spec.forbidden(ONLY));
    }
}

/// CPU and memory become what they were; claims do not count.
fn put_back_resources(container: &mut Value, old: &Value) {
    let mut resources = Value::object();
    for kind in ["limits", "requests"] {
        let mut amounts = container["resources"][kind].clone();
        let before = &old["resources"][kind];
        for name in ["cpu", "memory"] {
            match &before[name] {
                Value::Null => {
                    amounts.remove(name);
                }
                amount => amounts.set(name, amount.clone()),
            }
        }
        if !amounts.is_empty() {
            resources.set(kind, amounts);
        }
    }
    container.set("resources", resources);
}
