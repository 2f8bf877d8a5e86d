//! PriorityLevelConfigurations and their status.

use super::validation::{validate_conditions, validate_priority_level};
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep, raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of PriorityLevelConfigurations.
#[derive(Debug)]
pub struct PriorityLevelConfiguration;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::StaysWhole, rounds: MetadataRounds::NONE, validate: validate_status };

impl UpdateStrategy for PriorityLevelConfiguration {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
        keep(object, old, "status");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_priority_level(object, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for PriorityLevelConfiguration {
    fn set_defaults(&self, object: &mut Value) {
        /// Field of the queues, default.
        const QUEUING: [(&str, i64); 3] = [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)];
        let spec = object.make("spec");
        if let Some(limited) = spec.get_mut("limited").filter(|limited| !limited.is_null()) {
            limited.set_default("nominalConcurrencyShares", 30);
            limited.set_default("lendablePercent", 0);
            if let Some(queuing) = limited.at_mut("limitResponse.queuing").filter(|queuing| !queuing.is_null()) {
                for (field, default) in QUEUING {
                    if queuing[field].is_empty() {
                        queuing.set(field, default);
                    }
                }
            }
        }
        if let Some(exempt) = spec.get_mut("exempt").filter(|exempt| !exempt.is_null()) {
            exempt.set_default("nominalConcurrencyShares", 0);
            exempt.set_default("lendablePercent", 0);
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "flowcontrol/v1.PriorityLevelConfigurationStatus");
        start_generation(object);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_priority_level(object, &mut errors);
        errors
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}

fn validate_status(_: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_conditions(object, &mut errors);
    errors
}
