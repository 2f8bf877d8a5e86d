//! Keeps as many pods as a ReplicaSet asks for.
//!
//! Follows: kubernetes/pkg/controller/replicaset (v1.35).

mod plan;

use crate::common::claim::Claimant;
use crate::common::owner::{controller_of, controller_ref, index_by_controller};
use crate::common::pod_events::{PodEvents, pods_around};
use crate::common::pods::{self, PodControl, pod_from_template, text_of};
use crate::common::selector::selector_of;
use crate::common::slow_start::{INITIAL_BATCH, slow_start_batch};
use crate::context::{Context, synced};
use futures_util::future::join_all;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::labels::Selector;
use pintle_client::{Api, Client, Object as _, Result};
use pintle_informer::expectations::UidTrackingControllerExpectations;
use pintle_informer::fifo::Deleted;
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName, ResourceEventHandlerFuncs};
use plan::Step;
use std::sync::Arc;

/// ReplicaSets worked on at once.
const WORKERS: usize = 5;

/// Pods made or deleted in one go; what is more waits for the next look.
const BURST_PODS_MAX: usize = 500;

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("replicaset");
    let (sets, pods) = (ctx.factory.informer::<ReplicaSet>(), ctx.factory.informer::<Pod>());
    index_by_controller(&pods);
    let expectations = UidTrackingControllerExpectations::new();
    sets.add_event_handler(set_events(&queue, &expectations));
    pods.add_event_handler(PodEvents {
        kind: "ReplicaSet",
        owners: sets.lister(),
        queue: queue.clone(),
        selector: |set: &ReplicaSet| selector_of(&set.spec.as_ref()?.selector),
        expectations: expectations.clone(),
    });
    let client = ctx.client_of("replicaset-controller");
    let controller = Arc::new(ReplicaSetController {
        pod_control: PodControl::new(&client, ctx.recorder("replicaset-controller")),
        client,
        sets: sets.lister(),
        pods: pods.lister(),
        expectations,
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(sets, pods), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
}

fn set_events(
    queue: &WorkQueue<ObjectName>,
    expectations: &UidTrackingControllerExpectations,
) -> ResourceEventHandlerFuncs<Cached<ReplicaSet>> {
    let (on_add, on_update, on_delete) = (queue.clone(), queue.clone(), queue.clone());
    let (of_old, of_gone) = (expectations.clone(), expectations.clone());
    ResourceEventHandlerFuncs::new()
        .on_add(move |set: &Cached<ReplicaSet>| on_add.add(set.object_name()))
        .on_update(move |old: &Cached<ReplicaSet>, new| {
            if old.uid() != new.uid() {
                // made again under its old name: what was expected of the old one will not come
                of_old.delete_expectations(&old.object_name());
            }
            on_update.add(new.object_name());
        })
        .on_delete(move |deleted: &Deleted<Cached<ReplicaSet>>| {
            let name = deleted.object().object_name();
            of_gone.delete_expectations(&name);
            on_delete.add(name);
        })
}

struct ReplicaSetController {
    client: Client,
    pod_control: PodControl,
    sets: Lister<Cached<ReplicaSet>>,
    pods: Lister<Cached<Pod>>,
    expectations: UidTrackingControllerExpectations,
    env: Env,
}

impl ReplicaSetController {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(cached) = self.sets.get_by_key(name) else {
            self.expectations.delete_expectations(name);
            return Ok(Action::Done);
        };
        let needs_sync = self.expectations.satisfied_expectations(name);
        let set = cached.object()?;
        let Some(selector) = set.spec.as_ref().and_then(|spec| selector_of(&spec.selector)) else {
            tracing::warn!(replicaset = %name, "the selector breaks a rule");
            return Ok(Action::Done);
        };
        let (active, n_terminating) = self.claim(&set, &selector).await?;
        let managed =
            if needs_sync && !set.is_terminating() { self.manage_replicas(name, &set, &active).await } else { Ok(()) };
        let now = self.env.clock.now();
        let failure = managed.as_ref().err().map(text_of);
        let status = plan::status(&set, &active, n_terminating, failure.as_deref(), now);
        let written = self.update_status(&set, status).await;
        managed?;
        written?;
        Ok(plan::next_look(&set, &active, now).map_or(Action::Done, Action::RequeueAfter))
    }

    /// The set's own pods that run or will run, and how many are going away.
    async fn claim(&self, set: &ReplicaSet, selector: &Selector) -> Result<(Vec<Arc<Pod>>, usize)> {
        let around = pods_around(&self.pods, set.namespace(), set.uid());
        let is_own = |pod: &Cached<Pod>| pod.controller_ref().is_some_and(|owner| owner.uid == set.uid());
        let is_finished =
            |pod: &Cached<Pod>| matches!(pod.text_at(&["status", "phase"]).as_deref(), Some("Succeeded" | "Failed"));
        let (terminating, rest): (Vec<_>, Vec<_>) =
            around.into_iter().filter(|pod| !is_finished(pod)).partition(Cached::is_terminating);
        let n_terminating = terminating.iter().filter(|pod| is_own(pod) && selector.matches(*pod)).count();
        let owners = Api::namespaced(&self.client, set.namespace());
        let claimant = Claimant::new(set, owners, selector);
        let claimed = claimant.claim(rest, &self.pod_control.api(set.namespace()), |_| true).await?;
        let active: std::result::Result<Vec<Arc<Pod>>, _> = claimed.iter().map(Cached::object).collect();
        Ok((active?, n_terminating))
    }

    /// Makes the pods that are missing, or deletes those that are too many.
    async fn manage_replicas(&self, name: &ObjectName, set: &ReplicaSet, active: &[Arc<Pod>]) -> Result<()> {
        match plan::step(set, active, BURST_PODS_MAX) {
            Step::Nothing => Ok(()),
            Step::Create(count) => {
                self.expectations.expect_creations(name, count);
                let template = set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
                let pod = pod_from_template(&template, &controller_ref(set), set.namespace());
                let pod = &pod;
                let (n_made, failure) = slow_start_batch(count, INITIAL_BATCH, |_| async move {
                    match self.pod_control.create(pod, set).await {
                        // everything in it is going away: there is nothing to be made
                        Err(error) if error.is_namespace_terminating() => Ok(()),
                        result => result.map(drop),
                    }
                })
                .await;
                for _ in n_made..count {
                    self.expectations.creation_observed(name);
                }
                failure.map_or(Ok(()), Err)
            }
            Step::Delete(count) => {
                let related = self.related_pods(set);
                let doomed = plan::doomed(active, &related, count, self.env.clock.now());
                self.expectations.expect_deletions(name, doomed.iter().map(|pod| pod.uid().to_owned()));
                let deletions = doomed.iter().map(|pod| async move {
                    let deleted = self.pod_control.delete(pod, set).await;
                    if !matches!(deleted, Ok(true)) {
                        // its end will not be told, or was told already
                        self.expectations.deletion_observed(name, pod.uid());
                    }
                    deleted.map(drop)
                });
                let results: Vec<Result<()>> = join_all(deletions).await;
                results.into_iter().find_map(std::result::Result::err).map_or(Ok(()), Err)
            }
        }
    }

    /// The pods of all ReplicaSets with the same owner: they should not crowd on one node together.
    fn related_pods(&self, set: &ReplicaSet) -> Vec<Arc<Pod>> {
        let siblings: Vec<Cached<ReplicaSet>> = match controller_of(&set.metadata) {
            None => self.sets.namespace(set.namespace()).list_where(|sibling| sibling.uid() == set.uid()),
            Some(owner) => self
                .sets
                .namespace(set.namespace())
                .list_where(|sibling| sibling.controller_ref().is_some_and(|of| of.uid == owner.uid)),
        };
        let pods = siblings.iter().flat_map(|sibling| {
            self.pods.by_index(crate::common::owner::BY_CONTROLLER, sibling.uid()).unwrap_or_default()
        });
        pods.filter_map(|pod| pod.object().ok()).filter(|pod| pods::is_active(pod)).collect()
    }

    async fn update_status(&self, set: &ReplicaSet, status: ReplicaSetStatus) -> Result<()> {
        if set.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let api = Api::<ReplicaSet>::namespaced(&self.client, set.namespace());
        let changed = ReplicaSet { status: Some(status.clone()), ..set.clone() };
        match api.update_status(&changed).await {
            Err(error) if error.is_conflict() => {
                // the set has changed, the count of its pods stays right
                let fresh = api.get(set.name()).await?;
                if fresh.uid() != set.uid() {
                    return Err(error);
                }
                api.update_status(&ReplicaSet { status: Some(status), ..fresh }).await.map(drop)
            }
            Err(error) if error.is_not_found() => Ok(()),
            result => result.map(drop),
        }
    }
}
