//! PodDisruptionBudgets and their status.

use crate::prepare::{
    StatusMetadata, StatusSubresource, anything_goes, clear_status, keep, raise_generation, start_generation,
};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;
use pintle_apimachinery::names::{self, Faults};

/// The strategy of PodDisruptionBudgets.
#[derive(Debug)]
pub struct PodDisruptionBudget;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Changes, rounds: MetadataRounds::NONE, validate: anything_goes };

impl UpdateStrategy for PodDisruptionBudget {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        raise_generation(object, old, &["spec"]);
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NONE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for PodDisruptionBudget {
    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        names::path_segment(name, is_prefix)
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "policy/v1.PodDisruptionBudgetStatus");
        start_generation(object);
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}
