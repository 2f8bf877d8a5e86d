//! Namespaces, their status and their finalizing.

use super::label_not_supported;
use crate::prepare::{StatusMetadata, StatusSubresource, anything_goes, keep};
use crate::{FieldTable, MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::{Meta, set_label};
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{Value, json};
use std::borrow::Cow;

/// The finalizer that a namespace has until its contents are gone.
pub const FINALIZER_KUBERNETES: &str = "kubernetes";

/// The label that holds every namespace's name.
pub const LABEL_NAME: &str = "kubernetes.io/metadata.name";

/// The strategy of Namespaces.
#[derive(Debug)]
pub struct Namespace;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Changes, rounds: MetadataRounds::UPDATE, validate: anything_goes };

impl UpdateStrategy for Namespace {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        keep(object, old, "status");
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

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}
