//! One round of a deployment: finds or makes the new ReplicaSet, takes the next step, writes the status.

use super::DeploymentController;
use super::plan::{self, Resize, is_complete, max_surge, replicas, size};
use super::revision::{self, HASH_LABEL};
use super::status::{self, progressing, reason};
use crate::common::hash::compute_hash;
use crate::common::owner::{controller_ref, is_controlled_by};
use crate::common::pods::text_of;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use pintle_apimachinery::Status;
use pintle_client::{Api, Error, Object as _, Result};
use pintle_informer::record::EventType;
use pintle_informer::workqueue::Action;

/// The longest name of an object.
const NAME_CHARS_MAX: usize = 253;

pub(super) struct Rollout<'a> {
    controller: &'a DeploymentController,
    deployments: Api<Deployment>,
    sets_api: Api<ReplicaSet>,
    /// The deployment, as last written.
    deployment: Deployment,
    /// All its sets.
    sets: Vec<ReplicaSet>,
}

/// The sets of a round.
struct Split {
    new: Option<ReplicaSet>,
    old: Vec<ReplicaSet>,
}

impl Split {
    fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.new)
    }
}

impl<'a> Rollout<'a> {
    pub(super) fn new(
        controller: &'a DeploymentController,
        deployment: Deployment,
        mut sets: Vec<ReplicaSet>,
    ) -> Rollout<'a> {
        let namespace = deployment.namespace();
        sets.sort_by(revision::by_creation);
        Rollout {
            deployments: Api::namespaced(&controller.client, namespace),
            sets_api: Api::namespaced(&controller.client, namespace),
            controller,
            deployment,
            sets,
        }
    }

    fn now(&self) -> jiff::Timestamp {
        self.controller.env.clock.now()
    }

    fn is_paused(&self) -> bool {
        self.deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or_default()
    }

    pub(super) async fn run(mut self) -> Result<Action> {
        if self.deployment.is_terminating() {
            let split = self.split(false).await?;
            return self.sync_status(&split).await;
        }
        if let Some(condition) = status::pause_condition(&self.deployment, self.now()) {
            status::set_condition(self.deployment.status.get_or_insert_default(), condition);
            self.write_status().await?;
        }
        if self.is_paused() {
            return self.sync().await;
        }
        if let Some(revision) = revision::rollback_to(&self.deployment) {
            return self.roll_back(revision).await;
        }
        let split = self.split(false).await?;
        if plan::is_scaling_event(&self.deployment, split.all()) {
            return self.sync().await;
        }
        let strategy = self.deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref()?.type_.clone());
        match strategy.as_deref() {
            Some("Recreate") => Box::pin(self.recreate()).await,
            _ => Box::pin(self.roll()).await,
        }
    }

    /// Scales without rolling out.
    async fn sync(&mut self) -> Result<Action> {
        let mut split = self.split(false).await?;
        let sizes = plan::proportional(&self.deployment, split.new.as_ref(), &split.old);
        self.resize(&mut split, &sizes).await?;
        if self.is_paused() && revision::rollback_to(&self.deployment).is_none() {
            self.clean_up(&split.old).await?;
        }
        self.sync_status(&split).await
    }

    async fn roll(&mut self) -> Result<Action> {
        let mut split = self.split(true).await?;
        if let Some(new) = split.new.clone() {
            if let Some(up) = plan::rolling_up(&self.deployment, &new, &split.old) {
                self.resize(&mut split, &[up]).await?;
                return self.sync_rollout_status(&split).await;
            }
            let down = plan::rolling_down(&self.deployment, &new, &split.old);
            if !down.is_empty() {
                self.resize(&mut split, &down).await?;
                return self.sync_rollout_status(&split).await;
            }
        }
        self.clean_up_if_complete(&split.old).await?;
        self.sync_rollout_status(&split).await
    }

    async fn recreate(&mut self) -> Result<Action> {
        let mut split = self.split(false).await?;
        let down: Vec<Resize> = split
            .old
            .iter()
            .filter(|set| size(set) > 0)
            .map(|set| Resize { uid: set.uid().to_owned(), to: 0 })
            .collect();
        if !down.is_empty() {
            self.resize(&mut split, &down).await?;
            return self.sync_rollout_status(&split).await;
        }
        let n_old: i32 = split.old.iter().map(plan::actual).sum();
        if n_old > 0 || self.controller.has_old_pods(&self.sets, split.new.as_ref()) {
            return self.sync_rollout_status(&split).await;
        }
        if split.new.is_none() {
            split = self.split(true).await?;
        }
        if let Some(new) = &split.new
            && size(new) != replicas(&self.deployment)
        {
            let up = Resize { uid: new.uid().to_owned(), to: replicas(&self.deployment) };
            self.resize(&mut split, &[up]).await?;
        }
        self.clean_up_if_complete(&split.old).await?;
        self.sync_rollout_status(&split).await
    }

    /// Makes the deployment what it was at a revision; 0 is the one before the last.
    async fn roll_back(&mut self, revision: i64) -> Result<Action> {
        let split = self.split(true).await?;
        let revision = if revision == 0 { revision::last_revision(split.all()) } else { revision };
        let event = |this: &Self, event_type, reason: &str, message: &str| {
            this.controller.event(&this.deployment, event_type, reason, message);
        };
        let target = split.all().find(|set| revision::revision_of(set) == Some(revision)).filter(|_| revision != 0);
        match target {
            None => {
                let message = if revision == 0 {
                    "Unable to find last revision."
                } else {
                    "Unable to find the revision to rollback to."
                };
                event(self, EventType::Warning, "DeploymentRollbackRevisionNotFound", message);
            }
            Some(set) => {
                let template = &self.deployment.spec.clone().unwrap_or_default().template;
                let name = self.deployment.name().to_owned();
                if revision::equal_ignore_hash(template, &revision::template_of(set)) {
                    let message =
                        format!("The rollback revision contains the same template as current deployment {name:?}");
                    event(self, EventType::Warning, "DeploymentRollbackTemplateUnchanged", &message);
                } else {
                    revision::roll_back(&mut self.deployment, set);
                    let message = format!("Rolled back deployment {name:?} to revision {revision}");
                    event(self, EventType::Normal, "DeploymentRollback", &message);
                }
            }
        }
        if let Some(annotations) = &mut self.deployment.metadata.annotations {
            annotations.remove(revision::ROLLBACK_TO);
        }
        self.deployments.update(&self.deployment).await?;
        Ok(Action::Done)
    }

    /// The new set and the old ones. Numbers revisions; makes the new set if it is missing and `creates`.
    async fn split(&mut self, creates: bool) -> Result<Split> {
        let mut old = self.sets.clone();
        let new = revision::new_set_idx(&self.deployment, &old).map(|idx| old.remove(idx));
        let revision = revision::max_revision(&old) + 1;
        let new = match new {
            Some(new) => Some(self.renew(new, revision).await?),
            None if creates => Some(self.create_set(&old, revision).await?),
            None => None,
        };
        Ok(Split { new, old })
    }

    /// Sees to the annotations of the new set, and that the deployment tells of it.
    async fn renew(&mut self, mut new: ReplicaSet, revision: i64) -> Result<ReplicaSet> {
        let min_ready_seconds = self.deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
        let mut needs_update = revision::annotate(&self.deployment, &mut new, revision, false);
        if let Some(spec) = &mut new.spec
            && spec.min_ready_seconds != min_ready_seconds
        {
            spec.min_ready_seconds = min_ready_seconds;
            needs_update = true;
        }
        if needs_update {
            let updated = self.sets_api.update(&new).await?;
            self.remember(&updated);
            return Ok(updated);
        }
        let shown = revision::annotation_of(&new, revision::REVISION).to_owned();
        let mut needs_status = revision::set_revision(&mut self.deployment, &shown);
        let is_silent = status::progress_of(&self.deployment).is_none();
        if is_silent && status::progress_deadline(&self.deployment).is_some() {
            let message = format!("Found new replica set {:?}", new.name());
            let condition = progressing("True", reason::FOUND, &message, self.now());
            status::set_condition(self.deployment.status.get_or_insert_default(), condition);
            needs_status = true;
        }
        if needs_status {
            self.write_status().await?;
        }
        Ok(new)
    }

    async fn create_set(&mut self, old: &[ReplicaSet], revision: i64) -> Result<ReplicaSet> {
        let mut set = self.new_set();
        let wanted = plan::new_set_size(&self.deployment, old, 0);
        if let Some(spec) = &mut set.spec {
            spec.replicas = Some(wanted);
        }
        revision::annotate(&self.deployment, &mut set, revision, true);
        let (made, is_found) = match self.sets_api.create(&set).await {
            Ok(made) => (made, false),
            Err(error) if error.is_already_exists() => (self.resolve_collision(&set, error).await?, true),
            Err(error) => return Err(self.report_failure(set.name(), error).await),
        };
        if !is_found && wanted > 0 {
            let message = format!("Scaled up replica set {} from 0 to {wanted}", made.name());
            self.controller.event(&self.deployment, EventType::Normal, "ScalingReplicaSet", &message);
        }
        self.remember(&made);
        let mut needs_status = revision::set_revision(&mut self.deployment, &revision.to_string());
        if !is_found && status::progress_deadline(&self.deployment).is_some() {
            let message = format!("Created new replica set {:?}", made.name());
            let condition = progressing("True", reason::CREATED, &message, self.now());
            status::set_condition(self.deployment.status.get_or_insert_default(), condition);
            needs_status = true;
        }
        if needs_status {
            self.write_status().await?;
        }
        Ok(made)
    }

    /// The set of the deployment's template, without replicas.
    fn new_set(&self) -> ReplicaSet {
        let spec = self.deployment.spec.clone().unwrap_or_default();
        let collisions = self.deployment.status.as_ref().and_then(|status| status.collision_count);
        let hash = compute_hash(&spec.template, collisions);
        let mut template = spec.template;
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(HASH_LABEL.to_owned(), hash.clone());
        let labels = labels.clone();
        let mut selector = spec.selector;
        selector.match_labels.get_or_insert_default().insert(HASH_LABEL.to_owned(), hash.clone());
        let base = self.deployment.name();
        let base = base.get(..NAME_CHARS_MAX - 1 - hash.len()).unwrap_or(base);
        ReplicaSet {
            metadata: ObjectMeta {
                name: Some(format!("{base}-{hash}")),
                namespace: self.deployment.metadata.namespace.clone(),
                owner_references: Some(vec![controller_ref(&self.deployment)]),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            spec: Some(ReplicaSetSpec {
                replicas: Some(0),
                min_ready_seconds: spec.min_ready_seconds,
                selector,
                template: Some(template),
            }),
            status: None,
        }
    }

    /// The set that has the name already, if it is ours and has the template: then the cache was behind. Else another
    /// hash is tried next time.
    async fn resolve_collision(&mut self, wanted: &ReplicaSet, error: Error) -> Result<ReplicaSet> {
        let found = self.sets_api.get(wanted.name()).await?;
        let template = self.deployment.spec.clone().unwrap_or_default().template;
        let is_ours = is_controlled_by(&found.metadata, self.deployment.uid());
        if is_ours && revision::equal_ignore_hash(&template, &revision::template_of(&found)) {
            return Ok(found);
        }
        let status = self.deployment.status.get_or_insert_default();
        status.collision_count = Some(status.collision_count.unwrap_or_default().saturating_add(1));
        self.write_status().await?;
        Err(error)
    }

    async fn report_failure(&mut self, set: &str, error: Error) -> Error {
        if error.is_namespace_terminating() {
            return error;
        }
        let message = format!("Failed to create new replica set {set:?}: {}", text_of(&error));
        if status::progress_deadline(&self.deployment).is_some() {
            let condition = progressing("False", reason::CREATE_ERROR, &message, self.now());
            status::set_condition(self.deployment.status.get_or_insert_default(), condition);
            if let Err(error) = self.write_status().await {
                tracing::debug!(deployment = self.deployment.name(), %error, "the failure could not be told");
            }
        }
        self.controller.event(&self.deployment, EventType::Warning, reason::CREATE_ERROR, &message);
        error
    }

    /// Scales sets, notes the deployment's numbers on them, and tells of it.
    async fn resize(&mut self, split: &mut Split, sizes: &[Resize]) -> Result<()> {
        for Resize { uid, to } in sizes {
            let Some(set) = split.old.iter_mut().chain(&mut split.new).find(|set| set.uid() == uid) else { continue };
            let from = size(set);
            if from == *to && !revision::needs_replicas_annotations(&self.deployment, set) {
                continue;
            }
            let mut scaled = set.clone();
            if let Some(spec) = &mut scaled.spec {
                spec.replicas = Some(*to);
            }
            revision::set_replicas_annotations(&self.deployment, &mut scaled);
            *set = self.sets_api.update(&scaled).await?;
            if from != *to {
                let way = if from < *to { "up" } else { "down" };
                let message = format!("Scaled {way} replica set {} from {from} to {to}", set.name());
                self.controller.event(&self.deployment, EventType::Normal, "ScalingReplicaSet", &message);
            }
            let set = set.clone();
            self.remember(&set);
        }
        debug_assert!(max_surge(&self.deployment) >= 0, "the server refuses negative surges");
        Ok(())
    }

    async fn clean_up_if_complete(&self, old: &[ReplicaSet]) -> Result<()> {
        let stored = self.deployment.status.clone().unwrap_or_default();
        if is_complete(&self.deployment, &stored) { self.clean_up(old).await } else { Ok(()) }
    }

    /// Deletes the oldest sets beyond the history limit.
    async fn clean_up(&self, old: &[ReplicaSet]) -> Result<()> {
        for set in plan::beyond_history(&self.deployment, old) {
            match self.sets_api.delete(set.name()).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn sync_status(&mut self, split: &Split) -> Result<Action> {
        let status = status::calculate(&self.deployment, split.new.as_ref(), &split.old, self.now());
        self.set_status(status).await?;
        Ok(Action::Done)
    }

    async fn sync_rollout_status(&mut self, split: &Split) -> Result<Action> {
        let status = status::rollout(&self.deployment, split.new.as_ref(), &split.old, self.now());
        self.set_status(status).await?;
        let stored = self.deployment.status.clone().unwrap_or_default();
        let check = status::next_progress_check(&self.deployment, &stored, self.now());
        Ok(check.map_or(Action::Done, Action::RequeueAfter))
    }

    async fn set_status(&mut self, status: DeploymentStatus) -> Result<()> {
        if self.deployment.status.as_ref() == Some(&status) {
            return Ok(());
        }
        self.deployment.status = Some(status);
        self.write_status().await
    }

    /// Writes the status, and the revision among the annotations.
    async fn write_status(&mut self) -> Result<()> {
        let written = self.deployments.update_status(&self.deployment).await?;
        if written.uid() != self.deployment.uid() {
            return Err(Error::from(Status::failure(409, "Conflict", "the deployment is another one now")));
        }
        self.deployment = written;
        Ok(())
    }

    /// Takes in a set that was written.
    fn remember(&mut self, set: &ReplicaSet) {
        match self.sets.iter_mut().find(|known| known.uid() == set.uid()) {
            Some(known) => *known = set.clone(),
            None => self.sets.push(set.clone()),
        }
    }
}
