//! HorizontalPodAutoscalers in the form of version 1, which knows the CPU alone: all else lives in annotations there.

use super::horizontalpodautoscaler::default_metrics;
use crate::common::goform;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::value::{parse, write_json_string, write_value};
use pintle_apimachinery::{Value, json};
use pintle_schema::{decode_value, type_named};

/// The apiVersion of this form.
pub(crate) const API_VERSION: &str = "autoscaling/v1";

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The annotations that the conversion owns: it drops those that it did not write.
const OWNED: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The members of `spec` that are the same in both versions.
const SAME_IN_SPEC: [&str; 3] = ["scaleTargetRef", "minReplicas", "maxReplicas"];
/// The members of `status` that are the same in both versions.
const SAME_IN_STATUS: [&str; 4] = ["observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"];

/// From version 2 to version 1.
pub(crate) fn from_v2(mut object: Value) -> Value {
    let (spec, status) = (object["spec"].take(), object["status"].take());
    set_annotations(&mut object, &annotations(&spec, &status));

    let mut spec_v1 = members(&spec, &SAME_IN_SPEC);
    if let Some(metric) = spec["metrics"].items().iter().find(|metric| is_cpu_utilization(metric)) {
        let target = metric.at("resource.target.averageUtilization");
        spec_v1.set("targetCPUUtilizationPercentage", target.clone());
    }
    let mut status_v1 = members(&status, &SAME_IN_STATUS);
    for field in ["currentReplicas", "desiredReplicas"] {
        status_v1.set_default(field, 0);
    }
    let is_cpu = |metric: &&Value| {
        metric["type"].as_str() == Some("Resource")
            && metric["resource"]["name"].as_str() == Some("cpu")
            && !metric["resource"]["current"]["averageUtilization"].is_null()
    };
    if let Some(metric) = status["currentMetrics"].items().iter().rfind(is_cpu) {
        let current = metric.at("resource.current.averageUtilization");
        status_v1.set("currentCPUUtilizationPercentage", current.clone());
    }
    object.set("apiVersion", API_VERSION);
    object.set("spec", spec_v1);
    object.set("status", status_v1);
    object
}

/// From version 1 to version 2.
pub(crate) fn to_v2(mut object: Value) -> Value {
    let (spec, status) = (object["spec"].take(), object["status"].take());

    let mut metrics = list(&object, METRICS, metric_of_v1, "autoscaling/v2.MetricSpec").unwrap_or_default();
    let utilization = &spec["targetCPUUtilizationPercentage"];
    if !utilization.is_null() {
        metrics.push(cpu("target", json!({"type": "Utilization", "averageUtilization": utilization.clone()})));
    }
    let mut spec_v2 = members(&spec, &SAME_IN_SPEC);
    spec_v2.set("metrics", if metrics.is_empty() { default_metrics() } else { Value::from(metrics) });
    if let Some(behavior) = behavior(&object) {
        spec_v2.set("behavior", behavior);
    }

    let mut status_v2 = members(&status, &SAME_IN_STATUS);
    if status_v2["currentReplicas"].as_i64() == Some(0) {
        status_v2.remove("currentReplicas");
    }
    let utilization = &status["currentCPUUtilizationPercentage"];
    let simple =
        (!utilization.is_null()).then(|| vec![cpu("current", json!({"averageUtilization": utilization.clone()}))]);
    let current = list(&object, CURRENT_METRICS, status_of_v1, "autoscaling/v2.MetricStatus").or(simple);
    // the list is never left out
    status_v2.set("currentMetrics", current.map_or(Value::Null, Value::from));
    let conditions = list(&object, CONDITIONS, Value::clone, "autoscaling/v2.HorizontalPodAutoscalerCondition");
    if let Some(conditions) = conditions.filter(|conditions| !conditions.is_empty()) {
        status_v2.set("conditions", conditions);
    }

    set_annotations(&mut object, &[]);
    object.set("apiVersion", "autoscaling/v2");
    object.set("spec", spec_v2);
    object.set("status", status_v2);
    object
}

fn members(object: &Value, names: &[&str]) -> Value {
    let mut out = Value::object();
    for name in names {
        let member = object.get(name);
        if !member.is_null() {
            out.set(name, member.clone());
        }
    }
    out
}

fn is_cpu_utilization(metric: &Value) -> bool {
    let resource = &metric["resource"];
    metric["type"].as_str() == Some("Resource")
        && resource["name"].as_str() == Some("cpu")
        && !resource["target"]["averageUtilization"].is_null()
}

fn cpu(member: &str, amount: Value) -> Value {
    let mut resource = json!({"name": "cpu"});
    resource.set(member, amount);
    json!({"type": "Resource", "resource": resource})
}

/// Replaces the annotations that the conversion owns.
fn set_annotations(object: &mut Value, new: &[(&str, String)]) {
    let has_owned = OWNED.iter().any(|key| object.annotation(key).is_some());
    if !has_owned && new.is_empty() {
        return;
    }
    let metadata = object.make("metadata");
    let annotations = metadata.make("annotations");
    OWNED.iter().for_each(|key| drop(annotations.remove(key)));
    for (key, text) in new {
        annotations.set(key, text.as_str());
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// What version 1 has no fields for.
fn annotations(spec: &Value, status: &Value) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    let others = spec["metrics"].items().iter().filter(|metric| !is_cpu_utilization(metric));
    let others: Vec<Value> = others.map(metric_to_v1).collect();
    if !others.is_empty() {
        out.push((METRICS, ordered(&Value::from(others))));
    }
    let current: Vec<Value> = status["currentMetrics"].items().iter().map(status_to_v1).collect();
    if !current.is_empty() {
        out.push((CURRENT_METRICS, ordered(&Value::from(current))));
    }
    let behavior = &spec["behavior"];
    if !behavior.is_null() {
        out.push((BEHAVIOR, goform::compact(behavior, "*autoscaling/v2.HorizontalPodAutoscalerBehavior")));
    }
    let conditions = &status["conditions"];
    if !conditions.items().is_empty() {
        let mut conditions = conditions.clone();
        conditions
            .items_mut()
            .iter_mut()
            .for_each(|condition| condition.set_default("lastTransitionTime", Value::Null));
        out.push((CONDITIONS, ordered(&conditions)));
    }
    out
}

/// A list that an annotation holds; `None` when there is none or it cannot be read.
fn list(object: &Value, annotation: &str, convert: fn(&Value) -> Value, type_name: &str) -> Option<Vec<Value>> {
    let parsed = parse(object.annotation(annotation)?.as_bytes()).ok()?;
    if parsed.is_null() {
        return Some(Vec::new());
    }
    parsed.as_array()?.iter().map(|item| typed(&convert(item), type_name)).collect()
}

/// The value as a field of this type holds it; `None` if it cannot.
fn typed(value: &Value, type_name: &str) -> Option<Value> {
    let parsed = decode_value(value, type_named(type_name)?).ok()?;
    parsed.issues.wrong_type.is_none().then_some(parsed.value)
}

/// The behavior in the annotation, whose keys are those of the internal type.
fn behavior(object: &Value) -> Option<Value> {
    const KEYS: [&str; 9] = [
        "scaleUp",
        "scaleDown",
        "stabilizationWindowSeconds",
        "selectPolicy",
        "policies",
        "tolerance",
        "type",
        "value",
        "periodSeconds",
    ];
    fn renamed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(renamed).collect(),
            Value::Object(members) => {
                let name = |key: &str| KEYS.into_iter().find(|name| name.eq_ignore_ascii_case(key));
                let mut out = Value::object();
                for (key, member) in members.iter() {
                    if let Some(name) = name(key) {
                        out.set(name, renamed(member));
                    }
                }
                out
            }
            other => other.clone(),
        }
    }
    let parsed = parse(object.annotation(BEHAVIOR)?.as_bytes()).ok()?;
    let behavior = typed(&renamed(&parsed), "autoscaling/v2.HorizontalPodAutoscalerBehavior")?;
    (!behavior.is_empty()).then_some(behavior)
}

/// How the members of a metric's source are called in version 1 and where version 2 has them. The first list is of
/// metrics wanted, the second of metrics measured. `!` marks amounts that version 1 always writes.
type Names = [(&'static str, &'static [(&'static str, &'static str)]); 5];

const WANTED: Names = [
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("targetValue", "!target.value"),
            ("selector", "metric.selector"),
            ("averageValue", "target.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("targetAverageValue", "!target.averageValue"),
            ("selector", "metric.selector"),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name"),
            ("targetAverageUtilization", "target.averageUtilization"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("targetAverageUtilization", "target.averageUtilization"),
            ("targetAverageValue", "target.averageValue"),
            ("container", "container"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("targetValue", "target.value"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
];

const MEASURED: Names = [
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("currentValue", "!current.value"),
            ("selector", "metric.selector"),
            ("averageValue", "current.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("currentAverageValue", "!current.averageValue"),
            ("selector", "metric.selector"),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name"),
            ("currentAverageUtilization", "current.averageUtilization"),
            ("currentAverageValue", "!current.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("currentAverageUtilization", "current.averageUtilization"),
            ("currentAverageValue", "!current.averageValue"),
            ("container", "container"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("currentValue", "!current.value"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
];

fn metric_to_v1(metric: &Value) -> Value {
    to_v1(metric, &WANTED)
}

fn status_to_v1(metric: &Value) -> Value {
    to_v1(metric, &MEASURED)
}

fn to_v1(metric: &Value, names: &Names) -> Value {
    let mut out = json!({"type": metric["type"].str_or_empty()});
    for (source, members) in names {
        let from = metric.get(source);
        if from.is_null() {
            continue;
        }
        let mut to = Value::object();
        for (v1, v2) in *members {
            let member = from.at(v2.trim_start_matches('!'));
            if !member.is_null() {
                to.set(v1, member.clone());
            } else if v2.starts_with('!') {
                to.set(v1, "0");
            }
        }
        out.set(source, to);
    }
    out
}

fn status_of_v1(metric: &Value) -> Value {
    of_v1(metric, &MEASURED)
}

fn metric_of_v1(metric: &Value) -> Value {
    let mut out = of_v1(metric, &WANTED);
    if out.as_object().is_none() {
        return out;
    }
    for (source, _) in WANTED {
        let Some(target) = out[source].as_object_mut().map(|members| members.entry("target")) else { continue };
        let has = |field: &str| !target[field].is_null();
        let target_type = match source {
            "object" if !has("averageValue") => "Value",
            "external" if has("value") => "Value",
            "resource" | "containerResource" if has("averageUtilization") => "Utilization",
            _ => "AverageValue",
        };
        target.set("type", target_type);
    }
    out
}

/// Members of the wrong type stay so: reading the result along its type finds them.
fn of_v1(metric: &Value, names: &Names) -> Value {
    if metric.as_object().is_none() && !metric.is_null() {
        return metric.clone();
    }
    let mut out = Value::object();
    out.set("type", metric["type"].clone());
    for (source, members) in names {
        let from = metric.get(source);
        if from.is_null() {
            continue;
        }
        if from.as_object().is_none() {
            out.set(source, from.clone());
            continue;
        }
        let mut to = Value::object();
        for (v1, v2) in *members {
            let member = from.get(v1);
            let place = v2.trim_start_matches('!');
            let (outer, inner) = place.rsplit_once('.').unwrap_or(("", place));
            let parent = if outer.is_empty() { &mut to } else { to.make(outer) };
            if !member.is_null() {
                parent.set(inner, member.clone());
            } else if v2.starts_with('!') {
                parent.set(inner, "0");
            }
        }
        out.set(source, to);
    }
    out
}

/// JSON with the members in the order in which Go's types of version 1 declare them. One order does for all of them,
/// since they agree where they share names.
fn ordered(value: &Value) -> String {
    const ORDER: [&str; 30] = [
        "type",
        "status",
        "lastTransitionTime",
        "reason",
        "message",
        "object",
        "pods",
        "resource",
        "containerResource",
        "external",
        "target",
        "kind",
        "name",
        "apiVersion",
        "metricName",
        "metricSelector",
        "targetValue",
        "currentValue",
        "targetAverageUtilization",
        "currentAverageUtilization",
        "targetAverageValue",
        "currentAverageValue",
        "selector",
        "averageValue",
        "container",
        "matchLabels",
        "matchExpressions",
        "key",
        "operator",
        "values",
    ];
    fn write(out: &mut Vec<u8>, value: &Value, is_map: bool) {
        let separate = |out: &mut Vec<u8>, is_first: bool| {
            if !is_first {
                out.push(b',');
            }
        };
        match value {
            Value::Array(items) => {
                out.push(b'[');
                for (idx, item) in items.iter().enumerate() {
                    separate(out, idx == 0);
                    write(out, item, false);
                }
                out.push(b']');
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                if !is_map {
                    members.sort_by_key(|(key, _)| ORDER.iter().position(|name| name == key));
                }
                out.push(b'{');
                for (idx, (key, member)) in members.into_iter().enumerate() {
                    separate(out, idx == 0);
                    write_json_string(out, key);
                    out.push(b':');
                    write(out, member, key == "matchLabels");
                }
                out.push(b'}');
            }
            other => write_value(out, other),
        }
    }
    let mut out = Vec::with_capacity(256);
    write(&mut out, value, false);
    let text = String::from_utf8(out).unwrap_or_default();
    // these characters can stand only inside strings, where Go escapes them
    text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn there_and_back() {
        let object = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a", "annotations": {"x": "y", (BEHAVIOR): "stale"}},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
                "minReplicas": 2, "maxReplicas": 5,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
                    {"type": "Pods", "pods": {
                        "metric": {"name": "m", "selector": {"matchLabels": {"b": "<", "a": "x"}}},
                        "target": {"type": "AverageValue", "averageValue": "1500m"}}},
                    {"type": "Object", "object": {
                        "describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "m"},
                        "target": {"type": "Value", "value": "3"}}},
                    {"type": "ContainerResource", "containerResource": {
                        "name": "memory", "container": "c", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                    {"type": "External", "external": {
                        "metric": {"name": "q"}, "target": {"type": "Value", "value": "2"}}}
                ],
                "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 2}]}}
            },
            "status": {
                "desiredReplicas": 3,
                "currentMetrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "3m"}}}
                ],
                "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": null}]
            }
        });
        let v1 = from_v2(object.clone());
        let annotations: String = v1.metadata()["annotations"]
            .entries()
            .map(|(key, text)| format!("{key}\n  {}\n", text.str_or_empty()))
            .collect();
        expect![[r#"
            autoscaling.alpha.kubernetes.io/behavior
              {"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":null,"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":2}],"Tolerance":null}}
            autoscaling.alpha.kubernetes.io/conditions
              [{"type":"AbleToScale","status":"True","lastTransitionTime":null}]
            autoscaling.alpha.kubernetes.io/current-metrics
              [{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":7,"currentAverageValue":"3m"}}]
            autoscaling.alpha.kubernetes.io/metrics
              [{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1500m","selector":{"matchLabels":{"a":"x","b":"\u003c"}}}},{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"m","targetValue":"3"}},{"type":"ContainerResource","containerResource":{"name":"memory","targetAverageValue":"1Gi","container":"c"}},{"type":"External","external":{"metricName":"q","targetValue":"2"}}]
            x
              y
        "#]].assert_eq(&annotations);
        expect![[r#"
            {"maxReplicas":5,"minReplicas":2,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"targetCPUUtilizationPercentage":60}
            {"currentCPUUtilizationPercentage":7,"currentReplicas":0,"desiredReplicas":3}"#]].assert_eq(&format!("{}\n{}", v1["spec"], v1["status"]));
        let mut expected = object;
        expected["metadata"]["annotations"].remove(BEHAVIOR);
        // the metric that version 1 has a field for comes last
        expected["spec"]["metrics"].make_array().rotate_left(1);
        assert_eq!(to_v2(v1), expected);
    }

    #[test]
    fn annotations_that_are_wrong() {
        let object = |annotations: Value| json!({"apiVersion": API_VERSION, "metadata": {"annotations": annotations}, "spec": {"maxReplicas": 1}});
        let metrics = |text: &str| to_v2(object(json!({(METRICS): text})))["spec"]["metrics"].to_json_string();
        let default = default_metrics().to_json_string();
        for text in ["", "{}", "[1]", r#"[{"type":1}]"#, r#"[{"type":"Pods","pods":{"metricName":3}}]"#, "null", "[]"] {
            assert_eq!(metrics(text), default, "{text}");
        }
        expect![[
            r#"[{"pods":{"metric":{"name":"m"},"target":{"averageValue":"0","type":"AverageValue"}},"type":"Pods"}]"#
        ]]
        .assert_eq(&metrics(r#"[{"type":"Pods","pods":{"metricName":"m"},"more":1}]"#));
        let behavior = |text: &str| to_v2(object(json!({(BEHAVIOR): text})))["spec"]["behavior"].to_json_string();
        for text in ["", "{}", "[1]", r#"{"ScaleUp":{"Policies":3}}"#] {
            assert_eq!(behavior(text), "null", "{text}");
        }
        expect![[r#"{"scaleUp":{"selectPolicy":"Min"}}"#]]
            .assert_eq(&behavior(r#"{"scaleup":{"SelectPolicy":"Min","Policies":null,"Tolerance":null}}"#));
    }
}
