//! Nodes and their status.

use super::label_not_supported;
use super::quantities::round_up_to_millis;
use crate::prepare::keep;
use crate::{FieldTable, MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;
use std::borrow::Cow;

/// The strategy of Nodes.
#[derive(Debug)]
pub struct Node;

impl UpdateStrategy for Node {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        if old["spec"]["configSource"].is_null() {
            object.remove_at("spec.configSource");
        }
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for Node {
    fn set_defaults(&self, object: &mut Value) {
        let Some(status) = object.get_mut("status") else { return };
        if status["allocatable"].is_null() && !status["capacity"].is_null() {
            let capacity = status["capacity"].clone();
            status.set("allocatable", capacity);
        }
        round_up_to_millis(status.get_mut("capacity"));
        round_up_to_millis(status.get_mut("allocatable"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        object.remove_at("spec.configSource");
        object.remove_at("status.config");
        object.remove_at("status.declaredFeatures");
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&Status as _)
    }

    fn selectable_fields(&self) -> FieldTable {
        &[("spec.unschedulable", |object| {
            Cow::Borrowed(if object.at("spec.unschedulable").is_true() { "true" } else { "false" })
        })]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        label_not_supported(field)
    }
}

/// `nodes/x/status`.
#[derive(Debug)]
struct Status;

impl UpdateStrategy for Status {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        if old.at("status.config").is_null() {
            object.remove_at("status.config");
        }
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }
}
