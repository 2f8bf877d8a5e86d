//! The cells of events, in the form of the core group and in that of `events.k8s.io`.

use super::format::{Subject, or};
use pintle_apimachinery::Value;

/// The first of two paths that holds something: the same field has another name in each group.
fn either<'o>(s: &Subject<'o>, core: &str, events: &str) -> &'o Value {
    match s.at(core) {
        Value::Null => s.at(events),
        value => value,
    }
}

pub(super) fn event(s: &Subject<'_>) -> Vec<Value> {
    let regarding = either(s, "involvedObject", "regarding");
    let (kind, name) = (regarding["kind"].str_or_empty().to_lowercase(), regarding["name"].str_or_empty());
    let target = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let message = either(s, "message", "note").str_or_empty().trim();
    let (first, last, count) = times(s);
    vec![
        Value::from(last),
        s.text("type"),
        s.text("reason"),
        Value::from(target),
        Value::from(regarding["fieldPath"].str_or_empty()),
        Value::from(source(s)),
        Value::from(message),
        Value::from(first),
        Value::Int(count),
        s.name(),
    ]
}

/// How long ago the event was first and last seen, and how often.
fn times(s: &Subject<'_>) -> (String, String, i64) {
    let series = s.at("series");
    let first = match either(s, "firstTimestamp", "deprecatedFirstTimestamp") {
        Value::Null => s.since(s.at("eventTime")),
        at => s.since(at),
    };
    let last = match either(s, "lastTimestamp", "deprecatedLastTimestamp") {
        _ if !series.is_null() => s.since(&series["lastObservedTime"]),
        Value::Null => first.clone(),
        at => s.since(at),
    };
    let count = if series.is_null() {
        // an event of the newer form that happened once has no count
        either(s, "count", "deprecatedCount").as_i64().filter(|n| *n != 0).unwrap_or(1)
    } else {
        series["count"].as_i64().unwrap_or_default()
    };
    (first, last, count)
}

/// Who reported it, and from where.
fn source(s: &Subject<'_>) -> String {
    let source = either(s, "source", "deprecatedSource");
    let controller = either(s, "reportingComponent", "reportingController").str_or_empty();
    let component = or(source["component"].str_or_empty(), controller);
    let instance = or(source["host"].str_or_empty(), s.str("reportingInstance"));
    if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") }
}
