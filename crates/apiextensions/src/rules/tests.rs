use super::Rules;
use crate::structural::Structural;
use crate::structural::correlate::Correlated;
use expect_test::expect;
use pintle_apimachinery::{Path, Value, json};
use std::fmt::Write;

fn schema() -> Structural {
    Structural::compile(&json!({
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('w-')", "message": "name must begin with w-"}],
        "properties": {"spec": {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "self.min <= self.max", "messageExpression": "'%d above %d'.format([self.min, self.max])",
                    "fieldPath": ".min", "reason": "FieldValueForbidden"},
                {"rule": "self.max >= oldSelf.max", "message": "max may not shrink"},
                {"rule": "!oldSelf.hasValue() || oldSelf.value().max < 100", "optionalOldSelf": true}
            ],
            "properties": {
                "min": {"type": "integer"},
                "max": {"type": "integer", "x-kubernetes-validations": [{"rule": "self != 13", "reason": "FieldValueDuplicate"}]},
                "when": {"type": "string", "format": "date-time"},
                "port": {"x-kubernetes-int-or-string": true},
                "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v"}]}},
                "map": {"type": "object", "additionalProperties": {"type": "string",
                    "x-kubernetes-validations": [{"rule": "self.size() < 3", "message": "too long"}]}}
            }
        }}
    }))
    .unwrap()
}

fn told(new: &Value, old: Option<&Value>) -> String {
    let schema = schema();
    let rules = Rules::compile(&schema, true).unwrap();
    let correlated = old.map(|old| Correlated { old, new, schema: &schema });
    let found = rules.validate(&Path::ROOT, new, old, correlated);
    let mut out = format!("{new}\n");
    found.errors.iter().for_each(|error| writeln!(out, "    {error}").unwrap());
    found.warnings.iter().for_each(|warning| writeln!(out, "    warning: {warning}").unwrap());
    out
}

fn object(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

#[test]
fn rules_of_new_and_changed_objects() {
    let first = object("w-1", json!({"min": 1, "max": 5, "list": [{"k": "a", "v": 2}], "map": {"x": "abcd"}}));
    let mut out = String::new();
    out += &told(&object("w-1", json!({"min": 1, "max": 2})), None);
    out += &told(&object("x", json!({"min": 3, "max": 2})), None);
    out += &told(&object("w-1", json!({"min": 3})), None);
    out += &told(&object("w-1", json!({"min": 3, "max": 13, "map": {"a": "b", "c": "def"}})), None);
    out += &told(&object("w-1", json!({"min": 3, "max": "many"})), None);
    let second = object(
        "w-1",
        json!({"min": 2, "max": 4, "list": [{"k": "b", "v": 1}, {"k": "a", "v": 1}], "map": {"x": "abcd"}}),
    );
    out += &told(&second, Some(&first));
    let hundred = object("w-1", json!({"min": 2, "max": 100}));
    out += &told(&hundred, Some(&hundred));
    expect![[r#"
        {"metadata":{"name":"w-1"},"spec":{"max":2,"min":1}}
        {"metadata":{"name":"x"},"spec":{"max":2,"min":3}}
            : Invalid value: name must begin with w-
            spec.min: Forbidden: 3 above 2
        {"metadata":{"name":"w-1"},"spec":{"min":3}}
            spec: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max
        {"metadata":{"name":"w-1"},"spec":{"map":{"a":"b","c":"def"},"max":13,"min":3}}
            spec.map[c]: Invalid value: "def": too long
            spec.max: Duplicate value: 13
        {"metadata":{"name":"w-1"},"spec":{"max":"many","min":3}}
            spec: Invalid value: "object": invalid data, expected int, got string evaluating rule: self.min <= self.max
            spec.max: Invalid value: "integer": invalid data, expected int, got string evaluating rule: self != 13
        {"metadata":{"name":"w-1"},"spec":{"list":[{"k":"b","v":1},{"k":"a","v":1}],"map":{"x":"abcd"},"max":4,"min":2}}
            spec: Invalid value: max may not shrink
            spec.list[1]: Invalid value: failed rule: self.v >= oldSelf.v
            warning: spec.map[x]: Invalid value: "abcd": too long
        {"metadata":{"name":"w-1"},"spec":{"max":100,"min":2}}
            spec: Invalid value: failed rule: !oldSelf.hasValue() || oldSelf.value().max < 100
    "#]]
    .assert_eq(&out);
}

/// An object of many values runs out of what all rules may cost.
#[test]
fn costs_have_an_end() {
    let schema = Structural::compile(&json!({"type": "object", "properties": {"l": {"type": "array",
        "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a == b))", "message": "all alike"}],
        "items": {"type": "string"}}}}))
    .unwrap();
    let rules = Rules::compile(&schema, true).unwrap();
    let list: Vec<Value> = (0..2000).map(|_| Value::from("same")).collect();
    let found = rules.validate(&Path::ROOT, &json!({"l": list}), None, None);
    let texts: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
    expect![[r#"l: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: all alike"#]].assert_eq(&texts.join("\n"));
}
