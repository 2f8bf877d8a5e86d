//! FlowSchemas and their status.

use crate::prepare::{
    StatusMetadata, StatusSubresource, anything_goes, clear_status, keep, raise_generation, start_generation,
};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The precedence of a FlowSchema that does not say one.
const MATCHING_PRECEDENCE_DEFAULT: i64 = 1000;

/// The strategy of FlowSchemas.
#[derive(Debug)]
pub struct FlowSchema;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::StaysWhole, rounds: MetadataRounds::NEW, validate: anything_goes };

impl UpdateStrategy for FlowSchema {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
        keep(object, old, "status");
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for FlowSchema {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        if spec["matchingPrecedence"].is_empty() {
            spec.set("matchingPrecedence", MATCHING_PRECEDENCE_DEFAULT);
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "flowcontrol/v1.FlowSchemaStatus");
        start_generation(object);
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}
