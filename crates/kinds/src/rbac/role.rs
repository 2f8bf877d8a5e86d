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

#[cfg(test)]
mod tests {
    use crate::testing::creates;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating() {
        let rule = |rule: pintle_apimachinery::Value| json!({"rules": [rule]});
        let base = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"});
        let rules = [
            rule(json!({})),
            rule(json!({"verbs": ["get"]})),
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})),
            rule(json!({"verbs": ["get"], "apiGroups": [""]})),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/x"]})),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["a"], "apiGroups": ["a"]})),
        ];
        expect![[r#"
            {"rules":[{}]}
                rules[0].verbs: Required value: verbs must contain at least one value
                rules[0].apiGroups: Required value: resource rules must supply at least one api group
                rules[0].resources: Required value: resource rules must supply at least one resource
            {"rules":[{"verbs":["get"]}]}
                rules[0].apiGroups: Required value: resource rules must supply at least one api group
                rules[0].resources: Required value: resource rules must supply at least one resource
            {"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}
            {"rules":[{"apiGroups":[""],"verbs":["get"]}]}
                rules[0].resources: Required value: resource rules must supply at least one resource
            {"rules":[{"nonResourceURLs":["/x"],"verbs":["get"]}]}
                rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs
            {"rules":[{"apiGroups":["a"],"nonResourceURLs":["/x"],"resources":["a"],"verbs":["get"]}]}
                rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs
                rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs
        "#]].assert_eq(&creates("rbac.authorization.k8s.io/v1/roles", &base, &rules));
        let base = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"});
        let aggregated = json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "!"}}]}});
        let variants = [rules[4].clone(), rules[5].clone(), json!({"aggregationRule": {}}), aggregated];
        expect![[r#"
            {"rules":[{"nonResourceURLs":["/x"],"verbs":["get"]}]}
            {"rules":[{"apiGroups":["a"],"nonResourceURLs":["/x"],"resources":["a"],"verbs":["get"]}]}
                rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs
            {"aggregationRule":{}}
                aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil
            {"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"!"}}]}}
                aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: "!": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
                aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.
        "#]].assert_eq(&creates("rbac.authorization.k8s.io/v1/clusterroles", &base, &variants));
    }
}
