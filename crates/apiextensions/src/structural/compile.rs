//! From `openAPIV3Schema` as JSON to a [`Structural`].

use super::{Additional, Checks, ListType, MapType, Pattern, Rule, Structural, Type};
use pintle_apimachinery::{Str, Value};
use pintle_cel::regexp::Regexp;

/// Members of a schema that no structural schema may have, and how errors name them.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
];

impl Structural {
    /// Compiles a schema (an `openAPIV3Schema`, or a node of one).
    ///
    /// # Errors
    /// What makes the schema none that can be served, in upstream's words. The validation of definitions lets no such
    /// schema in.
    pub fn compile(schema: &Value) -> Result<Structural, String> {
        for (member, told) in UNSUPPORTED {
            let value = &schema[*member];
            if !value.is_empty() || (*member == "additionalItems" && !value.is_null()) {
                return Err(format!("OpenAPIV3Schema '{told}' is not supported"));
            }
        }
        if schema["x-kubernetes-preserve-unknown-fields"].as_bool() == Some(false) {
            return Err("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned());
        }
        let items = match &schema["items"] {
            Value::Null => None,
            Value::Array(_) => return Err("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned()),
            items => Some(Box::new(Structural::compile(items)?)),
        };
        let mut properties = Vec::with_capacity(schema["properties"].entries().len());
        for (name, property) in schema["properties"].entries() {
            properties.push((name.clone(), Structural::compile(property)?));
        }
        let additional = match &schema["additionalProperties"] {
            Value::Null => Additional::Unset,
            Value::Bool(allowed) => Additional::Bool(*allowed),
            schema => Additional::Schema(Box::new(Structural::compile(schema)?)),
        };
        let checks = compile_checks(schema)?;
        Ok(Structural {
            ty: Type::parse(schema["type"].str_or_empty()),
            title: Str::new(schema["title"].str_or_empty()),
            has_description: !schema["description"].is_empty(),
            is_nullable: schema["nullable"].is_true(),
            default: Some(&schema["default"]).filter(|v| !v.is_null()).cloned(),
            properties,
            additional,
            items,
            preserves_unknown: schema["x-kubernetes-preserve-unknown-fields"].is_true(),
            is_embedded: schema["x-kubernetes-embedded-resource"].is_true(),
            is_int_or_string: schema["x-kubernetes-int-or-string"].is_true(),
            list_type: match schema["x-kubernetes-list-type"].as_str() {
                Some("atomic") => ListType::Atomic,
                Some("set") => ListType::Set,
                Some("map") => ListType::Map,
                _ => ListType::Unset,
            },
            list_map_keys: strings(&schema["x-kubernetes-list-map-keys"]),
            map_type: match schema["x-kubernetes-map-type"].as_str() {
                Some("atomic") => MapType::Atomic,
                Some("granular") => MapType::Granular,
                _ => MapType::Unset,
            },
            rules: schema["x-kubernetes-validations"].items().iter().map(Rule::compile).collect(),
            checks: if checks == Checks::default() { None } else { Some(Box::new(checks)) },
        })
    }
}

impl Rule {
    /// Reads a rule.
    pub fn compile(rule: &Value) -> Rule {
        let text = |field: &str| rule[field].str_or_empty().to_owned();
        Rule {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: Str::new(rule["reason"].str_or_empty()),
            field_path: text("fieldPath"),
            optional_old_self: rule["optionalOldSelf"].as_bool(),
        }
    }
}

fn strings(list: &Value) -> Vec<Str> {
    list.items().iter().map(|item| Str::new(item.str_or_empty())).collect()
}

fn compile_all(list: &Value) -> Result<Vec<Structural>, String> {
    list.items().iter().map(Structural::compile).collect()
}

fn compile_checks(schema: &Value) -> Result<Checks, String> {
    let number = |field: &str| schema[field].as_f64();
    let int = |field: &str| schema[field].as_i64();
    let pattern = schema["pattern"].str_or_empty();
    Ok(Checks {
        format: Str::new(schema["format"].str_or_empty()),
        maximum: number("maximum"),
        exclusive_maximum: schema["exclusiveMaximum"].is_true(),
        minimum: number("minimum"),
        exclusive_minimum: schema["exclusiveMinimum"].is_true(),
        multiple_of: number("multipleOf"),
        max_length: int("maxLength"),
        min_length: int("minLength"),
        pattern: (!pattern.is_empty())
            .then(|| Pattern { text: Str::new(pattern), compiled: Regexp::new(pattern).map_err(|e| e.to_string()) }),
        max_items: int("maxItems"),
        min_items: int("minItems"),
        unique_items: schema["uniqueItems"].is_true(),
        max_properties: int("maxProperties"),
        min_properties: int("minProperties"),
        enumeration: schema["enum"].items().to_vec(),
        required: strings(&schema["required"]),
        all_of: compile_all(&schema["allOf"])?,
        any_of: compile_all(&schema["anyOf"])?,
        one_of: compile_all(&schema["oneOf"])?,
        not: match &schema["not"] {
            Value::Null => None,
            not => Some(Box::new(Structural::compile(not)?)),
        },
    })
}
