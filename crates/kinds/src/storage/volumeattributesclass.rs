//! VolumeAttributesClasses.

use super::{validate_parameters, validate_provisioner};
use crate::common::At;
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of VolumeAttributesClasses.
#[derive(Debug)]
pub struct VolumeAttributesClass;

impl UpdateStrategy for VolumeAttributesClass {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        for field in ["driverName", "parameters"] {
            if object[field] != old[field] {
                errors.push(At::top(object, field).forbidden(format!("updates to {field} are forbidden.")));
            }
        }
        validate(object, &mut errors);
        errors
    }
}

impl Strategy for VolumeAttributesClass {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(object, &mut errors);
        errors
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn validate(object: &Value, errors: &mut ErrorList) {
    validate_provisioner(&At::top(object, "driverName"), errors);
    let parameters = At::top(object, "parameters");
    validate_parameters(&parameters, errors);
    if parameters.entries().len() == 0 {
        errors.push(parameters.required("must contain at least one key/value pair"));
    }
}
