//! DeviceClasses.

use crate::prepare::{raise_generation, start_generation};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of DeviceClasses.
#[derive(Debug)]
pub struct DeviceClass;

impl UpdateStrategy for DeviceClass {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        if old.at("spec.extendedResourceName").is_null() {
            object.remove_at("spec.extendedResourceName");
        }
        raise_generation(object, old, &["spec"]);
    }
}

impl Strategy for DeviceClass {
    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
        object.remove_at("spec.extendedResourceName");
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
