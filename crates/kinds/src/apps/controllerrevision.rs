//! ControllerRevisions: snapshots of templates that never change.

use crate::common::{At, nonnegative};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of ControllerRevisions.
#[derive(Debug)]
pub struct ControllerRevision;

impl UpdateStrategy for ControllerRevision {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        nonnegative(&At::top(object, "revision"), &mut errors);
        let data = At::top(object, "data");
        if *data.value() != old["data"] {
            errors.push(crate::common::checks::changed(&data, "any"));
        }
        errors
    }
}

impl Strategy for ControllerRevision {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        nonnegative(&At::top(object, "revision"), &mut errors);
        let data = At::top(object, "data");
        if !data.is_set() {
            errors.push(data.required("data is mandatory"));
        } else if data.as_object().is_none() {
            errors.push(data.required("data must be a valid JSON object"));
        }
        errors
    }
}
