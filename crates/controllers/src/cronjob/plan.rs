//! Which time of a CronJob is due. Pure.

use super::schedule::Schedule;
use crate::common::{after_seconds, until};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec};
use std::time::Duration;

/// More missed times than this are worth a warning.
const MISSED_TIMES_MAX: usize = 100;

/// A CronJob is looked at so long after its time, so that the time has surely come.
const DELTA: Duration = Duration::from_millis(100);

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// The last time that has come and was not acted on.
    pub(super) at: Option<Timestamp>,
    /// Whether many times were missed.
    pub(super) has_missed_many: bool,
    /// When the next time comes.
    pub(super) next: Option<Duration>,
}

/// The schedule's time zone.
pub(super) fn zone(spec: &CronJobSpec) -> Result<TimeZone, String> {
    match spec.time_zone.as_deref() {
        None | Some("") => Ok(TimeZone::UTC),
        Some(name) => TimeZone::get(name).map_err(|error| error.to_string()),
    }
}

/// What is due now.
pub(super) fn due(cron: &CronJob, schedule: &Schedule, zone: &TimeZone, now: Timestamp) -> Due {
    let spec = cron.spec.clone().unwrap_or_default();
    let last = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
    let mut earliest = last.or(cron.metadata.creation_timestamp.as_ref()).map_or(now, |time| time.0);
    if let Some(seconds) = spec.starting_deadline_seconds {
        earliest = earliest.max(after_seconds(now, -seconds));
    }
    let (mut at, mut n_missed, mut from) = (None, 0, earliest);
    while let Some(time) = schedule.next(from, zone).filter(|time| *time <= now) {
        at = Some(time);
        n_missed += 1;
        from = time;
        if n_missed > MISSED_TIMES_MAX {
            // not one by one through years: the rest of the way in one step
            from = from.max(latest_before(schedule, zone, now, time));
        }
    }
    let next = schedule.next(now, zone).map(|time| until(now, time) + DELTA);
    Due { at, has_missed_many: n_missed > MISSED_TIMES_MAX, next }
}

/// A time from which few further times lead to `now`.
fn latest_before(schedule: &Schedule, zone: &TimeZone, now: Timestamp, from: Timestamp) -> Timestamp {
    let gap = schedule.next(from, zone).map_or(60, |next| (next.as_second() - from.as_second()).max(1));
    let start = after_seconds(now, -gap.saturating_mul(2));
    if schedule.next(start, zone).is_some_and(|time| time <= now) { start.max(from) } else { from }
}

/// Whether a time is too long ago to be acted on.
pub(super) fn is_too_late(cron: &CronJob, at: Timestamp, now: Timestamp) -> bool {
    let deadline = cron.spec.as_ref().and_then(|spec| spec.starting_deadline_seconds);
    deadline.is_some_and(|seconds| after_seconds(at, seconds) < now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_time_that_has_come_is_due() {
        let now: Timestamp = "2026-01-01T12:02:30Z".parse().unwrap();
        let due = |last: &str, deadline: Option<i64>| {
            let cron: CronJob = serde_json::from_value(json!({
                "metadata": {"creationTimestamp": "2025-01-01T00:00:00Z"},
                "spec": {"schedule": "* * * * *", "jobTemplate": {}, "startingDeadlineSeconds": deadline},
                "status": {"lastScheduleTime": last},
            }))
            .unwrap();
            super::due(&cron, &Schedule::parse("* * * * *").unwrap(), &TimeZone::UTC, now)
        };
        let next = Some(Duration::from_millis(30_100));
        let at = Some("2026-01-01T12:02:00Z".parse().unwrap());
        assert_eq!(due("2026-01-01T12:02:00Z", None), Due { at: None, has_missed_many: false, next });
        assert_eq!(due("2026-01-01T12:00:00Z", None), Due { at, has_missed_many: false, next });
        assert_eq!(due("2020-01-01T12:00:00Z", None), Due { at, has_missed_many: true, next });
        assert_eq!(due("2020-01-01T12:00:00Z", Some(200)), Due { at, has_missed_many: false, next });
        assert_eq!(due("2020-01-01T12:00:00Z", Some(10)), Due { at: None, has_missed_many: false, next });
    }
}
