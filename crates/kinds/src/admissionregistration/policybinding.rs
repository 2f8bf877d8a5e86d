//! ValidatingAdmissionPolicyBindings.

use super::policy::{set_match_resources_defaults, validate_match_resources};
use crate::common::checks::{dns1123_subdomain, path_segment};
use crate::common::selectors::{SelectorOptions, validate_label_selector};
use crate::common::{At, Seen, one_of, one_of_required, required};
use crate::prepare::{raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of ValidatingAdmissionPolicyBindings.
#[derive(Debug)]
pub struct ValidatingAdmissionPolicyBinding;

impl UpdateStrategy for ValidatingAdmissionPolicyBinding {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        checked(object)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW.any_finalizers()
    }
}

impl Strategy for ValidatingAdmissionPolicyBinding {
    fn set_defaults(&self, object: &mut Value) {
        set_match_resources_defaults(object.at_mut("spec.matchResources"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        checked(object)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn checked(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = At::top(object, "spec");
    let policy = spec.child("policyName");
    if required(&policy, &mut errors) {
        dns1123_subdomain(&policy, &mut errors);
    }
    let param = spec.child("paramRef");
    if param.is_set() {
        validate_param_ref(&param, &mut errors);
    }
    let resources = spec.child("matchResources");
    if resources.is_set() {
        validate_match_resources(&resources, &mut errors);
    }
    validate_actions(&spec.child("validationActions"), &mut errors);
    errors
}

fn validate_param_ref(at: &At<'_>, errors: &mut ErrorList) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, selector) = (at.child("name"), at.child("selector"));
    if !name.text().is_empty() {
        path_segment(&name, errors);
        if selector.is_set() {
            errors.push(name.forbidden(EXCLUSIVE));
        }
    }
    if selector.is_set() {
        validate_label_selector(&selector, SelectorOptions::default(), errors);
        if !name.text().is_empty() {
            errors.push(selector.forbidden(EXCLUSIVE));
        }
    } else if name.text().is_empty() {
        errors.push(at.required("one of name or selector must be specified"));
    }
    one_of_required(&at.child("parameterNotFoundAction"), &["Deny", "Allow"], errors);
}

fn validate_actions(actions: &At<'_>, errors: &mut ErrorList) {
    let mut seen = Seen::new();
    for action in actions.each() {
        one_of(&action, &["Audit", "Deny", "Warn"], errors);
        if !seen.insert(action.value().str_or_empty()) {
            errors.push(action.duplicate());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        errors.push(actions.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response \
             and headers serves no purpose)",
        ));
    }
    if seen.is_empty() {
        errors.push(actions.required("at least one validation action is required"));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::creates;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating() {
        let base = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": "p", "validationActions": ["Deny"]}
        });
        let out = creates(
            "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
            &base,
            &[
                json!({"spec": {"matchResources": {}}}),
                json!({"spec": {"policyName": "", "validationActions": []}}),
                json!({"spec": {"policyName": "P", "validationActions": ["Deny", "Warn", "Deny", "x"]}}),
                json!({"spec": {"paramRef": {"parameterNotFoundAction": "x"}}}),
                json!({"spec": {"paramRef": {"name": "a/b", "selector": {"matchLabels": {"!": ""}}}}}),
                json!({"spec": {"matchResources": {"matchPolicy": "x", "resourceRules": [{"resourceNames": [""]}]}}}),
            ],
        );
        expect![[r#"
            {"spec":{"matchResources":{}}}
            {"spec":{"policyName":"","validationActions":[]}}
                spec.policyName: Required value
                spec.validationActions: Required value: at least one validation action is required
            {"spec":{"policyName":"P","validationActions":["Deny","Warn","Deny","x"]}}
                spec.policyName: Invalid value: "P": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.validationActions[2]: Duplicate value: "Deny"
                spec.validationActions[3]: Unsupported value: "x": supported values: "Audit", "Deny", "Warn"
                spec.validationActions: Invalid value: ["Deny","Warn","Deny","x"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)
            {"spec":{"paramRef":{"parameterNotFoundAction":"x"}}}
                spec.paramRef: Required value: one of name or selector must be specified
                spec.paramRef.parameterNotFoundAction: Unsupported value: "x": supported values: "Deny", "Allow"
            {"spec":{"paramRef":{"name":"a/b","selector":{"matchLabels":{"!":""}}}}}
                spec.paramRef.name: Invalid value: "a/b": may not contain '/'
                spec.paramRef.name: Forbidden: name and selector are mutually exclusive
                spec.paramRef.selector.matchLabels: Invalid value: "!": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                spec.paramRef.selector: Forbidden: name and selector are mutually exclusive
                spec.paramRef.parameterNotFoundAction: Required value
            {"spec":{"matchResources":{"matchPolicy":"x","resourceRules":[{"resourceNames":[""]}]}}}
                spec.matchResources.matchPolicy: Unsupported value: "x": supported values: "Equivalent", "Exact"
                spec.matchResources.resourceRules[0].operations: Required value
                spec.matchResources.resourceRules[0].apiGroups: Required value
                spec.matchResources.resourceRules[0].apiVersions: Required value
                spec.matchResources.resourceRules[0].resources: Required value
        "#]].assert_eq(&out);
    }
}
