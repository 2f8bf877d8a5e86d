//! The cells of pods.

use super::format::{Subject, condition, or};
use jiff::Timestamp;
use pintle_apimachinery::time::parse_time;
use pintle_apimachinery::{Value, json};

/// Restarts so far, and when the last one was.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status["restartCount"].as_i64().unwrap_or_default();
        let finished = status.at("lastState.terminated.finishedAt").as_str().and_then(parse_time);
        self.last = self.last.max(finished);
    }
}

/// What the containers say of a pod.
struct Summary {
    reason: String,
    n_ready: i64,
    restarts: Restarts,
}

pub(super) fn pod(s: &Subject<'_>) -> Vec<Value> {
    let is_sidecar = |c: &&Value| c["restartPolicy"].as_str() == Some("Always");
    let sidecars: Vec<&str> =
        s.at("spec.initContainers").items().iter().filter(is_sidecar).map(|c| c["name"].str_or_empty()).collect();
    let n_containers = s.count("spec.containers") + i64::try_from(sidecars.len()).unwrap_or_default();
    let summary = summarise(s, &sidecars);
    let restarts = match summary.restarts {
        Restarts { count, last: Some(last) } if count != 0 => {
            format!("{count} ({} ago)", super::format::span(last, s.now))
        }
        Restarts { count, .. } => count.to_string(),
    };
    vec![
        s.name(),
        Value::from(format!("{}/{n_containers}", summary.n_ready)),
        Value::from(summary.reason),
        Value::from(restarts),
        s.age(),
        Value::from(or(s.at("status.podIPs").items().first().map_or("", |ip| ip["ip"].str_or_empty()), "<none>")),
        s.nonempty_or("spec.nodeName", "<none>"),
        s.nonempty_or("status.nominatedNodeName", "<none>"),
        readiness_gates(s),
    ]
}

fn readiness_gates(s: &Subject<'_>) -> Value {
    let gates = s.at("spec.readinessGates").items();
    if gates.is_empty() {
        return Value::from("<none>");
    }
    let is_met = |gate: &&Value| condition(s.at("status.conditions"), gate["conditionType"].str_or_empty()) == "True";
    Value::from(format!("{}/{}", gates.iter().filter(is_met).count(), gates.len()))
}

/// The word for the pod's state: its phase or reason, overruled by what its containers say, overruled by deletion.
fn summarise(s: &Subject<'_>, sidecars: &[&str]) -> Summary {
    let phase = s.str("status.phase");
    let mut reason = or(s.str("status.reason"), phase).to_owned();
    let conditions = s.at("status.conditions");
    let is_gated =
        |c: &Value| c["type"].as_str() == Some("PodScheduled") && c["reason"].as_str() == Some("SchedulingGated");
    if conditions.items().iter().any(is_gated) {
        "SchedulingGated".clone_into(&mut reason);
    }
    let init = init_containers(s, sidecars);
    let mut summary = Summary { reason, n_ready: init.n_ready, restarts: init.restarts };
    let is_initializing = init.reason.is_some();
    if let Some(reason) = init.reason {
        summary.reason = reason;
    }
    if !is_initializing || condition(conditions, "Initialized") == "True" {
        summary.restarts = init.sidecar_restarts;
        main_containers(s, &mut summary);
    }
    if s.is_terminating() {
        if s.str("status.reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

/// What the init containers say.
#[derive(Default)]
struct Init {
    /// Why the pod is still initializing; `None` when it is not.
    reason: Option<String>,
    n_ready: i64,
    restarts: Restarts,
    sidecar_restarts: Restarts,
}

fn init_containers(s: &Subject<'_>, sidecars: &[&str]) -> Init {
    let mut init = Init::default();
    for (idx, status) in s.at("status.initContainerStatuses").items().iter().enumerate() {
        let is_sidecar = sidecars.contains(&status["name"].str_or_empty());
        init.restarts.add(status);
        if is_sidecar {
            init.sidecar_restarts.add(status);
        }
        let (terminated, waiting) = (status.at("state.terminated"), status.at("state.waiting"));
        let exit_code = terminated["exitCode"].as_i64().unwrap_or_default();
        if !terminated.is_null() && exit_code == 0 {
            continue;
        }
        if is_sidecar && status["started"].is_true() {
            init.n_ready += i64::from(status["ready"].is_true());
            continue;
        }
        let waiting_reason = waiting["reason"].str_or_empty();
        init.reason = Some(if !terminated.is_null() {
            format!("Init:{}", terminated_reason(terminated))
        } else if !waiting_reason.is_empty() && waiting_reason != "PodInitializing" {
            format!("Init:{waiting_reason}")
        } else {
            format!("Init:{idx}/{}", s.count("spec.initContainers"))
        });
        break;
    }
    init
}

/// Why a container ended: its reason, else the signal, else the exit code.
fn terminated_reason(terminated: &Value) -> String {
    let signal = terminated["signal"].as_i64().unwrap_or_default();
    match terminated["reason"].str_or_empty() {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or_default()),
        reason => reason.to_owned(),
    }
}

/// The first container that has something to say gives the reason: so they are asked from the last to the first.
fn main_containers(s: &Subject<'_>, summary: &mut Summary) {
    let (mut has_running, mut error) = (false, String::new());
    for status in s.at("status.containerStatuses").items().iter().rev() {
        summary.restarts.add(status);
        let (terminated, waiting) = (status.at("state.terminated"), status.at("state.waiting"));
        if !waiting["reason"].is_empty() {
            waiting["reason"].str_or_empty().clone_into(&mut summary.reason);
        } else if !terminated.is_null() {
            summary.reason = terminated_reason(terminated);
            if terminated["exitCode"].as_i64().unwrap_or_default() != 0 {
                error.clone_from(&summary.reason);
            }
        } else if status["ready"].is_true() && !status.at("state.running").is_null() {
            has_running = true;
            summary.n_ready += 1;
        }
    }
    if summary.reason == "Completed" {
        let is_ready = s
            .at("status.conditions")
            .items()
            .iter()
            .any(|c| c["type"].as_str() == Some("Ready") && c["status"].as_str() == Some("True"));
        if has_running && is_ready {
            "Running".clone_into(&mut summary.reason);
        } else if !error.is_empty() {
            summary.reason = error;
        } else if has_running {
            "NotReady".clone_into(&mut summary.reason);
        }
    }
}

/// The condition of the row of a pod that has ended.
pub(super) fn row_condition(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod.at("status.phase").str_or_empty() {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!({"type": "Completed", "status": "True", "reason": reason, "message": message}))
}
