//! RuntimeClasses.

use crate::common::At;
use crate::common::checks::{dns1123_label, immutable};
use crate::common::resources::{Requirer, validate_requirements};
use crate::common::selectors::validate_labels;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value, json};
use std::collections::BTreeSet;

/// The strategy of RuntimeClasses.
#[derive(Debug)]
pub struct RuntimeClass;

impl UpdateStrategy for RuntimeClass {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object);
        immutable(&At::top(object, "handler"), &old["handler"], "", &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::BOTH.any_finalizers()
    }
}

impl Strategy for RuntimeClass {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    dns1123_label(&At::top(object, "handler"), &mut errors);
    let (overhead, scheduling) = (At::top(object, "overhead"), At::top(object, "scheduling"));
    if overhead.is_set() {
        // upstream checks it as the limits of a container
        let limits = json!({"limits": overhead["podFixed"].clone()});
        let at = At::new(&limits, *overhead.path());
        validate_requirements(&at, Requirer::Container, &BTreeSet::new(), false, &mut errors);
    }
    validate_labels(&scheduling.child("nodeSelector"), &mut errors);
    errors
}
