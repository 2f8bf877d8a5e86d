//! The group `storage.k8s.io`.

pub mod csidriver;
pub mod csinode;
pub mod csistoragecapacity;
pub mod storageclass;
pub mod volumeattachment;
pub mod volumeattributesclass;

use crate::Strategy;

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
