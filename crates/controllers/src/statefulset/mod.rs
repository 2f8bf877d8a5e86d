//! Keeps pods with names, places and storage of their own.
//!
//! Follows: kubernetes/pkg/controller/statefulset (v1.35).

mod plan;
mod pods;

use crate::common::claim::Claimant;
use crate::common::history::{is_of, new_revision, next_number, surplus, template_in};
use crate::common::owner::index_by_controller;
use crate::common::pod_events::{PodEvents, pods_around};
use crate::common::pods::{about, text_of};
use crate::common::selector::selector_of;
use crate::context::{Context, synced};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use pintle_apimachinery::Status;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::labels::Selector;
use pintle_client::{Api, Client, Error, Object as _, Result};
use pintle_informer::expectations::UidTrackingControllerExpectations;
use pintle_informer::handler::{enqueue, enqueue_owner};
use pintle_informer::record::{EventRecorder, EventType, Recorder as _};
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};
use plan::{Act, Revision};
use std::sync::Arc;

/// StatefulSets worked on at once.
const WORKERS: usize = 5;

/// The label of a revision with its hash.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("statefulset");
    let (sets, pods) = (ctx.factory.informer::<StatefulSet>(), ctx.factory.informer::<Pod>());
    let (claims, revisions) =
        (ctx.factory.informer::<PersistentVolumeClaim>(), ctx.factory.informer::<ControllerRevision>());
    index_by_controller(&pods);
    sets.add_event_handler(enqueue(&queue));
    revisions.add_event_handler(enqueue_owner(&queue, "StatefulSet"));
    pods.add_event_handler(PodEvents {
        kind: "StatefulSet",
        owners: sets.lister(),
        queue: queue.clone(),
        selector: |set: &StatefulSet| selector_of(&set.spec.as_ref()?.selector),
        // names tell what is there: nothing has to be counted
        expectations: UidTrackingControllerExpectations::new(),
    });
    let controller = Arc::new(StatefulSetController {
        client: ctx.client_of("statefulset-controller"),
        events: ctx.recorder("statefulset-controller"),
        sets: sets.lister(),
        pods: pods.lister(),
        claims: claims.lister(),
        revisions: revisions.lister(),
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(sets, pods, claims, revisions), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
}

struct StatefulSetController {
    client: Client,
    events: EventRecorder,
    sets: Lister<Cached<StatefulSet>>,
    pods: Lister<Cached<Pod>>,
    claims: Lister<Cached<PersistentVolumeClaim>>,
    revisions: Lister<Cached<ControllerRevision>>,
    env: Env,
}

impl StatefulSetController {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(cached) = self.sets.get_by_key(name) else { return Ok(Action::Done) };
        let mut set = cached.to_owned_object()?;
        let Some(selector) = set.spec.as_ref().and_then(|spec| selector_of(&spec.selector)) else {
            return Ok(Action::Done);
        };
        let revisions = self.claim_revisions(&set, &selector).await?;
        let pods = self.claim_pods(&set, &selector).await?;
        Box::pin(self.perform(&mut set, revisions, pods)).await
    }

    async fn claim_revisions(&self, set: &StatefulSet, selector: &Selector) -> Result<Vec<ControllerRevision>> {
        let around = self
            .revisions
            .namespace(set.namespace())
            .list_where(|revision| revision.controller_ref().is_none_or(|owner| owner.uid == set.uid()));
        let api = Api::<ControllerRevision>::namespaced(&self.client, set.namespace());
        let owners = Api::namespaced(&self.client, set.namespace());
        let claimed = Claimant::new(set, owners, selector).claim(around, &api, |_| true).await?;
        let revisions: std::result::Result<Vec<_>, _> = claimed.iter().map(Cached::to_owned_object).collect();
        Ok(revisions?)
    }

    async fn claim_pods(&self, set: &StatefulSet, selector: &Selector) -> Result<Vec<Arc<Pod>>> {
        let around = pods_around(&self.pods, set.namespace(), set.uid());
        let api = Api::<Pod>::namespaced(&self.client, set.namespace());
        let owners = Api::namespaced(&self.client, set.namespace());
        let is_named = |pod: &Cached<Pod>| pods::ordinal(set.name(), pod.name()).is_some();
        let claimed = Claimant::new(set, owners, selector).claim(around, &api, is_named).await?;
        let pods: std::result::Result<Vec<_>, _> = claimed.iter().map(Cached::object).collect();
        Ok(pods?)
    }

    async fn perform(
        &self,
        set: &mut StatefulSet,
        mut revisions: Vec<ControllerRevision>,
        pods: Vec<Arc<Pod>>,
    ) -> Result<Action> {
        let update = self.update_revision(set, &mut revisions).await?;
        let known = set.status.as_ref().and_then(|status| status.current_revision.clone()).unwrap_or_default();
        let current = revisions.iter().find(|revision| revision.name() == known).unwrap_or(&update).clone();
        let template = pods::spec(set).template;
        let current_template = template_in(&current).unwrap_or_else(|| template.clone());
        let now = self.env.clock.now();
        let plan = plan::plan(
            set,
            &Revision { name: current.name(), template: &current_template },
            &Revision { name: update.name(), template: &template },
            &pods,
            now,
        );
        let failure = self.act_all(set, &plan.acts).await.err();
        if set.status.as_ref() != Some(&plan.status) {
            let mut changed = set.clone();
            changed.status = Some(plan.status);
            let api = Api::<StatefulSet>::namespaced(&self.client, set.namespace());
            match api.update_status(&changed).await {
                Err(error) if !error.is_not_found() => return Err(failure.unwrap_or(error)),
                _ => {}
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        self.truncate_history(set, revisions, &[current.name(), update.name()], &pods).await?;
        Ok(plan::next_look(set, &pods, now).map_or(Action::Done, Action::RequeueAfter))
    }

    /// The revision of the set's template: found, renumbered or made.
    async fn update_revision(
        &self,
        set: &mut StatefulSet,
        revisions: &mut Vec<ControllerRevision>,
    ) -> Result<ControllerRevision> {
        let api = Api::<ControllerRevision>::namespaced(&self.client, set.namespace());
        let template = pods::spec(set).template;
        let next = next_number(revisions.iter());
        let equal = revisions.iter().filter(|revision| is_of(revision, &template)).max_by_key(|r| r.revision);
        if let Some(equal) = equal {
            if equal.revision == next - 1 {
                return Ok(equal.clone());
            }
            let renumbered = api.update(&ControllerRevision { revision: next, ..equal.clone() }).await?;
            revisions.retain(|revision| revision.name() != renumbered.name());
            revisions.push(renumbered.clone());
            return Ok(renumbered);
        }
        let collisions = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or_default();
        let wanted = new_revision(set, &template, next, Some(collisions), HASH_LABEL);
        match api.create(&wanted).await {
            Ok(made) => {
                revisions.push(made.clone());
                Ok(made)
            }
            Err(error) if error.is_already_exists() => {
                let found = api.get(wanted.name()).await?;
                if is_of(&found, &template) {
                    revisions.push(found.clone());
                    return Ok(found);
                }
                let status = set.status.get_or_insert_default();
                status.collision_count = Some(collisions + 1);
                Api::<StatefulSet>::namespaced(&self.client, set.namespace()).update_status(set).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn act_all(&self, set: &StatefulSet, acts: &[Act]) -> Result<()> {
        for act in acts {
            match act {
                Act::Create(pod) => self.create(set, pod).await?,
                Act::Delete(pod) => self.delete(set, pod).await?,
                Act::Keep(pod) => self.keep(set, pod).await?,
            }
        }
        Ok(())
    }

    async fn create(&self, set: &StatefulSet, pod: &Pod) -> Result<()> {
        let ordinal = pods::ordinal(set.name(), pod.name()).unwrap_or_default();
        if let Err(error) = self.ensure_claims(set, pod, ordinal).await {
            self.tell(set, pod, "Create", Some(&error));
            return Err(error);
        }
        match Api::<Pod>::namespaced(&self.client, set.namespace()).create(pod).await {
            Ok(_) => {
                self.tell(set, pod, "Create", None);
                Ok(())
            }
            // the cache is behind, or somebody has the name: it is looked at again
            Err(error) if error.is_already_exists() => Err(conflict(&error)),
            Err(error) => {
                self.tell(set, pod, "Create", Some(&error));
                Err(error)
            }
        }
    }

    async fn delete(&self, set: &StatefulSet, pod: &Pod) -> Result<()> {
        let api = Api::<Pod>::namespaced(&self.client, set.namespace());
        match api.delete(pod.name()).uid(pod.uid()).await {
            Ok(_) => self.tell(set, pod, "Delete", None),
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                self.tell(set, pod, "Delete", Some(&error));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Sees to the labels and claims of a pod that is there.
    async fn keep(&self, set: &StatefulSet, pod: &Arc<Pod>) -> Result<()> {
        let Some(ordinal) = pods::ordinal(set.name(), pod.name()) else { return Ok(()) };
        if crate::common::pods::phase(pod) == "Pending" {
            self.ensure_claims(set, pod, ordinal).await?;
        }
        self.own_claims(set, pod, ordinal).await?;
        if pods::is_identified(pod) || pod.is_terminating() {
            return Ok(());
        }
        let mut changed = Pod::clone(pod);
        pods::identify(set, &mut changed, ordinal);
        let result = Api::<Pod>::namespaced(&self.client, set.namespace()).update(&changed).await;
        self.tell(set, pod, "Update", result.as_ref().err());
        result.map(drop)
    }

    /// Makes the claims of an ordinal that are missing.
    async fn ensure_claims(&self, set: &StatefulSet, pod: &Pod, ordinal: i32) -> Result<()> {
        let api = Api::<PersistentVolumeClaim>::namespaced(&self.client, set.namespace());
        for claim in pods::claims(set, ordinal) {
            if let Some(known) = self.claims.namespace(set.namespace()).get(claim.name()) {
                if known.is_terminating() {
                    let message = format!("pvc {} is being deleted", claim.name());
                    return Err(Error::from(Status::failure(409, "Conflict", message)));
                }
                continue;
            }
            let (name, pod, of) = (claim.name(), pod.name(), set.name());
            match api.create(&claim).await {
                Ok(_) => {
                    let message = format!("Create Claim {name} Pod {pod} in StatefulSet {of} success");
                    self.events.event(&about(set), EventType::Normal, "SuccessfulCreate", &message);
                }
                Err(error) if error.is_already_exists() => {}
                Err(error) => {
                    let why = text_of(&error);
                    let message = format!("Create Claim {name} for Pod {pod} in StatefulSet {of} failed error: {why}");
                    self.events.event(&about(set), EventType::Warning, "FailedCreate", &message);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Gives the claims of an ordinal the owners that the retention policy wants.
    async fn own_claims(&self, set: &StatefulSet, pod: &Pod, ordinal: i32) -> Result<()> {
        let api = Api::<PersistentVolumeClaim>::namespaced(&self.client, set.namespace());
        let pod_ref = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: pod.name().to_owned(),
            uid: pod.uid().to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        for wanted in pods::claims(set, ordinal) {
            let Some(known) = self.claims.namespace(set.namespace()).get(wanted.name()) else { continue };
            let mut claim = known.to_owned_object()?;
            if let Some(owners) = pods::owners_of_claim(set, ordinal, &pod_ref, &claim) {
                claim.metadata.owner_references = Some(owners);
                api.update(&claim).await?;
            }
        }
        Ok(())
    }

    fn tell(&self, set: &StatefulSet, pod: &Pod, verb: &str, failure: Option<&Error>) {
        let (pod, of) = (pod.name(), set.name());
        let (event_type, reason, message) = match failure {
            None => {
                let message = format!("{verb} Pod {pod} in StatefulSet {of} successful");
                (EventType::Normal, format!("Successful{verb}"), message)
            }
            Some(error) => {
                let message = format!("{verb} Pod {pod} in StatefulSet {of} failed error: {}", text_of(error));
                (EventType::Warning, format!("Failed{verb}"), message)
            }
        };
        self.events.event(&about(set), event_type, &reason, &message);
    }

    async fn truncate_history(
        &self,
        set: &StatefulSet,
        revisions: Vec<ControllerRevision>,
        live: &[&str],
        pods: &[Arc<Pod>],
    ) -> Result<()> {
        let api = Api::<ControllerRevision>::namespaced(&self.client, set.namespace());
        let is_live = |revision: &ControllerRevision| {
            live.contains(&revision.name()) || pods.iter().any(|pod| pods::revision_of(pod) == revision.name())
        };
        for revision in surplus(revisions, pods::spec(set).revision_history_limit, is_live) {
            match api.delete(revision.name()).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A failure that the next look at newer caches will not meet.
fn conflict(error: &Error) -> Error {
    Error::from(Status::failure(409, "Conflict", text_of(error)))
}
