//! ValidatingAdmissionPolicyBindings.

use super::policy::set_match_resources_defaults;
use crate::prepare::{raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of ValidatingAdmissionPolicyBindings.
#[derive(Debug)]
pub struct ValidatingAdmissionPolicyBinding;

impl UpdateStrategy for ValidatingAdmissionPolicyBinding {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW.any_finalizers()
    }
}

impl Strategy for ValidatingAdmissionPolicyBinding {
    fn set_defaults(&self, object: &mut Value) {
        set_match_resources_defaults(object.at_mut("spec.matchResources"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
