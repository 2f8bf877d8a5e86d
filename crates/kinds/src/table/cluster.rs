//! The cells of namespaces, nodes, configuration and other small kinds.

use super::format::{Subject, join, or};
use pintle_apimachinery::Value;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::time::human_duration;
use std::collections::BTreeSet;

pub(super) fn name_and_age(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), s.age()]
}

pub(super) fn namespace(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), s.text("status.phase"), s.age()]
}

pub(super) fn config_map(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), Value::Int(s.count("data") + s.count("binaryData")), s.age()]
}

pub(super) fn secret(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), s.text("type"), Value::Int(s.count("data")), s.age()]
}

pub(super) fn lease(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), s.text("spec.holderIdentity"), s.age()]
}

pub(super) fn runtime_class(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), s.text("handler"), s.age()]
}

pub(super) fn priority_class(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), s.int("value"), s.bool_or("globalDefault", false), s.age(), s.text("preemptionPolicy")]
}

pub(super) fn component_status(s: &Subject<'_>) -> Vec<Value> {
    let healthy = s.at("conditions").items().iter().find(|c| c["type"].as_str() == Some("Healthy"));
    let (status, message, error) = match healthy {
        Some(c) if c["status"].as_str() == Some("True") => ("Healthy", &c["message"], &c["error"]),
        Some(c) => ("Unhealthy", &c["message"], &c["error"]),
        None => ("Unknown", &Value::NULL, &Value::NULL),
    };
    vec![s.name(), Value::from(status), Value::from(message.str_or_empty()), Value::from(error.str_or_empty())]
}

pub(super) fn node(s: &Subject<'_>) -> Vec<Value> {
    let address = |kind: &str| {
        let found = s.at("status.addresses").items().iter().find(|a| a["type"].str_or_empty() == kind);
        Value::from(found.map_or("<none>", |a| a["address"].str_or_empty()))
    };
    let roles = node_roles(s);
    vec![
        s.name(),
        Value::from(node_status(s)),
        Value::from(or(&roles, "<none>")),
        s.age(),
        s.text("status.nodeInfo.kubeletVersion"),
        address("InternalIP"),
        address("ExternalIP"),
        s.nonempty_or("status.nodeInfo.osImage", "<unknown>"),
        s.nonempty_or("status.nodeInfo.kernelVersion", "<unknown>"),
        s.nonempty_or("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
    ]
}

fn node_status(s: &Subject<'_>) -> String {
    // of conditions of the same type the last one counts
    let ready = s.at("status.conditions").items().iter().rev().find(|c| c["type"].as_str() == Some("Ready"));
    let status = match ready {
        Some(c) if c["status"].as_str() == Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if s.at("spec.unschedulable").is_true() { ",SchedulingDisabled" } else { "" };
    format!("{status}{cordoned}")
}

/// The roles that labels give: `node-role.kubernetes.io/ROLE` and `kubernetes.io/role=ROLE`.
fn node_roles(s: &Subject<'_>) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in s.object.metadata()["labels"].entries() {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => roles.insert(role),
            None if key == "kubernetes.io/role" => roles.insert(value.str_or_empty()),
            None => false,
        };
    }
    roles.remove("");
    join(roles.into_iter(), ",")
}

/// Resources under a quota, those whose names begin with `limits.` apart.
pub(super) fn resource_quota(s: &Subject<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in s.at("status.hard").entries() {
        let used = s.at("status.used")[resource.as_str()].as_str().unwrap_or("0");
        let entry = format!("{resource}: {used}/{}", hard.str_or_empty());
        if resource.starts_with("limits.") { &mut limits } else { &mut requests }.push(entry);
    }
    vec![s.name(), Value::from(requests.join(", ")), Value::from(limits.join(", ")), s.age()]
}

pub(super) fn certificate_signing_request(s: &Subject<'_>) -> Vec<Value> {
    let duration = s.at("spec.expirationSeconds").as_i64().map_or_else(|| "<none>".to_owned(), human_duration);
    vec![
        s.name(),
        s.age(),
        s.nonempty_or("spec.signerName", "<none>"),
        s.text("spec.username"),
        Value::from(duration),
        Value::from(request_state(s)),
    ]
}

fn request_state(s: &Subject<'_>) -> String {
    let has = |kind: &str| s.at("status.conditions").items().iter().any(|c| c["type"].str_or_empty() == kind);
    let decision = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if s.str("status.certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

pub(super) fn api_service(s: &Subject<'_>) -> Vec<Value> {
    let service = s.at("spec.service");
    let service = if service.is_null() {
        "Local".to_owned()
    } else {
        format!("{}/{}", service["namespace"].str_or_empty(), service["name"].str_or_empty())
    };
    let available = s.at("status.conditions").items().iter().find(|c| c["type"].as_str() == Some("Available"));
    let status = match available.map(|c| (c["status"].str_or_empty(), c["reason"].str_or_empty())) {
        None => "Unknown".to_owned(),
        Some((status, reason)) if status == "True" || reason.is_empty() => status.to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    };
    vec![s.name(), Value::from(service), Value::from(status), s.age()]
}
