use super::*;
use expect_test::expect;
use pintle_apimachinery::json;

fn definition() -> Value {
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    json!({
        "metadata": {"name": "widgets.example.com", "uid": "u"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": (names.clone()),
            "versions": [
                {"name": "v1", "served": true, "storage": true, "selectableFields": [{"jsonPath": ".spec.n"}],
                 "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "default": {"n": 1, "unknown": 2}, "properties": {"n": {"type": "integer"}}}}}}},
                {"name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                 "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
            ]
        },
        "status": {"acceptedNames": names}
    })
}

#[test]
fn a_definition_compiled() {
    let compiled = CompiledDefinition::compile(&definition()).unwrap();
    let v1 = compiled.storage().unwrap();
    let old = compiled.version("v1beta1").unwrap();
    assert!(v1.has_status && v1.scale.is_some() && !old.has_status && old.scale.is_none());
    assert_eq!(
        old.deprecation_warning.as_deref(),
        Some("example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget")
    );
    let object = json!({"spec": {"n": 5}});
    assert_eq!((v1.selectable[0].name.as_str(), v1.selectable[0].value_of(&object).as_str()), ("spec.n", "5"));
    assert_eq!(v1.selectable[0].value_of(&json!({})), "");
    let mut unnamed = definition();
    unnamed.remove_at("status.acceptedNames.kind");
    assert!(CompiledDefinition::compile(&unnamed).is_err());
}

#[test]
fn bodies_and_stored_objects() {
    let compiled = CompiledDefinition::compile(&definition()).unwrap();
    let v1 = compiled.storage().unwrap();
    let body =
        |metadata: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "x": 1});
    let mut object = body(json!({"name": "a", "colour": "red"}));
    assert_eq!(v1.on_body(&mut object).unwrap(), ["metadata.colour", "x"]);
    expect![[r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"n":1}}"#]]
        .assert_eq(&object.to_json_string());
    expect!["json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"]
        .assert_eq(&v1.on_body(&mut body(json!({"labels": {"a": 1}}))).unwrap_err());
    expect![".kind accessor error: 5 is of the type int64, expected string"]
        .assert_eq(&v1.on_body(&mut json!({"kind": 5})).unwrap_err());
    // what is stored is repaired, not refused
    let mut stored = body(json!({"name": "a", "labels": {"a": 1}}));
    compiled.on_read(&mut stored);
    expect![[
        r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a"},"spec":{"n":1}}"#
    ]]
    .assert_eq(&stored.to_json_string());
}
