use super::*;
use pintle_apimachinery::value::parse;
use proptest::prelude::*;

fn run(document: &str, patch: &str) -> String {
    match decode(patch.as_bytes(), true) {
        Err(status) => format!("{} {}", status.code, status.message),
        Ok((patch, _)) => match patch.apply(&parse(document.as_bytes()).unwrap()) {
            Ok(patched) => patched.to_json_string(),
            Err(status) => status.code.to_string(),
        },
    }
}

#[test]
fn operations() {
    let document = r#"{"l":[1,2],"m":{"k":"v"},"n":null}"#;
    for (patch, want) in [
        (r#"[]"#, r#"{"l":[1,2],"m":{"k":"v"},"n":null}"#),
        (r#"[{"op":"add","path":"/m/a~1b","value":1}]"#, r#"{"l":[1,2],"m":{"a/b":1,"k":"v"},"n":null}"#),
        (r#"[{"op":"add","path":"/m/x"}]"#, r#"{"l":[1,2],"m":{"k":"v","x":null},"n":null}"#),
        (r#"[{"op":"add","path":"ignored/m/x","value":1}]"#, r#"{"l":[1,2],"m":{"k":"v","x":1},"n":null}"#),
        (r#"[{"op":"add","path":"/l/0","value":0}]"#, r#"{"l":[0,1,2],"m":{"k":"v"},"n":null}"#),
        (r#"[{"op":"add","path":"/l/-","value":3}]"#, r#"{"l":[1,2,3],"m":{"k":"v"},"n":null}"#),
        (r#"[{"op":"add","path":"/l/-1","value":3}]"#, r#"{"l":[1,2,3],"m":{"k":"v"},"n":null}"#),
        (r#"[{"op":"add","path":"/l/-3","value":3}]"#, r#"{"l":[3,1,2],"m":{"k":"v"},"n":null}"#),
        (r#"[{"op":"add","path":"/l/3","value":3}]"#, "422"),
        (r#"[{"op":"add","path":"/l/-4","value":3}]"#, "422"),
        (r#"[{"op":"add","path":"/absent/x","value":3}]"#, "422"),
        (r#"[{"op":"add","path":"/m/k/deeper","value":3}]"#, "422"),
        (r#"[{"op":"add","path":"/n/deeper","value":3}]"#, "422"),
        (r#"[{"op":"add","path":"","value":{}}]"#, "422"),
        (r#"[{"op":"add","value":{}}]"#, "422"),
        (r#"[{"op":"remove","path":"/l/01"}]"#, r#"{"l":[1],"m":{"k":"v"},"n":null}"#),
        (r#"[{"op":"remove","path":"/l/-"}]"#, "422"),
        (r#"[{"op":"remove","path":"/m/zz"}]"#, "422"),
        (r#"[{"op":"replace","path":"/m/zz","value":1}]"#, r#"{"l":[1,2],"m":{"k":"v","zz":1},"n":null}"#),
        (r#"[{"op":"replace","path":"/l/-1","value":9}]"#, r#"{"l":[1,9],"m":{"k":"v"},"n":null}"#),
        (r#"[{"op":"replace","path":"/l/2","value":9}]"#, "422"),
        (r#"[{"op":"replace","path":"","value":{"a":1}}]"#, r#"{"a":1}"#),
        (r#"[{"op":"replace","path":"","value":3}]"#, "422"),
        (r#"[{"op":"replace","path":""}]"#, "422"),
        (r#"[{"op":"move","from":"/m/k","path":"/l/0"}]"#, r#"{"l":["v",1,2],"m":{},"n":null}"#),
        (r#"[{"op":"move","from":"/m","path":"/m/x"}]"#, "422"),
        (r#"[{"op":"move","from":"/m/zz","path":"/x"}]"#, "422"),
        (r#"[{"op":"move","path":"/x"}]"#, "422"),
        (r#"[{"op":"copy","from":"/m","path":"/m/m"}]"#, r#"{"l":[1,2],"m":{"k":"v","m":{"k":"v"}},"n":null}"#),
        (r#"[{"op":"copy","from":"/m/zz","path":"/x"}]"#, r#"{"l":[1,2],"m":{"k":"v"},"n":null,"x":null}"#),
        (r#"[{"op":"copy","from":"/l/2","path":"/x"}]"#, "422"),
        (r#"[{"op":"test","path":"/m","value":{"k":"v"}}]"#, r#"{"l":[1,2],"m":{"k":"v"},"n":null}"#),
        (r#"[{"op":"test","path":"/l/0","value":1.0}]"#, "422"),
        (
            r#"[{"op":"test","path":"/m/zz","value":null},{"op":"test","path":"/n"}]"#,
            r#"{"l":[1,2],"m":{"k":"v"},"n":null}"#,
        ),
        (r#"[{"op":"test","path":"/m/zz","value":""}]"#, "422"),
        (
            r#"[{"op":"test","path":"","value":{"l":[1,2],"m":{"k":"v"},"n":null}},{"op":"remove","path":"/l"}]"#,
            r#"{"m":{"k":"v"},"n":null}"#,
        ),
        (r#"[{"op":"explode","path":"/m"}]"#, "422"),
        (r#"[{"path":"/m"}]"#, "422"),
        (r#"null"#, r#"{"l":[1,2],"m":{"k":"v"},"n":null}"#),
        (r#"[null]"#, "422"),
    ] {
        assert_eq!(run(document, patch), want, "{patch}");
    }
}

#[test]
fn what_is_no_json_patch() {
    let told = |body: &str, is_checked: bool| match decode(body.as_bytes(), is_checked) {
        Ok((_, strict)) => format!("{strict:?}"),
        Err(status) => format!("{} {}", status.code, status.message),
    };
    for (body, checked, bare) in [
        (
            "{}",
            "400 error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            "400 json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            "\"x\"",
            "400 error decoding patch: json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp",
            "400 json: cannot unmarshal string into Go value of type jsonpatch.Patch",
        ),
        (
            "[\"add\"]",
            "400 error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
            "400 json: cannot unmarshal string into Go value of type jsonpatch.Operation",
        ),
        (
            r#"[{"op":"add","path":5}]"#,
            "400 error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
            "[]",
        ),
        ("[{\"op\":", "400 error decoding patch: unexpected end of JSON input", "400 unexpected end of JSON input"),
        ("", "400 error decoding patch: unexpected end of JSON input", "400 unexpected end of JSON input"),
        (r#"[{"op":"add","path":"/a","value":1,"note":"x"}]"#, r#"["json patch unknown field \"[0].note\""]"#, "[]"),
        (r#"[{"op":"add","path":"/a","value":1,"value":2}]"#, r#"["json patch duplicate field \"[0].value\""]"#, "[]"),
    ] {
        assert_eq!((told(body, true).as_str(), told(body, false).as_str()), (checked, bare), "{body}");
    }
}

#[test]
fn limits() {
    let test = r#"{"op":"test","path":"/zz"},"#;
    let patch = |n: usize| format!("[{}]", test.repeat(n).trim_end_matches(','));
    assert!(decode(patch(OPERATIONS_MAX).as_bytes(), true).is_ok());
    let refused = decode(patch(OPERATIONS_MAX + 1).as_bytes(), true).unwrap_err();
    assert_eq!(refused.code, 413);
    assert_eq!(
        refused.message,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    // each copy doubles the document
    let copies: Vec<String> = (0..40).map(|n| format!(r#"{{"op":"copy","from":"/d","path":"/d/{n}"}}"#)).collect();
    assert_eq!(run(r#"{"d":{"x":"0123456789"}}"#, &format!("[{}]", copies.join(","))), "422");
}

fn any_operation() -> impl Strategy<Value = Value> {
    let path = prop_oneof!["(/[a-d0-2~-]{0,2}){0,3}", Just("/a".to_owned()), Just("/b/-".to_owned())];
    let op = prop_oneof![Just("add"), Just("remove"), Just("replace"), Just("move"), Just("copy"), Just("test")];
    (op, path.clone(), path, crate::testing::value(true)).prop_map(
        |(op, path, from, value)| pintle_apimachinery::json!({"op": op, "path": path, "from": from, "value": value}),
    )
}

proptest! {
    #[test]
    fn never_panics(document in crate::testing::object(true), operations in prop::collection::vec(any_operation(), 0..12)) {
        let body = Value::Array(operations).to_json();
        let (patch, _) = decode(&body, true).unwrap();
        let _ = patch.apply(&document);
    }

    /// Adding a member and removing it again changes nothing.
    #[test]
    fn add_then_remove(document in crate::testing::object(true), value in crate::testing::value(true)) {
        let body = pintle_apimachinery::json!([{"op": "add", "path": "/new~1member", "value": value}, {"op": "remove", "path": "/new~1member"}]);
        let (patch, _) = decode(&body.to_json(), true).unwrap();
        prop_assert_eq!(patch.apply(&document).unwrap(), document);
    }

    #[test]
    fn decoding_never_panics(body in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = decode(&body, true);
        let _ = decode(&body, false);
    }
}
