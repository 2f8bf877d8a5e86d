//! Leases.

use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of Leases.
#[derive(Debug)]
pub struct Lease;

/// Fields of coordinated leader election, which is off: they are kept where they are, not added.
const COORDINATED: [&str; 2] = ["preferredHolder", "strategy"];

impl UpdateStrategy for Lease {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        drop_coordinated(object, old);
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE.any_finalizers()
    }
}

impl Strategy for Lease {
    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        drop_coordinated(object, &Value::NULL);
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
