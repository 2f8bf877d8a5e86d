//! ValidatingAdmissionPolicies and their status.

use super::{set_rule_defaults, set_selector_defaults};
use crate::prepare::{
    StatusMetadata, StatusSubresource, anything_goes, clear_status, keep, raise_generation, start_generation,
};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of ValidatingAdmissionPolicies.
#[derive(Debug)]
pub struct ValidatingAdmissionPolicy;

static STATUS: StatusSubresource = StatusSubresource {
    metadata: StatusMetadata::Stays,
    rounds: MetadataRounds::NEW.any_finalizers(),
    validate: anything_goes,
};

impl UpdateStrategy for ValidatingAdmissionPolicy {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        raise_generation(object, old, &["spec"]);
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW.any_finalizers()
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for ValidatingAdmissionPolicy {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        spec.set_default("failurePolicy", "Fail");
        set_match_resources_defaults(spec.get_mut("matchConstraints"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "admissionregistration/v1.ValidatingAdmissionPolicyStatus");
        start_generation(object);
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}

/// Defaults of what a policy or binding matches.
pub(super) fn set_match_resources_defaults(resources: Option<&mut Value>) {
    let Some(resources) = resources.filter(|resources| !resources.is_null()) else { return };
    set_selector_defaults(resources);
    set_rule_defaults(resources.get_mut("resourceRules"));
    set_rule_defaults(resources.get_mut("excludeResourceRules"));
}
