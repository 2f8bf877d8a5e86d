//! Validation of updates of pods: images, deadlines, tolerations and scheduling gates may change a little, and nothing
//! else of the spec.
//!
//! Follows: pkg/apis/core/validation/validation.go, ValidatePodUpdate (v1.35).

use super::options::PodOptions;
use super::prepare::APP_ARMOR_PREFIX;
use super::scheduling::validate_tolerations;
use super::validate::{validate_annotations, validate_pod};
use crate::common::At;
use crate::common::checks::required;
use crate::common::diff::unified;
use crate::common::equality::semantic;
use crate::common::goform::{compact, pretty};
use pintle_apimachinery::names::range_fault;
use pintle_apimachinery::{ErrorList, FieldError, Value};

const MIRROR: &str = "kubernetes.io/config.mirror";

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// An update of the pod itself. The metadata is validated already.
pub(super) fn validate_update(pod: &Value, old: &Value, errors: &mut ErrorList) {
    let options = PodOptions::of_pod(old);
    validate_pod_and_annotations(pod, old, &options, errors);
    let spec = At::top(pod, "spec");
    let old_spec = &old["spec"];
    for list in ["containers", "initContainers"] {
        if !validate_same_containers(&spec.child(list), &old_spec[list], errors) {
            return;
        }
    }
    if !validate_deadline(&spec.child("activeDeadlineSeconds"), &old_spec["activeDeadlineSeconds"], errors) {
        return;
    }
    validate_only_added_tolerations(&spec.child("tolerations"), &old_spec["tolerations"], &options, errors);
    validate_only_deleted_gates(&spec.child("schedulingGates"), &old_spec["schedulingGates"], errors);
    if semantic(spec.value(), old_spec, "core/v1.PodSpec") {
        return;
    }
    let masked = with_allowed_changes_undone(&spec, old_spec, errors);
    if !semantic(&masked, old_spec, "core/v1.PodSpec") {
        let diff = unified(&pretty(old_spec, "core/v1.PodSpec"), &pretty(&masked, "core/v1.PodSpec"));
        errors.push(spec.forbidden(format!("pod updates may not change fields other than {UPDATABLE}\n{diff}")));
    }
}

/// What every update of a pod that may change its metadata checks first.
pub(super) fn validate_pod_and_annotations(pod: &Value, old: &Value, options: &PodOptions, errors: &mut ErrorList) {
    validate_pod(pod, options, errors);
    validate_annotation_update(pod, old, options, errors);
}

/// Annotations that are set once, and then the rules of annotations once more, as upstream has it.
pub(super) fn validate_annotation_update(pod: &Value, old: &Value, options: &PodOptions, errors: &mut ErrorList) {
    let metadata = At::top(pod, "metadata");
    let annotations = metadata.child("annotations");
    let before = &old["metadata"]["annotations"];
    for (key, _) in before.entries().filter(|(key, value)| annotations[key.as_str()] != **value) {
        if key.starts_with(APP_ARMOR_PREFIX) {
            errors.push(annotations.key(key).forbidden("may not remove or update AppArmor annotations"));
        }
        if key == MIRROR {
            errors.push(annotations.key(key).forbidden("may not remove or update mirror pod annotation"));
        }
    }
    for (key, added) in annotations.each_entry().filter(|(key, _)| !before.has(key)) {
        if key.starts_with(APP_ARMOR_PREFIX) {
            errors.push(added.forbidden("may not add AppArmor annotations"));
        }
        if key == MIRROR {
            errors.push(added.forbidden("may not add mirror pod annotation"));
        }
    }
    validate_annotations(&annotations, &pod["spec"], options, errors);
}

/// Answers whether there are as many containers as before.
fn validate_same_containers(at: &At<'_>, old: &Value, errors: &mut ErrorList) -> bool {
    if at.items().len() != old.items().len() {
        errors.push(at.forbidden("pod updates may not add or remove containers"));
        return false;
    }
    for container in at.each() {
        required(&container.child("image"), errors);
        super::containers::validate_image_is_trimmed(&container, errors);
    }
    true
}

/// Answers whether it makes sense to look further.
fn validate_deadline(at: &At<'_>, old: &Value, errors: &mut ErrorList) -> bool {
    match (at.as_i64(), old.as_i64()) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            errors.push(at.invalid_int(range_fault(0, i64::from(i32::MAX))));
            false
        }
        (Some(seconds), Some(before)) if before < seconds => {
            errors.push(at.invalid_int("must be less than or equal to previous value"));
            false
        }
        (None, Some(_)) => {
            errors.push(at.invalid_showing(&Value::NULL, "must not update from a positive integer to nil value"));
            true
        }
        _ => true,
    }
}

fn validate_only_added_tolerations(at: &At<'_>, old: &Value, options: &PodOptions, errors: &mut ErrorList) {
    let is_kept = |before: &Value| {
        at.items()
            .iter()
            .any(|now| ["key", "operator", "value", "effect"].iter().all(|field| before[field] == now[field]))
    };
    if !old.items().iter().all(is_kept) {
        errors.push(at.forbidden("existing toleration can not be modified except its tolerationSeconds"));
        return;
    }
    validate_tolerations(at, options, errors);
}

fn validate_only_deleted_gates(at: &At<'_>, old: &Value, errors: &mut ErrorList) {
    for (idx, gate) in at.each().enumerate() {
        let is_same = |other: &Value| other["name"] == gate["name"];
        let is_last = !at.items()[idx + 1..].iter().any(is_same);
        if is_last && !old.items().iter().any(is_same) {
            let name = gate["name"].str_or_empty();
            let rule = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(gate.child("name").forbidden(rule));
        }
    }
}

/// The new spec with every change undone that is allowed; allowed only so far, and what goes further is told.
fn with_allowed_changes_undone(spec: &At<'_>, old: &Value, errors: &mut ErrorList) -> Value {
    let mut masked = spec.value().clone();
    for list in ["containers", "initContainers"] {
        let containers = masked.get_mut(list).map(Value::items_mut).unwrap_or_default();
        for (container, before) in containers.iter_mut().zip(old[list].items()) {
            put_back(container, before, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        put_back(&mut masked, old, field);
    }
    let was_negative = old["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0);
    if was_negative && masked["terminationGracePeriodSeconds"].as_i64() == Some(1) {
        put_back(&mut masked, old, "terminationGracePeriodSeconds");
    }
    if !old["schedulingGates"].items().is_empty() {
        mask_gated(&mut masked, spec, old, errors);
    }
    masked
}

fn put_back(object: &mut Value, old: &Value, field: &str) {
    match &old[field] {
        Value::Null => {
            object.remove(field);
        }
        before => object.set(field, before.clone()),
    }
}

/// Pods that wait at a gate may become pickier about their nodes.
fn mask_gated(masked: &mut Value, spec: &At<'_>, old: &Value, errors: &mut ErrorList) {
    let selector = spec.child("nodeSelector");
    if !semantic(selector.value(), &old["nodeSelector"], "") {
        if old["nodeSelector"].entries().any(|(key, value)| selector[key.as_str()] != *value) {
            let shown = compact(selector.value(), "{}string");
            let rule = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            errors.push(FieldError { shown: Some(shown), ..selector.invalid(rule) });
        }
        put_back(masked, old, "nodeSelector");
    }
    let affinity = spec.child("affinity");
    let affinity = affinity.child("nodeAffinity");
    let before = &old["affinity"]["nodeAffinity"];
    if semantic_pointer(affinity.value(), before, "core/v1.NodeAffinity") {
        return;
    }
    validate_node_affinity_change(&affinity, before, errors);
    let has_others = !masked["affinity"]["podAffinity"].is_null() || !masked["affinity"]["podAntiAffinity"].is_null();
    if masked["affinity"].is_null() {
        if !before.is_null() {
            masked.make("affinity").set("nodeAffinity", before.clone());
        }
    } else if old["affinity"].is_null() && !has_others {
        masked.remove("affinity");
    } else {
        put_back(&mut masked["affinity"], &old["affinity"], "nodeAffinity");
    }
}

/// [`semantic`] of two pointers: an empty struct is not the same as none.
fn semantic_pointer(a: &Value, b: &Value, type_name: &str) -> bool {
    a.is_null() == b.is_null() && semantic(a, b, type_name)
}

fn validate_node_affinity_change(at: &At<'_>, old: &Value, errors: &mut ErrorList) {
    let required = at.child("requiredDuringSchedulingIgnoredDuringExecution");
    let before = old["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].items();
    let terms = required.child("nodeSelectorTerms");
    if before.is_empty() {
        return;
    }
    if before.len() != terms.items().len() {
        let shown = compact(terms.value(), "[]core/v1.NodeSelectorTerm");
        let rule = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError { shown: Some(shown), ..terms.invalid(rule) });
        return;
    }
    for (term, before) in terms.each().zip(before) {
        if !has_only_additions(&term, before) {
            let shown = compact(term.value(), "core/v1.NodeSelectorTerm");
            let rule = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError { shown: Some(shown), ..term.invalid(rule) });
        }
    }
}

fn has_only_additions(term: &Value, old: &Value) -> bool {
    let n_of = |term: &Value| term["matchExpressions"].items().len() + term["matchFields"].items().len();
    if n_of(old) == 0 && n_of(term) > 0 {
        return false;
    }
    ["matchExpressions", "matchFields"].iter().all(|list| {
        let (now, before) = (term[list].items(), old[list].items());
        now.len() >= before.len()
            && now.iter().zip(before).all(|(a, b)| semantic(a, b, "core/v1.NodeSelectorRequirement"))
    })
}
