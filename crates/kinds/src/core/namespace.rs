//! Namespaces, their status and their finalizing.

use super::label_not_supported;
use crate::meta::{FINALIZER_KUBERNETES, unqualified_finalizer};
use crate::prepare::{StatusMetadata, StatusSubresource, keep};
use crate::{FieldTable, MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::{Meta, set_label};
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, json};
use std::borrow::Cow;

/// The label that holds every namespace's name.
pub const LABEL_NAME: &str = "kubernetes.io/metadata.name";

/// The strategy of Namespaces.
#[derive(Debug)]
pub struct Namespace;

static STATUS: StatusSubresource = StatusSubresource {
    metadata: StatusMetadata::Changes,
    rounds: MetadataRounds::UPDATE,
    validate: validate_status_update,
};

impl UpdateStrategy for Namespace {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        keep(object, old, "status");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        validate(object)
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for Namespace {
    fn set_defaults(&self, object: &mut Value) {
        name_label(object);
        object["status"].set_default("phase", "Active");
    }

    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        if is_prefix { names::dns1123_label(&names::mask_trailing_dash(name)) } else { names::dns1123_label(name) }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        object.set("status", json!({"phase": "Active"}));
        let finalizers = object.make("spec.finalizers").make_array();
        if !finalizers.iter().any(|f| f.as_str() == Some(FINALIZER_KUBERNETES)) {
            finalizers.push(Value::from(FINALIZER_KUBERNETES));
        }
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn canonicalize(&self, object: &mut Value) {
        // the name of a namespace made by generateName is known only now
        name_label(object);
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        match name {
            "status" => Some(&STATUS),
            "finalize" => Some(&Finalize),
            _ => None,
        }
    }

    fn holds_deletion(&self, object: &Value) -> bool {
        !object.at("spec.finalizers").items().is_empty()
    }

    fn is_deleted_in_two_steps(&self) -> bool {
        true
    }

    fn begin_deletion(&self, object: &mut Value, _now: jiff::Timestamp) {
        *object.make("status.phase") = Value::from("Terminating");
    }

    fn selectable_fields(&self) -> FieldTable {
        &[("status.phase", |object| Cow::Borrowed(object.at("status.phase").str_or_empty()))]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        label_not_supported(field)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn name_label(object: &mut Value) {
    let name = object.name();
    if !name.is_empty() && object.label(LABEL_NAME) != Some(name) {
        let name = name.to_owned();
        set_label(object, LABEL_NAME, name);
    }
}

/// `namespaces/x/finalize`: the spec's finalizers change, the status does not.
#[derive(Debug)]
struct Finalize;

impl UpdateStrategy for Finalize {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let spec = Path::new("spec");
        let path = spec.child("finalizers");
        for (idx, finalizer) in object.at("spec.finalizers").items().iter().enumerate() {
            validate_finalizer(finalizer.str_or_empty(), &path.index(idx), &mut errors);
        }
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    for finalizer in object.at("spec.finalizers").items() {
        validate_finalizer(finalizer.str_or_empty(), &spec.child("finalizers"), &mut errors);
    }
    errors
}

fn validate_finalizer(finalizer: &str, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(names::qualified_name(finalizer).into_iter().map(|f| FieldError::invalid(path, finalizer, f)));
    errors.extend(unqualified_finalizer(finalizer, path));
}

fn validate_status_update(_: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
    let (phase, rule) = if object.is_terminating() {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    let found = object.at("status.phase").str_or_empty();
    if found == phase {
        return ErrorList::new();
    }
    // upstream spells the field so
    vec![FieldError::invalid(&Path::new("status").child("Phase"), found, rule)]
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn finalizers_and_phase() {
        let base = json!({"apiVersion": "v1", "kind": "Namespace"});
        let out = creates(
            "v1/namespaces",
            &base,
            &[json!({}), json!({"spec": {"finalizers": ["x", "example.com/ok", "kubernetes"]}})],
        );
        expect![[r#"
            {}
            {"spec":{"finalizers":["x","example.com/ok","kubernetes"]}}
                spec.finalizers: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified
        "#]]
        .assert_eq(&out);
        let mut old = base;
        old.set("spec", json!({"finalizers": ["kubernetes"]}));
        old.set("status", json!({"phase": "Active"}));
        let variants = [
            json!({"spec": {"finalizers": ["x"]}}),
            json!({"spec": {"finalizers": []}, "status": {"phase": "Terminating"}}),
        ];
        expect![[r#"
            {"spec":{"finalizers":["x"]}}
            {"spec":{"finalizers":[]},"status":{"phase":"Terminating"}}
        "#]]
        .assert_eq(&updates("v1/namespaces", "", &old, &variants));
        expect![[r#"
            {"spec":{"finalizers":["x"]}}
                spec.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified
            {"spec":{"finalizers":[]},"status":{"phase":"Terminating"}}
        "#]].assert_eq(&updates("v1/namespaces", "finalize", &old, &variants));
        expect![[r#"
            {"spec":{"finalizers":["x"]}}
            {"spec":{"finalizers":[]},"status":{"phase":"Terminating"}}
                status.Phase: Invalid value: "Terminating": may only be 'Active' if `deletionTimestamp` is empty
        "#]]
        .assert_eq(&updates("v1/namespaces", "status", &old, &variants));
    }
}
