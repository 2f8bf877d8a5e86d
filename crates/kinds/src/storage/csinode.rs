//! CSINodes.

use crate::{MetadataRounds, Strategy, UpdateStrategy};

/// The strategy of CSINodes.
#[derive(Debug)]
pub struct CsiNode;

impl UpdateStrategy for CsiNode {
    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW
    }
}

impl Strategy for CsiNode {
    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
