use super::*;
use expect_test::{Expect, expect};
use pintle_apimachinery::json;

fn schema(properties: Value) -> Structural {
    Structural::compile(&json!({"type": "object", "properties": properties})).unwrap()
}

fn check(schema: &Structural, object: Value, expected: Expect) {
    let errors = validate(&object, schema, Form::Served, "");
    expected.assert_eq(&errors.iter().map(|e| format!("{e}\n")).collect::<String>());
}

#[test]
fn scalars() {
    let schema = schema(json!({
        "s": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
        "i": {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2},
        "n": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
        "e": {"type": "string", "enum": ["x", "y"]},
        "ios": {"x-kubernetes-int-or-string": true},
        "d": {"type": "string", "format": "date"},
        "z": {"type": "string", "nullable": true}
    }));
    check(
        &schema,
        json!({"s": "ab", "i": 4, "n": 0.5, "e": "x", "ios": "a", "d": "2020-01-02", "z": null}),
        expect![""],
    );
    check(
        &schema,
        json!({"s": "ABCDE", "i": 11, "n": 0, "e": "q", "ios": 1.5, "d": "x", "z": 1}),
        expect![[r#"
            d: Invalid value: "x": d in body must be of type date: "x"
            e: Unsupported value: "q": supported values: "x", "y"
            i: Invalid value: 11: i in body should be a multiple of 2
            i: Invalid value: 11: i in body should be less than or equal to 9
            ios: Invalid value: "number": ios in body must be of type integer,string: "number"
            n: Invalid value: 0: n in body should be greater than 0
            s: Too long: may not be more than 4 bytes
            z: Invalid value: "integer": z in body must be of type string: "integer"
        "#]],
    );
    check(
        &schema,
        json!({"s": "ÄÖ", "i": 4.0, "d": 5}),
        expect![[r#"
        d: Invalid value: "int64": d in body must be of type date: "int64"
        s: Invalid value: "ÄÖ": s in body should match '^[a-z]+$'
    "#]],
    );
}

#[test]
fn structures() {
    let schema = schema(json!({
        "l": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
        "m": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "integer"}},
        "r": {"type": "object", "required": ["x", "y"], "properties": {"x": {"type": "string"}, "y": {"type": "string"}}}
    }));
    check(
        &schema,
        json!({"l": ["a", 1, null], "m": {"a": 1, "b": "x"}, "r": {"x": "1"}}),
        expect![[r#"
        l[1]: Invalid value: "integer": l[1] in body must be of type string: "integer"
        l[2]: Invalid value: "null": l[2] in body must be of type string: "null"
        l: Too many: 3: must have at most 2 items
        m: Too many: 2: must have at most 1 item
        m.b: Invalid value: "string": m.b in body must be of type integer: "string"
        r.y: Required value
    "#]],
    );
    check(
        &schema,
        json!([]),
        expect![[r#"
        <nil>: Invalid value: "array":  in body must be of type object: "array"
    "#]],
    );
}

#[test]
fn junctors() {
    let schema = schema(json!({
        "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "any": {"type": "integer", "anyOf": [{"minimum": 5, "maximum": 6}, {"minimum": 8}]},
        "all": {"type": "integer", "allOf": [{"minimum": 2}, {"maximum": 4}]},
        "no": {"type": "string", "not": {"enum": ["bad"]}}
    }));
    check(&schema, json!({"one": {"a": "x"}, "any": 5, "all": 3, "no": "good"}), expect![""]);
    check(
        &schema,
        json!({"one": {}, "any": 1, "all": 9, "no": "bad"}),
        expect![[r#"
        all: Invalid value: 9: all in body should be less than or equal to 4
        <nil>: Invalid value: "": "all" must validate all the schemas (allOf)
        <nil>: Invalid value: "": "any" must validate at least one schema (anyOf)
        any: Invalid value: 1: any in body should be greater than or equal to 5
        <nil>: Invalid value: "": "no" must not validate the schema (not)
        <nil>: Invalid value: "": "one" must validate one and only one schema (oneOf). Found none valid
        one.a: Required value
    "#]],
    );
    check(
        &schema,
        json!({"one": {"a": "x", "b": "y"}}),
        expect![[r#"
        <nil>: Invalid value: "": "one" must validate one and only one schema (oneOf). Found 2 valid alternatives
    "#]],
    );
}

#[test]
fn what_did_not_change_is_let_be() {
    let schema = schema(json!({
        "size": {"type": "integer", "maximum": 10},
        "o": {"type": "object", "properties": {"k": {"type": "string", "maxLength": 2}, "l": {"type": "string"}}},
        "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items": {
            "type": "object", "properties": {"n": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}},
        "a": {"type": "array", "items": {"type": "integer", "maximum": 1}}
    }));
    let old = json!({"size": 100, "o": {"k": "bad"}, "m": [{"n": "x", "v": 5}, {"n": "y", "v": 1}], "a": [5]});
    let told = |new: Value| {
        let correlated = Correlated { old: &old, new: &new, schema: &schema };
        let errors = validate_update(&new, &schema, Some(correlated), "");
        errors.iter().map(|e| e.field.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(told(json!({"size": 100, "o": {"k": "bad", "l": "new"}, "a": [5]})), "");
    assert_eq!(told(json!({"size": 99, "o": {"k": "worse"}})), "o.k size");
    // items of a map are known by their keys, those of other lists not at all
    assert_eq!(told(json!({"m": [{"n": "y", "v": 1}, {"n": "z", "v": 1}, {"n": "x", "v": 5}], "a": [5, 1]})), "a[0]");
}
