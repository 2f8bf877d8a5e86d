//! Defaulting, and dropping nulls where neither null nor a default may stand.

use super::Structural;
use pintle_apimachinery::Value;

/// Fills in defaults, at every depth, where a member is absent or is a null that its schema does not allow.
pub fn default(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(object) => {
            for (name, property) in &schema.properties {
                let Some(fallback) = &property.default else { continue };
                let is_missing = object.get(name).is_none_or(|v| is_refused_null(v, property));
                if is_missing {
                    object.insert(name, fallback.clone());
                }
            }
            for (key, member) in object.iter_mut() {
                match (schema.property(key), schema.additional.schema()) {
                    (Some(property), _) => default(member, property),
                    (None, Some(additional)) => default_in_place(member, additional),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return };
            for item in items {
                default_in_place(item, schema);
            }
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {}
    }
}

fn is_refused_null(value: &Value, schema: &Structural) -> bool {
    value.is_null() && !schema.is_nullable
}

fn default_in_place(value: &mut Value, schema: &Structural) {
    if is_refused_null(value, schema) {
        *value = schema.default.clone().unwrap_or_default();
    }
    default(value, schema);
}

/// Drops members that are null where the schema neither allows null nor has a default. Items of lists stay.
pub fn drop_nulls(value: &mut Value, schema: Option<&Structural>) {
    match value {
        Value::Object(object) => object.retain(|key, member| {
            let schema = schema.and_then(|s| s.member(key));
            if schema.is_some_and(|s| is_refused_null(member, s) && s.default.is_none()) {
                return false;
            }
            drop_nulls(member, schema);
            true
        }),
        Value::Array(items) => {
            let schema = schema.and_then(|s| s.items.as_deref());
            for item in items {
                drop_nulls(item, schema);
            }
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {}
    }
}
