//! How authentication, authorization and admission read objects: from the caches of the registry.

use crate::catalog::Catalog;
use crate::resource::Resource;
use async_trait::async_trait;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, Value};
use pintle_auth::Lookup;
use pintle_storage::{At, ListRequest};
use std::sync::Arc;

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

    async fn read(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
        at: At,
    ) -> Result<Option<Arc<Value>>> {
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
