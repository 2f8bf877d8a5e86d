//! Equality as upstream's `apiequality.Semantic` means it: empty lists and maps are as good as absent ones, amounts are
//! equal whatever their spelling.

use pintle_apimachinery::Value;
use pintle_apimachinery::quantity::Quantity;
use pintle_schema::{Node, Shape, builtin, type_named};

/// Whether two values mean the same. `type_name` is their type, as `core/v1.PodSpec`; `""` for plain values, which are
/// compared as they are, except that empty lists and maps equal absent ones.
pub fn semantic(a: &Value, b: &Value, type_name: &str) -> bool {
    if a == b {
        return true;
    }
    match type_named(type_name) {
        Some(id) => equal_at(a, b, builtin().root(id)),
        None => both_empty(a, b),
    }
}

fn both_empty(a: &Value, b: &Value) -> bool {
    let is_void = |v: &Value| match v {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => false,
    };
    is_void(a) && is_void(b)
}

fn equal_at(a: &Value, b: &Value, node: Node<'_>) -> bool {
    if a == b {
        return true;
    }
    match node.shape() {
        Shape::Quantity => {
            let parsed = |v: &Value| v.as_str().map_or(Ok(Quantity::ZERO), Quantity::parse);
            matches!((parsed(a), parsed(b)), (Ok(a), Ok(b)) if a == b)
        }
        Shape::Struct { .. } => node.ty().is_some_and(|ty| {
            node.schema.fields(ty).iter().all(|field| {
                let (a, b) = (a.get(&field.name), b.get(&field.name));
                let inner = node.with(field.shape);
                let is_struct = matches!(inner.shape(), Shape::Struct { .. });
                // a pointer to an empty struct is not the same as none; an empty struct is the same as an absent one
                !(field.is_pointer && is_struct && a.is_null() != b.is_null()) && equal_at(a, b, inner)
            })
        }),
        Shape::List { item, .. } => {
            let (a, b) = (a.items(), b.items());
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_at(a, b, node.with(*item)))
        }
        Shape::Map { value, .. } => {
            a.entries().len() == b.entries().len()
                && a.entries().zip(b.entries()).all(|((ka, a), (kb, b))| ka == kb && equal_at(a, b, node.with(*value)))
        }
        _ => both_empty(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn what_counts_as_equal() {
        let container = |resources: Value| json!({"containers": [{"name": "c", "resources": resources}]});
        let equal = |a: &Value, b: &Value| semantic(a, b, "core/v1.PodSpec");
        assert!(equal(
            &container(json!({"limits": {"memory": "1Gi"}})),
            &container(json!({"limits": {"memory": "1073741824"}}))
        ));
        assert!(equal(&container(json!({"limits": {}})), &container(json!({}))));
        assert!(!equal(&container(json!({"limits": {"cpu": "1"}})), &container(json!({"limits": {"memory": "1"}}))));
        assert!(!equal(&json!({"securityContext": {}}), &json!({})));
        assert!(equal(&json!({"tolerations": []}), &json!({})));
        assert!(!semantic(&json!("1Gi"), &json!("1024Mi"), ""));
    }
}
