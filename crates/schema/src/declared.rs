//! JSON with the members of objects in the order in which upstream declares them.

use crate::types::{Node, Schema, Slot, Type};
use pintle_apimachinery::Value;
use pintle_apimachinery::value::write_json_string;

/// The names of a type's members in order.
fn names<'s>(schema: &'s Schema, ty: &'s Type, into: &mut Vec<&'s str>) {
    let mut fields: Vec<_> = schema.message(ty).iter().collect();
    fields.sort_by_key(|field| field.declared);
    for field in fields {
        match field.slot {
            Slot::Field(idx) => into.push(&schema.field_at(idx).name),
            Slot::Embedded { id, .. } => names(schema, schema.ty(id), into),
        }
    }
}

/// Appends `value`, which `node` describes, as JSON without spaces; the members of objects stand in the order in which
/// upstream declares them, those that are not declared behind them, by name.
pub fn write_declared(out: &mut Vec<u8>, value: &Value, node: Option<Node<'_>>) {
    match value {
        Value::Object(members) => {
            let mut order = Vec::new();
            if let Some((ty, node)) = node.and_then(|node| Some((node.ty()?, node))) {
                names(node.schema, ty, &mut order);
            }
            // what every document has stands first, and is not among the fields of its type
            let place = |name: &str| match (order.iter().position(|own| *own == name), name) {
                (Some(idx), _) => (1, idx),
                (None, "kind") => (0, 0),
                (None, "apiVersion") => (0, 1),
                (None, _) => (2, 0),
            };
            let mut members: Vec<_> = members.iter().collect();
            // the sort is stable: what is not declared stays sorted by name
            members.sort_by_key(|(name, _)| place(name));
            write_list(out, *b"{}", members, |out, (name, member)| {
                write_json_string(out, name);
                out.push(b':');
                write_declared(out, member, node.and_then(|node| node.child(name)));
            });
        }
        Value::Array(items) => {
            let item = node.and_then(Node::item);
            write_list(out, *b"[]", items.iter().collect(), |out, value| write_declared(out, value, item));
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {
            out.extend_from_slice(value.to_json_string().as_bytes());
        }
    }
}

fn write_list<T>(out: &mut Vec<u8>, brackets: [u8; 2], items: Vec<T>, write: impl Fn(&mut Vec<u8>, T)) {
    out.push(brackets[0]);
    for (idx, item) in items.into_iter().enumerate() {
        if idx > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(brackets[1]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn members_as_declared() {
        let kind = crate::kind("authentication.k8s.io", "v1", "TokenReview").expect("a built-in kind");
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "status": {"user": {"extra": {"b": ["2"], "a": ["1"]}, "uid": "u", "username": "jane"}, "authenticated": true},
            "spec": {"audiences": ["x"], "token": "t"},
            "zebra": 1, "metadata": {"labels": {"b": "c"}, "name": "n"}, "aardvark": null,
        });
        let mut out = Vec::new();
        write_declared(&mut out, &review, Some(builtin().root(kind.id)));
        expect![[r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{"name":"n","labels":{"b":"c"}},"spec":{"token":"t","audiences":["x"]},"status":{"authenticated":true,"user":{"username":"jane","uid":"u","extra":{"a":["1"],"b":["2"]}}},"aardvark":null,"zebra":1}"#]]
        .assert_eq(&String::from_utf8(out).expect("text"));
    }
}
