//! Runs one pod on every node that wants it.
//!
//! Follows: kubernetes/pkg/controller/daemon (v1.35).

pub(crate) mod nodes;
mod plan;

use crate::common::claim::Claimant;
use crate::common::history::{REVISION_LABEL, is_of, new_revision, next_number, surplus};
use crate::common::owner::{controller_ref, index_by_controller};
use crate::common::pod_events::{PodEvents, pods_around};
use crate::common::pods::{PodControl, pod_from_template};
use crate::common::selector::selector_of;
use crate::common::slow_start::{INITIAL_BATCH, slow_start_batch};
use crate::context::{Context, synced};
use futures_util::future::join_all;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::labels::Selector;
use pintle_client::{Api, Client, Object as _, Result};
use pintle_informer::expectations::UidTrackingControllerExpectations;
use pintle_informer::handler::{enqueue, enqueue_owner};
use pintle_informer::record::EventType;
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName, ResourceEventHandlerFuncs};
use plan::{Step, View};
use std::sync::Arc;
use std::time::Duration;

/// DaemonSets worked on at once.
const WORKERS: usize = 2;

/// Pods made or deleted in one go; what is more waits for the next look.
const BURST_PODS_MAX: usize = 250;

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("daemonset");
    let (sets, pods) = (ctx.factory.informer::<DaemonSet>(), ctx.factory.informer::<Pod>());
    let (nodes, revisions) = (ctx.factory.informer::<Node>(), ctx.factory.informer::<ControllerRevision>());
    index_by_controller(&pods);
    let expectations = UidTrackingControllerExpectations::new();
    sets.add_event_handler(enqueue(&queue));
    revisions.add_event_handler(enqueue_owner(&queue, "DaemonSet"));
    pods.add_event_handler(PodEvents {
        kind: "DaemonSet",
        owners: sets.lister(),
        queue: queue.clone(),
        selector: |set: &DaemonSet| selector_of(&set.spec.as_ref()?.selector),
        expectations: expectations.clone(),
    });
    let (lister, all) = (sets.lister(), queue.clone());
    let enqueue_all = move || lister.list().iter().for_each(|set| all.add(set.object_name()));
    let (on_add, on_update) = (enqueue_all.clone(), enqueue_all);
    nodes.add_event_handler(ResourceEventHandlerFuncs::new().on_add(move |_: &Cached<Node>| on_add()).on_update(
        move |old: &Cached<Node>, new: &Cached<Node>| {
            // heartbeats do not matter: labels, taints and the name in the spec do
            let parts = [["metadata", "labels"], ["spec", "taints"], ["spec", "unschedulable"]];
            if parts.iter().any(|path| old.value_at(path) != new.value_at(path)) {
                on_update();
            }
        },
    ));
    let client = ctx.client_of("daemon-set-controller");
    let controller = Arc::new(DaemonSetController {
        pod_control: PodControl::new(&client, ctx.recorder("daemonset-controller")),
        client,
        sets: sets.lister(),
        pods: pods.lister(),
        nodes: nodes.lister(),
        revisions: revisions.lister(),
        expectations,
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(sets, pods, nodes, revisions), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
}

struct DaemonSetController {
    client: Client,
    pod_control: PodControl,
    sets: Lister<Cached<DaemonSet>>,
    pods: Lister<Cached<Pod>>,
    nodes: Lister<Cached<Node>>,
    revisions: Lister<Cached<ControllerRevision>>,
    expectations: UidTrackingControllerExpectations,
    env: Env,
}

impl DaemonSetController {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(cached) = self.sets.get_by_key(name) else {
            self.expectations.delete_expectations(name);
            return Ok(Action::Done);
        };
        let set = cached.object()?;
        let Some(spec) = set.spec.as_ref().filter(|_| !set.is_terminating()) else { return Ok(Action::Done) };
        if spec.selector == LabelSelector::default() {
            let message = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.pod_control.event(set.as_ref(), EventType::Warning, "SelectingAll", message);
            return Ok(Action::Done);
        }
        let Some(selector) = selector_of(&spec.selector) else { return Ok(Action::Done) };
        Box::pin(self.perform(name, &set, &selector)).await
    }

    async fn perform(&self, name: &ObjectName, set: &DaemonSet, selector: &Selector) -> Result<Action> {
        let template = &set.spec.clone().unwrap_or_default().template;
        let (hash, old) = self.history(set, selector, template).await?;
        let nodes: std::result::Result<Vec<Arc<Node>>, _> = self.nodes.list().iter().map(Cached::object).collect();
        let nodes = nodes?;
        let pods = self.claim_pods(set, selector).await?;
        let now = self.env.clock.now();
        let view = View::new(set, &nodes, &pods, &hash, now);
        let is_satisfied = self.expectations.satisfied_expectations(name);
        let result = if is_satisfied { self.step(name, &view, template).await } else { Ok(()) };
        let status = view.status(is_satisfied);
        if set.status.as_ref() != Some(&status) {
            let changed = DaemonSet { status: Some(status.clone()), ..set.clone() };
            match Api::<DaemonSet>::namespaced(&self.client, set.namespace()).update_status(&changed).await {
                Err(error) if !error.is_not_found() => return result.and(Err(error)),
                _ => {}
            }
        }
        result?;
        if is_satisfied {
            self.clean_up(set, old, &pods).await?;
        }
        let min_ready = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
        let is_waiting = min_ready > 0 && status.number_ready != status.number_available.unwrap_or_default();
        let pause = Duration::from_secs(u64::try_from(min_ready).unwrap_or_default());
        Ok(if is_waiting { Action::RequeueAfter(pause) } else { Action::Done })
    }

    async fn step(&self, name: &ObjectName, view: &View<'_>, template: &PodTemplateSpec) -> Result<()> {
        let step = view.manage();
        for pod in &step.ended {
            let node = plan::node_of(pod).unwrap_or_default();
            let (namespace, pod_name) = (pod.namespace(), pod.name());
            let (event_type, reason, verb, word) = if crate::common::pods::phase(pod) == "Failed" {
                (EventType::Warning, "FailedDaemonPod", "kill", "failed")
            } else {
                (EventType::Normal, "SucceededDaemonPod", "delete", "succeeded")
            };
            let message =
                format!("Found {word} daemon pod {namespace}/{pod_name} on node {node}, will try to {verb} it");
            self.pod_control.event(view.set, event_type, reason, &message);
        }
        self.perform_step(name, view, template, step).await?;
        if self.expectations.satisfied_expectations(name) {
            self.perform_step(name, view, template, view.roll()).await?;
        }
        Ok(())
    }

    async fn perform_step(
        &self,
        name: &ObjectName,
        view: &View<'_>,
        template: &PodTemplateSpec,
        mut step: Step,
    ) -> Result<()> {
        step.create_on.truncate(BURST_PODS_MAX);
        step.delete.truncate(BURST_PODS_MAX);
        if step.create_on.is_empty() && step.delete.is_empty() {
            return Ok(());
        }
        self.expectations.expect_deletions(name, step.delete.iter().map(|pod| pod.uid().to_owned()));
        self.expectations.raise_expectations(name, i64::try_from(step.create_on.len()).unwrap_or_default(), 0);
        let (set, on) = (view.set, &step.create_on);
        let pod = self.pod(set, template, view.hash);
        let pod = &pod;
        let (n_made, mut failure) = slow_start_batch(on.len(), INITIAL_BATCH, |idx| async move {
            let mut pod = pod.clone();
            nodes::pin(pod.spec.get_or_insert_default(), &on[idx]);
            match self.pod_control.create(&pod, set).await {
                Err(error) if error.is_namespace_terminating() => Ok(()),
                result => result.map(drop),
            }
        })
        .await;
        for _ in n_made..on.len() {
            self.expectations.creation_observed(name);
        }
        let deletions = step.delete.iter().map(|pod| async move {
            let deleted = self.pod_control.delete(pod, set).await;
            if !matches!(deleted, Ok(true)) {
                self.expectations.deletion_observed(name, pod.uid());
            }
            deleted.err()
        });
        let failures: Vec<_> = join_all(deletions).await;
        failure = failure.or_else(|| failures.into_iter().flatten().next());
        failure.map_or(Ok(()), Err)
    }

    fn pod(&self, set: &DaemonSet, template: &PodTemplateSpec, hash: &str) -> Pod {
        let mut pod = pod_from_template(template, &controller_ref(set), set.namespace());
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert(REVISION_LABEL.to_owned(), hash.to_owned());
        let annotations = set.metadata.annotations.as_ref();
        if let Some(generation) = annotations.and_then(|a| a.get("deprecated.daemonset.template.generation")) {
            labels.insert("pod-template-generation".to_owned(), generation.clone());
        }
        nodes::add_tolerations(pod.spec.get_or_insert_default());
        pod
    }

    async fn claim_pods(&self, set: &DaemonSet, selector: &Selector) -> Result<Vec<Arc<Pod>>> {
        let around = pods_around(&self.pods, set.namespace(), set.uid());
        let owners = Api::namespaced(&self.client, set.namespace());
        let claimant = Claimant::new(set, owners, selector);
        let claimed = claimant.claim(around, &self.pod_control.api(set.namespace()), |_| true).await?;
        let pods: std::result::Result<Vec<_>, _> = claimed.iter().map(Cached::object).collect();
        Ok(pods?)
    }

    /// The hash of the template's revision, which is made if it is missing, and the other revisions.
    async fn history(
        &self,
        set: &DaemonSet,
        selector: &Selector,
        template: &PodTemplateSpec,
    ) -> Result<(String, Vec<ControllerRevision>)> {
        let around = self
            .revisions
            .namespace(set.namespace())
            .list_where(|revision| revision.controller_ref().is_none_or(|owner| owner.uid == set.uid()));
        let api = Api::<ControllerRevision>::namespaced(&self.client, set.namespace());
        let owners = Api::namespaced(&self.client, set.namespace());
        let claimed = Claimant::new(set, owners, selector).claim(around, &api, |_| true).await?;
        let revisions: std::result::Result<Vec<_>, _> = claimed.iter().map(Cached::to_owned_object).collect();
        let (equal, old): (Vec<_>, Vec<_>) = revisions?.into_iter().partition(|revision| is_of(revision, template));
        let next = next_number(old.iter());
        let current = match equal.into_iter().max_by_key(|revision| revision.revision) {
            Some(current) if current.revision < next => {
                api.update(&ControllerRevision { revision: next, ..current }).await?
            }
            Some(current) => current,
            None => self.new_revision(&api, set, template, next).await?,
        };
        let labels = current.metadata.labels.unwrap_or_default();
        Ok((labels.get(REVISION_LABEL).cloned().unwrap_or_default(), old))
    }

    async fn new_revision(
        &self,
        api: &Api<ControllerRevision>,
        set: &DaemonSet,
        template: &PodTemplateSpec,
        number: i64,
    ) -> Result<ControllerRevision> {
        let collisions = set.status.as_ref().and_then(|status| status.collision_count);
        let wanted = new_revision(set, template, number, collisions, REVISION_LABEL);
        match api.create(&wanted).await {
            Err(error) if error.is_already_exists() => {
                let found = api.get(wanted.name()).await?;
                if is_of(&found, template) {
                    return Ok(found);
                }
                let mut changed = set.clone();
                changed.status.get_or_insert_default().collision_count = Some(collisions.unwrap_or_default() + 1);
                Api::<DaemonSet>::namespaced(&self.client, set.namespace()).update_status(&changed).await?;
                Err(error)
            }
            result => result,
        }
    }

    async fn clean_up(&self, set: &DaemonSet, old: Vec<ControllerRevision>, pods: &[Arc<Pod>]) -> Result<()> {
        let hash = |labels: &Option<std::collections::BTreeMap<String, String>>| {
            labels.as_ref().and_then(|labels| labels.get(REVISION_LABEL)).cloned()
        };
        let is_live = |revision: &ControllerRevision| {
            let of_revision = hash(&revision.metadata.labels);
            pods.iter().any(|pod| hash(&pod.metadata.labels) == of_revision)
        };
        let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        let api = Api::<ControllerRevision>::namespaced(&self.client, set.namespace());
        for revision in surplus(old, limit, is_live) {
            match api.delete(revision.name()).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
