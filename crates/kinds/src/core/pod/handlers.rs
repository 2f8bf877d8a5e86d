//! What a container is asked and told while it runs: probes and lifecycle hooks.

use crate::common::checks::{nonnegative, port_number, required};
use crate::common::{At, one_of, port_number_or_name, push_faults};
use pintle_apimachinery::{ErrorList, names};

/// A handler's kinds as a probe has them, in upstream's order.
const PROBE_KINDS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
/// A handler's kinds as a lifecycle hook has them.
const HOOK_KINDS: &[&str] = &["exec", "httpGet", "tcpSocket", "sleep"];

/// The three probes of a container that has them.
pub(super) fn validate_probes(container: &At<'_>, errors: &mut ErrorList) {
    for (name, is_readiness) in [("livenessProbe", false), ("readinessProbe", true), ("startupProbe", false)] {
        let probe = container.child(name);
        if !probe.is_set() {
            continue;
        }
        validate_probe(&probe, errors);
        let (successes, grace) = (probe.child("successThreshold"), probe.child("terminationGracePeriodSeconds"));
        if is_readiness {
            if grace.is_set() {
                errors.push(grace.invalid("must not be set for readinessProbes"));
            }
        } else if successes.int() != 1 {
            errors.push(successes.invalid_int("must be 1"));
        }
    }
}

fn validate_probe(probe: &At<'_>, errors: &mut ErrorList) {
    validate_handler(probe, PROBE_KINDS, None, errors);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        nonnegative(&probe.child(field), errors);
    }
    let grace = probe.child("terminationGracePeriodSeconds");
    if grace.is_set() && grace.int() <= 0 {
        errors.push(grace.invalid_int("must be greater than 0"));
    }
}

/// The lifecycle hooks of a container, if it has any.
pub(super) fn validate_lifecycle(container: &At<'_>, grace_period: Option<i64>, os: &str, errors: &mut ErrorList) {
    let lifecycle = container.child("lifecycle");
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.child(hook);
        if hook.is_set() {
            validate_handler(&hook, HOOK_KINDS, grace_period, errors);
        }
    }
    let signal = lifecycle.child("stopSignal");
    if signal.is_set() {
        validate_stop_signal(&signal, os, errors);
    }
}

/// One handler of one kind.
fn validate_handler(at: &At<'_>, kinds: &[&str], grace_period: Option<i64>, errors: &mut ErrorList) {
    let mut has_one = false;
    for kind in kinds {
        let handler = at.child(kind);
        if !handler.is_set() {
            continue;
        }
        if has_one {
            errors.push(handler.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        has_one = true;
        match *kind {
            "exec" if handler["command"].items().is_empty() => errors.push(handler.child("command").required("")),
            "httpGet" => validate_http_get(&handler, errors),
            "tcpSocket" => port_number_or_name(&handler.child("port"), errors),
            "grpc" => port_number(&handler.child("port"), errors),
            "sleep" => validate_sleep(&handler, grace_period, errors),
            _ => {}
        }
    }
    if !has_one {
        errors.push(at.required("must specify a handler type"));
    }
}

fn validate_http_get(http: &At<'_>, errors: &mut ErrorList) {
    required(&http.child("path"), errors);
    port_number_or_name(&http.child("port"), errors);
    one_of(&http.child("scheme"), &["HTTP", "HTTPS"], errors);
    let headers = http.child("httpHeaders");
    for header in headers.items() {
        // upstream names the list, not the item
        let name = At::new(&header["name"], *headers.path());
        push_faults(&name, names::http_header_name(name.text()), errors);
    }
}

fn validate_sleep(sleep: &At<'_>, grace_period: Option<i64>, errors: &mut ErrorList) {
    let seconds = sleep["seconds"].as_i64().unwrap_or_default();
    if let Some(most) = grace_period.filter(|most| seconds < 0 || seconds > *most) {
        let rule = format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
        errors.push(sleep.invalid_showing(seconds, rule));
    }
}

/// Signals of Linux, sorted.
const LINUX_SIGNALS: &[&str] = &[
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGRTMAX",
    "SIGRTMAX-1",
    "SIGRTMAX-10",
    "SIGRTMAX-11",
    "SIGRTMAX-12",
    "SIGRTMAX-13",
    "SIGRTMAX-14",
    "SIGRTMAX-2",
    "SIGRTMAX-3",
    "SIGRTMAX-4",
    "SIGRTMAX-5",
    "SIGRTMAX-6",
    "SIGRTMAX-7",
    "SIGRTMAX-8",
    "SIGRTMAX-9",
    "SIGRTMIN",
    "SIGRTMIN+1",
    "SIGRTMIN+10",
    "SIGRTMIN+11",
    "SIGRTMIN+12",
    "SIGRTMIN+13",
    "SIGRTMIN+14",
    "SIGRTMIN+15",
    "SIGRTMIN+2",
    "SIGRTMIN+3",
    "SIGRTMIN+4",
    "SIGRTMIN+5",
    "SIGRTMIN+6",
    "SIGRTMIN+7",
    "SIGRTMIN+8",
    "SIGRTMIN+9",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
];

fn validate_stop_signal(at: &At<'_>, os: &str, errors: &mut ErrorList) {
    match os {
        "windows" => one_of(at, &["SIGKILL", "SIGTERM"], errors),
        "linux" => one_of(at, LINUX_SIGNALS, errors),
        "" => errors.push(at.forbidden("may not be set for containers with empty `spec.os.name`")),
        _ => {}
    }
}
