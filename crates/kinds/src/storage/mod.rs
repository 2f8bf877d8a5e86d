//! The group `storage.k8s.io`.

pub mod csidriver;
pub mod csinode;
pub mod csistoragecapacity;
pub mod storageclass;
pub mod volumeattachment;
pub mod volumeattributesclass;

use crate::Strategy;
use crate::common::At;
use pintle_apimachinery::{ErrorList, names};

/// Parameters of a class may have this many entries.
const PARAMETERS_MAX: usize = 512;

/// Parameters of a class may have this many bytes, keys and values together.
const PARAMETERS_BYTES_MAX: usize = 256 * 1024;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "csidrivers" => &csidriver::CsiDriver,
        "csinodes" => &csinode::CsiNode,
        "csistoragecapacities" => &csistoragecapacity::CsiStorageCapacity,
        "storageclasses" => &storageclass::StorageClass,
        "volumeattachments" => &volumeattachment::VolumeAttachment,
        "volumeattributesclasses" => &volumeattributesclass::VolumeAttributesClass,
        _ => return None,
    })
}

/// The name of a driver or provisioner; upper case is ignored.
fn validate_provisioner(at: &At<'_>, errors: &mut ErrorList) {
    if at.text().is_empty() {
        errors.push(at.required(""));
        return;
    }
    let name = at.text().to_lowercase();
    errors.extend(names::qualified_name(&name).into_iter().map(|fault| at.invalid_showing(&name, fault)));
}

/// The parameters of a class.
fn validate_parameters(at: &At<'_>, errors: &mut ErrorList) {
    if at.entries().len() > PARAMETERS_MAX {
        errors.push(at.too_long(PARAMETERS_MAX));
        return;
    }
    let mut n_bytes = 0;
    for (key, value) in at.entries() {
        if key.is_empty() {
            errors.push(at.invalid_showing("", "field can not be empty."));
        }
        n_bytes += key.len() + value.str_or_empty().len();
    }
    if n_bytes > PARAMETERS_BYTES_MAX {
        errors.push(at.too_long(PARAMETERS_BYTES_MAX));
    }
}
