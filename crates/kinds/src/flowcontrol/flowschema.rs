//! FlowSchemas and their status.

use super::validation::{validate_conditions, validate_flow_schema};
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep, raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use jiff::Timestamp;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{ErrorList, Value, json};

/// The precedence of a FlowSchema that does not say one.
const MATCHING_PRECEDENCE_DEFAULT: i64 = 1000;

/// The strategy of FlowSchemas.
#[derive(Debug)]
pub struct FlowSchema;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::StaysWhole, rounds: MetadataRounds::NONE, validate: validate_status };

impl UpdateStrategy for FlowSchema {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
        keep(object, old, "status");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_flow_schema(object, &mut errors);
        errors
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

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_flow_schema(object, &mut errors);
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

/// The condition that a flow schema should have, by whether the priority level exists that it refers to; `None` when
/// it has that condition.
pub fn dangling_condition(schema: &Value, level_exists: bool, now: Timestamp) -> Option<Value> {
    let level = go_quote(schema.at("spec.priorityLevelConfiguration.name").str_or_empty());
    let message = format!("This FlowSchema references the PriorityLevelConfiguration object named {level}");
    let (status, reason, message) = if level_exists {
        ("False", "Found", format!("{message} and it exists"))
    } else {
        ("True", "NotFound", format!("{message} but there is no such object"))
    };
    let mut wanted = json!({"type": "Dangling", "status": status, "reason": reason, "message": message});
    let is_it = |condition: &Value| {
        ["type", "status", "reason", "message"].iter().all(|field| condition[*field] == wanted[*field])
    };
    if schema.at("status.conditions").items().iter().any(is_it) {
        return None;
    }
    wanted.set("lastTransitionTime", time_value(now));
    Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dangling() {
        let now = "2026-03-04T05:06:07Z".parse().unwrap();
        let mut schema = json!({"spec": {"priorityLevelConfiguration": {"name": "x"}}});
        let condition = dangling_condition(&schema, true, now).unwrap();
        assert_eq!(
            condition.to_json_string(),
            r#"{"lastTransitionTime":"2026-03-04T05:06:07Z","message":"This FlowSchema references the PriorityLevelConfiguration object named \"x\" and it exists","reason":"Found","status":"False","type":"Dangling"}"#
        );
        schema.make("status").set("conditions", vec![condition]);
        assert_eq!(dangling_condition(&schema, true, now), None);
        assert_eq!(dangling_condition(&schema, false, now).unwrap()["status"], json!("True"));
    }
}
