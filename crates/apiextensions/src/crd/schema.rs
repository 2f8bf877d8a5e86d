//! Validation of a version's schema as it is written: keywords, list and map types, defaults, rules.
//!
//! Follows: ValidateCustomResourceDefinitionOpenAPISchema of apiextensions-apiserver (v0.35); differs: properties are
//! visited in the order of their names.

use super::rules::{Cardinality, RuleCheck, RuleNode, below};
use super::{defaults, internal, structural};
use crate::structural::{Structural, fieldpath};
use pintle_apimachinery::value::html_escaped;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// What an update may keep though new definitions may not have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leniency {
    pub(super) requires_schema: bool,
    pub(super) requires_valid_types: bool,
    pub(super) requires_structural: bool,
    pub(super) requires_pruned_defaults: bool,
    pub(super) requires_atomic_sets: bool,
    pub(super) requires_sound_list_keys: bool,
}

impl Leniency {
    /// Of new definitions.
    pub(super) const NONE: Leniency = Leniency {
        requires_schema: true,
        requires_valid_types: true,
        requires_structural: true,
        requires_pruned_defaults: true,
        requires_atomic_sets: true,
        requires_sound_list_keys: true,
    };
}

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// Fields that the root of a schema may have beside a status subresource, as Go names them.
const ROOT_FIELDS: &[&str] = &[
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// The errors of a version's schema; `path` is that of the validation around it. Rules of a schema that is unchanged may
/// cost each what they did.
pub(super) fn validate(
    path: &Path<'_>,
    schema: &Value,
    has_status: bool,
    is_unchanged: bool,
    leniency: &Leniency,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("openAPIV3Schema");
    if has_status {
        errors.extend(root_beside_status(path, schema));
    }
    if schema["nullable"].is_true() {
        errors.push(FieldError::forbidden(
            &path.child("openAPIV3Schema.nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let mut unserved = None;
    let mut place = Place { is_root: true, ..Place::default() };
    if leniency.requires_structural {
        match Structural::compile(schema) {
            Err(why) => unserved = Some(FieldError::invalid(&at, "", why)),
            Ok(compiled) => {
                let mut found = structural::validate(&at, &compiled);
                if found.is_empty() {
                    found = defaults::validate(&at, &compiled, leniency.requires_pruned_defaults);
                }
                if found.is_empty() {
                    place.cardinality = Some(Some(1));
                }
                errors.extend(found);
            }
        }
    }
    let rules = RuleCheck::new(is_unchanged);
    let mut walk = Walk { leniency, errors: ErrorList::new(), rules };
    walk.node(&at, schema, place);
    errors.extend(walk.errors);
    errors.append(&mut walk.rules.errors);
    if errors.is_empty() {
        errors.extend(unserved);
    }
    errors.extend(walk.rules.total(&at));
    errors
}

/// With a status subresource the root may say little.
fn root_beside_status(path: &Path<'_>, schema: &Value) -> Option<FieldError> {
    for field in internal::set_fields(schema) {
        if field == "Type" {
            let ty = schema["type"].str_or_empty();
            if ty != "object" {
                let rule = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
                return Some(FieldError::invalid(&path.child("openAPIV3Schema.type"), ty, rule));
            }
        } else if !ROOT_FIELDS.contains(&field) {
            let rule = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ROOT_FIELDS.join(" ")
            );
            return Some(shown_as(&path.child("openAPIV3Schema"), internal::schema(schema), rule));
        }
    }
    None
}

/// An invalid value whose text is given.
pub(super) fn shown_as(path: &Path<'_>, shown: String, rule: impl Into<String>) -> FieldError {
    FieldError { shown: Some(shown), ..FieldError::invalid_omit_value(path, rule) }
}

/// What a node's place asks of it.
#[derive(Clone, Copy, Debug, Default)]
struct Place<'p> {
    is_root: bool,
    /// Why there may be no default.
    forbids_default: Option<&'p str>,
    is_inside_metadata: bool,
    /// How many values there can be; none where rules are not looked at.
    cardinality: Option<Cardinality>,
    /// The place around it from which on values have no old ones.
    uncorrelatable: Option<&'p str>,
}

struct Walk<'l> {
    leniency: &'l Leniency,
    errors: ErrorList,
    rules: RuleCheck,
}

impl Walk<'_> {
    fn forbid(&mut self, path: &Path<'_>, field: &str, rule: impl Into<String>) {
        self.errors.push(FieldError::forbidden(&path.child(field), rule));
    }

    fn node(&mut self, path: &Path<'_>, schema: &Value, place: Place<'_>) {
        if schema.as_object().is_none() {
            return;
        }
        let sound = self.errors.len();
        self.keywords(path, schema, place);
        if schema["uniqueItems"].is_true() {
            self.forbid(
                path,
                "uniqueItems",
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
        self.members(path, schema, place);
        let cardinality = place.cardinality.map(|cardinality| below(cardinality, schema));
        let inner = Place { is_root: false, cardinality: None, ..place };
        self.node(&path.child("not"), &schema["not"], inner);
        for junctor in ["allOf", "oneOf", "anyOf"] {
            for (idx, branch) in schema[junctor].items().iter().enumerate() {
                self.node(&path.child(junctor).index(idx), branch, inner);
            }
        }
        for (name, definition) in schema["definitions"].entries() {
            self.node(&path.child("definitions").key(name), definition, inner);
        }
        let here = path.to_string();
        let is_keyed = schema["x-kubernetes-list-type"].as_str() == Some("map");
        let uncorrelatable = place.uncorrelatable.or_else(|| (!is_keyed).then_some(here.as_str()));
        let item = Place { cardinality, uncorrelatable, ..inner };
        match &schema["items"] {
            Value::Array(items) => {
                for (idx, of) in items.iter().enumerate() {
                    self.node(&path.child("items").index(idx), of, item);
                }
            }
            items => self.node(&path.child("items"), items, item),
        }
        for (name, dependency) in schema["dependencies"].entries() {
            self.node(&path.child("dependencies").key(name), dependency, inner);
        }
        if schema["x-kubernetes-preserve-unknown-fields"].as_bool() == Some(false) {
            let at = path.child("x-kubernetes-preserve-unknown-fields");
            self.errors.push(FieldError::invalid(&at, false, "must be true or undefined"));
        }
        self.map_type(path, schema);
        self.list_type(path, schema);
        self.list_keys(path, schema);
        if self.leniency.requires_sound_list_keys {
            self.errors.extend(unsound_list_keys(path, schema));
        }
        for (idx, rule) in schema["x-kubernetes-validations"].items().iter().enumerate() {
            self.rule(&path.child("x-kubernetes-validations").index(idx), schema, rule);
        }
        let has_rules = !schema["x-kubernetes-validations"].items().is_empty();
        if let Some(cardinality) = place.cardinality.filter(|_| has_rules && self.errors.len() == sound) {
            let Place { is_root, uncorrelatable, .. } = place;
            self.rules.node(RuleNode { path, schema, is_root, cardinality, uncorrelatable });
        }
    }

    fn keywords(&mut self, path: &Path<'_>, schema: &Value, place: Place<'_>) {
        let ty = schema["type"].str_or_empty();
        if self.leniency.requires_valid_types && !ty.is_empty() && !TYPES.contains(&ty) {
            self.errors.push(FieldError::not_supported(&path.child("type"), ty, TYPES));
        }
        if let Some(reason) = place.forbids_default.filter(|_| !schema["default"].is_null()) {
            self.forbid(path, "default", format!("must not be set {reason}"));
        }
        for field in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            let value = &schema[field];
            let is_given = match field {
                "additionalItems" | "dependencies" | "$ref" => !value.is_null(),
                _ => !value.is_empty(),
            };
            if is_given {
                self.forbid(path, field, format!("{field} is not supported"));
            }
        }
        if ty == "null" {
            self.forbid(path, "type", "type cannot be set to null, use nullable as an alternative");
        }
        if !schema["items"].items().is_empty() {
            self.forbid(path, "items", "items must be a schema object and not an array");
        }
        if place.is_inside_metadata && schema["x-kubernetes-embedded-resource"].is_true() {
            self.forbid(path, "x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
    }

    fn members(&mut self, path: &Path<'_>, schema: &Value, place: Place<'_>) {
        let cardinality = place.cardinality.map(|cardinality| below(cardinality, schema));
        let inner = Place { is_root: false, cardinality, ..place };
        let additional = &schema["additionalProperties"];
        if !additional.is_null() {
            if !schema["properties"].is_empty() && *additional != Value::Bool(true) {
                self.forbid(path, "additionalProperties", "additionalProperties and properties are mutual exclusive");
            }
            let reason = Some("inside additionalProperties applying to object metadata");
            let forbids_default = if place.is_inside_metadata { reason } else { inner.forbids_default };
            self.node(&path.child("additionalProperties"), additional, Place { forbids_default, ..inner });
        }
        let is_object = place.is_root || schema["x-kubernetes-embedded-resource"].is_true();
        let properties = path.child("properties");
        for (name, property) in schema["properties"].entries() {
            let mut inner = inner;
            let reason = format!("in top-level {name}");
            if is_object && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                inner.is_inside_metadata = true;
                if place.is_root {
                    inner.forbids_default = Some(&reason);
                }
            }
            self.node(&properties.key(name), property, inner);
        }
    }

    fn map_type(&mut self, path: &Path<'_>, schema: &Value) {
        let Some(map_type) = schema["x-kubernetes-map-type"].as_str() else { return };
        self.wants_type(path, schema, "object", "must be object if x-kubernetes-map-type is specified");
        let supported = ["atomic", "granular"];
        if !supported.contains(&map_type) {
            let at = path.child("x-kubernetes-map-type");
            self.errors.push(FieldError::not_supported(&at, map_type, &supported));
        }
    }

    /// Says so if the node's type is not `wanted`; answers whether it is.
    fn wants_type(&mut self, path: &Path<'_>, schema: &Value, wanted: &str, rule: &str) -> bool {
        let at = path.child("type");
        match schema["type"].str_or_empty() {
            ty if ty == wanted => return true,
            "" => self.errors.push(FieldError::required(&at, rule)),
            ty => self.errors.push(FieldError::invalid(&at, ty, rule)),
        }
        false
    }

    fn list_type(&mut self, path: &Path<'_>, schema: &Value) {
        let Some(list_type) = schema["x-kubernetes-list-type"].as_str() else { return };
        let is_list = self.wants_type(path, schema, "array", "must be array if x-kubernetes-list-type is specified");
        let items = &schema["items"];
        if is_list && self.leniency.requires_atomic_sets && list_type == "set" && has_granular_items(items) {
            let field = if items["type"].as_str() == Some("array") {
                "x-kubernetes-list-type"
            } else {
                "x-kubernetes-map-type"
            };
            let at = path.child("items");
            // upstream shows the list type in both cases
            let shown = html_escaped(&items["x-kubernetes-list-type"]);
            let rule = "must be atomic as item of a list with x-kubernetes-list-type=set";
            self.errors.push(shown_as(&at.child(field), shown, rule));
        }
        let supported = ["atomic", "set", "map"];
        if !supported.contains(&list_type) {
            let at = path.child("x-kubernetes-list-type");
            self.errors.push(FieldError::not_supported(&at, list_type, &supported));
        }
    }

    fn list_keys(&mut self, path: &Path<'_>, schema: &Value) {
        let list_type = schema["x-kubernetes-list-type"].as_str();
        let (at_type, at_keys) = (path.child("x-kubernetes-list-type"), path.child("x-kubernetes-list-map-keys"));
        let keys = &schema["x-kubernetes-list-map-keys"];
        if !keys.items().is_empty() {
            const RULE: &str = "must be map if x-kubernetes-list-map-keys is non-empty";
            match list_type {
                None => self.errors.push(FieldError::required(&at_type, RULE)),
                Some("map") => {}
                Some(other) => self.errors.push(FieldError::invalid(&at_type, other, RULE)),
            }
        }
        if list_type != Some("map") {
            return;
        }
        if keys.items().is_empty() {
            self.errors.push(FieldError::required(&at_keys, "must not be empty if x-kubernetes-list-type is map"));
        }
        let at_items = path.child("items");
        let items = &schema["items"];
        match items {
            Value::Null => {
                self.errors
                    .push(FieldError::required(&at_items, "must have a schema if x-kubernetes-list-type is map"));
                return;
            }
            Value::Array(_) => {
                let shown = internal::schema_or_array(items);
                let rule = "must only have a single schema if x-kubernetes-list-type is map";
                self.errors.push(shown_as(&at_items, shown, rule));
                return;
            }
            _ => {}
        }
        let ty = items["type"].str_or_empty();
        if ty != "object" {
            let rule = "must be object if parent array's x-kubernetes-list-type is map";
            self.errors.push(FieldError::invalid(&at_items.child("type"), ty, rule));
            return;
        }
        for (idx, key) in keys.items().iter().enumerate() {
            let name = key.str_or_empty();
            let property = &items["properties"][name];
            if property.is_null() {
                self.errors.push(FieldError::invalid(&at_keys, keys, "entries must all be names of item properties"));
            } else if matches!(property["type"].str_or_empty(), "array" | "object") {
                let properties = at_items.child("properties");
                let rule = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                self.errors.push(FieldError::invalid(&properties.key(name).child("type"), ty, rule));
            }
            if keys.items()[..idx].contains(key) {
                self.errors.push(FieldError::invalid(&at_keys, keys, "must not contain duplicate entries"));
            }
        }
    }

    /// What a rule says beside its expressions.
    fn rule(&mut self, path: &Path<'_>, schema: &Value, rule: &Value) {
        let text = |field: &str| rule[field].str_or_empty();
        let has_newline = |text: &str| text.contains(['\n', '\r']);
        let (at_rule, at_message) = (path.child("rule"), path.child("message"));
        let (expression, message) = (text("rule").trim(), text("message").trim());
        if expression.is_empty() {
            self.errors.push(FieldError::required(&at_rule, "rule is not specified"));
        } else if !text("message").is_empty() && message.is_empty() {
            self.errors.push(FieldError::invalid(&at_message, text("message"), "must be non-empty if specified"));
        } else if has_newline(message) {
            self.errors.push(FieldError::invalid(&at_message, text("message"), "must not contain line breaks"));
        } else if has_newline(expression) && message.is_empty() {
            let rule = "message must be specified if rule contains line breaks";
            self.errors.push(FieldError::required(&at_message, rule));
        }
        if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
            let rule = "messageExpression must be non-empty if specified";
            self.errors.push(FieldError::required(&path.child("messageExpression"), rule));
        }
        if let Some(reason) = rule["reason"].as_str() {
            let supported = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
            if !supported.contains(&reason) {
                self.errors.push(FieldError::not_supported(&path.child("reason"), reason, &supported));
            }
        }
        let at = path.child("fieldPath");
        let field_path = text("fieldPath");
        if !field_path.is_empty() && field_path.trim().is_empty() {
            self.errors.push(FieldError::invalid(&at, field_path, "must be non-empty if specified"));
        }
        if has_newline(field_path) {
            self.errors.push(FieldError::invalid(&at, field_path, "must not contain line breaks"));
        }
        let is_wrong = |schema: Structural| fieldpath::find(field_path, &schema, true).is_err();
        if !field_path.is_empty() && Structural::compile(schema).is_ok_and(is_wrong) {
            self.errors.push(FieldError::invalid(&at, field_path, "must be a valid path"));
        }
    }
}

/// Whether items of a set would be owned in parts.
pub(super) fn has_granular_items(items: &Value) -> bool {
    match items["type"].str_or_empty() {
        "array" => items["x-kubernetes-list-type"].as_str().is_some_and(|ty| ty != "atomic"),
        "object" => items["x-kubernetes-map-type"].as_str() != Some("atomic"),
        _ => false,
    }
}

/// The errors of items and keys that are nullable, or of keys that may be absent.
pub(super) fn unsound_list_keys(path: &Path<'_>, schema: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (list_type, items) = (schema["x-kubernetes-list-type"].str_or_empty(), &schema["items"]);
    if items.as_object().is_none() || !matches!(list_type, "set" | "map") {
        return errors;
    }
    let at = path.child("items");
    if items["nullable"].is_true() {
        let rule = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&at.child("nullable"), rule));
    }
    if list_type != "map" {
        return errors;
    }
    let properties = at.child("properties");
    for key in schema["x-kubernetes-list-map-keys"].items() {
        let name = key.str_or_empty();
        let property = &items["properties"][name];
        if property.is_null() {
            continue;
        }
        if !items["required"].items().contains(key) && property["default"].is_null() {
            let rule =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&properties.key(name).child("default"), rule));
        }
        if property["nullable"].is_true() {
            let rule = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&properties.key(name).child("nullable"), rule));
        }
    }
    errors
}

/// Whether `is` holds of any node of a schema.
pub(super) fn any_node(schema: &Value, is: &dyn Fn(&Value) -> bool) -> bool {
    if schema.as_object().is_none() {
        return false;
    }
    let has = |node: &Value| any_node(node, is);
    let has_members = |field: &str| schema[field].entries().any(|(_, node)| has(node));
    is(schema)
        || has(&schema["items"])
        || ["items", "allOf", "anyOf", "oneOf"].iter().any(|field| schema[*field].items().iter().any(has))
        || ["not", "additionalProperties", "additionalItems"].iter().any(|field| has(&schema[*field]))
        || ["properties", "patternProperties", "definitions", "dependencies"].iter().any(|field| has_members(field))
}
