//! ResourceClaimTemplates.

use super::claim::{drop_disabled_spec_fields, set_spec_defaults};
use super::claimvalidation::validate_spec;
use crate::common::claim::validate_template_metadata;
use crate::common::{At, immutable};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of ResourceClaimTemplates.
#[derive(Debug)]
pub struct ResourceClaimTemplate;

impl UpdateStrategy for ResourceClaimTemplate {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        drop_disabled_spec_fields(object.make("spec.spec"), &old["spec"]["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = checked(object);
        immutable(&At::top(object, "spec"), &old["spec"], "resource/v1.ResourceClaimTemplateSpec", &mut errors);
        errors
    }
}

impl Strategy for ResourceClaimTemplate {
    fn set_defaults(&self, object: &mut Value) {
        set_spec_defaults(object.make("spec.spec"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        drop_disabled_spec_fields(object.make("spec.spec"), &Value::NULL);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        checked(object)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn checked(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = At::top(object, "spec");
    validate_template_metadata(&spec.child("metadata"), &mut errors);
    validate_spec(&spec.child("spec"), &mut errors);
    errors
}
