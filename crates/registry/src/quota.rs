//! Usage of quotas, written by admission.

use crate::catalog::Catalog;
use crate::modify::Conditions;
use async_trait::async_trait;
use pintle_admission::quota::QuotaWriter;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, Status, Value};
use std::sync::Arc;

/// Writes the status of quotas into the store.
#[derive(Debug)]
pub struct CatalogQuotaWriter {
    catalog: Arc<Catalog>,
}

impl CatalogQuotaWriter {
    /// Over this catalogue.
    pub fn new(catalog: Arc<Catalog>) -> CatalogQuotaWriter {
        CatalogQuotaWriter { catalog }
    }
}

#[async_trait]
impl QuotaWriter for CatalogQuotaWriter {
    async fn update_status(&self, quota: &Value) -> Result<Value> {
        let name = GroupResource::new("", "resourcequotas");
        let Some(quotas) = self.catalog.served().of_group_resource(&name).cloned() else {
            return Err(Box::new(Status::internal("resourcequotas are not served")));
        };
        let found = quotas
            .store
            .storage
            .get(&quotas.store.key(quota.namespace(), quota.name()), pintle_storage::At::Latest)
            .await;
        let found = found.map_err(|e| crate::errors::storage_status(&e, &name, quota.name()))?;
        if found.record.is_some_and(|record| record.revision.to_string() != quota.resource_version()) {
            return Err(Box::new(Status::stale(&name, quota.name())));
        }
        let conditions = Conditions { uid: quota.uid(), resource_version: quota.resource_version() };
        let status = &quota["status"];
        let set = |object: &mut Value| {
            object.set("status", status.clone());
            Ok(())
        };
        let record = quotas.modify(quota.namespace(), quota.name(), conditions, false, set).await?;
        quotas.object(&record).await
    }
}
