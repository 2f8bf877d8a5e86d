//! What one round of measuring counted, and the counters that show it while it runs.

use crate::histogram::Histogram;
use http::StatusCode;
use memchr::memmem;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Characters of a refusal's message that the report shows.
const MESSAGE_CHARS_MAX: usize = 160;

/// Something that did not go as it should: never counted as throughput.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Under what it is counted: `409`, `connection`, `lost event`.
    pub(crate) kind: String,
    /// What the first of its kind said.
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(kind: &str, message: impl ToString) -> Fault {
        Fault { kind: kind.to_owned(), message: message.to_string().chars().take(MESSAGE_CHARS_MAX).collect() }
    }

    pub(crate) fn of_connection(why: &dyn std::error::Error) -> Fault {
        let cause = why.source().map(|source| format!(": {source}")).unwrap_or_default();
        Fault::new("connection", format!("{why}{cause}"))
    }

    /// An answer that is no success.
    pub(crate) fn of_answer(code: StatusCode, body: &[u8]) -> Fault {
        let message =
            text_behind(body, b"\"message\":\"").unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
        Fault::new(code.as_str(), message)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Fault {}

/// The text from behind the first `marker` to the next quote.
pub(crate) fn text_behind(bytes: &[u8], marker: &[u8]) -> Option<String> {
    let begin = memmem::find(bytes, marker)? + marker.len();
    let len = memchr::memchr(b'"', &bytes[begin..])?;
    Some(String::from_utf8_lossy(&bytes[begin..begin + len]).into_owned())
}

/// Faults by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    kinds: BTreeMap<String, (u64, String)>,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.add_many(fault, 1);
    }

    pub(crate) fn add_many(&mut self, fault: Fault, n: u64) {
        self.kinds.entry(fault.kind).or_insert((0, fault.message)).0 += n;
    }

    pub(crate) fn merge(&mut self, other: &Faults) {
        for (kind, (n, message)) in &other.kinds {
            self.kinds.entry(kind.clone()).or_insert_with(|| (0, message.clone())).0 += n;
        }
    }

    pub(crate) fn n(&self) -> u64 {
        self.kinds.values().map(|(n, _)| n).sum()
    }

    /// Kind, how often, and what the first one said.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        self.kinds.iter().map(|(kind, (n, message))| (kind.as_str(), *n, message.as_str()))
    }
}

/// What one round counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    pub(crate) elapsed: Duration,
    /// Successful operations of the scenario's unit.
    pub(crate) n_operations: u64,
    /// Bytes of answers.
    pub(crate) n_bytes: u64,
    pub(crate) latency: Histogram,
    pub(crate) faults: Faults,
    /// What only this scenario tells: name with unit, and value.
    pub(crate) figures: Vec<(&'static str, f64)>,
}

impl Round {
    /// Adds what another part of the same round counted; the time is not added.
    pub(crate) fn merge(&mut self, other: &Round) {
        self.n_operations += other.n_operations;
        self.n_bytes += other.n_bytes;
        self.latency.merge(&other.latency);
        self.faults.merge(&other.faults);
    }

    /// Counts one operation.
    pub(crate) fn count(&mut self, outcome: Result<u64, Fault>, latency: Duration) {
        match outcome {
            Ok(n_bytes) => {
                self.n_operations += 1;
                self.n_bytes += n_bytes;
                self.latency.record(latency);
            }
            Err(fault) => self.faults.add(fault),
        }
    }
}

/// Counters for the progress line.
#[derive(Debug, Default)]
pub(crate) struct Live {
    n_operations: AtomicU64,
    n_faults: AtomicU64,
}

impl Live {
    pub(crate) fn add(&self, is_ok: bool) {
        let counter = if is_ok { &self.n_operations } else { &self.n_faults };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_operations(&self, n: u64) {
        self.n_operations.fetch_add(n, Ordering::Relaxed);
    }

    /// Operations and faults since the start.
    pub(crate) fn read(&self) -> (u64, u64) {
        (self.n_operations.load(Ordering::Relaxed), self.n_faults.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_fault_with_the_servers_words_and_no_operation() {
        let mut round = Round::default();
        let body = br#"{"kind":"Status","message":"pods \"a\" not found","code":404}"#;
        round.count(Err(Fault::of_answer(StatusCode::NOT_FOUND, body)), Duration::from_millis(1));
        round.count(Ok(10), Duration::from_millis(1));
        round.count(Err(Fault::of_answer(StatusCode::BAD_GATEWAY, b"no JSON")), Duration::from_millis(1));
        assert_eq!((round.n_operations, round.n_bytes, round.latency.len(), round.faults.n()), (1, 10, 1, 2));
        let told: Vec<_> = round.faults.iter().collect();
        assert_eq!(told, [("404", 1, "pods \\"), ("502", 1, "no JSON")]);
    }
}
