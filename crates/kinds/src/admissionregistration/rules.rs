//! What webhooks and policies share: the rules that say which requests they are about, and conditions.

use crate::common::checks::{path_segment, qualified_name};
use crate::common::expression::{self, Expression, Scope, Wanted};
use crate::common::{At, Seen, one_of, required};
use pintle_apimachinery::{ErrorList, Value};

/// More match conditions than these are refused.
const MATCH_CONDITIONS_MAX: usize = 64;

/// What becomes of a request when a webhook or policy cannot be asked.
pub(super) const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
/// Whether other versions of a resource match.
pub(super) const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// A rule of a policy, which may name resources' names besides.
pub(super) fn validate_named_rule(at: &At<'_>, errors: &mut ErrorList) {
    let mut seen = Seen::new();
    let names = at.child("resourceNames");
    for name in names.each() {
        path_segment(&name, errors);
        if !seen.insert(name.value().str_or_empty()) {
            errors.push(name.duplicate());
        }
    }
    validate_rule(at, errors);
}

/// Operations, groups, versions, resources and scope.
pub(super) fn validate_rule(at: &At<'_>, errors: &mut ErrorList) {
    let operations = at.child("operations");
    validate_wildcard(&operations, "operations", errors);
    operations.each().for_each(|operation| one_of(&operation, &OPERATIONS, errors));
    validate_wildcard(&at.child("apiGroups"), "API groups", errors);
    let versions = at.child("apiVersions");
    validate_wildcard(&versions, "API versions", errors);
    for version in versions.each() {
        required(&version, errors);
    }
    validate_resources(&at.child("resources"), errors);
    let scope = at.child("scope");
    if scope.is_set() {
        one_of(&scope, &SCOPES, errors);
    }
}

/// A list that holds something, and `*` only alone.
fn validate_wildcard(list: &At<'_>, what: &str, errors: &mut ErrorList) {
    let items = list.items();
    if items.is_empty() {
        errors.push(list.required(""));
    }
    if items.len() > 1 && items.iter().any(|item| item.as_str() == Some("*")) {
        errors.push(list.invalid(format!("if '*' is present, must not specify other {what}")));
    }
}

fn validate_resources(list: &At<'_>, errors: &mut ErrorList) {
    if list.items().is_empty() {
        errors.push(list.required(""));
    }
    let (mut with_all_subresources, mut of_all_resources) = (Seen::new(), Seen::new());
    // upstream remembers only the last resource without a subresource
    let mut is_last_plain_named = false;
    for item in list.each() {
        let text = item.value().str_or_empty();
        if !required(&item, errors) {
            continue;
        }
        let Some((resource, subresource)) = text.split_once('/') else {
            is_last_plain_named = text != "*";
            continue;
        };
        if with_all_subresources.contains(resource) {
            errors.push(item.invalid(format!("if '{resource}/*' is present, must not specify {text}")));
        }
        if of_all_resources.contains(subresource) {
            errors.push(item.invalid(format!("if '*/{subresource}' is present, must not specify {text}")));
        }
        if subresource == "*" {
            with_all_subresources.insert(resource);
        }
        if resource == "*" {
            of_all_resources.insert(subresource);
        }
    }
    let has = |wanted: &str| list.items().iter().any(|item| item.as_str() == Some(wanted));
    if list.items().len() > 1 && has("*/*") {
        errors.push(list.invalid("if '*/*' is present, must not specify other resources"));
    }
    if has("*") && is_last_plain_named {
        errors.push(list.invalid("if '*' is present, must not specify other resources without subresources"));
    }
}

/// Conditions that a request must meet. `old` are those of the old object.
pub(super) fn validate_match_conditions(list: &At<'_>, old: &Value, has_params: bool, errors: &mut ErrorList) {
    let n_conditions = list.items().len();
    if n_conditions > MATCH_CONDITIONS_MAX {
        errors.push(pintle_apimachinery::FieldError::too_many(list.path(), n_conditions, MATCH_CONDITIONS_MAX));
    }
    let scope = Scope { has_params, has_authorizer: true, ..Scope::default() };
    let mut seen = Seen::new();
    for condition in list.each() {
        let text = condition.child("expression");
        let trimmed = text.text().trim();
        if trimmed.is_empty() {
            errors.push(text.required(""));
        } else {
            let is_stored = old.items().iter().any(|old| old["expression"].as_str() == Some(trimmed));
            let it = Expression { text: trimmed, shown: trimmed, wanted: Wanted::Bool, scope, is_stored };
            expression::validate(&text, &it, errors);
        }
        let name = condition.child("name");
        if required(&name, errors) {
            qualified_name(&name, errors);
            if !seen.insert(condition.value()["name"].str_or_empty()) {
                errors.push(name.duplicate());
            }
        }
    }
}
