//! The rules of HorizontalPodAutoscalers: bounds, the object that is scaled, metrics and behaviour.

use crate::common::checks::{dns1123_label, path_segment};
use crate::common::resources::{quantity, validate_container_resource_name, validate_nonnegative_quantity};
use crate::common::{At, one_of};
use pintle_apimachinery::{ErrorList, GroupVersion, Value};

/// The longest period of a scaling policy, in seconds; longer ones are refused.
const PERIOD_SECONDS_MAX: i64 = 1800;
/// The longest stabilization window, in seconds; longer ones are refused.
const WINDOW_SECONDS_MAX: i64 = 3600;

/// The types of metrics, each with the member that describes it, in the order of the types' names.
const METRIC_TYPES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// Checks one source of a metric.
type CheckSource = fn(&At<'_>, &Options, &mut ErrorList);

/// The members that describe a metric, in the order in which they are looked at.
const SOURCES: [(&str, CheckSource); 5] = [
    ("object", validate_object_source),
    ("external", validate_external_source),
    ("pods", validate_pods_source),
    ("resource", validate_resource_source),
    ("containerResource", validate_container_resource_source),
];

/// How strict an apiVersion is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ApiVersionRule {
    Any,
    GroupMayBeEmpty,
    GroupRequired,
}

/// What passes because of what is scaled, or because the old object held such.
pub(super) struct Options {
    replicas_min: i64,
    target: ApiVersionRule,
    described: ApiVersionRule,
}

impl Options {
    /// For a new object, or for a change of `old`.
    pub(super) fn of(object: &Value, old: Option<&Value>) -> Options {
        let mut options = Options {
            replicas_min: 1,
            target: ApiVersionRule::GroupRequired,
            described: ApiVersionRule::GroupMayBeEmpty,
        };
        let target = object.at("spec.scaleTargetRef");
        if target["kind"].as_str() == Some("ReplicationController") {
            options.target = ApiVersionRule::GroupMayBeEmpty;
        }
        let Some(old) = old else { return options };
        if old.at("spec.minReplicas").as_i64() == Some(0) {
            options.replicas_min = 0;
        }
        let old_target = old.at("spec.scaleTargetRef");
        if ["apiVersion", "kind"].iter().all(|field| old_target[*field] == target[*field]) {
            options.target = ApiVersionRule::Any;
        }
        let is_wrong = |metric: &Value| {
            let described = &metric["object"]["describedObject"]["apiVersion"];
            metric["type"].as_str() == Some("Object")
                && !metric["object"].is_null()
                && api_version_fault(described.str_or_empty(), options.described).is_some()
        };
        if old.at("spec.metrics").items().iter().any(is_wrong) {
            options.described = ApiVersionRule::Any;
        }
        options
    }
}

/// Checks `spec`.
pub(super) fn validate_spec(object: &Value, options: &Options, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let min = spec.child("minReplicas");
    let max = spec.child("maxReplicas");
    if min.is_set() && min.int() < options.replicas_min {
        errors.push(min.invalid(format!("must be greater than or equal to {}", options.replicas_min)));
    }
    if max.int() < 1 {
        errors.push(max.invalid_int("must be greater than 0"));
    }
    if min.is_set() && max.int() < min.int() {
        errors.push(max.invalid_int("must be greater than or equal to `minReplicas`"));
    }
    validate_reference(&spec.child("scaleTargetRef"), options.target, errors);
    let metrics = spec.child("metrics");
    metrics.each().for_each(|metric| validate_metric(&metric, options, errors));
    let scales_from_zero = |metric: &Value| matches!(metric["type"].as_str(), Some("Object" | "External"));
    if min.as_i64() == Some(0) && !metrics.items().iter().any(scales_from_zero) {
        errors.push(
            metrics
                .forbidden("must specify at least one Object or External metric to support scaling to zero replicas"),
        );
    }
    for direction in ["scaleUp", "scaleDown"] {
        let behavior = spec.child("behavior");
        let rules = behavior.child(direction);
        if rules.is_set() {
            validate_scaling_rules(&rules, errors);
        }
    }
}

fn validate_reference(at: &At<'_>, rule: ApiVersionRule, errors: &mut ErrorList) {
    for field in ["kind", "name"] {
        let text = at.child(field);
        if text.text().is_empty() {
            errors.push(text.required(""));
        } else {
            path_segment(&text, errors);
        }
    }
    let api_version = at.child("apiVersion");
    if let Some(fault) = api_version_fault(api_version.text(), rule) {
        errors.push(api_version.invalid(fault));
    }
}

fn api_version_fault(api_version: &str, rule: ApiVersionRule) -> Option<String> {
    if rule == ApiVersionRule::Any {
        return None;
    }
    match GroupVersion::parse(api_version) {
        None => Some(format!("unexpected GroupVersion string: {api_version}")),
        Some(gv) if gv.group.is_empty() && rule == ApiVersionRule::GroupRequired => {
            Some("apiVersion must specify API group".to_owned())
        }
        Some(_) => None,
    }
}

fn validate_metric(at: &At<'_>, options: &Options, errors: &mut ErrorList) {
    let metric_type = at.child("type");
    let member = METRIC_TYPES.iter().find(|(name, _)| *name == metric_type.text()).map(|(_, member)| *member);
    let types = METRIC_TYPES.map(|(name, _)| name);
    if metric_type.text().is_empty() {
        errors.push(metric_type.required("must specify a metric source type"));
    }
    one_of(&metric_type, &types, errors);
    let mut is_first = true;
    for (name, validate) in SOURCES {
        let source = at.child(name);
        if source.is_set() && std::mem::take(&mut is_first) {
            validate(&source, options, errors);
        }
    }
    match member {
        Some(member) => {
            let source = at.child(member);
            if !source.is_set() {
                errors.push(source.required("must populate information for the given metric source"));
            }
        }
        None => errors.push(metric_type.not_supported(&types)),
    }
    if SOURCES.iter().filter(|(name, _)| !at.get(name).is_null()).count() != 1 {
        for (name, _) in SOURCES.iter().filter(|(name, _)| Some(*name) != member && !at.get(name).is_null()) {
            errors.push(at.child(name).forbidden("must populate the given metric source only"));
        }
    }
}

fn validate_object_source(at: &At<'_>, options: &Options, errors: &mut ErrorList) {
    validate_reference(&at.child("describedObject"), options.described, errors);
    validate_identifier(&at.child("metric"), errors);
    let target = at.child("target");
    validate_target(&target, errors);
    if target["value"].is_null() && target["averageValue"].is_null() {
        errors.push(target.child("averageValue").required("must set either a target value or averageValue"));
    }
}

fn validate_external_source(at: &At<'_>, _: &Options, errors: &mut ErrorList) {
    validate_identifier(&at.child("metric"), errors);
    let target = at.child("target");
    validate_target(&target, errors);
    match (target["value"].is_null(), target["averageValue"].is_null()) {
        (true, true) => {
            let rule = "must set either a target value for metric or a per-pod target";
            errors.push(target.child("averageValue").required(rule));
        }
        (false, false) => {
            let rule = "may not set both a target value for metric and a per-pod target";
            errors.push(target.child("value").forbidden(rule));
        }
        _ => {}
    }
}

fn validate_pods_source(at: &At<'_>, _: &Options, errors: &mut ErrorList) {
    validate_identifier(&at.child("metric"), errors);
    let target = at.child("target");
    validate_target(&target, errors);
    if target["averageValue"].is_null() {
        errors.push(target.child("averageValue").required("must specify a positive target averageValue"));
    }
}

fn validate_resource_source(at: &At<'_>, _: &Options, errors: &mut ErrorList) {
    let name = at.child("name");
    if name.text().is_empty() {
        errors.push(name.required("must specify a resource name"));
    }
    validate_resource_target(&at.child("target"), errors);
}

fn validate_container_resource_source(at: &At<'_>, _: &Options, errors: &mut ErrorList) {
    let name = at.child("name");
    if name.text().is_empty() {
        errors.push(name.required("must specify a resource name"));
    } else {
        validate_container_resource_name(name.text(), &name, errors);
    }
    let container = at.child("container");
    if container.text().is_empty() {
        errors.push(container.required("must specify a container"));
    } else {
        dns1123_label(&container, errors);
    }
    validate_resource_target(&at.child("target"), errors);
}

fn validate_resource_target(target: &At<'_>, errors: &mut ErrorList) {
    validate_target(target, errors);
    match (target["averageUtilization"].is_null(), target["averageValue"].is_null()) {
        (true, true) => {
            let rule = "must set either a target raw value or a target utilization";
            errors.push(target.child("averageUtilization").required(rule));
        }
        (false, false) => {
            let rule = "may not set both a target raw value and a target utilization";
            errors.push(target.child("averageValue").forbidden(rule));
        }
        _ => {}
    }
}

fn validate_target(at: &At<'_>, errors: &mut ErrorList) {
    let target_type = at.child("type");
    if target_type.text().is_empty() {
        errors.push(target_type.required("must specify a metric target type"));
    }
    if !matches!(target_type.text(), "Utilization" | "Value" | "AverageValue") {
        errors.push(target_type.invalid("must be either Utilization, Value, or AverageValue"));
    }
    for field in ["value", "averageValue"] {
        let amount = at.child(field);
        if amount.is_set() && quantity(&amount).sign() <= 0 {
            errors.push(amount.invalid("must be positive"));
        }
    }
    let utilization = at.child("averageUtilization");
    if utilization.is_set() && utilization.int() < 1 {
        errors.push(utilization.invalid("must be greater than 0"));
    }
}

fn validate_identifier(at: &At<'_>, errors: &mut ErrorList) {
    let name = at.child("name");
    if name.text().is_empty() {
        errors.push(name.required("must specify a metric name"));
    } else {
        path_segment(&name, errors);
    }
}

fn validate_scaling_rules(at: &At<'_>, errors: &mut ErrorList) {
    let window = at.child("stabilizationWindowSeconds");
    if window.int() < 0 {
        errors.push(window.invalid("must be greater than or equal to zero"));
    }
    if window.int() > WINDOW_SECONDS_MAX {
        errors.push(window.invalid(format!("must be less than or equal to {WINDOW_SECONDS_MAX}")));
    }
    let select = at.child("selectPolicy");
    if select.is_set() {
        one_of(&select, &["Disabled", "Max", "Min"], errors);
    }
    let policies = at.child("policies");
    if policies.items().is_empty() {
        errors.push(policies.required("must specify at least one Policy"));
    }
    policies.each().for_each(|policy| validate_scaling_policy(&policy, errors));
    let tolerance = at.child("tolerance");
    if tolerance.is_set() {
        validate_nonnegative_quantity(&tolerance, errors);
    }
}

fn validate_scaling_policy(at: &At<'_>, errors: &mut ErrorList) {
    one_of(&at.child("type"), &["Percent", "Pods"], errors);
    let value = at.child("value");
    if value.int() <= 0 {
        errors.push(value.invalid_int("must be greater than zero"));
    }
    let period = at.child("periodSeconds");
    if period.int() <= 0 {
        errors.push(period.invalid_int("must be greater than zero"));
    }
    if period.int() > PERIOD_SECONDS_MAX {
        errors.push(period.invalid_int(format!("must be less than or equal to {PERIOD_SECONDS_MAX}")));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::{Value, json};

    fn base() -> Value {
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
        })
    }

    #[test]
    fn creating() {
        let metric = |source: Value| json!({"spec": {"metrics": [source]}});
        let out = creates(
            "autoscaling/v2/horizontalpodautoscalers",
            &base(),
            &[
                json!({}),
                json!({"spec": {"minReplicas": 0, "maxReplicas": 0}}),
                json!({"spec": {"minReplicas": 4, "scaleTargetRef": {"apiVersion": "v1", "kind": "a/b", "name": ""}}}),
                json!({"spec": {"scaleTargetRef": {"apiVersion": "v1", "kind": "ReplicationController"}}}),
                json!({"spec": {"scaleTargetRef": {"apiVersion": "a/b/c"}}}),
                metric(json!({"type": "Nope", "pods": {"metric": {"name": "m"}, "target": {"type": "Value"}}})),
                metric(json!({"type": "Object", "external": {"metric": {"name": ""}, "target": {"type": "Value"}}})),
                metric(json!({"type": "Resource", "resource": {"name": "cpu", "target": {
                    "type": "Utilization", "averageValue": "-1", "averageUtilization": 0}}})),
                metric(json!({"type": "ContainerResource", "containerResource": {
                    "name": "gpu", "container": "C", "target": {"type": ""}}, "pods": null})),
                json!({"spec": {"behavior": {"scaleUp": {"policies": [], "tolerance": "-1", "selectPolicy": "x"}}}}),
                json!({"spec": {"behavior": {"scaleDown": {
                    "policies": [{"type": "x", "value": 0, "periodSeconds": 1801}],
                    "stabilizationWindowSeconds": 3601}}}}),
            ],
        );
        expect![[r#"
            {}
            {"spec":{"maxReplicas":0,"minReplicas":0}}
                spec.minReplicas: Invalid value: 0: must be greater than or equal to 1
                spec.maxReplicas: Invalid value: 0: must be greater than 0
                spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas
            {"spec":{"minReplicas":4,"scaleTargetRef":{"apiVersion":"v1","kind":"a/b","name":""}}}
                spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`
                spec.scaleTargetRef.kind: Invalid value: "a/b": may not contain '/'
                spec.scaleTargetRef.name: Required value
                spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group
            {"spec":{"scaleTargetRef":{"apiVersion":"v1","kind":"ReplicationController"}}}
            {"spec":{"scaleTargetRef":{"apiVersion":"a/b/c"}}}
                spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c
            {"spec":{"metrics":[{"pods":{"metric":{"name":"m"},"target":{"type":"Value"}},"type":"Nope"}]}}
                spec.metrics[0].type: Unsupported value: "Nope": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"
                spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue
                spec.metrics[0].type: Unsupported value: "Nope": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"
            {"spec":{"metrics":[{"external":{"metric":{"name":""},"target":{"type":"Value"}},"type":"Object"}]}}
                spec.metrics[0].external.metric.name: Required value: must specify a metric name
                spec.metrics[0].external.target.averageValue: Required value: must set either a target value for metric or a per-pod target
                spec.metrics[0].object: Required value: must populate information for the given metric source
            {"spec":{"metrics":[{"resource":{"name":"cpu","target":{"averageUtilization":0,"averageValue":"-1","type":"Utilization"}},"type":"Resource"}]}}
                spec.metrics[0].resource.target.averageValue: Invalid value: "-1": must be positive
                spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0
                spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization
            {"spec":{"metrics":[{"containerResource":{"container":"C","name":"gpu","target":{"type":""}},"pods":null,"type":"ContainerResource"}]}}
                spec.metrics[0].containerResource.name: Invalid value: "gpu": must be a standard resource type or fully qualified
                spec.metrics[0].containerResource.name: Invalid value: "gpu": must be a standard resource for containers
                spec.metrics[0].containerResource.container: Invalid value: "C": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.metrics[0].containerResource.target.type: Required value: must specify a metric target type
                spec.metrics[0].containerResource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue
                spec.metrics[0].containerResource.target.averageUtilization: Required value: must set either a target raw value or a target utilization
            {"spec":{"behavior":{"scaleUp":{"policies":[],"selectPolicy":"x","tolerance":"-1"}}}}
                spec.behavior.scaleUp.selectPolicy: Unsupported value: "x": supported values: "Disabled", "Max", "Min"
                spec.behavior.scaleUp.policies: Required value: must specify at least one Policy
                spec.behavior.scaleUp.tolerance: Invalid value: "-1": must be greater than or equal to 0
            {"spec":{"behavior":{"scaleDown":{"policies":[{"periodSeconds":1801,"type":"x","value":0}],"stabilizationWindowSeconds":3601}}}}
                spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600
                spec.behavior.scaleDown.policies[0].type: Unsupported value: "x": supported values: "Percent", "Pods"
                spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero
                spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800
        "#]].assert_eq(&out);
    }

    #[test]
    fn updating() {
        let mut base = base();
        base["spec"]["scaleTargetRef"].set("apiVersion", "v1");
        base["spec"].set("minReplicas", 0);
        let out = updates(
            "autoscaling/v2/horizontalpodautoscalers",
            "",
            &base,
            &[json!({"spec": {"maxReplicas": 7}}), json!({"spec": {"scaleTargetRef": {"kind": "x"}}})],
        );
        expect![[r#"
            {"spec":{"maxReplicas":7}}
                spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas
            {"spec":{"scaleTargetRef":{"kind":"x"}}}
                spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group
                spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas
        "#]].assert_eq(&out);
        let status = json!({"status": {"currentReplicas": -1, "desiredReplicas": -2}});
        let out = updates("autoscaling/v2/horizontalpodautoscalers", "status", &base, &[status]);
        expect![[r#"
            {"status":{"currentReplicas":-1,"desiredReplicas":-2}}
                status.currentReplicas: Invalid value: -1: must be greater than or equal to 0
                status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0
        "#]]
        .assert_eq(&out);
    }
}
