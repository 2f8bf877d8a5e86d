//! PriorityClasses.

use crate::prepare::start_generation;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of PriorityClasses.
#[derive(Debug)]
pub struct PriorityClass;

impl UpdateStrategy for PriorityClass {
    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }
}

impl Strategy for PriorityClass {
    fn set_defaults(&self, object: &mut Value) {
        object.set_default("preemptionPolicy", "PreemptLowerPriority");
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
    }
}
