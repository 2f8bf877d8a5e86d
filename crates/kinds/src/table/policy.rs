//! The cells of policies, access control and flow control.

use super::format::{Subject, condition, join, or};
use pintle_apimachinery::Value;

pub(super) fn webhook_configuration(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), Value::Int(s.count("webhooks")), s.age()]
}

pub(super) fn validating_admission_policy(s: &Subject<'_>) -> Vec<Value> {
    let kind = s.at("spec.paramKind");
    let shown = if kind.is_null() {
        "<unset>".to_owned()
    } else {
        format!("{}/{}", kind["apiVersion"].str_or_empty(), kind["kind"].str_or_empty())
    };
    vec![s.name(), Value::Int(s.count("spec.validations")), Value::from(shown), s.age()]
}

pub(super) fn validating_admission_policy_binding(s: &Subject<'_>) -> Vec<Value> {
    let param = s.at("spec.paramRef");
    let shown = if !param["name"].is_empty() {
        // whether the parameter has a namespace cannot be told from here
        format!("{}/{}", or(param["namespace"].str_or_empty(), "*"), param["name"].str_or_empty())
    } else if param["selector"].is_null() {
        "<unset>".to_owned()
    } else {
        go_label_selector(&param["selector"])
    };
    vec![s.name(), s.text("spec.policyName"), Value::from(shown), s.age()]
}

/// A label selector as Go's generated `String` methods print it.
fn go_label_selector(selector: &Value) -> String {
    let labels: String =
        selector["matchLabels"].entries().map(|(k, v)| format!("{k}: {},", v.str_or_empty())).collect();
    let expressions: String = selector["matchExpressions"].items().iter().map(go_requirement).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn go_requirement(requirement: &Value) -> String {
    let values = join(requirement["values"].items().iter().map(Value::str_or_empty), " ");
    let (key, operator) = (requirement["key"].str_or_empty(), requirement["operator"].str_or_empty());
    format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
}

pub(super) fn pod_disruption_budget(s: &Subject<'_>) -> Vec<Value> {
    let [min, max] = ["spec.minAvailable", "spec.maxUnavailable"].map(|path| match s.at(path) {
        Value::Null => Value::from("N/A"),
        Value::Int(number) => Value::from(number.to_string()),
        other => Value::from(other.str_or_empty()),
    });
    vec![s.name(), min, max, s.int("status.disruptionsAllowed"), s.age()]
}

pub(super) fn role_binding(s: &Subject<'_>) -> Vec<Value> {
    let of_kind = |kind: &'static str| {
        s.at("subjects").items().iter().filter(move |subject| subject["kind"].str_or_empty() == kind)
    };
    let name = |subject: &Value| subject["name"].str_or_empty().to_owned();
    let users: Vec<String> = of_kind("User").map(name).collect();
    let groups: Vec<String> = of_kind("Group").map(name).collect();
    let accounts: Vec<String> =
        of_kind("ServiceAccount").map(|a| format!("{}/{}", a["namespace"].str_or_empty(), name(a))).collect();
    vec![
        s.name(),
        Value::from(format!("{}/{}", s.str("roleRef.kind"), s.str("roleRef.name"))),
        s.age(),
        Value::from(users.join(", ")),
        Value::from(groups.join(", ")),
        Value::from(accounts.join(", ")),
    ]
}

pub(super) fn flow_schema(s: &Subject<'_>) -> Vec<Value> {
    vec![
        s.name(),
        s.text("spec.priorityLevelConfiguration.name"),
        s.int("spec.matchingPrecedence"),
        s.text_or("spec.distinguisherMethod.type", "<none>"),
        s.age(),
        Value::from(or(condition(s.at("status.conditions"), "Dangling"), "?")),
    ]
}

pub(super) fn priority_level_configuration(s: &Subject<'_>) -> Vec<Value> {
    let limited = s.at("spec.limited");
    let queuing = limited.at("limitResponse.queuing");
    let number = |around: &Value, field: &str| {
        if around.is_null() { Value::from("<none>") } else { Value::Int(around[field].as_i64().unwrap_or_default()) }
    };
    vec![
        s.name(),
        s.text("spec.type"),
        if limited.is_null() { Value::from("<none>") } else { limited["nominalConcurrencyShares"].clone() },
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
        s.age(),
    ]
}
