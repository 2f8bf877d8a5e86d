//! The forms of objects, for webhooks and policies: which resources show the same objects, and conversion among them.

use crate::catalog::Catalog;
use crate::resource::{Definition, Resource};
use async_trait::async_trait;
use pintle_admission::Forms;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::Parsed;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Status, Value};
use std::sync::Arc;

/// What is served, as webhooks and policies see it.
#[derive(Clone, Debug)]
pub struct CatalogForms {
    catalog: Arc<Catalog>,
}

impl CatalogForms {
    /// Over this catalogue.
    pub fn new(catalog: Arc<Catalog>) -> CatalogForms {
        CatalogForms { catalog }
    }

    fn of_kind(&self, kind: &GroupVersionKind) -> Option<Arc<Resource>> {
        self.catalog.served().of_kind(kind).cloned()
    }
}

#[async_trait]
impl Forms for CatalogForms {
    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        let served = self.catalog.served();
        let Some(own) = served.get(&resource.group, &resource.version, &resource.resource) else { return Vec::new() };
        let shows_same = |other: &&Arc<Resource>| {
            Arc::ptr_eq(&other.store, &own.store)
                && (subresource.is_empty() || other.subresources.iter().any(|own| own == subresource))
        };
        served.iter().filter(shows_same).map(|other| (other.gvr.clone(), other.kind.clone())).collect()
    }

    fn resource_of(&self, kind: &GroupVersionKind) -> Option<(GroupVersionResource, bool)> {
        self.of_kind(kind).map(|resource| (resource.gvr.clone(), resource.is_namespaced))
    }

    async fn convert(&self, object: Value, from: &GroupVersionKind, to: &GroupVersionKind) -> Result<Value> {
        match self.of_kind(from) {
            Some(resource) => resource.convert(object, from, to).await,
            None => Err(Box::new(Status::internal(format!("unable to convert to {to}: unknown kind")))),
        }
    }

    fn read(&self, kind: &GroupVersionKind, object: Value) -> Result<Value, String> {
        // kinds that are no resources of their own (options, scales) have no rules here
        let Some(resource) = self.of_kind(kind) else { return Ok(object) };
        match &resource.definition {
            Definition::Builtin(type_id) => {
                let Parsed { value: mut read, issues } =
                    pintle_schema::decode(&object.to_json(), *type_id).map_err(|why| why.message)?;
                if let Some(why) = issues.wrong_type {
                    return Err(why);
                }
                resource.set_kind(&mut read);
                resource.strategy.set_defaults(&mut read);
                Ok(read)
            }
            Definition::Custom(custom) => {
                let refuse = |why: &str| Box::new(Status::internal(why));
                let (read, _) = custom.decode_patched(&resource, object, &refuse).map_err(|status| status.message)?;
                Ok(read)
            }
        }
    }
}
