//! ValidatingAdmissionPolicies and their status.

use super::rules::{FAILURE_POLICIES, MATCH_POLICIES, validate_match_conditions, validate_named_rule};
use super::{set_rule_defaults, set_selector_defaults};
use crate::common::conditions::validate_conditions;
use crate::common::expression::{self, Expression, Scope, Wanted};
use crate::common::selectors::{SelectorOptions, validate_label_selector};
use crate::common::{At, Seen, equality, goform, one_of, one_of_required, required};
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep, raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, GroupVersion, Value, names};

/// More audit annotations than these are refused.
const AUDIT_ANNOTATIONS_MAX: usize = 20;
/// The expression of an audit annotation may have this many bytes.
const VALUE_EXPRESSION_BYTES_MAX: usize = 5 * 1024;
/// Why a policy may say that a request was refused.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
/// Words that no variable of CEL can be called.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The strategy of ValidatingAdmissionPolicies.
#[derive(Debug)]
pub struct ValidatingAdmissionPolicy;

static STATUS: StatusSubresource = StatusSubresource {
    metadata: StatusMetadata::Stays,
    rounds: MetadataRounds::NEW.any_finalizers(),
    validate: validate_status,
};

impl UpdateStrategy for ValidatingAdmissionPolicy {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        raise_generation(object, old, &["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(object, old, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW.any_finalizers()
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for ValidatingAdmissionPolicy {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        spec.set_default("failurePolicy", "Fail");
        set_match_resources_defaults(spec.get_mut("matchConstraints"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "admissionregistration/v1.ValidatingAdmissionPolicyStatus");
        start_generation(object);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(object, &Value::NULL, &mut errors);
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}

/// Defaults of what a policy or binding matches.
pub(super) fn set_match_resources_defaults(resources: Option<&mut Value>) {
    let Some(resources) = resources.filter(|resources| !resources.is_null()) else { return };
    set_selector_defaults(resources);
    set_rule_defaults(resources.get_mut("resourceRules"));
    set_rule_defaults(resources.get_mut("excludeResourceRules"));
}

/// Checks the spec. `old` is `null` for new objects.
fn validate(object: &Value, old: &Value, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let old = &old["spec"];
    one_of_required(&spec.child("failurePolicy"), &FAILURE_POLICIES, errors);
    let param_kind = spec.child("paramKind");
    if param_kind.is_set() {
        validate_param_kind(&param_kind, errors);
    }
    let constraints = spec.child("matchConstraints");
    if constraints.is_set() {
        validate_match_resources(&constraints, errors);
        let rules = constraints.child("resourceRules");
        if rules.items().is_empty() {
            errors.push(rules.required(""));
        }
    } else {
        errors.push(constraints.required(""));
    }
    let conditions = spec.child("matchConditions");
    let is_kept = !old.is_null()
        && equality::semantic(&param_kind, &old["paramKind"], "")
        && equality::semantic(&conditions, &old["matchConditions"], "");
    if !is_kept {
        validate_match_conditions(&conditions, &old["matchConditions"], param_kind.is_set(), errors);
    }
    let policy = Policy { name: object.name(), has_params: param_kind.is_set(), spec: spec.value(), old };
    for (idx, variable) in spec.child("variables").each().enumerate() {
        policy.validate_variable(idx, &variable, errors);
    }
    let (validations, annotations) = (spec.child("validations"), spec.child("auditAnnotations"));
    if validations.items().is_empty() && annotations.items().is_empty() {
        let rule = "validations or auditAnnotations must contain at least one item";
        errors.push(validations.required(rule));
        errors.push(annotations.required(rule));
        return;
    }
    validations.each().for_each(|validation| policy.validate_validation(&validation, errors));
    if annotations.items().len() > AUDIT_ANNOTATIONS_MAX {
        let error = annotations.invalid(format!("must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations"));
        let shown = goform::compact(&annotations, "[]admissionregistration/v1.AuditAnnotation");
        errors.push(FieldError { shown: Some(shown), ..error });
    }
    let mut seen = Seen::new();
    for annotation in annotations.each() {
        policy.validate_audit_annotation(&annotation, errors);
        if !seen.insert(annotation.value()["key"].str_or_empty()) {
            errors.push(annotation.child("key").duplicate());
        }
    }
}

fn validate_param_kind(at: &At<'_>, errors: &mut ErrorList) {
    let api_version = at.child("apiVersion");
    if required(&api_version, errors) {
        match GroupVersion::parse(api_version.text()) {
            None => {
                let rule = format!("unexpected GroupVersion string: {}", api_version.text());
                errors.push(api_version.invalid(rule));
            }
            Some(gv) => {
                let (group, version) = (gv.group.as_str(), gv.version.as_str());
                let mut refuse = |shown: &str, faults: names::Faults| {
                    if !faults.is_empty() {
                        errors.push(api_version.invalid_showing(shown, faults.join(",")));
                    }
                };
                if !group.is_empty() {
                    refuse(group, names::dns1123_subdomain(group));
                }
                if version.is_empty() {
                    errors.push(api_version.invalid("version must be specified"));
                } else {
                    refuse(version, names::dns1035_label(version));
                }
            }
        }
    }
    let kind = at.child("kind");
    if required(&kind, errors) {
        let faults = names::dns1035_label(&kind.text().to_lowercase());
        if !faults.is_empty() {
            let rule = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
            errors.push(kind.invalid(rule));
        }
    }
}

/// What a policy or binding matches.
pub(super) fn validate_match_resources(at: &At<'_>, errors: &mut ErrorList) {
    one_of_required(&at.child("matchPolicy"), &MATCH_POLICIES, errors);
    for field in ["namespaceSelector", "objectSelector"] {
        let selector = at.child(field);
        if selector.is_set() {
            validate_label_selector(&selector, SelectorOptions::default(), errors);
        } else {
            errors.push(selector.required(""));
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        at.child(field).each().for_each(|rule| validate_named_rule(&rule, errors));
    }
}

/// What the checks of expressions need to know.
struct Policy<'v> {
    name: &'v str,
    has_params: bool,
    spec: &'v Value,
    old: &'v Value,
}

impl Policy<'_> {
    fn scope(&self, n_variables: usize, has_authorizer: bool) -> Scope<'_> {
        let variables = self.spec["variables"].items();
        let known = variables.get(..n_variables).unwrap_or(variables);
        let variables = (!variables.is_empty()).then_some(known);
        Scope { is_device: false, has_params: self.has_params, has_authorizer, variables }
    }

    /// Checks an expression; it was there before if `old_at` (list, field) of the old object holds it.
    fn check(&self, at: &At<'_>, wanted: Wanted, scope: Scope<'_>, old_at: (&str, &str), errors: &mut ErrorList) {
        let is_stored = self.old[old_at.0].items().iter().any(|old| old[old_at.1] == *at.value());
        // of these alone the spaces around do not count
        let text = if wanted == Wanted::TextOrNull { at.text().trim() } else { at.text() };
        expression::validate(at, &Expression { text, shown: at.text(), wanted, scope, is_stored }, errors);
    }

    fn validate_variable(&self, idx: usize, at: &At<'_>, errors: &mut ErrorList) {
        let (name, text) = (at.child("name"), at.child("expression"));
        if name.text().trim().is_empty() {
            errors.push(name.required("name is not specified"));
        } else if !is_identifier(name.text()) {
            errors.push(name.invalid("must be a valid CEL identifier"));
        }
        if text.text().trim().is_empty() {
            errors.push(text.required("expression is not specified"));
        } else {
            self.check(&text, Wanted::Any, self.scope(idx, true), ("validations", "expression"), errors);
        }
    }

    fn validate_validation(&self, at: &At<'_>, errors: &mut ErrorList) {
        let (text, message) = (at.child("expression"), at.child("message"));
        let message_expression = at.child("messageExpression");
        if text.text().trim().is_empty() {
            errors.push(text.required("expression is not specified"));
        } else {
            self.check(&text, Wanted::Bool, self.scope(usize::MAX, true), ("validations", "expression"), errors);
        }
        let is_blank = |at: &At<'_>| !at.text().is_empty() && at.text().trim().is_empty();
        if is_blank(&message_expression) {
            errors.push(message_expression.invalid("must be non-empty if specified"));
        } else if !message_expression.text().is_empty() {
            let (scope, old_at) = (self.scope(usize::MAX, false), ("validations", "messageExpression"));
            self.check(&message_expression, Wanted::Text, scope, old_at, errors);
        }
        if is_blank(&message) {
            errors.push(message.invalid("must be non-empty if specified"));
        } else if message.text().trim().contains(['\n', '\r']) {
            errors.push(message.invalid("must not contain line breaks"));
        }
        let reason = at.child("reason");
        if reason.is_set() {
            one_of(&reason, &REASONS, errors);
        }
    }

    fn validate_audit_annotation(&self, at: &At<'_>, errors: &mut ErrorList) {
        let (key, text) = (at.child("key"), at.child("valueExpression"));
        if self.name.is_empty() {
            errors.push(key.invalid("requires metadata.name be non-empty"));
        } else {
            let qualified = format!("{}/{}", self.name, key.text());
            let told = |fault| key.invalid_showing(&qualified, fault);
            errors.extend(names::qualified_name(&qualified).into_iter().map(told));
        }
        let n_bytes = text.text().trim().len();
        if n_bytes == 0 {
            errors.push(text.required("valueExpression is not specified"));
        } else if n_bytes > VALUE_EXPRESSION_BYTES_MAX {
            errors.push(text.required(format!("must not exceed {VALUE_EXPRESSION_BYTES_MAX} bytes in length")));
        } else {
            let (scope, old_at) = (self.scope(usize::MAX, true), ("auditAnnotations", "valueExpression"));
            self.check(&text, Wanted::TextOrNull, scope, old_at, errors);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !RESERVED.contains(&name)
}

/// Where expressions are told to be is not read as JSONPath.
fn validate_status(_: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = At::top(object, "status");
    let checking = status.child("typeChecking");
    for warning in checking.child("expressionWarnings").each() {
        required(&warning.child("warning"), &mut errors);
        let field_ref = warning.child("fieldRef");
        if field_ref.text().trim().is_empty() {
            errors.push(field_ref.required(""));
        }
    }
    validate_conditions(&status.child("conditions"), &mut errors);
    errors
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::{Value, json};

    const RESOURCE: &str = "admissionregistration.k8s.io/v1/validatingadmissionpolicies";

    fn base() -> Value {
        let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
        })
    }

    #[test]
    fn creating() {
        let spec = |spec: Value| json!({"spec": spec});
        let out = creates(
            RESOURCE,
            &base(),
            &[
                json!({}),
                spec(json!({"matchConstraints": null, "validations": null, "failurePolicy": "x"})),
                spec(json!({"matchConstraints": {"resourceRules": [{"resourceNames": ["a", "a", "b/c"]}],
                    "matchPolicy": "x", "excludeResourceRules": [{}]}})),
                spec(json!({"matchConstraints": {"resourceRules": []}})),
                spec(json!({"paramKind": {}})),
                spec(json!({"paramKind": {"apiVersion": "a/b/c", "kind": "A.B"}})),
                spec(json!({"paramKind": {"apiVersion": "A/1", "kind": "x"}})),
                spec(json!({"paramKind": {"apiVersion": "a/", "kind": "x"}})),
                spec(json!({"matchConditions": [{"name": "x", "expression": ""}]})),
                spec(json!({"variables": [{"name": " ", "expression": " "}, {"name": "1a", "expression": "1"},
                    {"name": "in", "expression": "1"}, {"name": "ok_1", "expression": "1"}]})),
                spec(json!({"validations": [{"expression": "", "messageExpression": " ", "message": " "},
                    {"expression": "true", "message": "a\nb", "reason": "x"}]})),
                spec(json!({"auditAnnotations": [{"key": "k", "valueExpression": "'x'"}, {"key": "k",
                    "valueExpression": ""}, {"key": "_", "valueExpression": ("x".repeat(5121))}]})),
            ],
        );
        expect![[r#"
            {}
            {"spec":{"failurePolicy":"x","matchConstraints":null,"validations":null}}
                spec.failurePolicy: Unsupported value: "x": supported values: "Fail", "Ignore"
                spec.matchConstraints: Required value
                spec.validations: Required value: validations or auditAnnotations must contain at least one item
                spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item
            {"spec":{"matchConstraints":{"excludeResourceRules":[{}],"matchPolicy":"x","resourceRules":[{"resourceNames":["a","a","b/c"]}]}}}
                spec.matchConstraints.matchPolicy: Unsupported value: "x": supported values: "Equivalent", "Exact"
                spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"
                spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "b/c": may not contain '/'
                spec.matchConstraints.resourceRules[0].operations: Required value
                spec.matchConstraints.resourceRules[0].apiGroups: Required value
                spec.matchConstraints.resourceRules[0].apiVersions: Required value
                spec.matchConstraints.resourceRules[0].resources: Required value
                spec.matchConstraints.excludeResourceRules[0].operations: Required value
                spec.matchConstraints.excludeResourceRules[0].apiGroups: Required value
                spec.matchConstraints.excludeResourceRules[0].apiVersions: Required value
                spec.matchConstraints.excludeResourceRules[0].resources: Required value
            {"spec":{"matchConstraints":{"resourceRules":[]}}}
                spec.matchConstraints.resourceRules: Required value
            {"spec":{"paramKind":{}}}
                spec.paramKind.apiVersion: Required value
                spec.paramKind.kind: Required value
            {"spec":{"paramKind":{"apiVersion":"a/b/c","kind":"A.B"}}}
                spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c
                spec.paramKind.kind: Invalid value: "A.B": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            {"spec":{"paramKind":{"apiVersion":"A/1","kind":"x"}}}
                spec.paramKind.apiVersion: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.paramKind.apiVersion: Invalid value: "1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            {"spec":{"paramKind":{"apiVersion":"a/","kind":"x"}}}
                spec.paramKind.apiVersion: Invalid value: "a/": version must be specified
            {"spec":{"matchConditions":[{"expression":"","name":"x"}]}}
                spec.matchConditions[0].expression: Required value
            {"spec":{"variables":[{"expression":" ","name":" "},{"expression":"1","name":"1a"},{"expression":"1","name":"in"},{"expression":"1","name":"ok_1"}]}}
                spec.variables[0].name: Required value: name is not specified
                spec.variables[0].expression: Required value: expression is not specified
                spec.variables[1].name: Invalid value: "1a": must be a valid CEL identifier
                spec.variables[2].name: Invalid value: "in": must be a valid CEL identifier
            {"spec":{"validations":[{"expression":"","message":" ","messageExpression":" "},{"expression":"true","message":"a\nb","reason":"x"}]}}
                spec.validations[0].expression: Required value: expression is not specified
                spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified
                spec.validations[0].message: Invalid value: " ": must be non-empty if specified
                spec.validations[1].message: Invalid value: "a\nb": must not contain line breaks
                spec.validations[1].reason: Unsupported value: "x": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"
            {"spec":{"auditAnnotations":[{"key":"k","valueExpression":"'x'"},{"key":"k","valueExpression":""},{"key":"_","valueExpression":"x.."}]}}
                spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified
                spec.auditAnnotations[1].key: Duplicate value: "k"
                spec.auditAnnotations[2].key: Invalid value: "a/_": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                spec.auditAnnotations[2].valueExpression: Required value: must not exceed 5120 bytes in length
        "#]].assert_eq(&out.replace(&"x".repeat(5121), "x.."));
        let many: Value = (0..21).map(|i| json!({"key": (format!("k{i}")), "valueExpression": "'x'"})).collect();
        let out = creates(RESOURCE, &base(), &[spec(json!({"auditAnnotations": many}))]);
        assert!(out.contains(r#"{"Key":"k20","ValueExpression":"'x'"}]: must not have more than 20 auditAnnotations"#));
    }

    #[test]
    fn updating() {
        let mut base = base();
        base["spec"].set("matchConditions", json!([{"name": "", "expression": ""}]));
        let kept = json!({"spec": {"failurePolicy": "Ignore"}});
        let changed = json!({"spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}});
        expect![[r#"
            {"spec":{"failurePolicy":"Ignore"}}
            {"spec":{"paramKind":{"apiVersion":"v1","kind":"ConfigMap"}}}
                spec.matchConditions[0].expression: Required value
                spec.matchConditions[0].name: Required value
        "#]]
        .assert_eq(&updates(RESOURCE, "", &base, &[kept, changed]));
        let status = json!({"status": {
            "typeChecking": {"expressionWarnings": [{"warning": "", "fieldRef": ""}]},
            "conditions": [{"type": "a", "status": "x"}]}});
        expect![[r#"
            {"status":{"conditions":[{"status":"x","type":"a"}],"typeChecking":{"expressionWarnings":[{"fieldRef":"","warning":""}]}}}
                status.typeChecking.expressionWarnings[0].warning: Required value
                status.typeChecking.expressionWarnings[0].fieldRef: Required value
                status.conditions[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown"
                status.conditions[0].lastTransitionTime: Required value
                status.conditions[0].reason: Required value
        "#]].assert_eq(&updates(RESOURCE, "status", &base, &[status]));
    }
}
