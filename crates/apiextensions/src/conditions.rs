//! The life of a definition: names accepted, established, approved, terminating. Pure functions from the definition (and
//! its neighbours) to its next form; a controller stores what they answer and calls again when something changed.
//!
//! Follows: apiextensions-apiserver/pkg/controller/{status,establish,nonstructuralschema,apiapproval,finalizer} (v0.35).

use crate::crd::{structural, webhook};
use crate::structural::Structural;
use jiff::Timestamp;
use pintle_apimachinery::field::{aggregate, go_quote};
use pintle_apimachinery::meta::{Meta, add_finalizer, remove_finalizer};
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{FieldError, Path, Value, json};
use pintle_cel::golang::url;
use std::collections::BTreeSet;

/// The finalizer that keeps a definition until its instances are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The annotation that says where an API of a protected group was approved.
pub const APPROVED_ANNOTATION: &str = "api-approved.kubernetes.io";

/// A condition of a definition, without its time.
#[derive(Clone, Copy, Debug)]
struct Condition<'c> {
    kind: &'c str,
    status: &'c str,
    reason: &'c str,
    message: &'c str,
}

/// The condition of this type, if the definition has it.
pub fn condition<'d>(definition: &'d Value, kind: &str) -> Option<&'d Value> {
    definition.at("status.conditions").items().iter().find(|c| c["type"].as_str() == Some(kind))
}

/// Whether the definition has the condition of this type with status `True`.
pub fn is_condition_true(definition: &Value, kind: &str) -> bool {
    condition(definition, kind).is_some_and(|c| c["status"].as_str() == Some("True"))
}

/// Whether `definition` has exactly this condition already.
fn has(definition: &Value, wanted: Condition<'_>) -> bool {
    condition(definition, wanted.kind).is_some_and(|c| {
        let text = |field: &str| c[field].str_or_empty();
        text("status") == wanted.status && text("reason") == wanted.reason && text("message") == wanted.message
    })
}

/// Sets a condition; its time moves only when its status does.
fn set(definition: &mut Value, new: Condition<'_>, now: Timestamp) {
    let conditions = definition.make("status.conditions").make_array();
    let known = conditions.iter_mut().find(|c| c["type"].as_str() == Some(new.kind));
    let Some(known) = known else {
        conditions.push(json!({
            "type": new.kind, "status": new.status, "lastTransitionTime": time_value(now),
            "reason": new.reason, "message": new.message,
        }));
        return;
    };
    if known["status"].as_str() != Some(new.status) || known["lastTransitionTime"].is_null() {
        known.set("lastTransitionTime", time_value(now));
    }
    known.set("status", new.status);
    known.set("reason", new.reason);
    known.set("message", new.message);
}

/// The definition with its names accepted, as far as `group` (all definitions of its group, itself included) leaves them
/// free. `None` when nothing changes.
pub fn accept_names<'d>(
    definition: &Value,
    group: impl IntoIterator<Item = &'d Value>,
    now: Timestamp,
) -> Option<Value> {
    let wanted = definition.at("spec.names");
    let accepted = definition.at("status.acceptedNames");
    if wanted == accepted {
        return None;
    }
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in group {
        let names = other.at("status.acceptedNames");
        let of = |fields: [&str; 2]| fields.map(|field| names[field].str_or_empty());
        resources.extend(of(["plural", "singular"]));
        resources.extend(names["shortNames"].items().iter().map(Value::str_or_empty));
        kinds.extend(of(["kind", "listKind"]));
    }
    let taken = |name: &str| format!("{} is already in use", go_quote(name));
    let mut names = accepted.clone();
    // the last conflict is the one that is told
    let mut conflict: Option<(&str, String)> = None;
    for (field, reason, used) in [
        ("plural", "PluralConflict", &resources),
        ("singular", "SingularConflict", &resources),
        ("shortNames", "ShortNamesConflict", &resources),
        ("kind", "KindConflict", &kinds),
        ("listKind", "ListKindConflict", &kinds),
    ] {
        let (new, old) = (&wanted[field], &accepted[field]);
        let candidates = if field == "shortNames" { new.items() } else { std::slice::from_ref(new) };
        let is_taken =
            |name: &&Value| !old.items().contains(name) && **name != *old && used.contains(name.str_or_empty());
        let clashes: Vec<String> = candidates.iter().filter(is_taken).map(|n| taken(n.str_or_empty())).collect();
        if clashes.is_empty() {
            names.set(field, new.clone());
        } else {
            conflict = Some((reason, aggregate(&clashes)));
        }
    }
    names.set("categories", wanted["categories"].clone());
    tidy_names(&mut names);
    let accepted_condition = match &conflict {
        None => {
            Condition { kind: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found" }
        }
        Some((reason, message)) => Condition { kind: "NamesAccepted", status: "False", reason, message },
    };
    if names == *accepted && has(definition, accepted_condition) {
        return None;
    }
    let mut next = definition.clone();
    next.make("status").set("acceptedNames", names);
    set(&mut next, accepted_condition, now);
    if !is_condition_true(definition, "Established") {
        let (reason, message) = match conflict {
            None => ("Installing", "the initial names have been accepted"),
            Some(_) => ("NotAccepted", "not all names are accepted"),
        };
        let is_old = conflict.is_some() && condition(definition, "Established").is_some();
        if !is_old {
            set(&mut next, Condition { kind: "Established", status: "False", reason, message }, now);
        }
    }
    Some(next)
}

/// Drops empty names that Go leaves out.
fn tidy_names(names: &mut Value) {
    for field in ["singular", "listKind", "shortNames", "categories"] {
        if names[field].is_empty() {
            names.remove(field);
        }
    }
}

/// The definition established, once its names are accepted. `None` when nothing changes.
pub fn establish(definition: &Value, now: Timestamp) -> Option<Value> {
    if !is_condition_true(definition, "NamesAccepted") || is_condition_true(definition, "Established") {
        return None;
    }
    let bundle = definition.at("spec.conversion.webhook.clientConfig.caBundle").str_or_empty();
    let new = if !bundle.is_empty() && webhook::bundle_fault(bundle).is_some() {
        Condition {
            kind: "Established",
            status: "False",
            reason: "InvalidCABundle",
            message: "The conversion webhook CABundle is invalid",
        }
    } else {
        Condition {
            kind: "Established",
            status: "True",
            reason: "InitialNamesAccepted",
            message: "the initial names have been accepted",
        }
    };
    changed(definition, new, now)
}

fn changed(definition: &Value, new: Condition<'_>, now: Timestamp) -> Option<Value> {
    if has(definition, new) {
        return None;
    }
    let mut next = definition.clone();
    set(&mut next, new, now);
    Some(next)
}

/// The definition with what it has of the condition `NonStructuralSchema`, which old definitions may deserve. `None` when
/// nothing changes.
pub fn judge_schemas(definition: &Value, now: Timestamp) -> Option<Value> {
    const KIND: &str = "NonStructuralSchema";
    let spec = Path::new("spec");
    let versions = spec.child("versions");
    let mut errors = Vec::new();
    if definition["spec"]["preserveUnknownFields"].is_true() {
        errors.push(FieldError::invalid(&spec.child("preserveUnknownFields"), true, "must be false"));
    }
    for (idx, version) in definition.at("spec.versions").items().iter().enumerate() {
        let schema = crate::version::schema_of(version);
        if schema.is_null() {
            continue;
        }
        let at = versions.index(idx);
        match Structural::compile(schema) {
            Ok(schema) => errors.extend(structural::validate(&at.child("schema.openAPIV3Schema"), &schema)),
            Err(why) => {
                let name = version["name"].str_or_empty();
                let message = format!("failed to check validation schema for version {name}: {why}");
                let new = Condition { kind: KIND, status: "Unknown", reason: "StructuralError", message: &message };
                return changed(definition, new, now);
            }
        }
    }
    if !errors.is_empty() {
        let message = aggregate(&errors);
        return changed(
            definition,
            Condition { kind: KIND, status: "True", reason: "Violations", message: &message },
            now,
        );
    }
    condition(definition, KIND)?;
    let mut next = definition.clone();
    next.make("status.conditions").make_array().retain(|c| c["type"].as_str() != Some(KIND));
    Some(next)
}

/// Whether a group belongs to the Kubernetes community, whose APIs need approval.
pub fn is_protected_group(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// What the approval annotation of a definition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    /// Nothing.
    Missing,
    /// Why there is no approval.
    Bypassed,
    /// Where the approval is.
    Approved,
    /// Neither.
    Invalid,
}

/// The state of a definition's approval, and what to tell of it.
pub fn approval_state(definition: &Value) -> (ApprovalState, String) {
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let needs = format!("protected groups must have approval annotation {}", go_quote(APPROVED_ANNOTATION));
    match definition.annotation(APPROVED_ANNOTATION).unwrap_or_default() {
        "" => (ApprovalState::Missing, format!("{needs}, {SEE}")),
        text if text.starts_with("unapproved") => {
            (ApprovalState::Bypassed, format!("not approved: {}", go_quote(text)))
        }
        text if url::parse_request_uri(text).is_ok_and(|url| !url.host.is_empty() && !url.scheme.is_empty()) => {
            (ApprovalState::Approved, format!("approved in {text}"))
        }
        _ => {
            let how = "with either a URL or a reason starting with \"unapproved\"";
            (ApprovalState::Invalid, format!("{needs} {how}, {SEE}"))
        }
    }
}

/// The definition with the condition `KubernetesAPIApprovalPolicyConformant`, if its group is protected. `None` when
/// nothing changes.
pub fn judge_approval(definition: &Value, now: Timestamp) -> Option<Value> {
    if !is_protected_group(definition["spec"]["group"].str_or_empty()) {
        return None;
    }
    let (state, message) = approval_state(definition);
    let (status, reason) = match state {
        ApprovalState::Invalid => ("False", "InvalidAnnotation"),
        ApprovalState::Missing => ("False", "MissingAnnotation"),
        ApprovalState::Approved => ("True", "ApprovedAnnotation"),
        ApprovalState::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    let kind = "KubernetesAPIApprovalPolicyConformant";
    changed(definition, Condition { kind, status, reason, message: &message }, now)
}

/// What DELETE makes of a definition that is not terminating yet: the instances go first.
#[must_use]
pub fn begin_deletion(definition: &Value, now: Timestamp) -> Value {
    let mut next = definition.clone();
    next.make("metadata").set_default("deletionTimestamp", time_value(now));
    add_finalizer(&mut next, CLEANUP_FINALIZER);
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set(&mut next, Condition { kind: "Terminating", status: "True", reason: "InstanceDeletionPending", message }, now);
    next
}

/// How far the deletion of a definition's instances is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// It begins.
    InProgress,
    /// It cannot go on, with the reason.
    Failed(String),
    /// Instances are still there, with what is known of them.
    Waiting(String),
    /// None is left.
    Completed,
    /// There never were any: the definition was never established.
    NeverEstablished,
    /// They belong to a built-in resource and stay.
    Overlapping,
}

/// Whether the instances of a definition are to be deleted.
pub fn needs_cleanup(definition: &Value) -> bool {
    definition.is_terminating() && definition.has_finalizer(CLEANUP_FINALIZER)
}

/// The definition with how far its cleanup is; when that is over, without the finalizer.
#[must_use]
pub fn note_cleanup(definition: &Value, cleanup: &Cleanup, now: Timestamp) -> Value {
    let mut next = definition.clone();
    let (status, reason, message, is_over) = match cleanup {
        Cleanup::InProgress => ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress", false),
        Cleanup::Failed(why) => ("True", "InstanceDeletionFailed", why.as_str(), false),
        Cleanup::Waiting(why) => ("True", "InstanceDeletionCheck", why.as_str(), false),
        Cleanup::Completed => ("False", "InstanceDeletionCompleted", "removed all instances", true),
        Cleanup::NeverEstablished => ("False", "NeverEstablished", "resource was never established", true),
        Cleanup::Overlapping => {
            ("False", "OverlappingBuiltInResource", "instances overlap with built-in resources in storage", true)
        }
    };
    set(&mut next, Condition { kind: "Terminating", status, reason, message }, now);
    if is_over {
        remove_finalizer(&mut next, CLEANUP_FINALIZER);
    }
    next
}

#[cfg(test)]
mod tests;
