//! The cells of workloads: apps, batch, and the older controllers of the core group.

use super::format::{Subject, condition, labels, selector, span};
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::time::parse_time;
use pintle_apimachinery::{GroupVersion, Value};

const TEMPLATE_CONTAINERS: &str = "spec.template.spec.containers";

pub(super) fn pod_template(s: &Subject<'_>) -> Vec<Value> {
    let [names, images] = s.containers("template.spec.containers");
    vec![s.name(), names, images, labels(s.at("template.metadata.labels"))]
}

pub(super) fn replication_controller(s: &Subject<'_>) -> Vec<Value> {
    replicas(s, labels(s.at("spec.selector")))
}

pub(super) fn replica_set(s: &Subject<'_>) -> Vec<Value> {
    replicas(s, selector(s.at("spec.selector")))
}

fn replicas(s: &Subject<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = s.containers(TEMPLATE_CONTAINERS);
    vec![
        s.name(),
        s.int("spec.replicas"),
        s.int("status.replicas"),
        s.int("status.readyReplicas"),
        s.age(),
        names,
        images,
        selector,
    ]
}

/// `ready/desired`.
fn ready(s: &Subject<'_>) -> Value {
    Value::from(format!("{}/{}", s.number("status.readyReplicas"), s.number("spec.replicas")))
}

pub(super) fn stateful_set(s: &Subject<'_>) -> Vec<Value> {
    let [names, images] = s.containers(TEMPLATE_CONTAINERS);
    vec![s.name(), ready(s), s.age(), names, images]
}

pub(super) fn deployment(s: &Subject<'_>) -> Vec<Value> {
    let [names, images] = s.containers(TEMPLATE_CONTAINERS);
    let selector = match Selector::from_object(s.at("spec.selector")) {
        Ok(selector) => selector.to_string(),
        Err(_) => "<invalid>".to_owned(),
    };
    vec![
        s.name(),
        ready(s),
        s.int("status.updatedReplicas"),
        s.int("status.availableReplicas"),
        s.age(),
        names,
        images,
        Value::from(selector),
    ]
}

pub(super) fn daemon_set(s: &Subject<'_>) -> Vec<Value> {
    let [names, images] = s.containers(TEMPLATE_CONTAINERS);
    vec![
        s.name(),
        s.int("status.desiredNumberScheduled"),
        s.int("status.currentNumberScheduled"),
        s.int("status.numberReady"),
        s.int("status.updatedNumberScheduled"),
        s.int("status.numberAvailable"),
        labels(s.at("spec.template.spec.nodeSelector")),
        s.age(),
        names,
        images,
        selector(s.at("spec.selector")),
    ]
}

pub(super) fn controller_revision(s: &Subject<'_>) -> Vec<Value> {
    let controller = match s.object.controller_ref() {
        Some(owner) => {
            let group = GroupVersion::parse(owner["apiVersion"].str_or_empty()).map(|gv| gv.group).unwrap_or_default();
            let kind = owner["kind"].str_or_empty().to_lowercase();
            let dot = if group.is_empty() { "" } else { "." };
            format!("{kind}{dot}{}/{}", group.to_lowercase(), owner["name"].str_or_empty())
        }
        None => "<none>".to_owned(),
    };
    vec![s.name(), Value::from(controller), s.int("revision"), s.age()]
}

/// The conditions of a job that show as its status, the weightiest first.
const JOB_STATES: &[(&str, &str)] = &[("Complete", "Complete"), ("Failed", "Failed")];

/// As [`JOB_STATES`], but less weighty than deletion.
const JOB_LATER_STATES: &[(&str, &str)] =
    &[("Suspended", "Suspended"), ("FailureTarget", "FailureTarget"), ("SuccessCriteriaMet", "SuccessCriteriaMet")];

fn job_status(s: &Subject<'_>) -> &'static str {
    let find = |states: &[(&str, &'static str)]| {
        let found =
            states.iter().find(|(condition_type, _)| condition(s.at("status.conditions"), condition_type) == "True");
        found.map(|(_, word)| *word)
    };
    if let Some(word) = find(JOB_STATES) {
        return word;
    }
    if s.is_terminating() {
        return "Terminating";
    }
    find(JOB_LATER_STATES).unwrap_or("Running")
}

fn job_completions(s: &Subject<'_>) -> String {
    let succeeded = s.number("status.succeeded");
    match (s.at("spec.completions").as_i64(), s.number("spec.parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

pub(super) fn job(s: &Subject<'_>) -> Vec<Value> {
    let [names, images] = s.containers(TEMPLATE_CONTAINERS);
    let time = |path| s.at(path).as_str().and_then(parse_time);
    let duration = match (time("status.startTime"), time("status.completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => span(start, end.unwrap_or(s.now)),
    };
    vec![
        s.name(),
        Value::from(job_status(s)),
        Value::from(job_completions(s)),
        Value::from(duration),
        s.age(),
        names,
        images,
        selector(s.at("spec.selector")),
    ]
}

pub(super) fn cron_job(s: &Subject<'_>) -> Vec<Value> {
    let [names, images] = s.containers("spec.jobTemplate.spec.template.spec.containers");
    let suspend = match s.at("spec.suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = s.at("status.lastScheduleTime");
    vec![
        s.name(),
        s.text("spec.schedule"),
        s.text_or("spec.timeZone", "<none>"),
        Value::from(suspend),
        Value::Int(s.count("status.active")),
        Value::from(if last.is_null() { "<none>".to_owned() } else { s.since(last) }),
        s.age(),
        names,
        images,
        selector(s.at("spec.jobTemplate.spec.selector")),
    ]
}
