//! StorageClasses.

use super::{validate_parameters, validate_provisioner};
use crate::common::checks::{immutable, one_of, qualified_name};
use crate::common::{At, Seen, node_labels};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, FieldError, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The strategy of StorageClasses.
#[derive(Debug)]
pub struct StorageClass;

impl UpdateStrategy for StorageClass {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object);
        for field in ["parameters", "provisioner", "reclaimPolicy"] {
            if object[field] != old[field] {
                errors.push(At::top(object, field).forbidden(format!("updates to {field} are forbidden.")));
            }
        }
        immutable(&At::top(object, "volumeBindingMode"), &old["volumeBindingMode"], "", &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
    }
}

impl Strategy for StorageClass {
    fn set_defaults(&self, object: &mut Value) {
        object.set_default("reclaimPolicy", "Delete");
        object.set_default("volumeBindingMode", "Immediate");
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Warns of node labels that have newer names.
fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for term in At::top(object, "allowedTopologies").each() {
        for expression in term.child("matchLabelExpressions").each() {
            let key = expression.child("key");
            if let Some(message) = node_labels::deprecation(key.text()) {
                warnings.push(format!("{}: {message}", key.path()));
            }
        }
    }
    warnings
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_provisioner(&At::top(object, "provisioner"), &mut errors);
    validate_parameters(&At::top(object, "parameters"), &mut errors);
    let policy = At::top(object, "reclaimPolicy");
    if !policy.text().is_empty() {
        one_of(&policy, &["Delete", "Retain"], &mut errors);
    }
    one_of(&At::top(object, "volumeBindingMode"), &["Immediate", "WaitForFirstConsumer"], &mut errors);
    validate_topologies(&At::top(object, "allowedTopologies"), &mut errors);
    errors
}

/// The keys of a term with their values.
type Term<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

fn validate_topologies(topologies: &At<'_>, errors: &mut ErrorList) {
    let n_terms = topologies.items().len();
    let mut seen: Vec<Term<'_>> = Vec::new();
    for term in topologies.each() {
        let this = validate_term(&term, errors);
        // upstream's list of terms begins with as many empty ones as there are terms
        let n_empty = if this.is_empty() { n_terms } else { 0 };
        let n_same = n_empty + seen.iter().filter(|other| **other == this).count();
        let expressions = term.child("matchLabelExpressions");
        errors.extend((0..n_same).map(|_| FieldError::duplicate(expressions.path(), "")));
        seen.push(this);
    }
}

fn validate_term<'t>(term: &At<'t>, errors: &mut ErrorList) -> Term<'t> {
    let mut found = Term::new();
    let list = term.value()["matchLabelExpressions"].items();
    let expressions = term.child("matchLabelExpressions");
    for (expression, value) in expressions.each().zip(list) {
        let (key, values) = (expression.child("key"), expression.child("values"));
        if values.items().is_empty() {
            errors.push(values.required(""));
        }
        let mut seen = Seen::new();
        for value in values.each() {
            if !seen.insert(value.value().str_or_empty()) {
                errors.push(value.duplicate());
            }
        }
        qualified_name(&key, errors);
        let set = value["values"].items().iter().map(Value::str_or_empty).collect();
        if found.insert(value["key"].str_or_empty(), set).is_some() {
            errors.push(key.duplicate());
        }
    }
    found
}
