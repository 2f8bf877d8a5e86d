//! What several controllers share: selectors, owners, pods, hashes of templates.

pub(crate) mod claim;
pub(crate) mod hash;
pub(crate) mod history;
pub(crate) mod intstr;
pub(crate) mod owner;
pub(crate) mod pod_events;
pub(crate) mod pods;
pub(crate) mod selector;
pub(crate) mod slow_start;

use jiff::Timestamp;
use std::time::Duration;

/// The time from `from` to `to`; zero if it has passed.
pub(crate) fn until(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// `at` and so many seconds; the end of time at worst.
pub(crate) fn after_seconds(at: Timestamp, seconds: i64) -> Timestamp {
    at.saturating_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// The smaller of two pauses, if there is any.
pub(crate) fn sooner(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
