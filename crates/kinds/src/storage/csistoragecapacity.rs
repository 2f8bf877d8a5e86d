//! CSIStorageCapacities.

use crate::{Strategy, UpdateStrategy};

/// The strategy of CSIStorageCapacities.
#[derive(Debug)]
pub struct CsiStorageCapacity;

impl UpdateStrategy for CsiStorageCapacity {}

impl Strategy for CsiStorageCapacity {
    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
