//! JSON merge patch (RFC 7396) as kube-apiserver applies it: Go's evanphx/json-patch v4, which also drops null members
//! of objects inside lists that replace something, unless what they replace is an object.

use pintle_apimachinery::status::{Result, Status};
use pintle_apimachinery::value::parse_guided;
use pintle_apimachinery::{Object, Value};

use crate::document::MapDocument;

/// A decoded merge patch.
#[derive(Clone, Debug)]
pub struct MergePatch {
    /// An object; a list only where validation of fields is off.
    pub(crate) patch: Value,
}

/// Reads a merge patch and, where `is_checked`, tells duplicate members.
///
/// # Errors
/// 400 when `body` is no merge patch.
pub(crate) fn decode(body: &[u8], is_checked: bool) -> Result<(MergePatch, Vec<String>)> {
    let refused = || Box::new(Status::bad_request("Invalid JSON Patch"));
    let parsed = parse_guided(body, MapDocument::ROOT).map_err(|e| {
        if is_checked {
            Box::new(Status::bad_request(format!("error decoding patch: {}", e.message)))
        } else {
            refused()
        }
    })?;
    if let Some(text) = parsed.issues.wrong_type {
        if is_checked {
            return Err(Box::new(Status::bad_request(format!("error decoding patch: {text}"))));
        }
        // Go takes a list for the whole result then; it fails as an object later
        let patch = pintle_apimachinery::value::parse(body).map_err(|_| refused())?;
        return if patch.as_array().is_some() { Ok((MergePatch { patch }, Vec::new())) } else { Err(refused()) };
    }
    if parsed.value.is_null() {
        return Err(refused());
    }
    let strict = if is_checked { parsed.issues.strict.iter().map(ToString::to_string).collect() } else { Vec::new() };
    Ok((MergePatch { patch: parsed.value }, strict))
}

impl MergePatch {
    /// Applies the patch to a copy of `document`.
    pub fn apply(&self, document: &Value) -> Value {
        match (document, &self.patch) {
            (Value::Object(into), Value::Object(patch)) => {
                let mut merged = into.clone();
                merge(&mut merged, patch);
                Value::Object(merged)
            }
            (_, patch) => without_nulls(patch),
        }
    }
}

fn merge(into: &mut Object, patch: &Object) {
    for (key, change) in patch.iter() {
        if change.is_null() {
            into.remove(key);
            continue;
        }
        match (into.get_mut(key), change) {
            (Some(Value::Object(current)), Value::Object(change)) => merge(current, change),
            // a list or scalar in place of an object is taken as it is
            (Some(current @ Value::Object(_)), change) => *current = change.clone(),
            (Some(current), change) => *current = without_nulls(change),
            (None, change) => {
                into.insert(key, without_nulls(change));
            }
        }
    }
}

/// The value without null members of objects at any depth; null items of lists stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect::<Object>(),
        ),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use pintle_apimachinery::json;
    use pintle_apimachinery::value::parse;
    use proptest::prelude::*;

    fn patched(document: &str, patch: &str) -> String {
        let (patch, _) = decode(patch.as_bytes(), true).unwrap();
        patch.apply(&parse(document.as_bytes()).unwrap()).to_json_string()
    }

    #[test]
    fn merges_as_the_rfc_says_but_for_lists() {
        let document = r#"{"a":{"x":1,"y":[1,{"n":null}]},"b":"s","c":[1]}"#;
        for (patch, want) in [
            (r#"{}"#, expect![[r#"{"a":{"x":1,"y":[1,{"n":null}]},"b":"s","c":[1]}"#]]),
            (r#"{"a":null,"zz":null}"#, expect![[r#"{"b":"s","c":[1]}"#]]),
            (
                r#"{"a":{"x":null,"z":{"q":null,"r":1}}}"#,
                expect![[r#"{"a":{"y":[1,{"n":null}],"z":{"r":1}},"b":"s","c":[1]}"#]],
            ),
            (
                r#"{"c":[{"n":null,"m":1},null]}"#,
                expect![[r#"{"a":{"x":1,"y":[1,{"n":null}]},"b":"s","c":[{"m":1},null]}"#]],
            ),
            (r#"{"a":[{"n":null}]}"#, expect![[r#"{"a":[{"n":null}],"b":"s","c":[1]}"#]]),
            (r#"{"b":{"n":null}}"#, expect![[r#"{"a":{"x":1,"y":[1,{"n":null}]},"b":{},"c":[1]}"#]]),
        ] {
            want.assert_eq(&patched(document, patch));
        }
    }

    #[test]
    fn what_is_no_merge_patch() {
        let told = |body: &str, is_checked: bool| match decode(body.as_bytes(), is_checked) {
            Ok((patch, strict)) => format!("{} {strict:?}", patch.patch),
            Err(status) => format!("{} {}", status.code, status.message),
        };
        for (body, checked, unchecked) in [
            (
                "[]",
                "400 error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
                "[] []",
            ),
            (
                "\"x\"",
                "400 error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
                "400 Invalid JSON Patch",
            ),
            ("null", "400 Invalid JSON Patch", "400 Invalid JSON Patch"),
            ("{", "400 error decoding patch: unexpected end of JSON input", "400 Invalid JSON Patch"),
            ("", "400 error decoding patch: unexpected end of JSON input", "400 Invalid JSON Patch"),
            (r#"{"d":{"n":1,"n":2}}"#, r#"{"d":{"n":2}} ["duplicate field \"d.n\""]"#, r#"{"d":{"n":2}} []"#),
        ] {
            assert_eq!((told(body, true).as_str(), told(body, false).as_str()), (checked, unchecked), "{body}");
        }
    }

    /// The smallest patch that makes `to` of `from`; both without nulls.
    fn difference(from: &Object, to: &Object) -> Object {
        let mut patch = Object::new();
        for key in from.keys().filter(|key| !to.contains_key(key)) {
            patch.insert(key, Value::Null);
        }
        for (key, value) in to.iter() {
            match (from.get(key), value) {
                (Some(old), new) if old == new => {}
                (Some(Value::Object(old)), Value::Object(new)) => {
                    patch.insert(key, Value::Object(difference(old, new)));
                }
                (_, new) => {
                    patch.insert(key, new.clone());
                }
            }
        }
        patch
    }

    proptest! {
        #[test]
        fn a_difference_applied_gives_the_other_document(from in crate::testing::object(false), to in crate::testing::object(false)) {
            let (from, to) = (from.as_object().unwrap(), to.as_object().unwrap());
            let patch = MergePatch { patch: Value::Object(difference(from, to)) };
            prop_assert_eq!(patch.apply(&Value::Object(from.clone())), Value::Object(to.clone()));
        }

        #[test]
        fn applying_twice_is_applying_once(from in crate::testing::object(true), patch in crate::testing::object(false)) {
            let patch = MergePatch { patch };
            let once = patch.apply(&from);
            prop_assert_eq!(patch.apply(&once), once);
        }
    }

    #[test]
    fn unchanged_documents_stay_equal() {
        let document = json!({"a": {"b": [1, {"c": 2}]}});
        assert_eq!(MergePatch { patch: document.clone() }.apply(&document), document);
    }
}
