//! IngressClasses.

use crate::prepare::{raise_generation, start_generation};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of IngressClasses.
#[derive(Debug)]
pub struct IngressClass;

impl UpdateStrategy for IngressClass {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
    }
}

impl Strategy for IngressClass {
    fn set_defaults(&self, object: &mut Value) {
        if let Some(parameters) = object.at_mut("spec.parameters").filter(|parameters| !parameters.is_null()) {
            parameters.set_default("scope", "Cluster");
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
    }
}
