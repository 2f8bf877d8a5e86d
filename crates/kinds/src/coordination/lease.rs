//! Leases.

use crate::common::At;
use crate::common::checks::qualified_name;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of Leases.
#[derive(Debug)]
pub struct Lease;

/// Fields of coordinated leader election, which is off: they are kept where they are, not added.
const COORDINATED: [&str; 2] = ["preferredHolder", "strategy"];

impl UpdateStrategy for Lease {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        drop_coordinated(object, old);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        validate(object)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE.any_finalizers()
    }
}

impl Strategy for Lease {
    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        drop_coordinated(object, &Value::NULL);
    }

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

fn drop_coordinated(object: &mut Value, old: &Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    for field in COORDINATED {
        if old["spec"][field].is_null() {
            spec.remove(field);
        }
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = At::top(object, "spec");
    let (duration, transitions) = (spec.child("leaseDurationSeconds"), spec.child("leaseTransitions"));
    if duration.is_set() && duration.int() <= 0 {
        errors.push(duration.invalid("must be greater than 0"));
    }
    if transitions.int() < 0 {
        errors.push(transitions.invalid("must be greater than or equal to 0"));
    }
    let (strategy, holder) = (spec.child("strategy"), spec.child("preferredHolder"));
    if strategy.is_set() {
        // upstream names it twice
        let at = At::new(strategy.value(), strategy.path().child("strategy"));
        if at.text().contains('/') {
            qualified_name(&at, &mut errors);
        } else if at.text() != "OldestEmulationVersion" {
            errors.push(at.not_supported(&["OldestEmulationVersion"]));
        }
    }
    if !holder.text().is_empty() && strategy.text().is_empty() {
        errors.push(holder.forbidden("may only be specified if `strategy` is defined"));
    }
    errors
}
