//! The difference between two statuses as a patch.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use serde_json::{Map, Value, json};

/// A strategic merge patch that makes the pod's status `wanted`: members that differ, and of the conditions those that
/// differ, so that the conditions of others are not touched. It holds for this very pod, not for one made again under
/// the same name. `None` when there is nothing to change.
pub(crate) fn status_patch(pod: &Pod, wanted: &PodStatus) -> Option<Value> {
    let old = members(pod.status.as_ref());
    let new = members(Some(wanted));
    let mut changes = Map::new();
    for (key, value) in &new {
        let before = old.get(key);
        if before == Some(value) {
            continue;
        }
        let change = if key == "conditions" { changed_conditions(before, value) } else { value.clone() };
        changes.insert(key.clone(), change);
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        changes.insert(key.clone(), Value::Null);
    }
    if changes.is_empty() {
        return None;
    }
    Some(json!({"metadata": {"uid": pod.metadata.uid}, "status": changes}))
}

fn members(status: Option<&PodStatus>) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// Conditions that differ; what a condition no longer has is taken from it.
fn changed_conditions(before: Option<&Value>, after: &Value) -> Value {
    let before: &[Value] = before.and_then(Value::as_array).map_or(&[], Vec::as_slice);
    let mut changed = Vec::new();
    for condition in after.as_array().into_iter().flatten() {
        let old = before.iter().find(|old| old["type"] == condition["type"]);
        if old == Some(condition) {
            continue;
        }
        let mut change = condition.clone();
        for key in old.and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            if condition.get(key).is_none() {
                change[key] = Value::Null;
            }
        }
        changed.push(change);
    }
    Value::Array(changed)
}
