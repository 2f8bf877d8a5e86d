//! What upstream says of a document that does not fit a type when it goes there without JSON: results of strategic
//! merge patches and of server-side apply do. Its words are others than those of decoding.

use crate::go;
use pintle_apimachinery::{Object, Value};
use pintle_schema::{Node, Shape};

/// The fault for which upstream refuses to make an object of the type at `node` of `value`. `None` where there is none,
/// or decoding along the schema finds it with the same words (times, quantities, base64).
///
/// Upstream meets the members of a struct in the order of its source; here they come by name, which differs only when
/// there are several faults.
pub fn conversion_fault(value: &Value, node: Node<'_>) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let unmarshal =
        |go_type: &str| Some(format!("json: cannot unmarshal {} into Go value of type {go_type}", json_type(value)));
    match (node.shape(), value) {
        (Shape::Bool, Value::Bool(_)) => None,
        (Shape::Bool, _) => unrecognized("bool"),
        (Shape::Int32, value) => integer(value, "int32"),
        (Shape::Int64, value) => integer(value, "int64"),
        (Shape::Float, Value::Int(_) | Value::Float(_)) => None,
        (Shape::Float, _) => unrecognized("float64"),
        (Shape::String, Value::String(_)) => None,
        (Shape::String, Value::Int(_)) => Some("cannot convert int64 to string".to_owned()),
        (Shape::String, _) => unrecognized("string"),
        (Shape::Bytes, Value::String(_)) => None,
        (Shape::List { item, .. }, Value::Array(items)) => {
            items.iter().find_map(|value| conversion_fault(value, node.with(*item)))
        }
        (Shape::StringList, Value::Array(_)) => None,
        (Shape::Bytes | Shape::List { .. } | Shape::StringList, _) => {
            Some(format!("cannot restore slice from {}", kind(value)))
        }
        (Shape::Map { value, .. }, Value::Object(object)) => {
            object.values().find_map(|member| conversion_fault(member, node.with(*value)))
        }
        (Shape::Map { .. }, _) => Some(format!("cannot restore map from {}", kind(value))),
        (Shape::Struct { .. }, Value::Object(object)) => members(object, node),
        (Shape::Struct { .. }, _) => Some(format!("cannot restore struct from: {}", kind(value))),
        (Shape::IntOrString, Value::Bool(_) | Value::Array(_) | Value::Object(_)) => unmarshal("int32"),
        (Shape::Time | Shape::MicroTime, Value::String(_)) => None,
        (Shape::Time | Shape::MicroTime, _) => unmarshal("string"),
        (
            Shape::IntOrString
            | Shape::Quantity
            | Shape::Raw
            | Shape::FieldsV1
            | Shape::SchemaOrBool
            | Shape::SchemaOrArray
            | Shape::SchemaOrStrings
            | Shape::Any,
            _,
        ) => None,
    }
}

fn members(object: &Object, node: Node<'_>) -> Option<String> {
    object.iter().find_map(|(name, value)| conversion_fault(value, node.with(node.field(name)?.shape)))
}

fn integer(value: &Value, go_type: &str) -> Option<String> {
    match value {
        Value::Int(_) => None,
        Value::Float(f) if f.fract() == 0.0 => None,
        Value::Float(_) => Some(format!("cannot convert float64 to {go_type}")),
        _ => unrecognized(go_type),
    }
}

fn unrecognized(go_type: &str) -> Option<String> {
    Some(format!("unrecognized type: {go_type}"))
}

/// Go's kind of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        other => go::type_name(other),
    }
}

/// What `encoding/json` calls a value.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::value::parse;
    use pintle_schema::{builtin, kind};

    /// As kube-apiserver v1.35.4 answered.
    #[test]
    fn in_upstreams_words() {
        let node = builtin().root(kind("apps", "v1", "Deployment").unwrap().id);
        for (document, want) in [
            (r#"{"spec":{"replicas":2.0,"unknown":1},"metadata":null}"#, None),
            (r#"{"spec":{"replicas":"x"}}"#, Some("unrecognized type: int32")),
            (r#"{"spec":{"replicas":1.5}}"#, Some("cannot convert float64 to int32")),
            (r#"{"spec":{"paused":"x"}}"#, Some("unrecognized type: bool")),
            (r#"{"metadata":{"labels":{"a":5}}}"#, Some("cannot convert int64 to string")),
            (r#"{"metadata":{"labels":{"a":true}}}"#, Some("unrecognized type: string")),
            (r#"{"metadata":{"labels":["a"]}}"#, Some("cannot restore map from slice")),
            (
                r#"{"metadata":{"creationTimestamp":5}}"#,
                Some("json: cannot unmarshal number into Go value of type string"),
            ),
            (r#"{"spec":"x"}"#, Some("cannot restore struct from: string")),
            (r#"{"spec":[]}"#, Some("cannot restore struct from: slice")),
            (r#"{"spec":{"template":{"spec":{"containers":{"name":"c1"}}}}}"#, Some("cannot restore slice from map")),
            (r#"{"spec":{"template":{"spec":{"nodeSelector":5}}}}"#, Some("cannot restore map from int64")),
            (
                r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}"#,
                Some("json: cannot unmarshal bool into Go value of type int32"),
            ),
        ] {
            let value = parse(document.as_bytes()).unwrap();
            assert_eq!(conversion_fault(&value, node).as_deref(), want, "{document}");
        }
    }
}
