//! The text of a patched document in refusals: Go sorts the members of the objects that a patch passes, and leaves the
//! rest as it was encoded.

use pintle_apimachinery::value::{write_json_string, write_value};
use pintle_apimachinery::{Object, Value};
use pintle_schema::{Node, write_declared};
use std::collections::BTreeSet;

/// The result of a merge patch.
pub(crate) fn merged(out: &mut Vec<u8>, document: &Value, patch: &Value, result: &Value, node: Node<'_>) {
    match (document, patch, result) {
        (Value::Object(document), Value::Object(patch), Value::Object(result)) => {
            let write = |out: &mut Vec<u8>, name: &str, member: &Value| {
                let below = node.child(name);
                match (document.get(name), patch.get(name), below) {
                    (Some(before), Some(change), Some(below)) => merged(out, before, change, member, below),
                    (Some(_), None, below) => write_declared(out, member, below),
                    _ => write_value(out, member),
                }
            };
            write_members(out, result, write);
        }
        _ => write_value(out, result),
    }
}

/// The result of a JSON patch whose operations pass the containers at the pointers `passed`.
pub(crate) fn patched(out: &mut Vec<u8>, document: &Value, result: &Value, node: Node<'_>, passed: &BTreeSet<String>) {
    at(out, Some(document), result, Some(node), ("", passed));
}

fn at(
    out: &mut Vec<u8>,
    document: Option<&Value>,
    result: &Value,
    node: Option<Node<'_>>,
    (pointer, passed): (&str, &BTreeSet<String>),
) {
    if !passed.contains(pointer) {
        return if document == Some(result) { write_declared(out, result, node) } else { write_value(out, result) };
    }
    match result {
        Value::Object(members) => write_members(out, members, |out, name, member| {
            let before = document.and_then(Value::as_object).and_then(|document| document.get(name));
            let below = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            at(out, before, member, node.and_then(|node| node.child(name)), (&below, passed));
        }),
        Value::Array(items) => {
            out.push(b'[');
            for (idx, item) in items.iter().enumerate() {
                if idx > 0 {
                    out.push(b',');
                }
                let before = document.and_then(|document| document.items().get(idx));
                at(out, before, item, node.and_then(Node::item), (&format!("{pointer}/{idx}"), passed));
            }
            out.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => write_value(out, result),
    }
}

/// The members of an object, which are sorted, each by `write`.
fn write_members(out: &mut Vec<u8>, members: &Object, write: impl Fn(&mut Vec<u8>, &str, &Value)) {
    out.push(b'{');
    for (idx, (name, member)) in members.iter().enumerate() {
        if idx > 0 {
            out.push(b',');
        }
        write_json_string(out, name);
        out.push(b':');
        write(out, name, member);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use crate::{PatchType, decode};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn what_a_patch_passes_is_sorted() {
        let id = pintle_schema::kind("", "v1", "Pod").map(|kind| kind.id).expect("a built-in kind");
        let node = pintle_schema::builtin().root(id);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n", "annotations": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "args": ["x"]}], "restartPolicy": "Always"},
        });
        let mut told = String::new();
        for (kind, body) in [
            (PatchType::Merge, r#"{"metadata":{"labels":{"b":1}}}"#),
            (PatchType::Merge, r#"{"spec":{"hostname":[{"b":1,"a":2}]}}"#),
            (PatchType::Json, r#"[{"op":"replace","path":"/kind","value":"Secret"}]"#),
            (PatchType::Json, r#"[{"op":"add","path":"/spec/containers/0/image","value":7}]"#),
        ] {
            let patch = decode(kind, body.as_bytes(), true).expect("a patch").patch;
            let result = patch.apply(&pod, node).expect("applies");
            told += &patch.shown(&pod, &result, node);
            told.push('\n');
        }
        expect![[r#"
            {"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a":"b"},"labels":{"b":1},"name":"a","namespace":"n"},"spec":{"containers":[{"name":"c","image":"i","args":["x"]}],"restartPolicy":"Always"}}
            {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","annotations":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","args":["x"]}],"hostname":[{"a":2,"b":1}],"restartPolicy":"Always"}}
            {"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"n","annotations":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","args":["x"]}],"restartPolicy":"Always"}}
            {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","annotations":{"a":"b"}},"spec":{"containers":[{"args":["x"],"image":7,"name":"c"}],"restartPolicy":"Always"}}
        "#]].assert_eq(&told);
    }
}
