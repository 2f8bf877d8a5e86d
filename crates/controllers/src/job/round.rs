//! One look at a job: what its pods amount to, whether it is over, what pods it needs, what its status becomes. Pure:
//! the executor calls the steps in order and does what they say.
//!
//! Follows: kubernetes/pkg/controller/job/job_controller.go (v1.35).

use super::backoff::{self, Failures};
use super::indexes::Indexes;
use super::policy::{Verdict, met_rule, verdict};
use crate::common::pods::{compare_for_deletion, is_active, is_ready, phase};
use crate::common::{after_seconds, sooner, until};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pintle_apimachinery::time::floor_second;
use pintle_client::Object as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The finalizer that keeps a pod until it has been counted.
pub(super) const TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The annotation and label with a pod's index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The annotation with the failures of a pod's index before it.
pub(super) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// The annotation with those that do not count.
pub(super) const INDEX_IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Pods that may wait in the status to be counted; the rest waits for the next look.
const UNCOUNTED_PODS_MAX: usize = 500;

/// Pods made or deleted in one go; what is more waits for the next look.
const PODS_AT_ONCE_MAX: usize = 500;

/// What is to be done about the number of pods.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) delete: Vec<Arc<Pod>>,
    pub(super) create: Vec<NewPod>,
    /// Look again after this long.
    pub(super) wait: Option<Duration>,
}

/// A pod to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewPod {
    pub(super) index: Option<i32>,
    /// The failures of its index that count and that do not, for jobs with a limit for each index.
    pub(super) failures: Option<(u32, u32)>,
}

/// What is known of a job at one look.
pub(super) struct Round {
    /// The job; its status changes.
    pub(super) job: Job,
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) active: Vec<Arc<Pod>>,
    pub(super) failures: Failures,
    pub(super) finished: Option<JobCondition>,
    /// Pods that are asked to lose their finalizer.
    pub(super) removing: BTreeSet<String>,
    n_succeeded: i32,
    n_failed: i32,
    n_active: i32,
    n_ready: i32,
    n_terminating: i32,
    counted_before: Indexes,
    succeeded: Indexes,
    failed: Option<Indexes>,
    /// Failed pods of an index that are kept until the next pod of the index exists.
    delayed: BTreeMap<i32, Arc<Pod>>,
    /// The status as it is stored.
    stored: Option<JobStatus>,
    now: Timestamp,
}

fn spec(job: &Job) -> JobSpec {
    job.spec.clone().unwrap_or_default()
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

pub(super) fn has_tracking_finalizer(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == TRACKING_FINALIZER)
}

fn annotation<T: std::str::FromStr>(pod: &Pod, key: &str) -> Option<T> {
    pod.metadata.annotations.as_ref()?.get(key)?.parse().ok()
}

/// Whether the job has ended, well or not.
pub(super) fn is_finished(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True")
}

/// Adds one to the active pods that a condition of the failure of the job tells about.
fn new_condition(type_: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    let time = Time(floor_second(now));
    JobCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(time.clone()),
        last_transition_time: Some(time),
    }
}

impl Round {
    /// Looks at a job and its pods. `removing` are the pods whose finalizer was asked to go.
    pub(super) fn new(
        mut job: Job,
        pods: Vec<Arc<Pod>>,
        failures: Failures,
        removing: BTreeSet<String>,
        now: Timestamp,
    ) -> Round {
        let stored = job.status.clone();
        let status = job.status.get_or_insert_default();
        status.uncounted_terminated_pods.get_or_insert_default();
        let is_suspended = job.spec.as_ref().and_then(|spec| spec.suspend).unwrap_or_default();
        if status.start_time.is_none() && !is_suspended {
            status.start_time = Some(Time(floor_second(now)));
        }
        let active: Vec<Arc<Pod>> = pods.iter().filter(|pod| is_active(pod)).cloned().collect();
        let is_going = |pod: &&Arc<Pod>| pod.is_terminating() && !crate::common::pods::is_finished(pod);
        let mut round = Round {
            n_active: count(active.len()),
            n_ready: count(active.iter().filter(|pod| is_ready(pod)).count()),
            n_terminating: count(pods.iter().filter(is_going).count()),
            job,
            active,
            failures,
            finished: None,
            removing,
            n_succeeded: 0,
            n_failed: 0,
            counted_before: Indexes::default(),
            succeeded: Indexes::default(),
            failed: None,
            delayed: BTreeMap::new(),
            stored,
            pods,
            now,
        };
        round.count_finished();
        round
    }

    fn spec(&self) -> &JobSpec {
        static NONE: std::sync::LazyLock<JobSpec> = std::sync::LazyLock::new(JobSpec::default);
        self.job.spec.as_ref().unwrap_or(&NONE)
    }

    fn is_suspended(&self) -> bool {
        self.spec().suspend.unwrap_or_default()
    }

    fn is_indexed(&self) -> bool {
        self.spec().completion_mode.as_deref() == Some("Indexed")
    }

    fn completions(&self) -> i32 {
        self.spec().completions.unwrap_or(1)
    }

    fn has_limit_per_index(&self) -> bool {
        self.spec().backoff_limit_per_index.is_some()
    }

    /// Whether a pod that is going away is replaced only once it is gone.
    fn replaces_failed_only(&self) -> bool {
        let spec = self.spec();
        spec.pod_failure_policy.is_some() || spec.pod_replacement_policy.as_deref() == Some("Failed")
    }

    fn is_failed(&self, pod: &Pod) -> bool {
        match phase(pod) {
            "Failed" => true,
            "Succeeded" => false,
            _ => !self.replaces_failed_only() && pod.is_terminating(),
        }
    }

    /// A pod's index, if it is one of the job's.
    fn index(&self, pod: &Pod) -> Option<i32> {
        annotation::<i32>(pod, INDEX).filter(|index| (0..self.completions()).contains(index))
    }

    fn uncounted(&self) -> UncountedTerminatedPods {
        self.job.status.as_ref().and_then(|status| status.uncounted_terminated_pods.clone()).unwrap_or_default()
    }

    /// Whether the pod has not been counted, neither in the numbers nor in the list.
    fn is_new(&self, pod: &Pod, listed: &[String]) -> bool {
        has_tracking_finalizer(pod)
            && !listed.iter().any(|uid| uid == pod.uid())
            && !self.removing.contains(pod.uid())
            && (!self.is_indexed() || self.index(pod).is_some())
    }

    fn count_finished(&mut self) {
        let uncounted = self.uncounted();
        let (listed_succeeded, listed_failed) =
            (uncounted.succeeded.unwrap_or_default(), uncounted.failed.unwrap_or_default());
        let succeeded: Vec<&Pod> = self
            .pods
            .iter()
            .map(Arc::as_ref)
            .filter(|pod| phase(pod) == "Succeeded" && self.is_new(pod, &listed_succeeded))
            .collect();
        let failed: Vec<&Pod> = self
            .pods
            .iter()
            .map(Arc::as_ref)
            .filter(|pod| self.is_failed(pod) && self.is_new(pod, &listed_failed))
            .collect();
        let n_counting = failed.iter().filter(|pod| verdict(self.spec(), pod).counts()).count();
        let status = self.job.status.clone().unwrap_or_default();
        let n_succeeded = status.succeeded.unwrap_or_default() + count(succeeded.len() + listed_succeeded.len());
        let n_failed = status.failed.unwrap_or_default() + count(n_counting + listed_failed.len());
        let failures = self.failures.with(&succeeded, &failed);
        (self.n_succeeded, self.n_failed, self.failures) = (n_succeeded, n_failed, failures);
        if self.is_indexed() {
            self.count_indexes();
        }
    }

    fn count_indexes(&mut self) {
        let status = self.job.status.clone().unwrap_or_default();
        let completions = self.completions();
        let tracked = || self.pods.iter().filter(|pod| has_tracking_finalizer(pod));
        let before = Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default(), completions);
        let new = tracked().filter(|pod| phase(pod) == "Succeeded").filter_map(|pod| self.index(pod));
        let succeeded = before.union(&Indexes::of(new));
        let failed = self.has_limit_per_index().then(|| {
            let before = Indexes::parse(status.failed_indexes.as_deref().unwrap_or_default(), completions);
            let new = tracked().filter(|pod| self.has_failed_its_index(pod)).filter_map(|pod| self.index(pod));
            before.union(&Indexes::of(new))
        });
        self.n_succeeded = succeeded.len();
        (self.counted_before, self.succeeded, self.failed) = (before, succeeded, failed);
        if self.has_limit_per_index() {
            self.delayed = self.delayed_pods();
        }
    }

    fn has_failed_its_index(&self, pod: &Pod) -> bool {
        if !self.is_failed(pod) {
            return false;
        }
        match verdict(self.spec(), pod) {
            Verdict::FailIndex => true,
            Verdict::Ignore => false,
            Verdict::Count | Verdict::FailJob(_) => {
                let before: i32 = annotation(pod, INDEX_FAILURES).unwrap_or_default();
                before >= self.spec().backoff_limit_per_index.unwrap_or_default()
            }
        }
    }

    /// The last failed pod of each index that will be tried again.
    fn delayed_pods(&self) -> BTreeMap<i32, Arc<Pod>> {
        let active = Indexes::of(self.active.iter().filter_map(|pod| self.index(pod)));
        let mut delayed: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
        for pod in self.pods.iter().filter(|pod| self.is_failed(pod) && self.is_new(pod, &[])) {
            let Some(index) = self.index(pod) else { continue };
            let is_over = self.succeeded.has(index) || self.failed.as_ref().is_some_and(|failed| failed.has(index));
            if is_over || active.has(index) {
                continue;
            }
            let rank = |pod: &Pod| (failures_of_index(pod), backoff::finished_at(pod));
            match delayed.get(&index) {
                Some(known) if rank(known) > rank(pod) => {}
                _ => {
                    delayed.insert(index, Arc::clone(pod));
                }
            }
        }
        delayed
    }

    /// Decides whether the job is over, but for pods that still run. Gives when an active job must be looked at again.
    pub(super) fn decide(&mut self) -> Option<Duration> {
        self.finished = self.known_end().or_else(|| self.failure());
        let mut wait = None;
        if self.finished.is_none()
            && !self.is_suspended()
            && let Some(deadline) = self.deadline()
        {
            wait = Some(until(self.now, deadline));
        }
        if self.finished.is_none() && self.is_indexed() {
            self.finished = self.index_failure().or_else(|| {
                let message = met_rule(self.spec().success_policy.as_ref(), self.completions(), &self.succeeded)?;
                Some(new_condition("SuccessCriteriaMet", "SuccessPolicy", &message, self.now))
            });
        }
        wait
    }

    fn condition(&self, type_: &str) -> Option<&JobCondition> {
        let conditions = self.job.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// What an earlier look decided.
    fn known_end(&self) -> Option<JobCondition> {
        let is_true = |condition: &&JobCondition| condition.status == "True";
        if let Some(met) = self.condition("SuccessCriteriaMet").filter(is_true) {
            return Some(met.clone());
        }
        let target = self.condition("FailureTarget").filter(is_true)?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Some(new_condition("Failed", &text(&target.reason), &text(&target.message), self.now))
    }

    fn failure(&self) -> Option<JobCondition> {
        let fails = |reason, message: &str| Some(new_condition("FailureTarget", reason, message, self.now));
        for pod in self.pods.iter().filter(|pod| self.is_failed(pod)) {
            if let Verdict::FailJob(message) = verdict(self.spec(), pod) {
                return fails("PodFailurePolicy", &message);
            }
        }
        let limit = self.spec().backoff_limit.unwrap_or(6);
        if self.n_failed > limit || self.has_restarted_too_often(limit) {
            return fails("BackoffLimitExceeded", "Job has reached the specified backoff limit");
        }
        let is_past = !self.is_suspended() && self.deadline().is_some_and(|deadline| deadline <= self.now);
        if is_past { fails("DeadlineExceeded", "Job was active longer than specified deadline") } else { None }
    }

    fn has_restarted_too_often(&self, limit: i32) -> bool {
        let template = self.spec().template.spec.as_ref();
        if template.and_then(|template| template.restart_policy.as_deref()) != Some("OnFailure") {
            return false;
        }
        let restarts = |pod: &Pod| -> i32 {
            let Some(status) = &pod.status else { return 0 };
            let all = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
            all.map(|container| container.restart_count).sum()
        };
        let running = self.pods.iter().filter(|pod| matches!(phase(pod), "Running" | "Pending"));
        let n_restarts: i32 = running.map(|pod| restarts(pod)).sum();
        if limit == 0 { n_restarts > 0 } else { n_restarts >= limit }
    }

    fn deadline(&self) -> Option<Timestamp> {
        let start = self.job.status.as_ref()?.start_time.as_ref()?.0;
        Some(after_seconds(start, self.spec().active_deadline_seconds?))
    }

    fn index_failure(&self) -> Option<JobCondition> {
        let failed = self.failed.as_ref()?;
        let fails = |reason, message: &str| Some(new_condition("FailureTarget", reason, message, self.now));
        if self.spec().max_failed_indexes.is_some_and(|most| failed.len() > most) {
            return fails(
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            );
        }
        if !failed.is_empty() && failed.len() + self.succeeded.len() >= self.completions() {
            return fails("FailedIndexes", "Job has failed indexes");
        }
        None
    }

    /// What is to be done about the number of pods of a job that is not over.
    pub(super) fn step(&self) -> Step {
        let n_active = self.active.len();
        if self.is_suspended() {
            return Step { delete: self.doomed(n_active), ..Step::default() };
        }
        let wanted = self.n_wanted();
        let mut delete = self.doomed(n_active.saturating_sub(wanted));
        delete.truncate(PODS_AT_ONCE_MAX);
        if !delete.is_empty() {
            return Step { delete, ..Step::default() };
        }
        let n_going =
            if self.replaces_failed_only() { usize::try_from(self.n_terminating).unwrap_or_default() } else { 0 };
        let n_missing = wanted.saturating_sub(n_active + n_going).min(PODS_AT_ONCE_MAX);
        if n_missing == 0 {
            return Step::default();
        }
        if !self.has_limit_per_index() {
            let pause = self.failures.remaining(self.now);
            if !pause.is_zero() {
                return Step { wait: Some(pause), ..Step::default() };
            }
        }
        if !self.is_indexed() {
            return Step { create: vec![NewPod { index: None, failures: None }; n_missing], ..Step::default() };
        }
        self.new_indexes(n_missing)
    }

    fn n_wanted(&self) -> usize {
        let parallelism = self.spec().parallelism.unwrap_or(1);
        let wanted = match self.spec().completions {
            // the first success ends the making of pods
            None if self.n_succeeded > 0 => return self.active.len(),
            None => parallelism,
            Some(completions) => (completions - self.n_succeeded).min(parallelism),
        };
        usize::try_from(wanted).unwrap_or_default()
    }

    fn new_indexes(&self, n_missing: usize) -> Step {
        let mut taken = self.succeeded.union(&Indexes::of(self.active.iter().filter_map(|pod| self.index(pod))));
        if self.replaces_failed_only() {
            let going = self.pods.iter().filter(|pod| pod.is_terminating() && !crate::common::pods::is_finished(pod));
            taken = taken.union(&Indexes::of(going.filter_map(|pod| self.index(pod))));
        }
        if let Some(failed) = &self.failed {
            taken = taken.union(failed);
        }
        let mut step = Step::default();
        for index in taken.missing(n_missing, self.completions()) {
            if !self.has_limit_per_index() {
                step.create.push(NewPod { index: Some(index), failures: None });
                continue;
            }
            let before = self.delayed.get(&index);
            let pause = before.map_or(Duration::ZERO, |pod| {
                let last = backoff::finished_at(pod).unwrap_or(self.now);
                backoff::remaining(failures_of_index(pod) + 1, last, self.now)
            });
            if pause.is_zero() {
                let failures = before.map_or((0, 0), |pod| self.failures_after(pod));
                step.create.push(NewPod { index: Some(index), failures: Some(failures) });
            } else {
                step.wait = sooner(step.wait, Some(pause));
            }
        }
        step
    }

    /// The failures of an index after this pod: those that count and those that do not.
    fn failures_after(&self, pod: &Pod) -> (u32, u32) {
        let counted: u32 = annotation(pod, INDEX_FAILURES).unwrap_or_default();
        let ignored: u32 = annotation(pod, INDEX_IGNORED_FAILURES).unwrap_or_default();
        if verdict(self.spec(), pod).counts() { (counted + 1, ignored) } else { (counted, ignored + 1) }
    }

    /// At least `n_least` active pods to give up: those of an index that another pod has, too, and the least valuable.
    fn doomed(&self, n_least: usize) -> Vec<Arc<Pod>> {
        let mut pods = self.active.clone();
        pods.sort_by(|a, b| compare_for_deletion((a, 0), (b, 0), self.now));
        let (mut doomed, mut kept) = (Vec::new(), pods);
        if self.is_indexed() {
            // the most valuable pod of an index stands last
            let mut seen = BTreeSet::new();
            let (keep, surplus): (Vec<_>, Vec<_>) =
                kept.into_iter().rev().partition(|pod| self.index(pod).is_some_and(|index| seen.insert(index)));
            doomed = surplus.into_iter().rev().collect();
            kept = keep.into_iter().rev().collect();
        }
        let n_more = n_least.saturating_sub(doomed.len());
        doomed.extend(kept.into_iter().take(n_more));
        doomed
    }

    /// Pods were deleted. `pods` are those that will go.
    pub(super) fn deleted(&mut self, pods: &[Arc<Pod>]) {
        self.n_active -= count(pods.len());
        self.n_terminating += count(pods.len());
        self.n_ready -= count(pods.iter().filter(|pod| is_ready(pod)).count());
    }

    /// Pods were made.
    pub(super) fn created(&mut self, n_created: usize) {
        self.n_active += count(n_created);
    }

    /// Whether every active pod is about to go.
    pub(super) fn has_active(&self) -> bool {
        self.n_active > 0
    }

    /// After the pods were seen to: whether that completes the job, and what the job says of being suspended. Gives
    /// the event to tell. `is_managed`: pods could be made and deleted in this look.
    pub(super) fn conclude(&mut self, is_managed: bool) -> Option<(&'static str, &'static str)> {
        let is_complete = match self.spec().completions {
            None => self.n_succeeded > 0 && self.n_active == 0,
            Some(completions) => self.n_succeeded >= completions && self.n_active == 0,
        };
        if is_complete {
            let message = "Reached expected number of succeeded pods";
            self.finished = Some(new_condition("SuccessCriteriaMet", "CompletionsReached", message, self.now));
            return None;
        }
        if !is_managed {
            return None;
        }
        let (status, reason, message, event) = if self.is_suspended() {
            ("True", "JobSuspended", "Job suspended", ("Suspended", "Job suspended"))
        } else {
            ("False", "JobResumed", "Job resumed", ("Resumed", "Job resumed"))
        };
        if !self.ensure_condition("Suspended", status, reason, message) {
            return None;
        }
        let start = if self.is_suspended() { None } else { Some(Time(floor_second(self.now))) };
        self.job.status.get_or_insert_default().start_time = start;
        Some(event)
    }

    /// Sets a condition; one that would be new and not true is left out. Whether anything changed.
    fn ensure_condition(&mut self, type_: &str, status: &str, reason: &str, message: &str) -> bool {
        let new = JobCondition { status: status.to_owned(), ..new_condition(type_, reason, message, self.now) };
        let conditions = self.job.status.get_or_insert_default().conditions.get_or_insert_default();
        match conditions.iter_mut().find(|condition| condition.type_ == type_) {
            Some(known) => {
                let is_same = known.status == new.status && known.reason == new.reason && known.message == new.message;
                if !is_same {
                    *known = new;
                }
                !is_same
            }
            None if status == "False" => {
                if conditions.is_empty() {
                    self.job.status.get_or_insert_default().conditions = None;
                }
                false
            }
            None => {
                conditions.push(new);
                true
            }
        }
    }

    /// Writes what was found into the status. Gives the pods whose finalizer can go once the status is written, and
    /// whether it must be written.
    pub(super) fn track(&mut self) -> (Vec<Arc<Pod>>, bool) {
        let status = self.job.status.get_or_insert_default();
        status.active = Some(self.n_active.max(0)).filter(|n| *n != 0);
        status.ready = Some(self.n_ready.max(0));
        status.terminating = Some(self.n_terminating.max(0));
        self.forget_counted();
        let (releasable, new_indexes) = self.list_finished();
        if self.is_indexed() {
            let succeeded = self.counted_before.union(&Indexes::of(new_indexes));
            let failed = self.failed.as_ref().map(ToString::to_string);
            let status = self.job.status.get_or_insert_default();
            status.succeeded = Some(succeeded.len()).filter(|n| *n != 0);
            status.completed_indexes = Some(succeeded.to_string()).filter(|text| !text.is_empty());
            status.failed_indexes = failed;
        }
        self.announce_end();
        (releasable, self.job.status != self.stored)
    }

    /// Moves pods that have lost their finalizer from the list into the numbers. Whether there were any.
    pub(super) fn forget_counted(&mut self) -> bool {
        let tracked: BTreeSet<&str> = self
            .pods
            .iter()
            .filter(|pod| has_tracking_finalizer(pod) && !self.removing.contains(pod.uid()))
            .map(|pod| pod.uid())
            .collect();
        let status = self.job.status.get_or_insert_default();
        let lists = status.uncounted_terminated_pods.get_or_insert_default();
        let sum = |list: &mut Option<Vec<String>>, total: &mut Option<i32>| {
            let uids = list.take().unwrap_or_default();
            let n_before = uids.len();
            let kept: Vec<String> = uids.into_iter().filter(|uid| tracked.contains(uid.as_str())).collect();
            let n_counted = n_before - kept.len();
            *list = Some(kept).filter(|kept| !kept.is_empty());
            if n_counted > 0 {
                *total = Some(total.unwrap_or_default() + count(n_counted));
            }
            n_counted > 0
        };
        let is_any_succeeded = sum(&mut lists.succeeded, &mut status.succeeded);
        let is_any_failed = sum(&mut lists.failed, &mut status.failed);
        is_any_succeeded || is_any_failed
    }

    /// Lists pods that have ended and are not counted. Gives the pods that need their finalizer no more, and the indexes
    /// that have succeeded.
    fn list_finished(&mut self) -> (Vec<Arc<Pod>>, Vec<i32>) {
        let listed = self.uncounted();
        let (mut succeeded, mut failed) = (listed.succeeded.unwrap_or_default(), listed.failed.unwrap_or_default());
        let (mut releasable, mut new_indexes) = (Vec::new(), Vec::new());
        let fails_all = self.finished.as_ref().is_some_and(|condition| condition.type_ != "SuccessCriteriaMet");
        let mut pods = self.pods.clone();
        if self.is_indexed() {
            pods.sort_by_key(|pod| self.index(pod));
        }
        for pod in pods {
            if !has_tracking_finalizer(&pod) || self.removing.contains(pod.uid()) || !self.can_release(&pod) {
                continue;
            }
            let uid = pod.uid().to_owned();
            let index = self.index(&pod);
            let is_listed_failed = failed.contains(&uid);
            if phase(&pod) == "Succeeded" && !is_listed_failed {
                if self.is_indexed() {
                    new_indexes.extend(index.filter(|index| !self.counted_before.has(*index)));
                } else if !succeeded.contains(&uid) {
                    succeeded.push(uid);
                }
            } else if (self.is_failed(&pod) || fails_all)
                && !is_listed_failed
                && (!self.is_indexed() || index.is_some())
                && verdict(self.spec(), &pod).counts()
            {
                failed.push(uid);
            }
            releasable.push(pod);
            if new_indexes.len() + succeeded.len() + failed.len() >= UNCOUNTED_PODS_MAX {
                break;
            }
        }
        let lists = UncountedTerminatedPods {
            succeeded: Some(succeeded).filter(|uids| !uids.is_empty()),
            failed: Some(failed).filter(|uids| !uids.is_empty()),
        };
        self.job.status.get_or_insert_default().uncounted_terminated_pods = Some(lists);
        (releasable, new_indexes)
    }

    /// Whether nothing more is expected of a pod.
    fn can_release(&self, pod: &Pod) -> bool {
        if self.job.is_terminating() || self.finished.is_some() || phase(pod) == "Succeeded" {
            return true;
        }
        let is_delayed =
            self.index(pod).and_then(|index| self.delayed.get(&index)).is_some_and(|kept| kept.uid() == pod.uid());
        self.is_failed(pod) && !is_delayed
    }

    /// Tells of the end before it comes: the last conditions wait until all pods are counted and gone.
    fn announce_end(&mut self) {
        let Some(finished) = self.finished.clone() else { return };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let last = match finished.type_.as_str() {
            "FailureTarget" => "Failed",
            "SuccessCriteriaMet" => "Complete",
            _ => return,
        };
        if self.condition(&finished.type_).is_none() {
            self.job.status.get_or_insert_default().conditions.get_or_insert_default().push(finished.clone());
        }
        self.finished = Some(new_condition(last, &text(&finished.reason), &text(&finished.message), self.now));
    }

    /// Ends the job if every pod is counted and gone. Gives the last condition.
    pub(super) fn finish(&mut self) -> Option<JobCondition> {
        let finished = self.finished.clone()?;
        let lists = self.uncounted();
        let n_listed = lists.succeeded.map_or(0, |uids| uids.len()) + lists.failed.map_or(0, |uids| uids.len());
        if n_listed > 0 || self.n_terminating > 0 {
            return None;
        }
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        self.ensure_condition(&finished.type_, "True", &text(&finished.reason), &text(&finished.message));
        if finished.type_ == "Complete" {
            self.job.status.get_or_insert_default().completion_time = finished.last_transition_time.clone();
        }
        Some(finished)
    }

    /// Whether more pods succeeded than were wanted.
    pub(super) fn has_too_many_succeeded(&self) -> bool {
        let succeeded = self.job.status.as_ref().and_then(|status| status.succeeded).unwrap_or_default();
        self.spec().completions.is_some_and(|completions| succeeded > completions)
    }
}

/// All failures of a pod's index before it.
fn failures_of_index(pod: &Pod) -> u32 {
    let counted: u32 = annotation(pod, INDEX_FAILURES).unwrap_or_default();
    counted + annotation::<u32>(pod, INDEX_IGNORED_FAILURES).unwrap_or_default()
}

/// The pod's template of a job, for a new pod.
pub(super) fn template_for(job: &Job, new: NewPod) -> k8s_openapi::api::core::v1::PodTemplateSpec {
    super::template::template_for(&spec(job), job.name(), new)
}

#[cfg(test)]
mod tests;
