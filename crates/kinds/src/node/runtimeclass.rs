//! RuntimeClasses.

use crate::{MetadataRounds, Strategy, UpdateStrategy};

/// The strategy of RuntimeClasses.
#[derive(Debug)]
pub struct RuntimeClass;

impl UpdateStrategy for RuntimeClass {
    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::BOTH.any_finalizers()
    }
}

impl Strategy for RuntimeClass {
    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
