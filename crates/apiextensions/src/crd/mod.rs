//! CustomResourceDefinitions themselves: the strategy by which they are written.
//!
//! Follows: apiextensions-apiserver/pkg/{apis/apiextensions/validation,registry/customresourcedefinition} (v0.35).

mod defaults;
mod internal;
mod rules;
mod schema;
mod spec;
pub mod structural;
pub mod webhook;

use crate::conditions::{ApprovalState, approval_state, is_condition_true, is_protected_group};
use crate::structural::Structural;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, json};
use pintle_cel::strfmt;
use pintle_kinds::meta::IMMUTABLE;
use pintle_kinds::strategy::MetadataRounds;
use pintle_kinds::{RequestInfo, Strategy, UpdateStrategy};
pub use rules::{RULE_ESTIMATE_MAX, SCHEMA_ESTIMATE_MAX};
use schema::Leniency;
use spec::Options;
pub use spec::SELECTABLE_FIELDS_MAX;

/// The strategy of `customresourcedefinitions`.
#[derive(Debug)]
pub struct DefinitionStrategy;

/// The strategy of their status subresource.
#[derive(Debug)]
pub struct DefinitionStatusStrategy;

/// The name of a definition's storage version.
fn storage_version(definition: &Value) -> Option<&Value> {
    definition.at("spec.versions").items().iter().find(|v| v["storage"].is_true()).map(|v| &v["name"])
}

/// Adds the storage version to those that are stored.
fn note_storage_version(definition: &mut Value) {
    let Some(version) = storage_version(definition).cloned() else { return };
    let stored = definition.make("status.storedVersions").make_array();
    if !stored.contains(&version) {
        stored.push(version);
    }
}

fn validate_approval(definition: &Value, old: Option<&Value>) -> Option<FieldError> {
    if !is_protected_group(definition["spec"]["group"].str_or_empty()) {
        return None;
    }
    let (state, reason) = approval_state(definition);
    if old.is_some_and(|old| approval_state(old).0 == state) {
        return None;
    }
    let metadata = Path::new("metadata");
    let annotations = metadata.child("annotations");
    let at = annotations.key(crate::conditions::APPROVED_ANNOTATION);
    let shown = definition.annotation(crate::conditions::APPROVED_ANNOTATION).unwrap_or_default();
    match state {
        ApprovalState::Invalid => Some(FieldError::invalid(&at, shown, reason)),
        ApprovalState::Missing => Some(FieldError::required(&at, reason)),
        ApprovalState::Approved | ApprovalState::Bypassed => None,
    }
}

fn validate_preserving(definition: &Value, old: Option<&Value>) -> Option<FieldError> {
    let preserves = |definition: &Value| definition["spec"]["preserveUnknownFields"].is_true();
    if old.is_some_and(preserves) || !preserves(definition) {
        return None;
    }
    let rule =
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    Some(FieldError::invalid(&Path::new("spec").child("preserveUnknownFields"), true, rule))
}

/// What is checked after the spec, of creates and updates alike.
fn validate_rest(definition: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = Path::new("status");
    spec::validate_names(definition.at("status.acceptedNames"), &status.child("acceptedNames"), false, &mut errors);
    errors.extend(spec::validate_stored_versions(definition));
    errors.extend(validate_approval(definition, old));
    errors.extend(validate_preserving(definition, old));
    errors
}

/// The formats in the schemas of a definition that nothing checks.
fn unrecognized_formats(definition: &Value) -> Vec<String> {
    fn collect(node: &Value, found: &mut Vec<String>) {
        let format = node["format"].str_or_empty();
        if node["type"].as_str() == Some("string") && !format.is_empty() && strfmt::check_of(format).is_none() {
            found.push(format.to_owned());
        }
        // the order of upstream's walk
        for field in ["items", "allOf", "anyOf", "oneOf", "not", "properties", "additionalProperties"] {
            match (&node[field], field) {
                (Value::Array(branches), _) => branches.iter().for_each(|branch| collect(branch, found)),
                (members @ Value::Object(_), "properties") => {
                    members.entries().for_each(|(_, property)| collect(property, found));
                }
                (branch @ Value::Object(_), _) => collect(branch, found),
                _ => {}
            }
        }
    }
    let versions = definition.at("spec.versions").items();
    // schemas that all versions share are looked at once
    let n_schemas = if internal::Shared::of(versions).schema { 1 } else { versions.len() };
    let mut found = Vec::new();
    versions.iter().take(n_schemas).for_each(|version| collect(crate::version::schema_of(version), &mut found));
    found
}

fn format_warnings(formats: impl Iterator<Item = String>) -> Vec<String> {
    formats.map(|format| format!("unrecognized format {}", go_quote(&format))).collect()
}

/// What an update of `old` may keep.
fn leniency_of(old: &Value) -> Leniency {
    let versions = old.at("spec.versions").items();
    let schemas = || versions.iter().map(crate::version::schema_of).filter(|schema| !schema.is_null());
    let none_has = |is: &dyn Fn(&Value) -> bool| !schemas().any(|schema| schema::any_node(schema, is));
    let compiled: Vec<Result<Structural, String>> = schemas().map(Structural::compile).collect();
    let root = Path::ROOT;
    let is_structural = |schema: &Result<Structural, String>| {
        schema.as_ref().is_ok_and(|schema| structural::validate(&root, schema).is_empty())
    };
    Leniency {
        requires_schema: schemas().count() == versions.len(),
        requires_valid_types: none_has(&|node| {
            let ty = node["type"].str_or_empty();
            !matches!(ty, "" | "array" | "boolean" | "integer" | "number" | "object" | "string")
        }),
        requires_structural: compiled.iter().all(is_structural),
        requires_pruned_defaults: compiled.iter().all(|schema| match schema {
            Ok(schema) if is_structural(&Ok(schema.clone())) => !crate::version::has_unpruned_defaults(schema),
            _ => true,
        }),
        requires_atomic_sets: none_has(&|node| {
            node["x-kubernetes-list-type"].as_str() == Some("set") && schema::has_granular_items(&node["items"])
        }),
        requires_sound_list_keys: none_has(&|node| !schema::unsound_list_keys(&root, node).is_empty()),
    }
}

fn options_of_update(old: &Value) -> Options<'_> {
    let is_established = is_condition_true(old, "Established");
    let bundle = old.at("spec.conversion.webhook.clientConfig.caBundle").str_or_empty();
    let had_bad_bundle = !bundle.is_empty() && webhook::bundle_fault(bundle).is_some();
    Options {
        leniency: leniency_of(old),
        requires_known_review_version: spec::has_known_review_version(
            old.at("spec.conversion.webhook.conversionReviewVersions"),
        ),
        allows_bad_ca_bundle: !is_established || had_bad_bundle,
        old: Some(old),
    }
}

impl UpdateStrategy for DefinitionStrategy {
    fn prepare_for_update(&self, _request: RequestInfo<'_>, object: &mut Value, old: &Value) {
        object.set("status", old["status"].clone());
        if object["spec"] != old["spec"] {
            object.make("metadata").set("generation", old.generation() + 1);
        }
        note_storage_version(object);
    }

    fn validate_update(&self, _request: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = spec::validate(&object["spec"], &options_of_update(old));
        let path = Path::new("spec");
        let names = path.child("names");
        let mut immutable = |at: &Path<'_>, place: &str| {
            if object.at(place) != old.at(place) {
                errors.push(FieldError::invalid(at, object.at(place), IMMUTABLE));
            }
        };
        if is_condition_true(old, "Established") {
            immutable(&path.child("scope"), "spec.scope");
            immutable(&names.child("kind"), "spec.names.kind");
        }
        immutable(&path.child("group"), "spec.group");
        immutable(&names.child("plural"), "spec.names.plural");
        errors.extend(validate_rest(object, Some(old)));
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _request: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        let known = unrecognized_formats(old);
        format_warnings(unrecognized_formats(object).into_iter().filter(|format| !known.contains(format)))
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for DefinitionStrategy {
    fn holds_deletion(&self, object: &Value) -> bool {
        !object.is_terminating() || object.has_finalizer(crate::conditions::CLEANUP_FINALIZER)
    }

    fn begin_deletion(&self, object: &mut Value, now: jiff::Timestamp) {
        *object = crate::conditions::begin_deletion(object, now);
    }

    fn set_defaults(&self, object: &mut Value) {
        let kind = object.at("spec.names.kind").str_or_empty().to_owned();
        if object["spec"].as_object().is_none() {
            return;
        }
        let names = object.make("spec.names");
        if names["singular"].is_empty() && !kind.is_empty() {
            names.set("singular", kind.to_lowercase());
        }
        if names["listKind"].is_empty() && !kind.is_empty() {
            names.set("listKind", format!("{kind}List"));
        }
        if object["spec"]["conversion"].is_null() {
            object["spec"].set("conversion", json!({"strategy": "None"}));
        }
        let service = object.at_mut("spec.conversion.webhook.clientConfig.service");
        if let Some(service) = service.filter(|service| service.as_object().is_some()) {
            service.set_default("port", 443);
        }
        if object.at("status.storedVersions").items().is_empty()
            && let Some(version) = storage_version(object).cloned()
        {
            object.make("status").set("storedVersions", Value::Array(vec![version]));
        }
    }

    fn prepare_for_create(&self, _request: RequestInfo<'_>, object: &mut Value) {
        let accepted = json!({"plural": "", "kind": ""});
        object.set("status", json!({"conditions": null, "acceptedNames": accepted, "storedVersions": null}));
        object.make("metadata").set("generation", 1);
        if storage_version(object).is_some() {
            note_storage_version(object);
        }
    }

    fn validate(&self, _request: RequestInfo<'_>, object: &Value) -> ErrorList {
        let metadata = Path::new("metadata");
        let required =
            format!("{}.{}", object.at("spec.names.plural").str_or_empty(), object["spec"]["group"].str_or_empty());
        let mut errors = ErrorList::new();
        for field in ["generateName", "name"] {
            let name = object.metadata()[field].str_or_empty();
            if !name.is_empty() && name != required {
                let rule = "must be spec.names.plural+\".\"+spec.group";
                errors.push(FieldError::invalid(&metadata.child(field), name, rule));
            }
        }
        let options = Options {
            leniency: Leniency::NONE,
            requires_known_review_version: true,
            allows_bad_ca_bundle: true,
            old: None,
        };
        errors.extend(spec::validate(&object["spec"], &options));
        errors.extend(validate_rest(object, None));
        errors
    }

    fn warnings_on_create(&self, _request: RequestInfo<'_>, object: &Value) -> Vec<String> {
        format_warnings(unrecognized_formats(object).into_iter())
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn subresource(&self, name: &str) -> Option<&dyn UpdateStrategy> {
        (name == "status").then_some(&DefinitionStatusStrategy)
    }
}

impl UpdateStrategy for DefinitionStatusStrategy {
    fn prepare_for_update(&self, _request: RequestInfo<'_>, object: &mut Value, old: &Value) {
        object.set("spec", old["spec"].clone());
    }

    fn validate_update(&self, _request: RequestInfo<'_>, object: &Value, _old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let status = Path::new("status");
        spec::validate_names(object.at("status.acceptedNames"), &status.child("acceptedNames"), false, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata", "spec"]
    }
}

#[cfg(test)]
mod tests;
