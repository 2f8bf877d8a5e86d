//! VolumeAttributesClasses.

use crate::{MetadataRounds, Strategy, UpdateStrategy};

/// The strategy of VolumeAttributesClasses.
#[derive(Debug)]
pub struct VolumeAttributesClass;

impl UpdateStrategy for VolumeAttributesClass {
    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }
}

impl Strategy for VolumeAttributesClass {
    fn returns_deleted_object(&self) -> bool {
        true
    }
}
