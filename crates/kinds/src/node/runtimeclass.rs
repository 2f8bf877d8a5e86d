//! RuntimeClasses.

use crate::{Strategy, UpdateStrategy};

/// The strategy of RuntimeClasses.
#[derive(Debug)]
pub struct RuntimeClass;

impl UpdateStrategy for RuntimeClass {}

impl Strategy for RuntimeClass {
    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
