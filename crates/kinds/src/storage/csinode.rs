//! CSINodes.

use crate::common::checks::{csi_driver_name, immutable, nonnegative, qualified_name, required};
use crate::common::{At, Seen};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// A driver's id of the node may have this many bytes.
const NODE_ID_BYTES_MAX: usize = 256;

/// The strategy of CSINodes.
#[derive(Debug)]
pub struct CsiNode;

impl UpdateStrategy for CsiNode {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        // upstream goes over it twice
        let mut errors = validate(object);
        errors.extend(validate(object));
        let spec = At::top(object, "spec");
        let drivers = spec.child("drivers");
        for old_driver in old.at("spec.drivers").items() {
            for driver in drivers.items().iter().filter(|driver| driver["name"] == old_driver["name"]) {
                let without_count = |driver: &Value| {
                    let mut driver = driver.clone();
                    driver.remove("allocatable");
                    driver
                };
                let (driver, old_driver) = (without_count(driver), without_count(old_driver));
                // upstream names the list, not the item
                let at = At::new(&driver, *drivers.path());
                immutable(&at, &old_driver, "storage/v1.CSINodeDriver", &mut errors);
            }
        }
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds { as_new: 2, ..MetadataRounds::NEW }
    }
}

impl Strategy for CsiNode {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = At::top(object, "spec");
    let mut seen = Seen::new();
    for driver in spec.child("drivers").each() {
        let (name, id) = (driver.child("name"), driver.child("nodeID"));
        csi_driver_name(&name, &mut errors);
        required(&id, &mut errors);
        if id.text().len() > NODE_ID_BYTES_MAX {
            errors.push(id.invalid(format!("must be {NODE_ID_BYTES_MAX} characters or less")));
        }
        nonnegative(&driver.child("allocatable").child("count"), &mut errors);
        if !seen.insert(driver.value()["name"].str_or_empty()) {
            errors.push(name.duplicate());
        }
        validate_topology_keys(&driver, &mut errors);
    }
    errors
}

/// Upstream names the driver, not the key.
fn validate_topology_keys(driver: &At<'_>, errors: &mut ErrorList) {
    let mut seen = Seen::new();
    for key in driver["topologyKeys"].items() {
        let at = At::new(key, *driver.path());
        required(&at, errors);
        if !seen.insert(key.str_or_empty()) {
            errors.push(FieldError::duplicate(driver.path(), key.str_or_empty()));
        }
        qualified_name(&at, errors);
    }
}
