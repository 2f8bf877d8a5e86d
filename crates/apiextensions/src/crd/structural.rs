//! Whether a schema is structural: every field that is validated is also declared, junctors only validate, metadata is
//! left alone.
//!
//! Follows: apiextensions-apiserver/pkg/apiserver/schema/{validation,complete}.go (v0.35).

use crate::structural::{Additional, Checks, ListType, MapType, Structural, Type};
use pintle_apimachinery::{ErrorList, FieldError, Path};

/// Where a node stands.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What makes `schema`, which stands at `path`, not structural; sorted by text.
pub fn validate(path: &Path<'_>, schema: &Structural) -> ErrorList {
    let mut errors = ErrorList::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness_of_checks(schema.checks(), schema, path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(node: &Structural, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    match &node.items {
        None if node.ty == Type::Array => errors.push(FieldError::required(&path.child("items"), "must be specified")),
        None => {}
        Some(items) => invariants(items, Level::Item, &path.child("items"), errors),
    }
    for (name, property) in &node.properties {
        invariants(property, Level::Field, &path.child("properties").key(name), errors);
    }
    let additional = path.child("additionalProperties");
    if node.additional.is_set() && level == Level::Root {
        errors.push(FieldError::forbidden(&additional, "must not be used at the root"));
    }
    if let Some(schema) = node.additional.schema() {
        invariants(schema, Level::Field, &additional, errors);
    }
    if node.is_int_or_string {
        const RULE: &str = "must be false if x-kubernetes-int-or-string is true";
        if node.preserves_unknown {
            errors.push(FieldError::invalid(&path.child("x-kubernetes-preserve-unknown-fields"), true, RULE));
        }
        if node.is_embedded {
            errors.push(FieldError::invalid(&path.child("x-kubernetes-embedded-resource"), true, RULE));
        }
    }
    let checks = node.checks();
    let skips_any_of = is_int_or_string(&checks.any_of);
    let skips_first = checks.all_of.first().is_some_and(|first| is_int_or_string(&first.checks().any_of));
    nested_checks(checks, skips_any_of, skips_first, path, errors);
    types(node, level, path, errors);
    metadata_fields(node, level, path, errors);
    if node.is_embedded && !node.preserves_unknown && node.properties.is_empty() {
        let rule =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&path.child("properties"), rule));
    }
}

fn types(node: &Structural, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    let at = path.child("type");
    let ty = node.ty.as_str();
    if node.is_embedded && node.ty != Type::Object {
        const RULE: &str = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if ty.is_empty() { FieldError::required(&at, RULE) } else { FieldError::invalid(&at, ty, RULE) });
    } else if ty.is_empty() && !node.is_int_or_string && !node.preserves_unknown {
        let rule = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&at, rule));
    }
    if node.is_embedded && node.additional.is_set() {
        let rule = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), rule));
    }
    if level == Level::Root && !ty.is_empty() && node.ty != Type::Object {
        errors.push(FieldError::invalid(&at, ty, "must be object at the root"));
    }
}

fn metadata_fields(node: &Structural, level: Level, path: &Path<'_>, errors: &mut ErrorList) {
    let is_checked = level == Level::Root || node.is_embedded;
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = node.property(name).filter(|property| is_checked && property.ty != Type::String) {
            let at = properties.key(name);
            errors.push(FieldError::invalid(&at.child("type"), property.ty.as_str(), "must be string"));
        }
    }
    let Some(metadata) = node.property("metadata") else { return };
    let at = properties.key("metadata");
    if is_checked && metadata.ty != Type::Object {
        errors.push(FieldError::invalid(&at.child("type"), metadata.ty.as_str(), "must be object"));
    }
    if level == Level::Root && !restricts_names_only(metadata) {
        let rule = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(&at, rule));
    }
}

/// Whether a schema of metadata says nothing but what names may be.
fn restricts_names_only(metadata: &Structural) -> bool {
    let mut rest = metadata.clone();
    if rest.properties.iter().all(|(name, _)| name == "name" || name == "generateName") {
        rest.properties.clear();
    }
    rest.ty = Type::Unset;
    rest.default = None;
    rest == Structural::default()
}

/// Whether `any_of` is exactly `[{type: integer}, {type: string}]`, which int-or-string may say.
fn is_int_or_string(any_of: &[Structural]) -> bool {
    let only = |ty: Type| Structural { ty, ..Structural::default() };
    any_of.len() == 2 && any_of[0] == only(Type::Integer) && any_of[1] == only(Type::String)
}

fn nested_checks(checks: &Checks, skips_any_of: bool, skips_first: bool, path: &Path<'_>, errors: &mut ErrorList) {
    if !skips_any_of {
        for (idx, branch) in checks.any_of.iter().enumerate() {
            nested(branch, false, &path.child("anyOf").index(idx), errors);
        }
    }
    for (idx, branch) in checks.all_of.iter().enumerate() {
        nested(branch, skips_first && idx == 0, &path.child("allOf").index(idx), errors);
    }
    for (idx, branch) in checks.one_of.iter().enumerate() {
        nested(branch, false, &path.child("oneOf").index(idx), errors);
    }
    if let Some(not) = checks.not.as_deref() {
        nested(not, false, &path.child("not"), errors);
    }
    if let Some(pattern) = &checks.pattern
        && let Err(why) = &pattern.compiled
    {
        let rule = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(&path.child("pattern"), &pattern.text, rule));
    }
}

/// What a node inside a junctor says that it must not.
fn nested(node: &Structural, skips_any_of: bool, path: &Path<'_>, errors: &mut ErrorList) {
    nested_checks(node.checks(), skips_any_of, false, path, errors);
    if let Some(items) = node.items.as_deref() {
        nested(items, false, &path.child("items"), errors);
    }
    for (name, property) in &node.properties {
        nested(property, false, &path.child("properties").key(name), errors);
    }
    let mut forbid = |is_said: bool, field: &str, rule: &str| {
        if is_said {
            errors.push(FieldError::forbidden(&path.child(field), format!("must be {rule} to be structural")));
        }
    };
    let has_additional = !matches!(node.additional, Additional::Unset | Additional::Bool(false));
    forbid(node.ty != Type::Unset, "type", "empty");
    forbid(has_additional, "additionalProperties", "undefined");
    forbid(node.default.is_some(), "default", "undefined");
    forbid(!node.title.is_empty(), "title", "empty");
    forbid(node.has_description, "description", "empty");
    forbid(node.is_nullable, "nullable", "false");
    forbid(node.preserves_unknown, "x-kubernetes-preserve-unknown-fields", "false");
    forbid(node.is_embedded, "x-kubernetes-embedded-resource", "false");
    forbid(node.is_int_or_string, "x-kubernetes-int-or-string", "false");
    forbid(!node.list_map_keys.is_empty(), "x-kubernetes-list-map-keys", "empty");
    forbid(node.list_type != ListType::Unset, "x-kubernetes-list-type", "undefined");
    forbid(node.map_type != MapType::Unset, "x-kubernetes-map-type", "undefined");
    forbid(!node.rules.is_empty(), "x-kubernetes-validations", "empty");
    if node.property("metadata").is_some() {
        let properties = path.child("properties");
        errors.push(FieldError::forbidden(&properties.key("metadata"), "must not be specified in a nested context"));
    }
}

/// Every place that `checks` speak of must be declared in `node`.
fn completeness_of_checks(
    checks: &Checks,
    node: &Structural,
    at: &Path<'_>,
    said_at: &Path<'_>,
    errors: &mut ErrorList,
) {
    if let Some(not) = checks.not.as_deref() {
        completeness(not, node, at, &said_at.child("not"), errors);
    }
    for (junctor, branches) in [("allOf", &checks.all_of), ("anyOf", &checks.any_of), ("oneOf", &checks.one_of)] {
        for (idx, branch) in branches.iter().enumerate() {
            completeness(branch, node, at, &said_at.child(junctor).index(idx), errors);
        }
    }
}

fn completeness(said: &Structural, node: &Structural, at: &Path<'_>, said_at: &Path<'_>, errors: &mut ErrorList) {
    completeness_of_checks(said.checks(), node, at, said_at, errors);
    if let Some(said_items) = said.items.as_deref() {
        let (at, said_at) = (at.child("items"), said_at.child("items"));
        match node.items.as_deref() {
            Some(items) => completeness(said_items, items, &at, &said_at, errors),
            None => errors.push(FieldError::required(&at, format!("because it is defined in {said_at}"))),
        }
    }
    let (at, said_at) = (at.child("properties"), said_at.child("properties"));
    for (name, said_property) in &said.properties {
        let (at, said_at) = (at.key(name), said_at.key(name));
        match node.property(name) {
            Some(property) => completeness(said_property, property, &at, &said_at, errors),
            None => errors.push(FieldError::required(&at, format!("because it is defined in {said_at}"))),
        }
    }
}
