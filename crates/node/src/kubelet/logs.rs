//! What a simulated container has printed.

use crate::program;
use crate::shell::{Event, Machine};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use std::collections::VecDeque;
use std::time::Duration;

/// Lines that are looked at to answer one request; older ones are as if the log had been rotated.
const LINES_MAX: usize = 200_000;

/// What of a log is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogOptions {
    pub(super) follow: bool,
    pub(super) previous: bool,
    pub(super) timestamps: bool,
    pub(super) since: Option<Timestamp>,
    pub(super) tail_lines: Option<usize>,
    pub(super) limit_bytes: Option<usize>,
    /// `Stdout` or `Stderr` alone.
    pub(super) stream: Option<bool>,
}

/// A run of a container: when it started, and when it ended if it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) started: Timestamp,
    pub(super) ended: Option<Timestamp>,
}

/// A container and its status.
pub(super) fn find<'p>(pod: &'p Pod, name: &str) -> Option<(&'p Container, Option<&'p ContainerStatus>)> {
    let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref());
    let container = spec.init_containers.iter().flatten().chain(&spec.containers).find(|c| c.name == name)?;
    let statuses = status.into_iter().flat_map(|status| {
        status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten())
    });
    Some((container, statuses.into_iter().find(|status| status.name == name)))
}

/// The run that is asked about.
///
/// # Errors
/// Upstream's words when there is none.
pub(super) fn run_of(
    pod: &str,
    name: &str,
    status: Option<&ContainerStatus>,
    is_previous: bool,
) -> Result<Run, String> {
    let state = status.and_then(|status| if is_previous { status.last_state.as_ref() } else { status.state.as_ref() });
    if let Some(end) = state.and_then(|state| state.terminated.as_ref()) {
        let ended = end.finished_at.as_ref().map(|time| time.0);
        return Ok(Run { started: end.started_at.as_ref().map(|time| time.0).unwrap_or_default(), ended });
    }
    if let Some(running) = state.and_then(|state| state.running.as_ref()) {
        return Ok(Run { started: running.started_at.as_ref().map(|time| time.0).unwrap_or_default(), ended: None });
    }
    if is_previous {
        return Err(format!("previous terminated container {name:?} in pod {pod:?} not found"));
    }
    // a container that is held back shows what it printed last
    if let Some(end) = status.and_then(|status| status.last_state.as_ref()?.terminated.as_ref()) {
        let ended = end.finished_at.as_ref().map(|time| time.0);
        return Ok(Run { started: end.started_at.as_ref().map(|time| time.0).unwrap_or_default(), ended });
    }
    let reason = state
        .and_then(|state| state.waiting.as_ref()?.reason.clone())
        .unwrap_or_else(|| "ContainerCreating".to_owned());
    Err(format!("container {name:?} in pod {pod:?} is waiting to start: {reason}"))
}

/// A log that is being read.
#[derive(Debug)]
pub(super) struct Log {
    machine: Option<Machine>,
    /// Lines that are printed at the start, for a container of whose program nothing is known.
    opening: Vec<String>,
    run: Run,
    options: LogOptions,
    n_bytes_left: usize,
}

impl Log {
    pub(super) fn new(pod: &Pod, container: &Container, run: Run, options: LogOptions) -> Log {
        let machine = program::machine(pod, container, run.started);
        let opening = if machine.is_some() { Vec::new() } else { opening(pod, container) };
        let n_bytes_left = options.limit_bytes.unwrap_or(usize::MAX);
        Log { machine, opening, run, options, n_bytes_left }
    }

    /// What is to be shown first, of what was printed up to `now`.
    pub(super) fn first(&mut self, now: Timestamp) -> String {
        let mut lines = VecDeque::new();
        let n_max = self.options.tail_lines.unwrap_or(LINES_MAX);
        self.collect(now, |line| {
            lines.push_back(line);
            if lines.len() > n_max {
                lines.pop_front();
            }
        });
        self.limit(lines.into_iter().collect())
    }

    /// What was printed since the last call.
    pub(super) fn more(&mut self, now: Timestamp) -> String {
        let mut text = String::new();
        self.collect(now, |line| text.push_str(&line));
        self.limit(text)
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        self.run.ended.is_some() || self.n_bytes_left == 0
    }

    /// When the run began.
    pub(super) fn started(&self) -> Timestamp {
        self.run.started
    }

    /// The container has ended.
    pub(super) fn end(&mut self, ended: Timestamp) {
        self.run.ended = Some(ended);
    }

    /// When the next line may come.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.machine.as_ref().and_then(|machine| self.run.started.checked_add(machine.clock()).ok())
    }

    fn limit(&mut self, mut text: String) -> String {
        let mut len = text.len().min(self.n_bytes_left);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        // bytes cut off count as given: nothing follows them
        self.n_bytes_left = if len < text.len() { 0 } else { self.n_bytes_left - len };
        text.truncate(len);
        text
    }

    fn collect(&mut self, now: Timestamp, mut push: impl FnMut(String)) {
        for line in std::mem::take(&mut self.opening) {
            if let Some(line) = self.options.shown(self.run.started, &line, false) {
                push(line);
            }
        }
        let until = self.run.ended.map_or(now, |ended| ended.min(now));
        let until = Duration::try_from(until.duration_since(self.run.started)).unwrap_or_default();
        let Some(machine) = &mut self.machine else { return };
        for _ in 0..LINES_MAX {
            match machine.run(until) {
                Event::Printed(output) => {
                    let at = self.run.started.checked_add(output.at).unwrap_or(self.run.started);
                    for line in output.text.split_inclusive('\n') {
                        if let Some(line) = self.options.shown(at, line, output.is_stderr) {
                            push(line);
                        }
                    }
                }
                Event::Unknown { at, .. } => {
                    // what is not known takes until the container ends
                    machine.conclude_unknown(0, until.saturating_sub(at));
                }
                Event::Exited { .. } | Event::Waiting => return,
            }
        }
    }
}

impl LogOptions {
    /// A line as it is shown, if it is.
    fn shown(&self, at: Timestamp, line: &str, is_stderr: bool) -> Option<String> {
        if self.since.is_some_and(|since| at < since) || self.stream.is_some_and(|wanted| wanted != is_stderr) {
            return None;
        }
        Some(if self.timestamps { format!("{at:.9} {line}") } else { line.to_owned() })
    }
}

/// What a container says of whose program nothing is known.
fn opening(pod: &Pod, container: &Container) -> Vec<String> {
    let (namespace, name) = (pod.metadata.namespace.as_deref(), pod.metadata.name.as_deref());
    let image = container.image.as_deref().unwrap_or_default();
    let about = format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default());
    vec![format!("container {} of pod {about} is simulated: {image} does not run\n", container.name)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn logs() {
        let pod = |command: serde_json::Value| -> Pod {
            let container = json!({"name": "c", "image": "x", "command": command});
            serde_json::from_value(
                json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [container]}}),
            )
            .unwrap()
        };
        let counter = pod(json!(["sh", "-c", "i=0; while true; do echo \"n $i\"; i=$((i+1)); sleep 2; done"]));
        let server = pod(json!(null));
        let started = Timestamp::from_second(1_767_225_600).unwrap();
        let later = |seconds: u64| started + Duration::from_secs(seconds);
        let mut out = String::new();
        for (pod, options) in [
            (&server, LogOptions::default()),
            (&counter, LogOptions::default()),
            (&counter, LogOptions { tail_lines: Some(2), timestamps: true, ..LogOptions::default() }),
            (&counter, LogOptions { since: Some(later(5)), ..LogOptions::default() }),
            (&counter, LogOptions { limit_bytes: Some(6), ..LogOptions::default() }),
            (&counter, LogOptions { stream: Some(true), ..LogOptions::default() }),
        ] {
            let (container, _) = find(pod, "c").unwrap();
            let mut log = Log::new(pod, container, Run { started, ended: None }, options);
            out.push_str(&format!("{:?} then {:?}\n", log.first(later(6)), log.more(later(9))));
        }
        expect![[r#"
            "container c of pod n/p is simulated: x does not run\n" then ""
            "n 0\nn 1\nn 2\nn 3\n" then "n 4\n"
            "2026-01-01T00:00:04.000000000Z n 2\n2026-01-01T00:00:06.000000000Z n 3\n" then "2026-01-01T00:00:08.000000000Z n 4\n"
            "n 3\n" then "n 4\n"
            "n 0\nn " then ""
            "" then ""
        "#]].assert_eq(&out);
    }
}
