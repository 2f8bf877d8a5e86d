//! The strategy of custom resources: what the registry calls around a write of an instance.
//!
//! Follows: apiextensions-apiserver/pkg/registry/customresource (v0.35).

use crate::structural::correlate::Correlated;
use crate::structural::openapi::{self, Form};
use crate::structural::{listtype, objectmeta};
use crate::version::CompiledVersion;
use pintle_apimachinery::field::{ErrorType, go_quote};
use pintle_apimachinery::meta::{Meta, well_known};
use pintle_apimachinery::names;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};
use pintle_kinds::strategy::MetadataRounds;
use pintle_kinds::{RequestInfo, Strategy, UpdateStrategy};
use std::sync::Arc;

/// The strategy of one version's instances.
#[derive(Clone, Debug)]
pub struct CustomResourceStrategy {
    version: Arc<CompiledVersion>,
    status: StatusStrategy,
}

/// The strategy of the status subresource.
#[derive(Clone, Debug)]
pub struct StatusStrategy {
    version: Arc<CompiledVersion>,
}

impl CustomResourceStrategy {
    /// The strategy of a version.
    pub fn new(version: Arc<CompiledVersion>) -> CustomResourceStrategy {
        CustomResourceStrategy { status: StatusStrategy { version: Arc::clone(&version) }, version }
    }

    /// The version.
    pub fn version(&self) -> &Arc<CompiledVersion> {
        &self.version
    }
}

/// Kind and apiVersion of another kind than the version's: where they are wrong, nothing else is looked at.
fn validate_type(version: &CompiledVersion, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if object.kind() != version.gvk.kind {
        let rule = format!("must be {}", version.gvk.kind);
        errors.push(FieldError::invalid(&Path::new("kind"), object.kind(), rule));
    }
    let api_version = version.gvk.api_version();
    if object.api_version() != api_version {
        let rule = format!("must be {api_version}");
        errors.push(FieldError::invalid(&Path::new("apiVersion"), object.api_version(), rule));
    }
    errors
}

/// What rules find, unless what was found before makes them useless.
fn by_rules(
    version: &CompiledVersion,
    errors: &ErrorList,
    object: &Value,
    old: Option<&Value>,
    correlated: Option<Correlated<'_>>,
) -> ErrorList {
    let Some(rules) = &version.rules else { return ErrorList::new() };
    if errors.iter().any(|error| BLOCKING.contains(&error.kind)) {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors \
                   to complete validation";
        return vec![FieldError { field: ROOT.into(), ..FieldError::invalid(&Path::ROOT, &Value::Null, why) }];
    }
    let mut errors = rules.validate(&Path::ROOT, object, old, correlated).errors;
    errors.iter_mut().filter(|error| error.field.is_empty()).for_each(|error| error.field = ROOT.into());
    errors
}

/// How errors of whole objects name their field.
const ROOT: &str = "<nil>";

/// What rules have against values that are as they were: these may stay.
fn kept_faults(version: &CompiledVersion, object: &Value, old: &Value) -> Vec<String> {
    let Some(rules) = &version.rules else { return Vec::new() };
    let correlated = Correlated { old, new: object, schema: &version.structural };
    rules.validate(&Path::ROOT, object, Some(old), Some(correlated)).warnings
}

/// Errors of the structure, after which rules could only say the same again.
const BLOCKING: &[ErrorType] =
    &[ErrorType::NotSupported, ErrorType::Required, ErrorType::TooLong, ErrorType::TooMany, ErrorType::TypeInvalid];

impl UpdateStrategy for CustomResourceStrategy {
    fn prepare_for_update(&self, _request: RequestInfo<'_>, object: &mut Value, old: &Value) {
        if self.version.has_status {
            if old.has("status") {
                object.set("status", old["status"].clone());
            } else {
                object.remove("status");
            }
        }
        // all but metadata counts
        let is_changed = {
            let members = |value: &Value| value.entries().filter(|(key, _)| *key != "metadata").count();
            members(object) != members(old)
                || object.entries().any(|(key, member)| key != "metadata" && old[key.as_str()] != *member)
        };
        if is_changed {
            object.make("metadata").set("generation", old.generation() + 1);
        }
    }

    fn validate_update(&self, _request: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let version = &*self.version;
        let mut errors = validate_type(version, object);
        if !errors.is_empty() {
            return errors;
        }
        let schema = &*version.structural;
        let correlated = Correlated { old, new: object, schema };
        errors.extend(openapi::validate_update(object, schema, Some(correlated), ""));
        if let Some(scale) = &version.scale {
            errors.extend(scale.validate_spec(object));
            errors.extend(scale.validate_status(object));
        }
        errors.extend(objectmeta::validate(&Path::ROOT, object, schema, false));
        if listtype::validate(&Path::ROOT, schema, old).is_empty() {
            errors.extend(listtype::validate(&Path::ROOT, schema, object));
        }
        errors.extend(by_rules(version, &errors, object, Some(old), Some(correlated)));
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _request: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        let mut warnings = finalizer_warnings(object, Some(old));
        warnings.extend(kept_faults(&self.version, object, old));
        warnings
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        if self.version.has_status { &["status"] } else { &[] }
    }
}

impl Strategy for CustomResourceStrategy {
    fn prepare_for_create(&self, _request: RequestInfo<'_>, object: &mut Value) {
        if self.version.has_status {
            object.remove("status");
        }
        object.make("metadata").set("generation", 1);
    }

    fn validate(&self, _request: RequestInfo<'_>, object: &Value) -> ErrorList {
        let version = &*self.version;
        let mut errors = validate_type(version, object);
        if !errors.is_empty() {
            return errors;
        }
        let schema = &*version.structural;
        errors.extend(openapi::validate(object, schema, Form::Served, ""));
        if let Some(scale) = &version.scale {
            errors.extend(scale.validate_spec(object));
            errors.extend(scale.validate_status(object));
        }
        errors.extend(objectmeta::validate(&Path::ROOT, object, schema, false));
        errors.extend(listtype::validate(&Path::ROOT, schema, object));
        errors.extend(by_rules(version, &errors, object, None, None));
        errors
    }

    fn warnings_on_create(&self, _request: RequestInfo<'_>, object: &Value) -> Vec<String> {
        finalizer_warnings(object, None)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn subresource(&self, name: &str) -> Option<&dyn UpdateStrategy> {
        (name == "status" && self.version.has_status).then_some(&self.status)
    }

    fn unknown_field_message(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }
}

impl UpdateStrategy for StatusStrategy {
    /// Only the status is taken over, and who manages which fields.
    fn prepare_for_update(&self, _request: RequestInfo<'_>, object: &mut Value, old: &Value) {
        let status = object.has("status").then(|| object.remove("status"));
        let managed = object.metadata()["managedFields"].clone();
        *object = old.clone();
        match managed {
            Value::Null => {
                object.make("metadata").remove("managedFields");
            }
            managed => object.make("metadata").set("managedFields", managed),
        }
        match status {
            Some(status) => object.set("status", status),
            None => {
                object.remove("status");
            }
        }
    }

    fn validate_update(&self, _request: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let version = &*self.version;
        let mut errors = validate_type(version, object);
        if !errors.is_empty() {
            return errors;
        }
        let schema = &*version.structural;
        let correlated = Correlated { old, new: object, schema };
        if let (true, Some(status)) = (object.has("status"), schema.property("status")) {
            errors.extend(openapi::validate_update(&object["status"], status, correlated.key("status"), "status"));
        }
        if let Some(scale) = &version.scale {
            errors.extend(scale.validate_status(object));
        }
        let repeated = listtype::validate(&Path::ROOT, schema, object);
        if !repeated.is_empty() && listtype::validate(&Path::ROOT, schema, old).is_empty() {
            errors.extend(repeated);
        }
        errors.extend(by_rules(version, &errors, object, Some(old), Some(correlated)));
        errors
    }

    fn warnings_on_update(&self, _request: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        kept_faults(&self.version, object, old)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }
}

/// Finalizers without a domain that Kubernetes itself uses.
const STANDARD_FINALIZERS: &[&str] = &[well_known::FINALIZER_ORPHAN, well_known::FINALIZER_FOREGROUND, "kubernetes"];

/// Warnings about new finalizers whose names may clash with others'.
fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut added: Vec<&str> =
        object.finalizers().filter(|finalizer| !old.is_some_and(|old| old.has_finalizer(finalizer))).collect();
    added.sort_unstable();
    added.dedup();
    let mut warnings = Vec::new();
    for finalizer in added {
        let told = format!("metadata.finalizers: {}", go_quote(finalizer));
        warnings.extend(names::qualified_name(finalizer).into_iter().map(|fault| format!("{told}: {fault}")));
        if finalizer.contains('/') || STANDARD_FINALIZERS.contains(&finalizer) {
            continue;
        }
        let how = if finalizer.contains('.') {
            "a domain-qualified finalizer name including a path (/)"
        } else {
            "a domain-qualified finalizer name"
        };
        warnings.push(format!("{told}: prefer {how} to avoid accidental conflicts with other finalizer writers"));
    }
    warnings
}

#[cfg(test)]
mod tests;
