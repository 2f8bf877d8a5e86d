//! The cells of autoscalers.

use super::format::{Short, Subject};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Value, json, value};

/// Metrics that are shown.
const METRICS_SHOWN: usize = 2;

/// Where the first version keeps the metrics that it has no fields for.
const METRICS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// Where the first version keeps their state.
const CURRENT_METRICS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

pub(super) fn horizontal_pod_autoscaler(s: &Subject<'_>) -> Vec<Value> {
    let is_first_version = s.object.api_version() == "autoscaling/v1";
    let (specs, statuses) = if is_first_version {
        first_version_metrics(s)
    } else {
        (s.at("spec.metrics").items().to_vec(), s.at("status.currentMetrics").items().to_vec())
    };
    let min = s.at("spec.minReplicas").as_i64().map_or_else(|| "<unset>".to_owned(), |n| n.to_string());
    vec![
        s.name(),
        Value::from(format!("{}/{}", s.str("spec.scaleTargetRef.kind"), s.str("spec.scaleTargetRef.name"))),
        Value::from(targets(&specs, &statuses)),
        Value::from(min),
        s.int("spec.maxReplicas"),
        s.int("status.currentReplicas"),
        s.age(),
    ]
}

fn targets(specs: &[Value], statuses: &[Value]) -> String {
    let mut shown = Short::new(METRICS_SHOWN);
    for (idx, spec) in specs.iter().enumerate() {
        shown.push(target(spec, statuses.get(idx).unwrap_or(&Value::NULL)));
    }
    shown.finish(", ", "<none>")
}

/// `current/wanted` of one metric.
fn target(spec: &Value, status: &Value) -> String {
    let (source, has_name) = match spec["type"].str_or_empty() {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (wanted, current) = (&spec[source]["target"], &status[source]["current"]);
    let has_status = !status[source].is_null();
    let average = wanted["averageValue"].as_str();
    if has_name {
        let name = spec[source]["name"].str_or_empty();
        return match average {
            // an average that is not there yet shows as Go prints a missing quantity
            Some(average) if has_status => {
                format!("{name}: {}/{average}", current["averageValue"].as_str().unwrap_or("<nil>"))
            }
            Some(average) => format!("{name}: <unknown>/{average}"),
            None => format!("{name}: {}/{}", percent(current, "<unknown>"), percent(wanted, "<auto>")),
        };
    }
    match average {
        Some(average) if source == "pods" => {
            format!(
                "{}/{average}",
                current["averageValue"].as_str().unwrap_or(if has_status { "<nil>" } else { "<unknown>" })
            )
        }
        Some(average) => format!("{}/{average} (avg)", current["averageValue"].as_str().unwrap_or("<unknown>")),
        None => {
            let current = current["value"].as_str().unwrap_or(if has_status { "<nil>" } else { "<unknown>" });
            format!("{current}/{}", wanted["value"].as_str().unwrap_or("<nil>"))
        }
    }
}

fn percent(value: &Value, absent: &str) -> String {
    value["averageUtilization"].as_i64().map_or_else(|| absent.to_owned(), |n| format!("{n}%"))
}

/// The metrics of an object of the first version: from annotations, then its one field.
fn first_version_metrics(s: &Subject<'_>) -> (Vec<Value>, Vec<Value>) {
    let annotation = |key| s.object.annotation(key).and_then(|text| value::parse(text.as_bytes()).ok());
    let cpu = |field: &str, percent: i64| json!({"type": "Resource", "resource": {"name": "cpu", (field): {"averageUtilization": percent}}});
    let mut specs: Vec<Value> =
        annotation(METRICS_ANNOTATION).map(|list| list.items().iter().map(newer_spec).collect()).unwrap_or_default();
    if let Some(percent) = s.at("spec.targetCPUUtilizationPercentage").as_i64() {
        specs.push(cpu("target", percent));
    }
    if specs.is_empty() {
        const CPU_PERCENT_DEFAULT: i64 = 80;
        specs.push(cpu("target", CPU_PERCENT_DEFAULT));
    }
    let statuses = match annotation(CURRENT_METRICS_ANNOTATION) {
        Some(list) => list.items().iter().map(newer_status).collect(),
        None => {
            let current = s.at("status.currentCPUUtilizationPercentage").as_i64();
            current.map(|percent| cpu("current", percent)).into_iter().collect()
        }
    };
    (specs, statuses)
}

/// The member of a metric that its type names, and that member.
fn source_of(metric: &Value) -> (&'static str, &Value) {
    let name = match metric["type"].str_or_empty() {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "ContainerResource" => "containerResource",
        _ => "resource",
    };
    (name, &metric[name])
}

/// A metric of the first version in the form of the second.
fn newer_spec(metric: &Value) -> Value {
    let (name, source) = source_of(metric);
    let average = match name {
        "object" => &source["averageValue"],
        _ => &source["targetAverageValue"],
    };
    json!({
        "type": (metric["type"].clone()),
        (name): {
            "name": (source["name"].clone()),
            "target": {
                "value": (source["targetValue"].clone()),
                "averageValue": (average.clone()),
                "averageUtilization": (source["targetAverageUtilization"].clone()),
            },
        },
    })
}

/// The state of a metric of the first version in the form of the second.
fn newer_status(metric: &Value) -> Value {
    let (name, source) = source_of(metric);
    let average = match name {
        "object" => &source["averageValue"],
        _ => &source["currentAverageValue"],
    };
    json!({
        (name): {
            "current": {
                "value": (source["currentValue"].clone()),
                "averageValue": (average.clone()),
                "averageUtilization": (source["currentAverageUtilization"].clone()),
            },
        },
    })
}
