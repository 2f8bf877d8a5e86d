//! The group `batch`: what runs pods to completion.

pub mod cron;
pub mod cronjob;
mod indexes;
pub mod job;
mod job_status;
mod job_validate;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "cronjobs" => &cronjob::CronJob,
        "jobs" => &job::Job,
        _ => return None,
    })
}
