//! IngressClasses.

use super::ingress::validate_reference;
use crate::common::At;
use crate::common::checks::{dns1123_label, domain_prefixed_path, immutable, one_of};
use crate::prepare::{raise_generation, start_generation};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value};

/// A controller's name may have this many bytes.
const CONTROLLER_BYTES_MAX: usize = 250;

/// The strategy of IngressClasses.
#[derive(Debug)]
pub struct IngressClass;

impl UpdateStrategy for IngressClass {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let spec = At::top(object, "spec");
        immutable(&spec.child("controller"), old.at("spec.controller"), "", &mut errors);
        validate(&spec, &mut errors);
        errors
    }
}

impl Strategy for IngressClass {
    fn set_defaults(&self, object: &mut Value) {
        if let Some(parameters) = object.at_mut("spec.parameters").filter(|parameters| !parameters.is_null()) {
            parameters.set_default("scope", "Cluster");
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(&At::top(object, "spec"), &mut errors);
        errors
    }
}

fn validate(spec: &At<'_>, errors: &mut ErrorList) {
    let (controller, parameters) = (spec.child("controller"), spec.child("parameters"));
    if controller.text().len() > CONTROLLER_BYTES_MAX {
        errors.push(controller.too_long(CONTROLLER_BYTES_MAX));
    }
    domain_prefixed_path(&controller, errors);
    if !parameters.is_set() {
        return;
    }
    validate_reference(&parameters, errors);
    let (scope, namespace) = (parameters.child("scope"), parameters.child("namespace"));
    if !scope.is_set() {
        errors.push(scope.required(""));
        return;
    }
    match (scope.text(), namespace.is_set()) {
        ("Namespace", false) => errors.push(namespace.required("`parameters.scope` is set to 'Namespace'")),
        ("Namespace", true) => dns1123_label(&namespace, errors),
        ("Cluster", true) => errors.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'")),
        _ => one_of(&scope, &["Cluster", "Namespace"], errors),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating_and_updating() {
        let base = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"controller": "example.com/c"}
        });
        let parameters = |it: pintle_apimachinery::Value| json!({"spec": {"parameters": it}});
        let of = "networking.k8s.io/v1/ingressclasses";
        let out = creates(
            of,
            &base,
            &[
                json!({"spec": {"controller": ""}}),
                json!({"spec": {"controller": "x"}}),
                json!({"spec": {"controller": "A/b c"}}),
                parameters(json!({})),
                parameters(json!({"apiGroup": "A", "kind": "k", "name": "n", "scope": "Namespace"})),
                parameters(json!({"kind": "k", "name": "n", "scope": "Cluster", "namespace": "x"})),
                parameters(json!({"kind": "k", "name": "n", "scope": "x"})),
            ],
        );
        expect![[r#"
            {"spec":{"controller":""}}
                spec.controller: Required value
            {"spec":{"controller":"x"}}
                spec.controller: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")
            {"spec":{"controller":"A/b c"}}
                spec.controller: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.controller: Invalid value: "b c": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')
            {"spec":{"parameters":{}}}
                spec.parameters.kind: Required value
                spec.parameters.name: Required value
            {"spec":{"parameters":{"apiGroup":"A","kind":"k","name":"n","scope":"Namespace"}}}
                spec.parameters.apiGroup: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'
            {"spec":{"parameters":{"kind":"k","name":"n","namespace":"x","scope":"Cluster"}}}
                spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'
            {"spec":{"parameters":{"kind":"k","name":"n","scope":"x"}}}
                spec.parameters.scope: Unsupported value: "x": supported values: "Cluster", "Namespace"
        "#]].assert_eq(&out);
        let change = json!({"spec": {"controller": "example.com/d"}});
        expect![[r#"
            {"spec":{"controller":"example.com/d"}}
                spec.controller: Invalid value: "example.com/d": field is immutable
        "#]]
        .assert_eq(&updates(of, "", &base, &[change]));
    }
}
