//! How authentication, authorization and admission read objects: from the caches of the registry.

use crate::catalog::Catalog;
use crate::resource::Resource;
use async_trait::async_trait;
use futures_util::StreamExt;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::parse;
use pintle_apimachinery::{GroupResource, Value};
use pintle_auth::Lookup;
use pintle_auth::authz::rbac::Rbac;
use pintle_storage::{At, ListRequest, StorageError, WatchItem, WatchRequest};
use std::sync::Arc;
use std::time::Duration;

/// Reads objects for those who decide about others.
#[derive(Clone, Debug)]
pub struct CatalogLookup {
    catalog: Arc<Catalog>,
}

impl CatalogLookup {
    /// Over this catalogue.
    pub fn new(catalog: Arc<Catalog>) -> CatalogLookup {
        CatalogLookup { catalog }
    }

    fn resource(&self, group: &str, resource: &str) -> Option<Arc<Resource>> {
        self.catalog.served().of_group_resource(&GroupResource::new(group, resource)).cloned()
    }

    async fn read(&self, group: &str, resource: &str, namespace: &str, name: &str, at: At) -> Result<Option<Arc<Value>>> {
        let Some(resource) = self.resource(group, resource) else { return Ok(None) };
        let key = resource.store.key(namespace, name);
        let found = resource.store.storage.get(&key, at).await;
        let found = found.map_err(|e| crate::errors::storage_status(&e, resource.group_resource(), name))?;
        match found.record {
            None => Ok(None),
            Some(record) => Ok(Some(Arc::new(resource.object(&record).await?))),
        }
    }
}

#[async_trait]
impl Lookup for CatalogLookup {
    async fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.read(group, resource, namespace, name, At::Any).await.ok().flatten()
    }

    async fn get_live(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Result<Option<Arc<Value>>> {
        self.read(group, resource, namespace, name, At::Latest).await
    }

    async fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        let Some(resource) = self.resource(group, resource) else { return Vec::new() };
        let request = ListRequest { prefix: resource.store.prefix(namespace), start: None, limit: 0, at: At::Any };
        let Ok(listing) = resource.store.storage.list(request).await else { return Vec::new() };
        let mut objects = Vec::with_capacity(listing.records.len());
        for record in &listing.records {
            if let Ok(object) = resource.object(record).await {
                objects.push(Arc::new(object));
            }
        }
        objects
    }
}

/// The resources whose objects say who may do what.
const RBAC_RESOURCES: [&str; 4] = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];

/// Pause before a broken feed is opened again.
const FEED_RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Keeps the RBAC index at what the store holds, for ever. `filled` runs when it holds all of it for the first time.
pub async fn feed_rbac(catalog: Arc<Catalog>, rbac: Arc<Rbac>, filled: impl FnOnce()) {
    let mut feeds = Vec::new();
    for name in RBAC_RESOURCES {
        let resource = catalog.served().of_group_resource(&GroupResource::new("rbac.authorization.k8s.io", name)).cloned();
        if let Some(resource) = resource {
            feeds.push(Feed { resource, name, rbac: rbac.clone() });
        }
    }
    let mut streams = Vec::new();
    for feed in &feeds {
        streams.push(feed.fill().await);
    }
    filled();
    let running = feeds.iter().zip(streams).map(|(feed, stream)| feed.follow(stream));
    futures_util::future::join_all(running).await;
}

struct Feed {
    resource: Arc<Resource>,
    name: &'static str,
    rbac: Arc<Rbac>,
}

impl Feed {
    /// Puts all that there is into the index; the watch that goes on from there.
    async fn fill(&self) -> pintle_storage::WatchStream {
        loop {
            match self.try_fill().await {
                Ok(stream) => return stream,
                Err(why) => {
                    tracing::warn!(resource = self.name, %why, "cannot read the access rules; trying again");
                    tokio::time::sleep(FEED_RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn try_fill(&self) -> Result<pintle_storage::WatchStream, StorageError> {
        let storage = &self.resource.store.storage;
        let prefix = self.resource.store.root.clone();
        let listing =
            storage.list(ListRequest { prefix: prefix.clone(), start: None, limit: 0, at: At::Latest }).await?;
        let objects: Vec<Value> = listing.records.iter().filter_map(|record| parse(&record.value).ok()).collect();
        self.rbac.replace(self.name, &objects);
        storage.watch(WatchRequest { prefix, since: listing.revision, filter: None, progress: false }).await
    }

    async fn follow(&self, mut stream: pintle_storage::WatchStream) {
        loop {
            match stream.next().await {
                Some(Ok(WatchItem::Events(events))) => {
                    for event in events {
                        match &event.record {
                            Some(record) => {
                                if let Ok(object) = parse(&record.value) {
                                    self.rbac.put(self.name, &object);
                                }
                            }
                            None => {
                                let (namespace, name) = self.resource.store.names(&event.key);
                                self.rbac.remove(self.name, namespace, name);
                            }
                        }
                    }
                }
                Some(Ok(WatchItem::Progress(_))) => {}
                Some(Err(why)) => {
                    tracing::warn!(resource = self.name, %why, "the watch of the access rules broke; reading them again");
                    stream = self.fill().await;
                }
                None => stream = self.fill().await,
            }
        }
    }
}

impl pintle_admission::plugins::RestMappings for CatalogLookup {
    fn mappings(&self, kind: &pintle_apimachinery::GroupVersionKind) -> Vec<pintle_admission::plugins::RestMapping> {
        let served = self.catalog.served();
        let found = served.of_kind(kind);
        let mapping = |resource: &Arc<Resource>| pintle_admission::plugins::RestMapping {
            resource: resource.gvr.clone(),
            is_namespaced: resource.is_namespaced,
        };
        found.map(mapping).into_iter().collect()
    }
}
