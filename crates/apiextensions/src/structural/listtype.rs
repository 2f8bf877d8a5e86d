//! Lists that are sets or maps: each item, or each key, once.

use super::{ListType, Structural};
use pintle_apimachinery::field::Path;
use pintle_apimachinery::{ErrorList, FieldError, Object, Value};
use std::collections::BTreeMap;

/// The errors of every list in `object` that is a set or a map and names something twice.
pub fn validate(path: &Path<'_>, schema: &Structural, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    members(path, schema, object, &mut errors);
    errors
}

fn members(path: &Path<'_>, schema: &Structural, object: &Value, errors: &mut ErrorList) {
    if let Some(additional) = schema.additional.schema() {
        for (key, member) in object.entries() {
            value(&path.key(key), additional, member, errors);
        }
    }
    for (key, member) in object.entries() {
        if let Some(property) = schema.property(key) {
            value(&path.child(key), property, member, errors);
        }
    }
}

fn value(path: &Path<'_>, schema: &Structural, value: &Value, errors: &mut ErrorList) {
    match value {
        Value::Array(items) => list(path, schema, items, errors),
        Value::Object(_) => members(path, schema, value, errors),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {}
    }
}

fn list(path: &Path<'_>, schema: &Structural, items: &[Value], errors: &mut ErrorList) {
    match schema.list_type {
        ListType::Set => {
            for idx in repeated(items.iter()) {
                errors.push(FieldError::duplicate(&path.index(idx), &items[idx]));
            }
        }
        ListType::Map => list_map(path, schema, items, errors),
        ListType::Unset | ListType::Atomic => {}
    }
    if let Some(schema) = schema.items.as_deref() {
        for (idx, item) in items.iter().enumerate() {
            value(&path.index(idx), schema, item, errors);
        }
    }
}

fn list_map(path: &Path<'_>, schema: &Structural, items: &[Value], errors: &mut ErrorList) {
    for (idx, item) in items.iter().enumerate() {
        if !matches!(item, Value::Object(_) | Value::Null) {
            let rule = "must be an object for an array of list-type map";
            errors.push(FieldError::invalid(&path.index(idx), item, rule));
            return;
        }
    }
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let present = schema.list_map_keys.iter().filter(|key| item.has(key));
            Value::Object(present.map(|key| (key.clone(), item[key.as_str()].clone())).collect::<Object>())
        })
        .collect();
    for idx in repeated(keys.iter()) {
        errors.push(FieldError::duplicate(&path.index(idx), &keys[idx]));
    }
}

/// The index of the second of each run of equal values.
fn repeated<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<usize> {
    let mut seen: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut second = Vec::new();
    for (idx, value) in values.enumerate() {
        let mut key = value.to_json();
        // the text of a float may be that of an integer, and Go tells 1 and 1.0 apart in sets of scalars
        if matches!(value, Value::Float(_)) {
            key.push(b'f');
        }
        let times = seen.entry(key).or_default();
        *times += 1;
        if *times == 2 {
            second.push(idx);
        }
    }
    second
}
