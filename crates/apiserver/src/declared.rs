//! JSON with the members of objects in the order in which upstream declares them, which is the order of its answers.
//! Objects at rest are sorted by name instead, so that only answers that are made on the spot are written so.

use crate::encode::indented;
use crate::negotiate::Output;
use bytes::Bytes;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::write_json_string;
use pintle_apimachinery::{GroupVersion, Value};
use pintle_registry::decode::Media;
use pintle_schema::{Node, Schema, Slot, Type};

/// A value that was made on the spot (a Status, a review, a discovery document), in an encoding.
///
/// # Errors
/// 500 when it has no such form.
pub(crate) fn encode(object: &Value, output: &Output) -> Result<Bytes> {
    if output.media != Media::Json {
        return crate::encode::value(object, output);
    }
    let mut out = Vec::with_capacity(512);
    write(&mut out, object, node(object));
    if output.pretty {
        return Ok(Bytes::from(indented(&out)));
    }
    out.push(b'\n');
    Ok(Bytes::from(out))
}

/// What describes a value, by its kind. Discovery documents may say no version.
fn node(object: &Value) -> Option<Node<'static>> {
    let gv = GroupVersion::parse(object["apiVersion"].str_or_empty())?;
    let version = if gv.version.is_empty() { "v1" } else { &gv.version };
    let kind = pintle_schema::kind(&gv.group, version, object["kind"].str_or_empty())?;
    Some(pintle_schema::builtin().root(kind.id))
}

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

/// Writes `value`, which `node` describes, without spaces.
fn write(out: &mut Vec<u8>, value: &Value, node: Option<Node<'_>>) {
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
                write(out, member, node.and_then(|node| node.child(name)));
            });
        }
        Value::Array(items) => {
            let item = node.and_then(Node::item);
            write_list(out, *b"[]", items.iter().collect(), |out, value| write(out, value, item));
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
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn members_as_declared() {
        let kind = pintle_schema::kind("authentication.k8s.io", "v1", "TokenReview").expect("a built-in kind");
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "status": {"user": {"extra": {"b": ["2"], "a": ["1"]}, "uid": "u", "username": "jane"}, "authenticated": true},
            "spec": {"audiences": ["x"], "token": "t"},
            "zebra": 1, "metadata": {"labels": {"b": "c"}, "name": "n"}, "aardvark": null,
        });
        let mut out = Vec::new();
        write(&mut out, &review, Some(pintle_schema::builtin().root(kind.id)));
        expect![[r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{"name":"n","labels":{"b":"c"}},"spec":{"token":"t","audiences":["x"]},"status":{"authenticated":true,"user":{"username":"jane","uid":"u","extra":{"a":["1"],"b":["2"]}}},"aardvark":null,"zebra":1}"#]]
        .assert_eq(&String::from_utf8(out).expect("text"));
    }
}
