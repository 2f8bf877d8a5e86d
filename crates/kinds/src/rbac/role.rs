//! Roles and ClusterRoles.

use crate::common::selectors::{SelectorOptions, is_invalid, validate_label_selector};
use crate::common::{At, goform};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// The strategy of Roles.
#[derive(Debug)]
pub struct Role;

/// The strategy of ClusterRoles.
#[derive(Debug)]
pub struct ClusterRole;

impl UpdateStrategy for Role {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        validate_rules(object, true)
    }
}

impl Strategy for Role {
    fn name_faults(&self, name: &str, _: bool) -> Faults {
        names::path_segment(name, false)
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate_rules(object, true)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}

impl UpdateStrategy for ClusterRole {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let is_invalid = |selector: &Value| is_invalid(selector, SelectorOptions::default());
        let allow_invalid_values = old.at("aggregationRule.clusterRoleSelectors").items().iter().any(is_invalid);
        validate_cluster_role(object, SelectorOptions { allow_invalid_values, ..SelectorOptions::default() })
    }
}

impl Strategy for ClusterRole {
    fn name_faults(&self, name: &str, _: bool) -> Faults {
        names::path_segment(name, false)
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate_cluster_role(object, SelectorOptions::default())
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}

fn validate_rules(object: &Value, is_namespaced: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    for rule in At::top(object, "rules").each() {
        validate_rule(&rule, is_namespaced, &mut errors);
    }
    errors
}

fn validate_rule(rule: &At<'_>, is_namespaced: bool, errors: &mut ErrorList) {
    let has = |field: &str| !rule[field].items().is_empty();
    if !has("verbs") {
        errors.push(rule.child("verbs").required("verbs must contain at least one value"));
    }
    if has("nonResourceURLs") {
        let urls = rule.child("nonResourceURLs");
        let mut tell = |text: &str| {
            let shown = goform::compact(urls.value(), "[]string");
            errors.push(FieldError { shown: Some(shown), ..urls.invalid(text) });
        };
        if is_namespaced {
            tell("namespaced rules cannot apply to non-resource URLs");
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            tell("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if !has("apiGroups") {
        errors.push(rule.child("apiGroups").required("resource rules must supply at least one api group"));
    }
    if !has("resources") {
        errors.push(rule.child("resources").required("resource rules must supply at least one resource"));
    }
}

fn validate_cluster_role(object: &Value, options: SelectorOptions) -> ErrorList {
    let mut errors = validate_rules(object, false);
    let rule = At::top(object, "aggregationRule");
    if !rule.is_set() {
        return errors;
    }
    let selectors = rule.child("clusterRoleSelectors");
    if selectors.items().is_empty() {
        errors.push(selectors.required("at least one clusterRoleSelector required if aggregationRule is non-nil"));
    }
    for selector in selectors.each() {
        validate_label_selector(&selector, options, &mut errors);
        if Selector::from_object(selector.value()).is_err() {
            errors.push(selector.invalid_showing(Value::NULL, "invalid label selector."));
        }
    }
    errors
}
