//! ResourceQuotas and their status.

use super::quantities::round_up_to_millis;
use crate::common::resources::{is_standard_for_quota, quantity, validate_resource_name, validate_resource_quantity};
use crate::common::{At, goform};
use crate::meta::IMMUTABLE;
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, FieldError, Value};
use std::collections::BTreeSet;

/// The strategy of ResourceQuotas.
#[derive(Debug)]
pub struct ResourceQuota;

static STATUS: StatusSubresource = StatusSubresource {
    metadata: StatusMetadata::Changes,
    rounds: MetadataRounds::UPDATE,
    validate: validate_status_update,
};

impl UpdateStrategy for ResourceQuota {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let spec = At::top(object, "spec");
        validate_spec(&spec, &mut errors);
        let scopes = |quota: &Value| -> BTreeSet<String> {
            quota.at("spec.scopes").items().iter().map(|scope| scope.str_or_empty().to_owned()).collect()
        };
        if scopes(object) != scopes(old) {
            errors.push(show_list(&spec.child("scopes"), IMMUTABLE));
        }
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for ResourceQuota {
    fn set_defaults(&self, object: &mut Value) {
        for amounts in ["spec.hard", "status.hard", "status.used"] {
            round_up_to_millis(object.at_mut(amounts));
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "core/v1.ResourceQuotaStatus");
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&At::top(object, "spec"), &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        ["cpu", "memory", "storage", "ephemeral-storage"]
            .iter()
            .filter_map(|resource| request_above_limit(object.at("spec.hard"), resource))
            .collect()
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn request_above_limit(hard: &Value, resource: &str) -> Option<String> {
    let mut request_name = format!("requests.{resource}");
    if hard[request_name.as_str()].is_null() && matches!(resource, "cpu" | "memory") {
        resource.clone_into(&mut request_name);
    }
    let limit_name = format!("limits.{resource}");
    let (request, limit) = (&hard[request_name.as_str()], &hard[limit_name.as_str()]);
    if request.is_null() || limit.is_null() || quantity(request) <= quantity(limit) {
        return None;
    }
    let (request, limit) = (request.str_or_empty(), limit.str_or_empty());
    Some(format!("ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})"))
}

fn validate_status_update(_: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = At::top(object, "status");
    validate_amounts(&status.child("hard"), &mut errors);
    validate_amounts(&status.child("used"), &mut errors);
    errors
}

fn validate_amounts(amounts: &At<'_>, errors: &mut ErrorList) {
    for (name, amount) in amounts.each_entry() {
        validate_resource_name(name, &amount, errors);
        if !name.contains('/') && !is_standard_for_quota(name) {
            errors.push(amount.invalid_showing(name, "must be a standard resource for quota"));
        }
        validate_resource_quantity(name, &amount, errors);
    }
}

fn validate_spec(spec: &At<'_>, errors: &mut ErrorList) {
    validate_amounts(&spec.child("hard"), errors);
    validate_scopes(spec, errors);
    if spec.child("scopeSelector").is_set() {
        validate_scope_selector(spec, errors);
    }
}

/// An error that shows a list of texts.
fn show_list(at: &At<'_>, rule: &str) -> FieldError {
    FieldError { shown: Some(goform::compact(at.value(), "[]string")), ..at.invalid(rule) }
}

/// Scopes that contradict each other.
const CONFLICTING: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["NotTerminating", "Terminating"]];

fn is_known_scope(scope: &str) -> bool {
    let others = ["CrossNamespacePodAffinity", "PriorityClass", "VolumeAttributesClass"];
    CONFLICTING.iter().flatten().chain(&others).any(|known| *known == scope)
}

/// Whether a scope can be told of objects that count against the resource.
fn is_scope_of_resource(scope: &str, resource: &str) -> bool {
    let is_compute =
        matches!(resource, "cpu" | "memory" | "limits.cpu" | "limits.memory" | "requests.cpu" | "requests.memory");
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            resource == "pods" || is_compute
        }
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

/// How many resources of the quota the scope cannot be told of.
fn n_resources_out_of_scope(spec: &At<'_>, scope: &str) -> usize {
    let names = spec["hard"].entries().map(|(name, _)| name);
    names.filter(|name| is_standard_for_quota(name) && !is_scope_of_resource(scope, name)).count()
}

fn conflicts<'s>(scopes: impl Iterator<Item = &'s str>) -> usize {
    let scopes: BTreeSet<&str> = scopes.collect();
    CONFLICTING.iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope))).count()
}

fn validate_scopes(spec: &At<'_>, errors: &mut ErrorList) {
    let scopes = spec.child("scopes");
    for scope in scopes.items().iter().map(Value::str_or_empty) {
        if !is_known_scope(scope) {
            errors.push(show_list(&scopes, "unsupported scope"));
        }
        for _ in 0..n_resources_out_of_scope(spec, scope) {
            errors.push(show_list(&scopes, "unsupported scope applied to resource"));
        }
    }
    for _ in 0..conflicts(scopes.items().iter().map(Value::str_or_empty)) {
        errors.push(show_list(&scopes, "conflicting scopes"));
    }
}

fn validate_scope_selector(spec: &At<'_>, errors: &mut ErrorList) {
    let selector = spec.child("scopeSelector");
    // upstream names the list where it means its items
    let list = selector.child("matchExpressions");
    let at = |expression, name| At::new(Value::get(expression, name), list.path().child(name));
    for expression in list.items() {
        let scope_name = expression["scopeName"].str_or_empty();
        if !is_known_scope(scope_name) {
            errors.push(at(expression, "scopeName").invalid("unsupported scope"));
        }
        for _ in 0..n_resources_out_of_scope(spec, scope_name) {
            let shown = goform::compact(selector.value(), "*core/v1.ScopeSelector");
            let error = list.invalid("unsupported scope applied to resource");
            errors.push(FieldError { shown: Some(shown), ..error });
        }
        let (operator, values) = (at(expression, "operator"), at(expression, "values"));
        let takes_exists =
            CONFLICTING.iter().flatten().any(|s| *s == scope_name) || scope_name == "CrossNamespacePodAffinity";
        if takes_exists && operator.text() != "Exists" {
            errors.push(operator.invalid("must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"));
        }
        match operator.text() {
            "In" | "NotIn" if values.items().is_empty() => errors.push(
                values.required("must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"),
            ),
            "Exists" | "DoesNotExist" if !values.items().is_empty() => errors.push(show_list(
                &values,
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(operator.invalid("not a valid selector operator")),
        }
    }
    for _ in 0..conflicts(list.items().iter().map(|expression| expression["scopeName"].str_or_empty())) {
        let scopes = spec.child("scopes");
        errors.push(show_list(&scopes, "conflicting scopes"));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating_and_updating() {
        let base = json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "1"}}});
        let spec = |spec: pintle_apimachinery::Value| json!({"spec": spec});
        let scope = |scope: pintle_apimachinery::Value| spec(json!({"scopeSelector": {"matchExpressions": [scope]}}));
        let out = creates(
            "v1/resourcequotas",
            &base,
            &[
                spec(json!({"hard": {"pods": "-1", "cpu": "100m", "x": "1", "count/deployments.apps": "1500m"}})),
                spec(json!({"scopes": ["x"]})),
                spec(json!({"scopes": ["BestEffort", "NotBestEffort"]})),
                spec(json!({"scopes": ["BestEffort"], "hard": {"requests.cpu": "1"}})),
                scope(json!({"scopeName": "PriorityClass", "operator": "In"})),
                scope(json!({"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]})),
                scope(json!({"scopeName": "Terminating", "operator": "In", "values": ["a"]})),
                scope(json!({"scopeName": "x", "operator": "y"})),
            ],
        );
        expect![[r#"
            {"spec":{"hard":{"count/deployments.apps":"1500m","cpu":"100m","pods":"-1","x":"1"}}}
                spec.hard[count/deployments.apps]: Invalid value: "1500m": must be an integer
                spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0
                spec.hard[x]: Invalid value: "x": must be a standard resource type or fully qualified
                spec.hard[x]: Invalid value: "x": must be a standard resource for quota
            {"spec":{"scopes":["x"]}}
                spec.scopes: Invalid value: ["x"]: unsupported scope
            {"spec":{"scopes":["BestEffort","NotBestEffort"]}}
                spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes
            {"spec":{"hard":{"requests.cpu":"1"},"scopes":["BestEffort"]}}
                spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource
            {"spec":{"scopeSelector":{"matchExpressions":[{"operator":"In","scopeName":"PriorityClass"}]}}}
                spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector
            {"spec":{"scopeSelector":{"matchExpressions":[{"operator":"Exists","scopeName":"PriorityClass","values":["a"]}]}}}
                spec.scopeSelector.matchExpressions.values: Invalid value: ["a"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector
            {"spec":{"scopeSelector":{"matchExpressions":[{"operator":"In","scopeName":"Terminating","values":["a"]}]}}}
                spec.scopeSelector.matchExpressions.operator: Invalid value: "In": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity
            {"spec":{"scopeSelector":{"matchExpressions":[{"operator":"y","scopeName":"x"}]}}}
                spec.scopeSelector.matchExpressions.scopeName: Invalid value: "x": unsupported scope
                spec.scopeSelector.matchExpressions.operator: Invalid value: "y": not a valid selector operator
        "#]].assert_eq(&out);
        let mut old = base;
        old["spec"].set("scopes", json!(["BestEffort"]));
        let variants = [spec(json!({"scopes": ["NotBestEffort"]})), spec(json!({"hard": {"pods": "7"}}))];
        expect![[r#"
            {"spec":{"scopes":["NotBestEffort"]}}
                spec.scopes: Invalid value: ["NotBestEffort"]: field is immutable
            {"spec":{"hard":{"pods":"7"}}}
        "#]]
        .assert_eq(&updates("v1/resourcequotas", "", &old, &variants));
        let status = json!({"status": {"hard": {"pods": "-1"}, "used": {"pods": "-2"}}});
        expect![[r#"
            {"status":{"hard":{"pods":"-1"},"used":{"pods":"-2"}}}
                status.hard[pods]: Invalid value: "-1": must be greater than or equal to 0
                status.used[pods]: Invalid value: "-2": must be greater than or equal to 0
        "#]]
        .assert_eq(&updates("v1/resourcequotas", "status", &old, &[status]));
    }
}
