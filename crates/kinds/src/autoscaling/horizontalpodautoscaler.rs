//! HorizontalPodAutoscalers and their status.

use super::validation::{Options, validate_spec};
use crate::common::{At, nonnegative};
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, Value, json};

/// The strategy of HorizontalPodAutoscalers.
#[derive(Debug)]
pub struct HorizontalPodAutoscaler;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Changes, rounds: MetadataRounds::UPDATE, validate: validate_status };

impl UpdateStrategy for HorizontalPodAutoscaler {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(object, &Options::of(object, Some(old)), &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for HorizontalPodAutoscaler {
    fn set_defaults(&self, object: &mut Value) {
        let is_v1 = object.api_version() == super::v1::API_VERSION;
        let spec = object.make("spec");
        spec.set_default("minReplicas", 1);
        if is_v1 {
            // the rest comes with the conversion: annotations may hold metrics
            return;
        }
        if spec["metrics"].items().is_empty() {
            spec.set("metrics", default_metrics());
        }
        if !spec["behavior"].is_null() {
            set_behavior_defaults(&mut spec["behavior"]);
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "autoscaling/v2.HorizontalPodAutoscalerStatus");
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(object, &Options::of(object, None), &mut errors);
        errors
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}

fn validate_status(_: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = At::top(object, "status");
    nonnegative(&status.child("currentReplicas"), &mut errors);
    nonnegative(&status.child("desiredReplicas"), &mut errors);
    errors
}

/// What is measured when nothing is said: 80% of the CPU asked for.
pub(crate) fn default_metrics() -> Value {
    json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}])
}

/// Fills in both directions of a scaling behaviour.
pub(crate) fn set_behavior_defaults(behavior: &mut Value) {
    let up = &mut behavior["scaleUp"];
    up.set_default("stabilizationWindowSeconds", 0);
    up.set_default("selectPolicy", "Max");
    if up["policies"].is_null() {
        up.set(
            "policies",
            json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]),
        );
    }
    let down = &mut behavior["scaleDown"];
    down.set_default("selectPolicy", "Max");
    if down["policies"].is_null() {
        down.set("policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
    }
}
