//! Runs the pods of jobs to their end, and counts them exactly once.
//!
//! A pod keeps a finalizer until it is counted: first its uid is listed in the job's status, then the finalizer goes,
//! then the uid leaves the list and the number grows. Whatever fails in between, no pod is lost or counted twice.
//!
//! Follows: kubernetes/pkg/controller/job (v1.35).

mod backoff;
mod indexes;
mod policy;
mod round;
mod template;

use crate::common::claim::Claimant;
use crate::common::owner::{controller_ref, index_by_controller, is_controlled_by};
use crate::common::pod_events::{PodEvents, pods_around};
use crate::common::pods::{PodControl, pod_from_template};
use crate::common::selector::selector_of;
use crate::common::slow_start::{INITIAL_BATCH, slow_start_batch};
use crate::common::sooner;
use crate::context::{Context, synced};
use backoff::Failures;
use futures_util::future::join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use pintle_apimachinery::env::Env;
use pintle_client::{Api, Client, Object as _, Patch, Result};
use pintle_informer::expectations::UidTrackingControllerExpectations;
use pintle_informer::handler::{enqueue, enqueue_by};
use pintle_informer::record::EventType;
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName, ResourceEventHandlerFuncs};
use round::{Round, Step, TRACKING_FINALIZER, has_tracking_finalizer, is_finished};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Jobs worked on at once.
const WORKERS: usize = 5;

/// Name of a pod and uid of the job that it was part of.
type Orphan = (ObjectName, String);

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let (queue, orphans) = (WorkQueue::<ObjectName>::new("job"), WorkQueue::<Orphan>::new("job_orphan_pod"));
    let (jobs, pods) = (ctx.factory.informer::<Job>(), ctx.factory.informer::<Pod>());
    index_by_controller(&pods);
    let expectations = UidTrackingControllerExpectations::new();
    jobs.add_event_handler(enqueue(&queue));
    let (lister, gone) = (pods.lister(), orphans.clone());
    jobs.add_event_handler(ResourceEventHandlerFuncs::new().on_delete(
        move |deleted: &pintle_informer::Deleted<Cached<Job>>| {
            let uid = deleted.object().uid();
            for pod in lister.by_index(crate::common::owner::BY_CONTROLLER, uid).unwrap_or_default() {
                gone.add((pod.object_name(), uid.to_owned()));
            }
        },
    ));
    pods.add_event_handler(PodEvents {
        kind: "Job",
        owners: jobs.lister(),
        queue: queue.clone(),
        selector: |job: &Job| selector_of(job.spec.as_ref()?.selector.as_ref()?),
        expectations: expectations.clone(),
    });
    let lister = jobs.lister();
    // pods of jobs that are gone, or have ended, are held by nobody
    pods.add_event_handler(enqueue_by(&orphans, move |pod: &Cached<Pod>| {
        let owner = pod.controller_ref().filter(|owner| owner.kind == "Job")?;
        let job = lister.namespace(pod.namespace()).get(&owner.name).filter(|job| job.uid() == owner.uid);
        job.is_none().then(|| (pod.object_name(), owner.uid.clone().into_owned()))
    }));
    let client = ctx.client_of("job-controller");
    let controller = Arc::new(JobController {
        pod_control: PodControl::new(&client, ctx.recorder("job-controller")),
        client,
        jobs: jobs.lister(),
        pods: pods.lister(),
        expectations,
        memory: Mutex::default(),
        env: ctx.env().clone(),
    });
    let other = Arc::clone(&controller);
    ctx.work(queue, WORKERS, synced!(jobs, pods), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
    ctx.work(orphans, 1, synced!(jobs, pods), move |(pod, job)| {
        let controller = Arc::clone(&other);
        async move { controller.release_orphan(&pod, &job).await }
    });
}

/// What is remembered of a job between looks.
#[derive(Clone, Default)]
struct Remembered {
    failures: Failures,
    /// Pods whose finalizer was taken off, which the cache may not show yet.
    removing: BTreeSet<String>,
    /// The uid of the job whose end was written, which the cache may not show yet.
    ended: Option<String>,
}

struct JobController {
    client: Client,
    pod_control: PodControl,
    jobs: Lister<Cached<Job>>,
    pods: Lister<Cached<Pod>>,
    expectations: UidTrackingControllerExpectations,
    memory: Mutex<BTreeMap<ObjectName, Remembered>>,
    env: Env,
}

impl JobController {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(cached) = self.jobs.get_by_key(name) else {
            self.expectations.delete_expectations(name);
            self.memory.lock().remove(name);
            return Ok(Action::Done);
        };
        let job = cached.to_owned_object()?;
        let manager = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
        if manager.is_some_and(|manager| manager != "kubernetes.io/job-controller") {
            return Ok(Action::Done);
        }
        if is_finished(&job) {
            self.memory.lock().remove(name);
            return Ok(Action::Done);
        }
        let is_satisfied = self.expectations.satisfied_expectations(name);
        let pods = self.claim(&job).await?;
        let remembered = self.recall(name, &pods);
        if remembered.ended.as_deref() == Some(job.uid()) {
            return Ok(Action::Done);
        }
        let now = self.env.clock.now();
        let round = Round::new(job, pods, remembered.failures, remembered.removing, now);
        Box::pin(self.perform(name, round, is_satisfied)).await
    }

    /// All pods of a job, ended ones too.
    async fn claim(&self, job: &Job) -> Result<Vec<Arc<Pod>>> {
        let Some(selector) = job.spec.as_ref().and_then(|spec| selector_of(spec.selector.as_ref()?)) else {
            return Ok(Vec::new());
        };
        let around = pods_around(&self.pods, job.namespace(), job.uid());
        let owners = Api::namespaced(&self.client, job.namespace());
        let claimant = Claimant::new(job, owners, &selector).with_finalizers(&[TRACKING_FINALIZER]);
        let claimed = claimant.claim(around, &self.pod_control.api(job.namespace()), |_| true).await?;
        let mut pods = Vec::with_capacity(claimed.len());
        for pod in claimed {
            let mut pod = pod.object()?;
            if !is_controlled_by(&pod.metadata, job.uid()) && !has_tracking_finalizer(&pod) {
                // adopted just now: the patch gave it the finalizer
                let finalizers = Arc::make_mut(&mut pod).metadata.finalizers.get_or_insert_default();
                finalizers.push(TRACKING_FINALIZER.to_owned());
            }
            pods.push(pod);
        }
        Ok(pods)
    }

    /// What is remembered of a job; pods that the cache shows without finalizer are forgotten.
    fn recall(&self, name: &ObjectName, pods: &[Arc<Pod>]) -> Remembered {
        let mut memory = self.memory.lock();
        let remembered = memory.entry(name.clone()).or_default();
        let is_held = |uid: &String| pods.iter().any(|pod| pod.uid() == uid && has_tracking_finalizer(pod));
        remembered.removing.retain(is_held);
        remembered.clone()
    }

    async fn perform(&self, name: &ObjectName, mut round: Round, is_satisfied: bool) -> Result<Action> {
        let mut wait = round.decide();
        let mut failure = None;
        let decided = round.finished.take();
        if decided.is_some() {
            let active = round.active.clone();
            let (gone, error) = self.delete_pods(name, &round.job, &active, false).await;
            round.deleted(&gone);
            failure = error;
            // an end counts only when every active pod is seen to
            round.finished = decided.filter(|_| is_satisfied && !round.has_active());
        } else {
            let is_managed = is_satisfied && !round.job.is_terminating();
            if is_managed {
                let step = round.step();
                wait = sooner(wait, step.wait);
                failure = self.take(name, &mut round, step).await;
            }
            if let Some((reason, message)) = round.conclude(is_managed) {
                self.pod_control.event(&round.job, EventType::Normal, reason, message);
            }
        }
        self.write(name, &mut round).await?;
        match failure {
            Some(error) => Err(error),
            None => Ok(wait.map_or(Action::Done, |wait| Action::RequeueAfter(wait.max(Duration::from_millis(100))))),
        }
    }

    /// Makes and deletes pods.
    async fn take(&self, name: &ObjectName, round: &mut Round, step: Step) -> Option<pintle_client::Error> {
        if !step.delete.is_empty() {
            let uids = step.delete.iter().map(|pod| pod.uid().to_owned());
            self.expectations.expect_deletions(name, uids);
            let (gone, failure) = self.delete_pods(name, &round.job, &step.delete, true).await;
            round.deleted(&gone);
            return failure;
        }
        if step.create.is_empty() {
            return None;
        }
        self.expectations.expect_creations(name, step.create.len());
        let (job, create) = (&round.job, &step.create);
        let owner = controller_ref(job);
        let owner = &owner;
        let (n_made, failure) = slow_start_batch(create.len(), INITIAL_BATCH, |idx| async move {
            let new = create[idx];
            let template = round::template_for(job, new);
            let mut pod = pod_from_template(&template, owner, job.namespace());
            if let Some(index) = new.index {
                pod.metadata.generate_name = Some(template::name_prefix(job.name(), index));
            }
            match self.pod_control.create(&pod, job).await {
                Err(error) if error.is_namespace_terminating() => Ok(()),
                result => result.map(drop),
            }
        })
        .await;
        for _ in n_made..create.len() {
            self.expectations.creation_observed(name);
        }
        round.created(n_made);
        failure
    }

    /// Deletes pods, and takes their finalizer off if they need not be counted. Gives those that will go.
    async fn delete_pods(
        &self,
        name: &ObjectName,
        job: &Job,
        pods: &[Arc<Pod>],
        releases: bool,
    ) -> (Vec<Arc<Pod>>, Option<pintle_client::Error>) {
        let deletions = pods.iter().map(|pod| async move {
            if releases {
                self.release(pod).await?;
            }
            self.pod_control.delete(pod, job).await
        });
        let results: Vec<Result<bool>> = join_all(deletions).await;
        let (mut gone, mut failure) = (Vec::new(), None);
        for (pod, result) in pods.iter().zip(results) {
            if !matches!(result, Ok(true)) {
                self.expectations.deletion_observed(name, pod.uid());
            }
            match result {
                Ok(_) => gone.push(Arc::clone(pod)),
                Err(error) => failure = Some(error),
            }
        }
        (gone, failure)
    }

    /// Takes the tracking finalizer off a pod.
    async fn release(&self, pod: &Pod) -> Result<()> {
        if !has_tracking_finalizer(pod) {
            return Ok(());
        }
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}});
        match self.pod_control.api(pod.namespace()).patch(pod.name(), &Patch::Strategic(patch)).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes the status, lets counted pods go, and ends the job if that was all.
    async fn write(&self, name: &ObjectName, round: &mut Round) -> Result<()> {
        let api = Api::<Job>::namespaced(&self.client, round.job.namespace());
        let (releasable, is_changed) = round.track();
        if is_changed {
            round.job = api.update_status(&round.job).await?;
            self.memory.lock().entry(name.clone()).or_default().failures = round.failures;
        }
        let failure = self.release_all(name, round, &releasable).await;
        let mut must_write = round.forget_counted();
        if let Some(error) = failure {
            if must_write {
                api.update_status(&round.job).await?;
            }
            return Err(error);
        }
        let ended = round.finish();
        must_write |= ended.is_some();
        if must_write {
            api.update_status(&round.job).await?;
        }
        if let Some(ended) = ended {
            self.tell_end(round, &ended);
            self.memory.lock().entry(name.clone()).or_default().ended = Some(round.job.uid().to_owned());
        }
        Ok(())
    }

    /// Takes the finalizers off pods that are counted or listed.
    async fn release_all(
        &self,
        name: &ObjectName,
        round: &mut Round,
        pods: &[Arc<Pod>],
    ) -> Option<pintle_client::Error> {
        let results: Vec<Result<()>> = join_all(pods.iter().map(|pod| self.release(pod))).await;
        let mut failure = None;
        let mut memory = self.memory.lock();
        let remembered = memory.entry(name.clone()).or_default();
        for (pod, result) in pods.iter().zip(results) {
            match result {
                Ok(()) => {
                    round.removing.insert(pod.uid().to_owned());
                    remembered.removing.insert(pod.uid().to_owned());
                }
                Err(error) => failure = Some(error),
            }
        }
        failure
    }

    fn tell_end(&self, round: &Round, ended: &k8s_openapi::api::batch::v1::JobCondition) {
        let job = &round.job;
        if ended.type_ == "Complete" {
            if round.has_too_many_succeeded() {
                let message = "Too many succeeded pods running after completion count reached";
                self.pod_control.event(job, EventType::Warning, "TooManySucceededPods", message);
            }
            self.pod_control.event(job, EventType::Normal, "Completed", "Job completed");
        } else {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            self.pod_control.event(job, EventType::Warning, &text(&ended.reason), &text(&ended.message));
        }
    }

    /// Lets a pod go whose job is gone.
    async fn release_orphan(&self, name: &ObjectName, job: &str) -> Result<Action> {
        let Some(pod) = self.pods.get_by_key(name) else { return Ok(Action::Done) };
        let owner = pod.controller_ref().filter(|owner| owner.kind == "Job" && owner.uid == job);
        let is_alive = owner.is_some_and(|owner| {
            let found = self.jobs.namespace(pod.namespace()).get(&owner.name);
            found.is_some_and(|found| found.uid() == job)
        });
        if is_alive {
            return Ok(Action::Done);
        }
        let pod = pod.object()?;
        if has_tracking_finalizer(&pod) {
            self.release(&pod).await?;
        }
        Ok(Action::Done)
    }
}
