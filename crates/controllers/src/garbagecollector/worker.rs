//! What is done about one object: looked up, deleted, freed of references, orphaned.
//!
//! Follows: kubernetes/pkg/controller/garbagecollector/garbagecollector.go (v1.35).

use super::graph::{Dependent, Identity, Owner, View};
use super::monitor::Sink;
use super::{GarbageQueue, Item};
use crate::context::Context;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use pintle_apimachinery::meta::well_known::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use pintle_apimachinery::{GroupKind, GroupVersion, Status, Str};
use pintle_client::discovery::{MappingError, RestMapper};
use pintle_client::options::PropagationPolicy;
use pintle_client::{Api, ApiResource, Client, Error, Object as _, PartialObjectMetadata, Patch, Result};
use pintle_informer::CancellationToken;
use pintle_informer::record::{EventRecorder, EventType, Recorder as _};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Times a finalizer is tried to be taken off an object that others write at the same time.
const CONFLICTS_MAX: usize = 5;

/// Dependents orphaned at once.
const ORPHANS_AT_ONCE_MAX: usize = 16;

pub(super) struct Worker {
    client: Client,
    mapper: RestMapper,
    sink: Sink,
    events: EventRecorder,
    stop: CancellationToken,
    is_started: AtomicBool,
}

/// What is done to the owner references of an object.
enum Change {
    /// Those of these uids go.
    Remove(Vec<String>),
    /// None blocks its owner's deletion any more.
    Unblock,
}

/// What became of an owner reference.
enum Standing {
    /// The owner is there.
    Solid,
    /// The owner is not there.
    Dangling,
    /// The owner waits for its dependents to go.
    Waiting,
}

impl Worker {
    pub(super) fn new(ctx: &Context, client: Client, sink: Sink) -> Worker {
        Worker {
            mapper: ctx.mapper.clone(),
            events: ctx.recorder("garbage-collector-controller"),
            stop: ctx.stop().clone(),
            is_started: AtomicBool::new(false),
            client,
            sink,
        }
    }

    pub(super) fn is_started(&self) -> bool {
        self.is_started.load(Ordering::Relaxed)
    }

    pub(super) fn mark_started(&self) {
        self.is_started.store(true, Ordering::Relaxed);
    }

    pub(super) fn queue(&self) -> &GarbageQueue {
        &self.sink.queue
    }

    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Looks at one item.
    pub(super) async fn work(&self, item: Item) -> Result<()> {
        match item {
            Item::Delete { uid, is_virtual } => {
                let view = self.sink.graph.lock().view(&uid);
                match view {
                    None => Ok(()),
                    // it was only looked for, and has been found
                    Some(view) if is_virtual && !view.is_virtual => Ok(()),
                    Some(view) => self.attempt_to_delete(&view).await,
                }
            }
            Item::Orphan { uid } => {
                let view = self.sink.graph.lock().view(&uid);
                match view {
                    None => Ok(()),
                    Some(view) => self.orphan(&view).await,
                }
            }
            Item::Tell { dependent, owner } => {
                self.tell(&dependent, &owner);
                Ok(())
            }
        }
    }

    /// The resource of a kind.
    async fn resource(&self, api_version: &str, kind: &str) -> Result<ApiResource> {
        let Some(version) = GroupVersion::parse(api_version) else {
            return Err(Error::InvalidRequest(format!("invalid apiVersion {api_version:?}")));
        };
        let wanted = GroupKind::new(&version.group, kind);
        self.mapper.rest_mapping(&wanted, &[&version.version]).await.map_err(|error| match error {
            MappingError::Discovery(error) => error,
            other => Error::InvalidRequest(other.to_string()),
        })
    }

    async fn api(&self, identity: &Identity) -> Result<Api<PartialObjectMetadata>> {
        let resource = self.resource(&identity.kind.api_version, &identity.kind.kind).await?;
        let namespace = if resource.is_namespaced { identity.namespace.as_str() } else { "" };
        Ok(Api::metadata(&self.client, Arc::new(resource), namespace))
    }

    async fn attempt_to_delete(&self, item: &View) -> Result<()> {
        if item.is_terminating && !item.is_deleting_dependents {
            return Ok(());
        }
        let api = self.api(&item.identity).await?;
        let is_lookup_possible = !api.resource().is_namespaced || !item.identity.namespace.is_empty();
        let latest = if is_lookup_possible { api.get_opt(&item.identity.name).await? } else { None };
        let Some(latest) = latest.filter(|latest| latest.uid() == item.identity.uid) else {
            let mut absent = item.identity.clone();
            if !api.resource().is_namespaced {
                absent.namespace = Str::default();
            }
            let effects = {
                let mut graph = self.sink.graph.lock();
                graph.verified_absent(&absent)
            };
            self.sink.perform(effects);
            return Ok(());
        };
        if item.is_deleting_dependents {
            return self.continue_foreground(item, &api).await;
        }
        let owners = latest.metadata.owner_references.clone().unwrap_or_default();
        if owners.is_empty() {
            return self.wait_for_observation(item);
        }
        let mut standings = Vec::with_capacity(owners.len());
        for owner in &owners {
            match self.standing(owner, &item.identity).await? {
                Some(standing) => standings.push((owner, standing)),
                // an impossible reference: the object is left alone
                None => return Ok(()),
            }
        }
        self.decide(item, &api, &latest, &standings).await?;
        self.wait_for_observation(item)
    }

    /// An object that exists but was not seen yet is looked at again.
    fn wait_for_observation(&self, item: &View) -> Result<()> {
        if item.is_virtual {
            self.sink.queue.add_rate_limited(Item::Delete { uid: item.identity.uid.clone(), is_virtual: true });
        }
        Ok(())
    }

    async fn decide(
        &self,
        item: &View,
        api: &Api<PartialObjectMetadata>,
        latest: &PartialObjectMetadata,
        standings: &[(&OwnerReference, Standing)],
    ) -> Result<()> {
        let has = |wanted: fn(&Standing) -> bool| standings.iter().any(|(_, standing)| wanted(standing));
        let has_waiting = has(|standing| matches!(standing, Standing::Waiting));
        if has(|standing| matches!(standing, Standing::Solid)) {
            let gone: Vec<&str> = standings
                .iter()
                .filter(|(_, standing)| !matches!(standing, Standing::Solid))
                .map(|(owner, _)| owner.uid.as_str())
                .collect();
            return if gone.is_empty() { Ok(()) } else { self.remove_owners(api, &item.identity, &gone).await };
        }
        if has_waiting && !item.dependents.is_empty() {
            if item.dependents.iter().any(|dependent| dependent.is_deleting_dependents) {
                // a circle in which everybody waits for somebody: this one stops to wait
                self.unblock_owners(api, item).await?;
            }
            return self.delete(api, latest, PropagationPolicy::Foreground).await;
        }
        let has_finalizer = |name: &str| latest.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == name);
        let policy = if has_finalizer(FINALIZER_ORPHAN) {
            PropagationPolicy::Orphan
        } else if has_finalizer(FINALIZER_FOREGROUND) {
            PropagationPolicy::Foreground
        } else {
            PropagationPolicy::Background
        };
        self.delete(api, latest, policy).await
    }

    /// Whether the owner of a reference is there. `None` when a cluster-scoped object refers to a namespaced owner.
    async fn standing(&self, owner: &OwnerReference, item: &Identity) -> Result<Option<Standing>> {
        let mut identity = {
            let mut graph = self.sink.graph.lock();
            let kind = graph.kind(&owner.api_version, &owner.kind);
            let mut identity =
                Identity { kind, namespace: Str::default(), name: Str::new(&owner.name), uid: Str::new(&owner.uid) };
            if graph.absent().has(&identity) {
                return Ok(Some(Standing::Dangling));
            }
            identity.namespace = item.namespace.clone();
            if graph.absent().has(&identity) {
                return Ok(Some(Standing::Dangling));
            }
            identity
        };
        let resource = self.resource(&owner.api_version, &owner.kind).await?;
        if resource.is_namespaced && item.namespace.is_empty() {
            tracing::debug!(object = %item.name, owner = %owner.name, "cluster-scoped objects cannot refer to namespaced owners");
            return Ok(None);
        }
        if !resource.is_namespaced {
            identity.namespace = Str::default();
        }
        let api = Api::metadata(&self.client, Arc::new(resource), &identity.namespace);
        match api.get_opt(&owner.name).await?.filter(|found| found.uid() == owner.uid) {
            None => {
                self.sink.graph.lock().absent().add(identity);
                Ok(Some(Standing::Dangling))
            }
            Some(found) => {
                let finalizers = found.metadata.finalizers.iter().flatten();
                let is_waiting = found.is_terminating() && finalizers.into_iter().any(|f| f == FINALIZER_FOREGROUND);
                Ok(Some(if is_waiting { Standing::Waiting } else { Standing::Solid }))
            }
        }
    }

    /// An object whose dependents go first: lets it go when no dependent blocks it.
    async fn continue_foreground(&self, item: &View, api: &Api<PartialObjectMetadata>) -> Result<()> {
        if !item.dependents.iter().any(|dependent| dependent.blocks) {
            return self.remove_finalizer(api, &item.identity, FINALIZER_FOREGROUND).await;
        }
        let is_untold = |dependent: &&Dependent| dependent.blocks && !dependent.is_deleting_dependents;
        for dependent in item.dependents.iter().filter(is_untold) {
            self.sink.queue.add(Item::Delete { uid: dependent.identity.uid.clone(), is_virtual: false });
        }
        Ok(())
    }

    async fn orphan(&self, owner: &View) -> Result<()> {
        for chunk in owner.dependents.chunks(ORPHANS_AT_ONCE_MAX) {
            let orphaned: Vec<_> =
                chunk.iter().map(|dependent| self.orphan_one(&dependent.identity, &owner.identity.uid)).collect();
            futures_util::future::try_join_all(orphaned).await?;
        }
        let api = self.api(&owner.identity).await?;
        self.remove_finalizer(&api, &owner.identity, FINALIZER_ORPHAN).await
    }

    async fn orphan_one(&self, dependent: &Identity, owner_uid: &str) -> Result<()> {
        let api = self.api(dependent).await?;
        self.remove_owners(&api, dependent, &[owner_uid]).await
    }

    async fn delete(
        &self,
        api: &Api<PartialObjectMetadata>,
        latest: &PartialObjectMetadata,
        policy: PropagationPolicy,
    ) -> Result<()> {
        let call = api.delete(latest.name()).propagation(policy).uid(latest.uid());
        // with the version: somebody may have given it another owner meanwhile
        match call.resource_version(latest.resource_version()).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn remove_owners(&self, api: &Api<PartialObjectMetadata>, of: &Identity, uids: &[&str]) -> Result<()> {
        let deletions: Vec<Value> = uids.iter().map(|uid| json!({"$patch": "delete", "uid": uid})).collect();
        let patch = json!({"metadata": {"uid": of.uid.as_str(), "ownerReferences": deletions}});
        let uids = uids.iter().map(|uid| (*uid).to_owned()).collect();
        self.patch(api, of, patch, Change::Remove(uids)).await
    }

    async fn unblock_owners(&self, api: &Api<PartialObjectMetadata>, item: &View) -> Result<()> {
        let reference = |owner: &Owner| OwnerReference {
            api_version: owner.kind.api_version.to_string(),
            kind: owner.kind.kind.to_string(),
            name: owner.name.to_string(),
            uid: owner.uid.to_string(),
            block_owner_deletion: Some(false),
            controller: None,
        };
        let blocking: Vec<OwnerReference> = item.owners.iter().filter(|owner| owner.blocks).map(reference).collect();
        let patch = json!({"metadata": {"uid": item.identity.uid.as_str(), "ownerReferences": blocking}});
        self.patch(api, &item.identity, patch, Change::Unblock).await
    }

    /// A strategic patch, or for kinds that know none, the list as `change` leaves it.
    async fn patch(
        &self,
        api: &Api<PartialObjectMetadata>,
        of: &Identity,
        strategic: Value,
        change: Change,
    ) -> Result<()> {
        match api.patch(&of.name, &Patch::Strategic(strategic)).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) if !error.is_unsupported_media_type() => return Err(error),
            Err(_) => {}
        }
        let Some(latest) = api.get_opt(&of.name).await?.filter(|latest| latest.uid() == of.uid) else { return Ok(()) };
        let mut owners = latest.metadata.owner_references.clone().unwrap_or_default();
        match change {
            Change::Remove(uids) => owners.retain(|owner| !uids.contains(&owner.uid)),
            Change::Unblock => owners.iter_mut().for_each(|owner| owner.block_owner_deletion = Some(false)),
        }
        let patch = json!({"metadata": {"resourceVersion": latest.resource_version(), "ownerReferences": owners}});
        match api.patch(&of.name, &Patch::Merge(patch)).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    async fn remove_finalizer(&self, api: &Api<PartialObjectMetadata>, of: &Identity, finalizer: &str) -> Result<()> {
        for _ in 0..CONFLICTS_MAX {
            let Some(latest) = api.get_opt(&of.name).await?.filter(|latest| latest.uid() == of.uid) else {
                return Ok(());
            };
            let finalizers = latest.metadata.finalizers.clone().unwrap_or_default();
            let kept: Vec<&String> = finalizers.iter().filter(|known| *known != finalizer).collect();
            if kept.len() == finalizers.len() {
                return Ok(());
            }
            let patch = json!({"metadata": {"resourceVersion": latest.resource_version(), "finalizers": kept}});
            match api.patch(&of.name, &Patch::Merge(patch)).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        let message = format!("the finalizer {finalizer} of {} could not be taken off", of.name);
        Err(Error::from(Status::failure(409, "Conflict", message)))
    }

    fn tell(&self, dependent: &Identity, owner: &str) {
        let view = self.sink.graph.lock().view(&dependent.uid);
        let Some(owner) = view.and_then(|view| view.owners.into_iter().find(|known| known.uid == owner)) else {
            return;
        };
        let about = ObjectReference {
            api_version: Some(dependent.kind.api_version.to_string()),
            kind: Some(dependent.kind.kind.to_string()),
            name: Some(dependent.name.to_string()),
            namespace: Some(dependent.namespace.to_string()),
            uid: Some(dependent.uid.to_string()),
            ..ObjectReference::default()
        };
        let namespace = &dependent.namespace;
        let shown = format!(
            "[{}/{}, namespace: {namespace}, name: {}, uid: {}]",
            owner.kind.api_version, owner.kind.kind, owner.name, owner.uid
        );
        let message = format!("ownerRef {shown} does not exist in namespace {namespace:?}");
        self.events.event(&about, EventType::Warning, "OwnerRefInvalidNamespace", &message);
    }
}
