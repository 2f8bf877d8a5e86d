//! ResourceClaimTemplates.

use super::claim::{drop_disabled_spec_fields, set_spec_defaults};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of ResourceClaimTemplates.
#[derive(Debug)]
pub struct ResourceClaimTemplate;

impl UpdateStrategy for ResourceClaimTemplate {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        drop_disabled_spec_fields(object.make("spec.spec"), &old["spec"]["spec"]);
    }
}

impl Strategy for ResourceClaimTemplate {
    fn set_defaults(&self, object: &mut Value) {
        set_spec_defaults(object.make("spec.spec"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        drop_disabled_spec_fields(object.make("spec.spec"), &Value::NULL);
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}
