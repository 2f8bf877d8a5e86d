use super::default::{default, drop_nulls};
use super::objectmeta::{Misfit, coerce};
use super::prune::prune;
use super::*;
use expect_test::expect;
use pintle_apimachinery::json;

fn schema(properties: Value) -> Structural {
    Structural::compile(&json!({"type": "object", "properties": properties})).unwrap()
}

#[test]
fn pruning_tells_what_went() {
    let schema = schema(json!({
        "spec": {"type": "object", "properties": {
            "a": {"type": "string"},
            "l": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "boolean"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "known": {"type": "object", "properties": {"n": {"type": "integer"}}}
            }},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "integer"}}}}
        }}
    }));
    let mut object = json!({
        "apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "extra": 1,
        "spec": {
            "a": "x", "z": 1, "l": [{"c": true, "z": 4}, {"z": 5}],
            "free": {"x": {"y": 1}, "known": {"n": 1, "m": 2}},
            "map": {"k": {"n": 1, "m": 2}}, "metadata": {"name": "inner"}
        }
    });
    let went = prune(&mut object, &schema, true);
    expect!["extra spec.free.known.m spec.l[0].z spec.l[1].z spec.map.k.m spec.metadata spec.z"]
        .assert_eq(&went.join(" "));
    expect![[r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"x"},"spec":{"a":"x","free":{"known":{"n":1},"x":{"y":1}},"l":[{"c":true},{}],"map":{"k":{"n":1}}}}"#]]
    .assert_eq(&object.to_json_string());
}

#[test]
fn defaults_and_nulls() {
    let schema = schema(json!({
        "n": {"type": "string", "nullable": true},
        "d": {"type": "string", "default": "x"},
        "nd": {"type": "string", "nullable": true, "default": "y"},
        "s": {"type": "string"},
        "o": {"type": "object", "default": {}, "properties": {"i": {"type": "integer", "default": 0}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer", "default": 7}}
    }));
    let mut object = json!({"n": null, "d": null, "nd": null, "s": null, "l": [{}, null], "m": {"k": null, "j": 1}});
    drop_nulls(&mut object, Some(&schema));
    default(&mut object, &schema);
    expect![[r#"{"d":"x","l":[{"p":"TCP"},null],"m":{"j":1,"k":7},"n":null,"nd":null,"o":{"i":0}}"#]]
        .assert_eq(&object.to_json_string());
    let once = object.clone();
    default(&mut object, &schema);
    assert_eq!(object, once, "defaulting is idempotent");
}

#[test]
fn embedded_metadata_is_brought_to_form() {
    let schema = schema(
        json!({"t": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}),
    );
    let mut object = json!({"t": {"kind": "Pod", "metadata": {"name": "p", "unknown": 1, "creationTimestamp": null}}});
    assert_eq!(coerce(&mut object, &schema, false, Misfit::Refuse).unwrap(), ["t.metadata.unknown"]);
    assert_eq!(object.to_json_string(), r#"{"t":{"kind":"Pod","metadata":{"name":"p"}}}"#);
    let errors = objectmeta::validate(&pintle_apimachinery::Path::ROOT, &object, &schema, false);
    assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), ["t.apiVersion: Required value"]);
    let mut wrong = json!({"t": {"metadata": {"labels": {"a": 1}, "name": "p"}}});
    expect![[r#"t.metadata: Invalid value: {"labels":{"a":1},"name":"p"}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"#]]
        .assert_eq(&coerce(&mut wrong, &schema, false, Misfit::Refuse).unwrap_err().to_string());
    coerce(&mut wrong, &schema, false, Misfit::Drop).unwrap();
    assert_eq!(wrong.to_json_string(), r#"{"t":{"metadata":{"name":"p"}}}"#);
}

#[test]
fn sets_and_maps_name_each_thing_once() {
    let schema = schema(json!({
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "p"],
              "items": {"type": "object", "properties": {"n": {"type": "string"}, "p": {"type": "integer"}}}}
    }));
    let object = json!({"s": ["x", "y", "x", "x"], "m": [{"n": "a"}, {"n": "a", "p": 1}, {"n": "a"}]});
    let errors = listtype::validate(&pintle_apimachinery::Path::ROOT, &schema, &object);
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["m[2]: Duplicate value: {\"n\":\"a\"}", "s[2]: Duplicate value: \"x\""]);
}

#[test]
fn the_schema_of_patches() {
    use pintle_schema::{ListKind, Shape};
    let root = schema(json!({
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "ios": {"x-kubernetes-int-or-string": true},
            "map": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "number"}}
        }}
    }));
    let (schema, id) = typed::to_schema(&root);
    let object = schema.root(id);
    let spec = object.child("spec").unwrap();
    assert!(matches!(spec.child("set").unwrap().shape(), Shape::List { kind: ListKind::Set, .. }));
    assert_eq!(spec.child("any").unwrap().shape(), &Shape::Any);
    assert_eq!(spec.child("unknown").unwrap().shape(), &Shape::Any);
    assert_eq!(spec.child("ios").unwrap().shape(), &Shape::IntOrString);
    assert!(matches!(spec.child("map").unwrap().shape(), Shape::Map { is_atomic: true, .. }));
    assert!(object.child("unknown").is_none());
    let owners = object.child("metadata").unwrap().child("ownerReferences").unwrap();
    assert!(matches!(owners.shape(), Shape::List { kind: ListKind::Map(_), .. }));
    assert_eq!(owners.item().unwrap().child("uid").unwrap().shape(), &Shape::String);
}
