//! Ingresses and their status.

use crate::prepare::{clear_status, keep, raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::Meta;

/// Named the class before `spec.ingressClassName`.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The strategy of Ingresses.
#[derive(Debug)]
pub struct Ingress;

impl UpdateStrategy for Ingress {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        raise_generation(object, old, &["spec"]);
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for Ingress {
    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "networking/v1.IngressStatus");
        start_generation(object);
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        if object.annotation(CLASS_ANNOTATION).is_none() || !object.at("spec.ingressClassName").is_null() {
            return Vec::new();
        }
        vec![format!(
            "annotation {} is deprecated, please use 'spec.ingressClassName' instead",
            go_quote(CLASS_ANNOTATION)
        )]
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&Status as _)
    }
}

/// `ingresses/x/status`.
#[derive(Debug)]
struct Status;

impl UpdateStrategy for Status {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }
}
