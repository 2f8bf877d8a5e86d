//! CustomResourceDefinitions at work: names accepted, definitions established, resources served and taken back,
//! instances removed before their definition goes.
//!
//! One task looks at every definition whenever one changes: few objects, and rules that span all definitions of a group.

use crate::admit::AdmitAll;
use crate::call::{Call, MayAlwaysCreate, World};
use crate::catalog::Catalog;
use crate::conversion::Converter;
use crate::custom::CustomVersion;
use crate::errors::storage_status;
use crate::fields::Fields;
use crate::modify::Conditions;
use crate::options::{Caller, DeleteOptions, Warnings};
use crate::ownership::{SERVER, on_server_write};
use crate::resource::{Definition, Discovery, Resource, Store, StrategyRef, reset_sets};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use parking_lot::Mutex;
use pintle_admission::webhook::Caller as WebhookCaller;
use pintle_apiextensions::conditions::{
    Cleanup, accept_names, establish, is_condition_true, judge_approval, judge_schemas, needs_cleanup, note_cleanup,
};
use pintle_apiextensions::{CompiledDefinition, CompiledVersion, CustomResourceStrategy};
use pintle_apimachinery::env::Env;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, GroupVersionResource, Status, Str, Value};
use pintle_storage::{At, Key, ListRequest, StorageError, WatchItem, WatchRequest, WatchStream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Pause before a broken watch is opened again, and before a cleanup that did not finish is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between two looks at instances that do not go.
const CLEANUP_PAUSE_MAX: Duration = Duration::from_secs(2);
/// After so long a definition whose instances do not go says so.
const CLEANUP_PATIENCE: Duration = Duration::from_secs(60);

/// Verbs of custom resources, in the order in which discovery tells them.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Keeps custom resources served as their definitions say.
#[derive(Debug)]
pub struct Definitions {
    catalog: Arc<Catalog>,
    env: Env,
    resource: Arc<Resource>,
    converter: Arc<Converter>,
    /// What is stored, by name.
    known: Mutex<BTreeMap<Str, Arc<Value>>>,
    /// Where the instances of each resource lie: kept while a definition changes.
    stores: Mutex<BTreeMap<GroupResource, Arc<Store>>>,
    /// Definitions whose instances are being removed.
    cleaning: Mutex<BTreeSet<Str>>,
    /// Told whenever what is served has changed.
    changed: tokio::sync::watch::Sender<u64>,
}

impl Definitions {
    /// Over this catalogue; conversion webhooks are called through `caller`.
    ///
    /// # Errors
    /// 500 when definitions themselves are not served.
    pub fn new(catalog: Arc<Catalog>, env: Env, caller: Arc<dyn WebhookCaller>) -> Result<Arc<Definitions>> {
        let resource = catalog.served().get("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned();
        let resource =
            resource.ok_or_else(|| Box::new(Status::internal("customresourcedefinitions are not served")))?;
        Ok(Arc::new(Definitions {
            catalog,
            converter: Arc::new(Converter::new(caller, env.clone())),
            env,
            resource,
            known: Mutex::default(),
            stores: Mutex::default(),
            cleaning: Mutex::default(),
            changed: tokio::sync::watch::channel(0).0,
        }))
    }

    /// Tells whenever what is served has changed.
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Serves what is established, then follows the store in a task. Returns when everything there was is served.
    pub async fn start(self: &Arc<Definitions>) {
        let stream = self.fill().await;
        let this = self.clone();
        tokio::spawn(async move { this.follow(stream).await });
    }

    async fn fill(self: &Arc<Definitions>) -> WatchStream {
        loop {
            match self.try_fill().await {
                Ok(stream) => return stream,
                Err(why) => {
                    tracing::warn!(%why, "cannot read the custom resource definitions; trying again");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn try_fill(self: &Arc<Definitions>) -> Result<WatchStream, StorageError> {
        let storage = &self.resource.store.storage;
        let prefix = self.resource.store.root.clone();
        let request = ListRequest { prefix: prefix.clone(), start: None, limit: 0, at: At::Latest };
        let listing = storage.list(request).await?;
        let mut names = Vec::new();
        {
            let mut known = self.known.lock();
            known.clear();
            for record in &listing.records {
                if let Ok(definition) = self.resource.stored_object(record) {
                    names.push(Str::new(definition.name()));
                    known.insert(Str::new(definition.name()), Arc::new(definition));
                }
            }
        }
        for name in names {
            self.look_at(&name).await;
        }
        storage.watch(WatchRequest { prefix, since: listing.revision, filter: None, progress: false }).await
    }

    async fn follow(self: Arc<Definitions>, mut stream: WatchStream) {
        loop {
            match stream.next().await {
                Some(Ok(WatchItem::Events(events))) => {
                    for event in events {
                        let name = Str::new(self.resource.store.names(&event.key).1);
                        let definition = event.record.as_ref().and_then(|r| self.resource.stored_object(r).ok());
                        match definition {
                            Some(definition) => {
                                self.known.lock().insert(name.clone(), Arc::new(definition));
                                self.look_at(&name).await;
                            }
                            None => self.take_back(&name).await,
                        }
                    }
                }
                Some(Ok(WatchItem::Progress(_))) => {}
                Some(Err(_)) | None => stream = self.fill().await,
            }
        }
    }

    /// Brings one definition's conditions up to date, and what is served of it.
    async fn look_at(self: &Arc<Definitions>, name: &str) {
        let Some(mut definition) = self.known.lock().get(name).cloned() else { return };
        // names first, then established: each step is told to watchers by itself
        for step in [Definitions::judged, Definitions::established] {
            let next = step(self, &definition);
            // served before clients can see that it is established
            self.publish(next.as_ref().unwrap_or(&definition));
            if let Some(next) = next {
                match self.write(&definition, next).await {
                    Ok(written) => definition = written,
                    Err(why) => {
                        tracing::debug!(definition = name, %why, "the conditions were not written; the next change tries again");
                        break;
                    }
                }
            }
        }
        if needs_cleanup(&definition) && self.cleaning.lock().insert(Str::new(name)) {
            let (this, name) = (self.clone(), Str::new(name));
            tokio::spawn(async move {
                this.clean_up(&name).await;
                this.cleaning.lock().remove(&name);
            });
        }
    }

    fn established(&self, definition: &Value) -> Option<Value> {
        establish(definition, self.env.clock.now())
    }

    /// The definition with its names and what is said of its form up to date; `None` when they are.
    fn judged(&self, definition: &Value) -> Option<Value> {
        let now = self.env.clock.now();
        let mut next: Option<Value> = None;
        let known = self.known.lock();
        let group = definition.at("spec.group");
        let peers = || known.values().map(|d| &**d).filter(|d| d.at("spec.group") == group);
        if let Some(judged) = accept_names(definition, peers(), now) {
            next = Some(judged);
        }
        for judge in [judge_schemas, judge_approval] {
            if let Some(judged) = judge(next.as_ref().unwrap_or(definition), now) {
                next = Some(judged);
            }
        }
        next
    }

    async fn write(&self, before: &Value, mut next: Value) -> Result<Arc<Value>> {
        let conditions = Conditions { uid: before.uid(), resource_version: before.resource_version() };
        on_server_write(&self.resource, self.env.clock.now(), before, &mut next);
        let replace = |object: &mut Value| {
            *object = next.clone();
            Ok(())
        };
        let record = self.resource.modify("", before.name(), conditions, false, replace).await?;
        let written = Arc::new(self.resource.stored_object(&record)?);
        self.known.lock().insert(Str::new(before.name()), written.clone());
        Ok(written)
    }

    /// Serves the versions of an established definition.
    fn publish(&self, definition: &Value) {
        let plural = definition.at("status.acceptedNames.plural").str_or_empty();
        let name = GroupResource::new(definition.at("spec.group").str_or_empty(), plural);
        if !is_condition_true(definition, "Established") {
            return;
        }
        match CompiledDefinition::compile(definition) {
            Ok(compiled) => {
                let is_terminating = is_condition_true(definition, "Terminating");
                let compiled = Arc::new(compiled);
                let store = self.store(&compiled, &name);
                let versions =
                    compiled.versions.values().filter(|v| v.is_served).map(|version| {
                        Arc::new(self.served_version(&compiled, version, store.clone(), is_terminating))
                    });
                self.catalog.set_custom(&name, versions.collect());
                self.changed.send_modify(|n| *n += 1);
            }
            Err(why) => tracing::warn!(definition = definition.name(), %why, "the definition cannot be served"),
        }
    }

    fn served_version(
        &self,
        definition: &Arc<CompiledDefinition>,
        version: &Arc<CompiledVersion>,
        store: Arc<Store>,
        is_terminating: bool,
    ) -> Resource {
        let strategy = Arc::new(CustomResourceStrategy::new(version.clone()));
        let mut subresources = Vec::new();
        if version.has_status {
            subresources.push(Str::const_new("status"));
        }
        if version.scale.is_some() {
            subresources.push(Str::const_new("scale"));
        }
        let mut stored_kind = version.gvk.clone();
        stored_kind.version = definition.storage_version.clone();
        Resource {
            gvr: GroupVersionResource::new(&definition.group, &version.gvk.version, &definition.plural),
            group_resource: GroupResource::new(&definition.group, &definition.plural),
            kind: version.gvk.clone(),
            list_kind: definition.list_kind.clone(),
            is_namespaced: definition.is_namespaced,
            strategy_kind: version.gvk.clone(),
            discovery: Discovery {
                singular: definition.singular.clone(),
                short_names: definition.short_names.clone(),
                categories: definition.categories.clone(),
                storage_version_hash: storage_version_hash(&stored_kind),
            },
            stored_kind,
            reset_fields: reset_sets(&*strategy, &subresources),
            strategy: StrategyRef::Shared(strategy),
            definition: Definition::Custom(Arc::new(CustomVersion::new(
                definition.clone(),
                version.clone(),
                is_terminating,
                self.converter.clone(),
            ))),
            store,
            verbs: VERBS.iter().map(|v| Str::const_new(v)).collect(),
            subresources,
        }
    }

    fn store(&self, definition: &CompiledDefinition, name: &GroupResource) -> Arc<Store> {
        let selectable = definition.storage().map(|v| v.selectable.clone()).unwrap_or_default();
        let fields = Fields::Custom(selectable.into());
        let mut stores = self.stores.lock();
        if let Some(store) = stores.get(name).filter(|store| store.fields.is_same(&fields)) {
            return store.clone();
        }
        let root = Key::new(format!("{}/{}/{}/", self.catalog.prefix(), name.group, name.resource));
        let storage = self.catalog.factory().storage(name, &root, &fields);
        let store = Arc::new(Store {
            group_resource: name.clone(),
            storage,
            root,
            fields,
            ttl: None,
            service_pools: std::sync::OnceLock::new(),
        });
        stores.insert(name.clone(), store.clone());
        store
    }

    /// A definition is gone.
    async fn take_back(self: &Arc<Definitions>, name: &str) {
        let Some(definition) = self.known.lock().remove(name) else { return };
        let plural = definition.at("status.acceptedNames.plural").str_or_empty();
        let resource = GroupResource::new(definition.at("spec.group").str_or_empty(), plural);
        if !plural.is_empty() {
            self.catalog.set_custom(&resource, Vec::new());
            self.stores.lock().remove(&resource);
            self.catalog.factory().forget(&resource);
            self.changed.send_modify(|n| *n += 1);
        }
        // names that it had are free for others of its group
        let peers: Vec<Str> = {
            let known = self.known.lock();
            known
                .iter()
                .filter(|(_, d)| d.at("spec.group") == definition.at("spec.group"))
                .map(|(n, _)| n.clone())
                .collect()
        };
        for peer in peers {
            Box::pin(self.look_at(&peer)).await;
        }
    }

    /// Removes the instances of a terminating definition, then lets it go.
    async fn clean_up(self: &Arc<Definitions>, name: &str) {
        let mut pause = RETRY_PAUSE;
        let begun = Instant::now();
        loop {
            let Some(mut definition) = self.read(name).await else { return };
            if !needs_cleanup(&definition) {
                return;
            }
            let now = self.env.clock.now();
            let begins = note_cleanup(&definition, &Cleanup::InProgress, now);
            if begun.elapsed() < CLEANUP_PATIENCE && begins != definition {
                match self.write(&definition, begins).await {
                    Ok(written) => definition = Value::clone(&written),
                    Err(why) => tracing::debug!(definition = name, %why, "the cleanup was not noted; trying again"),
                }
            }
            let cleanup = match self.remove_instances(&definition).await {
                Ok(0) if is_condition_true(&definition, "Established") => Some(Cleanup::Completed),
                Ok(0) => Some(Cleanup::NeverEstablished),
                Ok(_) if begun.elapsed() < CLEANUP_PATIENCE => None,
                Ok(_) => {
                    let why = "could not confirm zero CustomResources remaining: context deadline exceeded";
                    Some(Cleanup::Waiting(why.to_owned()))
                }
                Err(why) => Some(Cleanup::Failed(format!("could not issue all deletes: {why}"))),
            };
            if let Some(cleanup) = cleanup {
                let next = note_cleanup(&definition, &cleanup, self.env.clock.now());
                if let Err(why) = self.write_or_delete(&definition, next).await {
                    tracing::debug!(definition = name, %why, "the cleanup was not noted; trying again");
                } else if matches!(cleanup, Cleanup::Completed | Cleanup::NeverEstablished) {
                    return;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(CLEANUP_PAUSE_MAX);
        }
    }

    async fn read(&self, name: &str) -> Option<Value> {
        let found = self.resource.store.storage.get(&self.resource.store.key("", name), At::Latest).await;
        found.ok()?.record.and_then(|record| self.resource.stored_object(&record).ok())
    }

    async fn write_or_delete(&self, before: &Value, next: Value) -> Result<()> {
        if next.finalizers().next().is_some() {
            if next == *before {
                return Ok(());
            }
            return self.write(before, next).await.map(drop);
        }
        let key = self.resource.store.key("", before.name());
        let revision = before.resource_version().parse().ok().and_then(pintle_storage::Revision::new);
        match self.resource.store.storage.delete(key, revision).await {
            Ok(_) | Err(StorageError::NotFound { .. }) => Ok(()),
            Err(error) => Err(storage_status(&error, self.resource.group_resource(), before.name())),
        }
    }

    /// Deletes the instances; how many are left.
    async fn remove_instances(&self, definition: &Value) -> Result<usize> {
        let group = definition.at("spec.group").str_or_empty();
        let plural = definition.at("status.acceptedNames.plural").str_or_empty();
        let resource = self.catalog.served().of_group_resource(&GroupResource::new(group, plural)).cloned();
        let Some(resource) = resource.filter(|r| r.is_custom()) else { return Ok(0) };
        let world = World { env: self.env.clone(), admission: Arc::new(AdmitAll) };
        let caller = Caller { user: pintle_auth::user::apiserver(), default_manager: Str::const_new(SERVER) };
        let warnings = Mutex::new(Warnings::default());
        let request = ListRequest { prefix: resource.store.root.clone(), start: None, limit: 0, at: At::Latest };
        let failed = |error: &StorageError| storage_status(error, resource.group_resource(), "");
        let listing = resource.store.storage.list(request.clone()).await.map_err(|e| failed(&e))?;
        for record in &listing.records {
            let (namespace, name) = resource.store.names(&record.key);
            let call = Call {
                world: &world,
                caller: &caller,
                namespace,
                name,
                subresource: "",
                now: self.env.clock.now(),
                warnings: &warnings,
                may_create: &MayAlwaysCreate,
            };
            match resource.delete(&call, &DeleteOptions::default()).await {
                Ok(_) => {}
                Err(status) if status.is("NotFound") => {}
                Err(status) => return Err(status),
            }
        }
        let left = resource.store.storage.list(request).await.map_err(|e| failed(&e))?;
        Ok(left.records.len())
    }
}

/// What discovery tells so that clients can see whether the stored version changed.
fn storage_version_hash(kind: &pintle_apimachinery::GroupVersionKind) -> Str {
    let text = format!("{}/{}/{}", kind.group, kind.version, kind.kind);
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    Str::from(STANDARD.encode(&digest.as_ref()[..8]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::GroupVersionKind;

    #[test]
    fn hashes_are_upstreams() {
        assert_eq!(storage_version_hash(&GroupVersionKind::new("", "v1", "Pod")), "xPOwRZ+Yhw8=");
    }
}
