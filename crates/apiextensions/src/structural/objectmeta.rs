//! Type and metadata of objects, also of those embedded in others: brought to the form that Go's `ObjectMeta` gives
//! them, and validated.

use super::Structural;
use pintle_apimachinery::field::Path;
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, GroupVersion, Value, json};
use pintle_kinds::meta;
use pintle_schema::{TypeId, decode_value, type_named};

/// What to do with metadata that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It is an error: a client sent it.
    Refuse,
    /// The misfitting fields go: it is stored already.
    Drop,
}

/// Metadata as `ObjectMeta` has it, and the paths of unknown fields below it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadMeta {
    /// The metadata.
    pub metadata: Value,
    /// Unknown fields, relative to the metadata.
    pub unknown: Vec<String>,
}

fn object_meta_type() -> Result<TypeId, String> {
    type_named("meta/v1.ObjectMeta").ok_or_else(|| "the catalogue has no ObjectMeta".to_owned())
}

/// Reads `metadata` the way Go decodes `ObjectMeta`.
///
/// # Errors
/// Go's text when a field has a wrong type and misfits are refused, or when the metadata is no object.
pub fn read(metadata: &Value, misfit: Misfit) -> Result<ReadMeta, String> {
    let id = object_meta_type()?;
    let parsed = decode_value(metadata, id).map_err(|e| e.to_string())?;
    let told = |issues: pintle_apimachinery::value::Issues| issues.strict.into_iter().map(|i| i.path).collect();
    let Some(wrong) = parsed.issues.wrong_type else {
        return Ok(ReadMeta { metadata: object_or_empty(parsed.value), unknown: told(parsed.issues) });
    };
    if misfit == Misfit::Refuse {
        return Err(wrong);
    }
    let Some(members) = metadata.as_object() else {
        return Err(format!("invalid metadata: expected object, got {}", go_type(metadata)));
    };
    let mut kept = ReadMeta { metadata: Value::object(), unknown: Vec::new() };
    for (name, member) in members.iter() {
        let alone = Value::Object([(name.clone(), member.clone())].into_iter().collect());
        let parsed = decode_value(&alone, id).map_err(|e| e.to_string())?;
        if parsed.issues.wrong_type.is_some() {
            continue;
        }
        kept.unknown.extend(told(parsed.issues));
        for (name, member) in parsed.value.entries() {
            kept.metadata.set(name, member.clone());
        }
    }
    Ok(kept)
}

fn object_or_empty(value: Value) -> Value {
    if value.as_object().is_some() { value } else { Value::object() }
}

/// The Go type of a value read from JSON.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Brings the type and metadata of every embedded object (and of the root if `is_root`) to their form. Answers the
/// paths of unknown metadata fields, sorted.
///
/// # Errors
/// The first misfit, if misfits are refused.
pub fn coerce(
    value: &mut Value,
    schema: &Structural,
    is_root: bool,
    misfit: Misfit,
) -> Result<Vec<String>, FieldError> {
    let mut unknown = Vec::new();
    if is_root || has_embedded(schema) {
        coerce_at(&Path::ROOT, value, schema, is_root, misfit, &mut unknown)?;
        unknown.sort();
    }
    Ok(unknown)
}

/// Whether anything below embeds an object: most schemas do not, and need no walk.
pub(crate) fn has_embedded(schema: &Structural) -> bool {
    schema.is_embedded
        || schema.properties.iter().any(|(_, property)| has_embedded(property))
        || schema.additional.schema().is_some_and(has_embedded)
        || schema.items.as_deref().is_some_and(has_embedded)
}

fn coerce_at(
    path: &Path<'_>,
    value: &mut Value,
    schema: &Structural,
    is_root: bool,
    misfit: Misfit,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    if schema.is_root_or_embedded(is_root) && value.as_object().is_some() {
        coerce_type(path, value, misfit)?;
        coerce_metadata(path, value, misfit, unknown)?;
    }
    match value {
        Value::Object(object) => {
            for (key, member) in object.iter_mut() {
                if let Some(property) = schema.property(key) {
                    coerce_at(&path.child(key), member, property, false, misfit, unknown)?;
                } else if let Some(additional) = schema.additional.schema() {
                    coerce_at(&path.key(key), member, additional, false, misfit, unknown)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return Ok(()) };
            for (idx, item) in items.iter_mut().enumerate() {
                coerce_at(&path.index(idx), item, schema, false, misfit, unknown)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {}
    }
    Ok(())
}

fn coerce_type(path: &Path<'_>, object: &mut Value, misfit: Misfit) -> Result<(), FieldError> {
    for field in ["apiVersion", "kind"] {
        if !object.has(field) || object[field].as_str().is_some() {
            continue;
        }
        match misfit {
            Misfit::Drop => {
                object.remove(field);
            }
            Misfit::Refuse => return Err(FieldError::invalid(&path.child(field), &object[field], "must be a string")),
        }
    }
    Ok(())
}

fn coerce_metadata(
    path: &Path<'_>,
    object: &mut Value,
    misfit: Misfit,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    if !object.has("metadata") {
        return Ok(());
    }
    let at = path.child("metadata");
    match read(&object["metadata"], misfit) {
        Ok(read) => {
            unknown.extend(read.unknown.iter().map(|field| format!("{at}.{field}")));
            object.set("metadata", read.metadata);
            if object["metadata"]["creationTimestamp"].is_null() {
                object["metadata"].remove("creationTimestamp");
            }
            Ok(())
        }
        Err(why) if misfit == Misfit::Refuse => Err(FieldError::invalid(&at, &object["metadata"], why)),
        Err(_) => Ok(()),
    }
}

/// The errors of type and metadata of every embedded object (and of the root if `is_root`).
pub fn validate(path: &Path<'_>, value: &Value, schema: &Structural, is_root: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    if is_root || has_embedded(schema) {
        validate_at(path, value, schema, is_root, &mut errors);
    }
    errors
}

fn validate_at(path: &Path<'_>, value: &Value, schema: &Structural, is_root: bool, errors: &mut ErrorList) {
    match value {
        Value::Object(object) => {
            if schema.is_root_or_embedded(is_root) {
                validate_embedded(path, value, errors);
            }
            for (key, member) in object.iter() {
                if let Some(property) = schema.property(key) {
                    validate_at(&path.child(key), member, property, false, errors);
                } else if let Some(additional) = schema.additional.schema() {
                    validate_at(&path.key(key), member, additional, false, errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return };
            for (idx, item) in items.iter().enumerate() {
                validate_at(&path.index(idx), item, schema, false, errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {}
    }
}

fn validate_embedded(path: &Path<'_>, object: &Value, errors: &mut ErrorList) {
    for field in ["apiVersion", "kind"] {
        if !object.has(field) {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    if object.has("apiVersion") {
        let at = path.child("apiVersion");
        match object["apiVersion"].as_str() {
            None => errors.push(FieldError::invalid(&at, &object["apiVersion"], "must be a string")),
            Some("") => errors.push(FieldError::invalid(&at, "", "must not be empty")),
            Some(text) if GroupVersion::parse(text).is_none() => {
                errors.push(FieldError::invalid(&at, text, format!("unexpected GroupVersion string: {text}")));
            }
            Some(_) => {}
        }
    }
    if object.has("kind") {
        let at = path.child("kind");
        match object["kind"].as_str() {
            None => errors.push(FieldError::invalid(&at, &object["kind"], "must be a string")),
            Some("") => errors.push(FieldError::invalid(&at, "", "must not be empty")),
            Some(kind) => {
                let faults = names::dns1035_label(&kind.to_lowercase());
                if !faults.is_empty() {
                    let rule = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
                    errors.push(FieldError::invalid(&at, kind, rule));
                }
            }
        }
    }
    if object.has("metadata") {
        validate_metadata(path, &object["metadata"], errors);
    }
}

fn validate_metadata(path: &Path<'_>, metadata: &Value, errors: &mut ErrorList) {
    let at = path.child("metadata");
    let mut read = match read(metadata, Misfit::Refuse) {
        Ok(read) => read.metadata,
        Err(why) => {
            errors.push(FieldError::invalid(&at, metadata, why));
            return;
        }
    };
    read.set_default("name", "fakename");
    let is_namespaced = !read["namespace"].is_empty();
    let name_faults = |name: &str, is_prefix: bool| -> Faults { names::path_segment(name, is_prefix) };
    let prefix = path.to_string();
    let found = meta::validate(&json!({"metadata": read}), is_namespaced, name_faults);
    errors.extend(found.into_iter().map(|mut error| {
        if !prefix.is_empty() {
            error.field = format!("{prefix}.{}", error.field);
        }
        error
    }));
}
