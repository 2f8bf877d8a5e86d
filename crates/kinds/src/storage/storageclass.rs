//! StorageClasses.

use crate::{Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of StorageClasses.
#[derive(Debug)]
pub struct StorageClass;

impl UpdateStrategy for StorageClass {}

impl Strategy for StorageClass {
    fn set_defaults(&self, object: &mut Value) {
        object.set_default("reclaimPolicy", "Delete");
        object.set_default("volumeBindingMode", "Immediate");
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
