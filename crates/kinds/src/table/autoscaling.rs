//! The cells of autoscalers, from the form that is stored.

use super::format::{Short, Subject};
use pintle_apimachinery::Value;

/// Metrics that are shown.
const METRICS_SHOWN: usize = 2;

pub(super) fn horizontal_pod_autoscaler(s: &Subject<'_>) -> Vec<Value> {
    let (specs, statuses) = (s.at("spec.metrics").items(), s.at("status.currentMetrics").items());
    let min = s.at("spec.minReplicas").as_i64().map_or_else(|| "<unset>".to_owned(), |n| n.to_string());
    vec![
        s.name(),
        Value::from(format!("{}/{}", s.str("spec.scaleTargetRef.kind"), s.str("spec.scaleTargetRef.name"))),
        Value::from(targets(specs, statuses)),
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
