//! ResourceSlices.

use super::slicevalidation::validate_spec;
use crate::prepare::{raise_generation, start_generation};
use crate::{FieldTable, MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{ErrorList, Value};
use std::borrow::Cow;

/// The strategy of ResourceSlices.
#[derive(Debug)]
pub struct ResourceSlice;

impl UpdateStrategy for ResourceSlice {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
        drop_disabled_fields(object.make("spec"), &old["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(object, Some(&old["spec"]), &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
    }
}

impl Strategy for ResourceSlice {
    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
        drop_disabled_fields(object.make("spec"), &Value::NULL);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(object, None, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn selectable_fields(&self) -> FieldTable {
        &[
            ("spec.nodeName", |object| Cow::Borrowed(object.at("spec.nodeName").str_or_empty())),
            ("spec.driver", |object| Cow::Borrowed(object.at("spec.driver").str_or_empty())),
        ]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}")
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn warnings(object: &Value) -> Vec<String> {
    let driver = object.at("spec.driver").str_or_empty();
    if driver.to_lowercase() == driver {
        return Vec::new();
    }
    vec![format!("spec.driver: driver names should be lowercase; {} contains uppercase characters", go_quote(driver))]
}

/// Fields of features that are off: those of the slice, those of its devices, and whether a device's field counts as
/// used by its length or by its presence.
const DISABLED: [(&[&str], &[&str]); 3] = [
    (&[], &["taints"]),
    (&["sharedCounters", "perDeviceNodeSelection"], &["consumesCounters", "nodeName", "nodeSelector", "allNodes"]),
    (&[], &["bindingConditions", "bindingFailureConditions", "bindsToNode"]),
];

/// They are kept where they are in use, not added.
fn drop_disabled_fields(spec: &mut Value, old_spec: &Value) {
    for (of_slice, of_device) in DISABLED {
        let is_set = |value: &Value, fields: &[&str]| fields.iter().any(|field| !value[*field].is_null());
        let is_in_use =
            is_set(old_spec, of_slice) || old_spec["devices"].items().iter().any(|device| is_set(device, of_device));
        if is_in_use {
            continue;
        }
        for field in of_slice {
            spec.remove(field);
        }
        for device in spec.get_mut("devices").map_or(&mut [][..], Value::items_mut) {
            for field in of_device {
                device.remove(field);
            }
        }
    }
    drop_consumable_capacity(spec, old_spec);
}

fn drop_consumable_capacity(spec: &mut Value, old_spec: &Value) {
    let is_in_use = old_spec["devices"].items().iter().any(|device| {
        !device["allowMultipleAllocations"].is_null()
            || device["capacity"].entries().any(|(_, capacity)| !capacity["requestPolicy"].is_null())
    });
    if is_in_use {
        return;
    }
    for device in spec.get_mut("devices").map_or(&mut [][..], Value::items_mut) {
        device.remove("allowMultipleAllocations");
        let Some(capacities) = device.get_mut("capacity").and_then(Value::as_object_mut) else { continue };
        for capacity in capacities.values_mut() {
            capacity.remove("requestPolicy");
        }
    }
}
