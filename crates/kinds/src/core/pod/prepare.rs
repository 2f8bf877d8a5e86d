//! What happens to a pod before it is validated: its first status, selectors made of label keys, AppArmor annotations
//! turned into fields, generations, and what each subresource may change.
//!
//! Follows: pkg/registry/core/pod/strategy.go (v1.35).

use super::drop::{drop_disabled_spec_fields, drop_disabled_status_fields};
use super::resources::qos_class;
use super::security::is_app_armor_invalid;
use super::warnings::deprecated_app_armor;
use super::{CONTAINER_LISTS, annotation_key, for_each_container};
use crate::common::At;
use crate::common::equality::semantic;
use crate::prepare::{keep, keep_metadata, start_generation};
use jiff::Timestamp;
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::{Str, Value, json, time};

/// The annotation of a container's AppArmor profile, up to the container's name.
pub(super) const APP_ARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

/// A pod that is about to be created: pending, with nothing set that the server sets.
pub(super) fn for_create(pod: &mut Value, now: Timestamp) {
    start_generation(pod);
    // upstream lets a client say its own quality of service
    let mut status = json!({"phase": "Pending", "qosClass": (qos_class(pod))});
    let spec = pod.make("spec");
    drop_disabled_spec_fields(spec, &Value::NULL);
    if !spec["schedulingGates"].items().is_empty() {
        status.set("conditions", json!([(gated_condition(now))]));
    }
    pod.set("status", status);
    merge_label_keys(pod);
    copy_app_armor_annotations(pod);
}

fn gated_condition(now: Timestamp) -> Value {
    json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": null,
        "lastTransitionTime": (time::time_value(now)),
    })
}

/// Adds to the selectors of affinities and spread constraints what their label keys say of this pod's labels.
fn merge_label_keys(pod: &mut Value) {
    let spec = &pod["spec"];
    if spec["affinity"].is_null() && spec["topologySpreadConstraints"].is_null() {
        return;
    }
    let labels = pod["metadata"]["labels"].clone();
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = pod.at_mut("spec.affinity").and_then(|a| a.get_mut(kind)) else { continue };
        for (list, member) in [
            ("preferredDuringSchedulingIgnoredDuringExecution", Some("podAffinityTerm")),
            ("requiredDuringSchedulingIgnoredDuringExecution", None),
        ] {
            for term in affinity.get_mut(list).map(Value::items_mut).unwrap_or_default() {
                match member {
                    Some(member) => term.get_mut(member).into_iter().for_each(|term| merge_keys_of(term, &labels)),
                    None => merge_keys_of(term, &labels),
                }
            }
        }
    }
    for constraint in pod.at_mut("spec.topologySpreadConstraints").map(Value::items_mut).unwrap_or_default() {
        merge_keys_of(constraint, &labels);
    }
}

fn merge_keys_of(term: &mut Value, labels: &Value) {
    if term["labelSelector"].is_null() {
        return;
    }
    let mut expressions = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term[keys].items() {
            if let Some(value) = labels[key.str_or_empty()].as_str() {
                expressions.push(json!({"key": (key.clone()), "operator": operator, "values": [value]}));
            }
        }
    }
    if !expressions.is_empty() {
        term.make("labelSelector.matchExpressions").make_array().append(&mut expressions);
    }
}

/// The profile that an AppArmor annotation means; `null` when it means none.
pub(super) fn app_armor_profile(annotation: &str) -> Value {
    match annotation.strip_prefix("localhost/") {
        _ if annotation == "unconfined" => json!({"type": "Unconfined"}),
        _ if annotation == "runtime/default" => json!({"type": "RuntimeDefault"}),
        Some(profile) if !profile.is_empty() => json!({"type": "Localhost", "localhostProfile": profile}),
        _ => Value::Null,
    }
}

/// The well-formed profile that the annotations give a container which has none of its own. `None`: no annotation
/// counts for it.
pub(super) fn annotated_profile(pod: &Value, container: &Value) -> Option<Value> {
    if !container["securityContext"]["appArmorProfile"].is_null() {
        return None;
    }
    let key = annotation_key(APP_ARMOR_PREFIX, container);
    let profile = app_armor_profile(pod.annotation(&key)?);
    Some(if is_app_armor_invalid(&profile) { Value::Null } else { profile })
}

pub(super) fn is_windows(spec: &Value) -> bool {
    spec["os"]["name"].as_str() == Some("windows")
}

fn copy_app_armor_annotations(pod: &mut Value) {
    let has_any = pod["metadata"]["annotations"].entries().any(|(key, _)| key.starts_with(APP_ARMOR_PREFIX));
    if !has_any || is_windows(&pod["spec"]) {
        return;
    }
    for list in CONTAINER_LISTS {
        for idx in 0..pod["spec"][list].items().len() {
            let profile = annotated_profile(pod, &pod["spec"][list].items()[idx]).unwrap_or_default();
            if !profile.is_null() && profile != pod["spec"]["securityContext"]["appArmorProfile"] {
                pod["spec"][list].items_mut()[idx].make("securityContext").set("appArmorProfile", profile);
            }
        }
    }
}

/// What to say of the AppArmor annotations of a pod about to be created: those that become fields, and those that
/// nothing can be made of.
pub(super) fn app_armor_warnings(pod: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let metadata = At::top(pod, "metadata");
    let annotations = metadata.child("annotations");
    let has_any = annotations.entries().any(|(key, _)| key.starts_with(APP_ARMOR_PREFIX));
    if !has_any || is_windows(&pod["spec"]) {
        return warnings;
    }
    for_each_container(&At::top(pod, "spec"), |container| {
        let Some(profile) = annotated_profile(pod, container) else { return };
        if profile.is_null() || profile != pod["spec"]["securityContext"]["appArmorProfile"] {
            let key = annotation_key(APP_ARMOR_PREFIX, container);
            warnings.push(deprecated_app_armor(&annotations.path().key(&key)));
        }
    });
    warnings
}

/// An update of the pod itself.
pub(super) fn for_update(pod: &mut Value, old: &Value) {
    keep(pod, old, "status");
    finish_update(pod, old);
}

fn finish_update(pod: &mut Value, old: &Value) {
    drop_disabled_spec_fields(pod.make("spec"), &old["spec"]);
    drop_disabled_status_fields(pod.make("status"), &old["status"]);
    if !semantic(&pod["spec"], &old["spec"], "core/v1.PodSpec") {
        set_meta(pod, "generation", pod.generation() + 1);
    }
}

/// An update through `status`.
pub(super) fn for_status_update(pod: &mut Value, old: &Value) {
    keep(pod, old, "spec");
    for field in ["deletionTimestamp", "ownerReferences"] {
        set_meta(pod, field, old.metadata()[field].clone());
    }
    let status = pod.make("status");
    for field in ["qosClass", "observedGeneration"] {
        if status[field].is_empty() && !old["status"][field].is_empty() {
            status.set(field, old["status"][field].clone());
        }
    }
    keep_observed_generations(status, &old["status"]);
    drop_disabled_status_fields(status, &old["status"]);
}

/// A condition without an observed generation keeps the one that the same condition had: the first of several of one
/// type goes with the first old one.
fn keep_observed_generations(status: &mut Value, old: &Value) {
    let old_conditions = old["conditions"].items();
    if old_conditions.iter().all(|condition| condition["observedGeneration"].is_empty()) {
        return;
    }
    let mut n_seen: Vec<(Str, usize)> = Vec::new();
    for condition in status.get_mut("conditions").map(Value::items_mut).unwrap_or_default() {
        let kind = Str::new(condition["type"].str_or_empty());
        let nth = match n_seen.iter_mut().find(|(seen, _)| *seen == kind) {
            Some((_, n)) => {
                *n += 1;
                *n
            }
            None => {
                n_seen.push((kind.clone(), 0));
                0
            }
        };
        let before = old_conditions.iter().filter(|c| c["type"].str_or_empty() == kind).nth(nth);
        let generation = before.map_or(&Value::NULL, |c| &c["observedGeneration"]);
        if condition["observedGeneration"].is_empty() && !generation.is_empty() {
            condition.set("observedGeneration", generation.clone());
        }
    }
}

/// An update through `ephemeralcontainers`: nothing else changes.
pub(super) fn for_ephemeral_containers_update(pod: &mut Value, old: &Value) {
    let containers = pod["spec"]["ephemeralContainers"].take();
    keep(pod, old, "spec");
    keep(pod, old, "status");
    keep_metadata(pod, old);
    let spec = pod.make("spec");
    if containers.is_null() {
        spec.remove("ephemeralContainers");
    } else {
        spec.set("ephemeralContainers", containers);
    }
    finish_update(pod, old);
}

/// An update through `resize`: resources and resize policies of the same containers change, nothing else. An attempt to
/// change the containers themselves is left for validation to refuse.
pub(super) fn for_resize_update(pod: &mut Value, old: &Value) {
    let has_as_many = |list: &str| pod["spec"][list].items().len() == old["spec"][list].items().len();
    if has_as_many("containers") && has_as_many("initContainers") {
        let lists: Vec<(&str, Value)> = ["containers", "initContainers"]
            .into_iter()
            .map(|list| (list, resized(&pod["spec"][list], &old["spec"][list])))
            .collect();
        keep(pod, old, "spec");
        keep(pod, old, "status");
        keep_metadata(pod, old);
        let spec = pod.make("spec");
        for (list, containers) in lists.into_iter().filter(|(_, containers)| !containers.is_null()) {
            spec.set(list, containers);
        }
    }
    finish_update(pod, old);
}

fn resized(new: &Value, old: &Value) -> Value {
    let is_same_order = new.items().iter().zip(old.items()).all(|(new, old)| new["name"] == old["name"]);
    if !is_same_order {
        return new.clone();
    }
    let mut containers = old.clone();
    for (container, new) in containers.items_mut().iter_mut().zip(new.items()) {
        keep(container, new, "resources");
        keep(container, new, "resizePolicy");
    }
    containers
}
