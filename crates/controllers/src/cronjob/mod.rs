//! Makes jobs at times of a schedule.
//!
//! Follows: kubernetes/pkg/controller/cronjob (v1.35).

mod plan;
mod schedule;

use crate::common::owner::{controller_ref, index_by_controller};
use crate::common::pods::{about, text_of};
use crate::context::{Context, synced};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use pintle_apimachinery::env::Env;
use pintle_client::{Api, Client, Object as _, Result};
use pintle_informer::handler::{enqueue, enqueue_owner};
use pintle_informer::record::{EventRecorder, EventType, Recorder as _};
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};
use schedule::Schedule;
use std::sync::Arc;

/// CronJobs worked on at once.
const WORKERS: usize = 5;

/// The annotation with the time of the schedule for which a job was made.
const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("cronjob");
    let (crons, jobs) = (ctx.factory.informer::<CronJob>(), ctx.factory.informer::<Job>());
    index_by_controller(&jobs);
    crons.add_event_handler(enqueue(&queue));
    jobs.add_event_handler(enqueue_owner(&queue, "CronJob"));
    let controller = Arc::new(CronJobController {
        client: ctx.client_of("cronjob-controller"),
        events: ctx.recorder("cronjob-controller"),
        crons: crons.lister(),
        jobs: jobs.lister(),
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(crons, jobs), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
}

struct CronJobController {
    client: Client,
    events: EventRecorder,
    crons: Lister<Cached<CronJob>>,
    jobs: Lister<Cached<Job>>,
    env: Env,
}

/// How a job ended: `Complete`, `Failed`, or not yet.
fn end_of(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut ends = conditions.into_iter().flatten().filter(|c| matches!(c.type_.as_str(), "Complete" | "Failed"));
    ends.find(|condition| condition.status == "True").map(|condition| condition.type_.as_str())
}

impl CronJobController {
    fn event(&self, cron: &CronJob, event_type: EventType, reason: &str, message: &str) {
        self.events.event(&about(cron), event_type, reason, message);
    }

    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(cached) = self.crons.get_by_key(name) else { return Ok(Action::Done) };
        let mut cron = cached.to_owned_object()?;
        let owned = self.jobs.by_index(crate::common::owner::BY_CONTROLLER, cron.uid()).unwrap_or_default();
        let jobs: std::result::Result<Vec<Arc<Job>>, _> = owned.iter().map(Cached::object).collect();
        let jobs = jobs?;
        let stored = cron.status.clone();
        cron.status.get_or_insert_default();
        self.clean_up(&mut cron, &jobs).await?;
        self.take_in(&mut cron, &jobs).await?;
        let result = Box::pin(self.run(&mut cron)).await;
        if cron.status.clone().filter(|status| *status != CronJobStatus::default()) != stored {
            match Api::<CronJob>::namespaced(&self.client, cron.namespace()).update_status(&cron).await {
                Err(error) if !error.is_not_found() => return result.and(Err(error)),
                _ => {}
            }
        }
        result
    }

    /// Deletes ended jobs beyond the history limits.
    async fn clean_up(&self, cron: &mut CronJob, jobs: &[Arc<Job>]) -> Result<()> {
        let spec = cron.spec.clone().unwrap_or_default();
        let limits = [("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit)];
        for (end, limit) in limits {
            let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
            let mut ended: Vec<&Arc<Job>> = jobs.iter().filter(|job| end_of(job) == Some(end)).collect();
            let n_surplus = ended.len().saturating_sub(limit);
            let started = |job: &Job| job.status.as_ref()?.start_time.as_ref().map(|time| time.0);
            ended.sort_by_key(|job| (started(job).is_none(), started(job), job.name().to_owned()));
            for job in ended.into_iter().take(n_surplus) {
                self.delete(cron, job.name(), job.uid()).await?;
            }
        }
        Ok(())
    }

    /// Sees to the list of active jobs, and to the time of the last success.
    async fn take_in(&self, cron: &mut CronJob, jobs: &[Arc<Job>]) -> Result<()> {
        for job in jobs {
            let is_listed = active(cron).iter().any(|known| known.uid.as_deref() == Some(job.uid()));
            let end = end_of(job);
            if !is_listed && end.is_none() {
                // it may be one that was made just now, of a status that could not be written
                let message = format!("Saw a job that the controller did not create or forgot: {}", job.name());
                self.event(cron, EventType::Warning, "UnexpectedJob", &message);
            } else if let (true, Some(end)) = (is_listed, end) {
                remove_active(cron, job.uid());
                let message = format!("Saw completed job: {}, condition: {end}", job.name());
                self.event(cron, EventType::Normal, "SawCompletedJob", &message);
            }
            if end == Some("Complete") {
                let completed = job.status.as_ref().and_then(|status| status.completion_time.clone());
                let status = cron.status.get_or_insert_default();
                if completed > status.last_successful_time {
                    status.last_successful_time = completed;
                }
            }
        }
        for listed in active(cron) {
            let (name, uid) = (listed.name.unwrap_or_default(), listed.uid.unwrap_or_default());
            let is_known = jobs.iter().any(|job| job.uid() == uid);
            let api = Api::<Job>::namespaced(&self.client, cron.namespace());
            if !is_known && api.get_opt(&name).await?.is_none_or(|job| job.uid() != uid) {
                self.event(cron, EventType::Normal, "MissingJob", &format!("Active job went missing: {name}"));
                remove_active(cron, &uid);
            }
        }
        Ok(())
    }

    /// Makes the job that is due.
    async fn run(&self, cron: &mut CronJob) -> Result<Action> {
        let spec = cron.spec.clone().unwrap_or_default();
        if cron.is_terminating() {
            return Ok(Action::Done);
        }
        let zone = match plan::zone(&spec) {
            Ok(zone) => zone,
            Err(error) => {
                let name = spec.time_zone.unwrap_or_default();
                self.event(
                    cron,
                    EventType::Warning,
                    "UnknownTimeZone",
                    &format!("invalid timeZone: {name:?}: {error}"),
                );
                return Ok(Action::Done);
            }
        };
        if spec.suspend.unwrap_or_default() {
            return Ok(Action::Done);
        }
        let schedule = match Schedule::parse(&spec.schedule) {
            Ok(schedule) => schedule,
            Err(error) => {
                let message = format!("unparseable schedule: {:?} : {error}", spec.schedule);
                self.event(cron, EventType::Warning, "UnparseableSchedule", &message);
                return Ok(Action::Done);
            }
        };
        let now = self.env.clock.now();
        let due = plan::due(cron, &schedule, &zone, now);
        let later = due.next.map_or(Action::Done, Action::RequeueAfter);
        let Some(at) = due.at else { return Ok(later) };
        if due.has_missed_many {
            let message =
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.event(cron, EventType::Warning, "TooManyMissedTimes", message);
        }
        if plan::is_too_late(cron, at, now) {
            let shown = at.strftime("%a, %d %b %Y %H:%M:%S UTC");
            let message = format!("Missed scheduled time to start a job: {shown}");
            self.event(cron, EventType::Warning, "MissSchedule", &message);
            return Ok(later);
        }
        let name = format!("{}-{}", cron.name(), at.as_second().div_euclid(60));
        if active(cron).iter().any(|known| known.name.as_deref() == Some(&name)) {
            return Ok(later);
        }
        match spec.concurrency_policy.as_deref() {
            Some("Forbid") if !active(cron).is_empty() => {
                let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
                self.event(cron, EventType::Normal, "JobAlreadyActive", message);
                return Ok(later);
            }
            Some("Replace") => {
                for listed in active(cron) {
                    self.delete(cron, &listed.name.unwrap_or_default(), &listed.uid.unwrap_or_default()).await?;
                }
            }
            _ => {}
        }
        self.create(cron, &spec, &zone, &name, at).await?;
        Ok(later)
    }

    async fn create(
        &self,
        cron: &mut CronJob,
        spec: &CronJobSpec,
        zone: &jiff::tz::TimeZone,
        name: &str,
        at: Timestamp,
    ) -> Result<()> {
        let template = spec.job_template.clone();
        let meta = template.metadata.unwrap_or_default();
        let mut annotations = meta.annotations.unwrap_or_default();
        let shown = at.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        annotations.insert(SCHEDULED_AT.to_owned(), shown.replace("+00:00", "Z"));
        let job = Job {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: cron.metadata.namespace.clone(),
                labels: meta.labels,
                annotations: Some(annotations),
                owner_references: Some(vec![controller_ref(cron)]),
                ..ObjectMeta::default()
            },
            spec: template.spec,
            status: None,
        };
        let api = Api::<Job>::namespaced(&self.client, cron.namespace());
        let made = match api.create(&job).await {
            Ok(made) => {
                self.event(cron, EventType::Normal, "SuccessfulCreate", &format!("Created job {name}"));
                made
            }
            Err(error) if error.is_already_exists() => {
                // made in an earlier look, whose status was not written
                let found = api.get(name).await?;
                if !crate::common::owner::is_controlled_by(&found.metadata, cron.uid()) || end_of(&found).is_some() {
                    return Ok(());
                }
                found
            }
            Err(error) => {
                if !error.is_namespace_terminating() {
                    let message = format!("Error creating job: {}", text_of(&error));
                    self.event(cron, EventType::Warning, "FailedCreate", &message);
                }
                return Err(error);
            }
        };
        let status = cron.status.get_or_insert_default();
        status.active.get_or_insert_default().push(about(&made));
        status.last_schedule_time = Some(Time(at));
        Ok(())
    }

    async fn delete(&self, cron: &mut CronJob, name: &str, uid: &str) -> Result<()> {
        let api = Api::<Job>::namespaced(&self.client, cron.namespace());
        match api.delete(name).background().await {
            Ok(_) => self.event(cron, EventType::Normal, "SuccessfulDelete", &format!("Deleted job {name}")),
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                let message = format!("Deleted job: {}", text_of(&error));
                self.event(cron, EventType::Warning, "FailedDelete", &message);
                return Err(error);
            }
        }
        remove_active(cron, uid);
        Ok(())
    }
}

fn active(cron: &CronJob) -> Vec<ObjectReference> {
    cron.status.as_ref().and_then(|status| status.active.clone()).unwrap_or_default()
}

fn remove_active(cron: &mut CronJob, uid: &str) {
    let status = cron.status.get_or_insert_default();
    let mut listed = status.active.take().unwrap_or_default();
    listed.retain(|known| known.uid.as_deref() != Some(uid));
    status.active = Some(listed).filter(|listed| !listed.is_empty());
}
