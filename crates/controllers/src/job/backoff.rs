//! How long a job waits after failures. Pure.

use crate::common::pods::condition;
use crate::common::{after_seconds, until};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use pintle_client::Object as _;
use std::time::Duration;

/// The wait after the first failure; twice as long after each further one.
pub(super) const BACKOFF: Duration = Duration::from_secs(10);

/// The longest wait.
pub(super) const BACKOFF_MAX: Duration = Duration::from_secs(600);

/// Failures since the last success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    n_failures: u32,
    last: Option<Timestamp>,
}

impl Failures {
    /// With pods that have ended since.
    #[must_use]
    pub(super) fn with(mut self, succeeded: &[&Pod], failed: &[&Pod]) -> Failures {
        let mut times: Vec<Timestamp> = failed.iter().filter_map(|pod| finished_at(pod)).collect();
        times.sort_unstable();
        if let Some(success) = succeeded.iter().filter_map(|pod| finished_at(pod)).max() {
            self = Failures::default();
            times.retain(|time| *time > success);
        }
        self.n_failures = self.n_failures.saturating_add(u32::try_from(times.len()).unwrap_or(u32::MAX));
        self.last = times.last().copied().or(self.last);
        self
    }

    /// How long to wait still.
    pub(super) fn remaining(self, now: Timestamp) -> Duration {
        let (Some(last), 1..) = (self.last, self.n_failures) else { return Duration::ZERO };
        remaining(self.n_failures, last, now)
    }
}

/// How long to wait after so many failures, of which the last was at `last`.
pub(super) fn remaining(n_failures: u32, last: Timestamp, now: Timestamp) -> Duration {
    if n_failures == 0 {
        return Duration::ZERO;
    }
    let factor = 1_u32.checked_shl(n_failures - 1).unwrap_or(u32::MAX);
    BACKOFF.saturating_mul(factor).min(BACKOFF_MAX).saturating_sub(until(last, now))
}

/// When a pod ended: its last container's end, when it ceased to be ready, when it was to be deleted, or its creation.
pub(super) fn finished_at(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref();
    let containers = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let ends: Option<Vec<Timestamp>> = containers
        .iter()
        .map(|container| container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref().map(|time| time.0))
        .collect();
    if let Some(end) = ends.and_then(|ends| ends.into_iter().max()) {
        return Some(end);
    }
    if let Some(since) = condition(pod, "Ready").filter(|ready| ready.status == "False")
        && let Some(time) = &since.last_transition_time
    {
        return Some(time.0);
    }
    if let Some(time) = &pod.meta().deletion_timestamp {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
        return Some(after_seconds(time.0, -grace));
    }
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_successes_start_over() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let pod = |second: i64| -> Pod {
            serde_json::from_value(serde_json::json!({"metadata": {"creationTimestamp": at(second).to_string()}}))
                .unwrap()
        };
        let (a, b, c) = (pod(100), pod(200), pod(300));
        let failures = Failures::default().with(&[], &[&a]);
        assert_eq!(failures.remaining(at(100)), Duration::from_secs(10));
        let failures = failures.with(&[], &[&c, &b]);
        assert_eq!(failures.remaining(at(310)), Duration::from_secs(30));
        assert_eq!(failures.remaining(at(400)), Duration::ZERO);
        assert_eq!(Failures::default().with(&[&b], &[&a, &c]).remaining(at(300)), Duration::from_secs(10));
        assert_eq!(remaining(30, at(0), at(0)), BACKOFF_MAX);
    }
}
