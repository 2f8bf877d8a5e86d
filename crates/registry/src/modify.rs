//! Changes that the server itself makes to stored objects: read, change, write under the version read; no strategy, no
//! admission.

use crate::errors::storage_status;
use crate::resource::Resource;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Value};
use pintle_storage::{At, NewValue, Record, StorageError};
use std::sync::Arc;

/// How often a change is tried again after somebody else wrote.
const TRIES_MAX: usize = 64;

/// Conditions of a change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conditions<'a> {
    /// The object must have this uid; anything when empty.
    pub(crate) uid: &'a str,
    /// The object must stand at this version; at any when empty.
    pub(crate) resource_version: &'a str,
}

impl Resource {
    /// Changes a stored object (stored form). `change` may run several times, on what it finds then.
    ///
    /// # Errors
    /// 404, 409 when a condition fails, whatever `change` refuses.
    pub(crate) async fn modify(
        &self,
        namespace: &str,
        name: &str,
        conditions: Conditions<'_>,
        dry_run: bool,
        change: impl Fn(&mut Value) -> Result<()>,
    ) -> Result<Arc<Record>> {
        let key = self.store.key(namespace, name);
        let failed = |error: &StorageError| storage_status(error, self.group_resource(), name);
        for _ in 0..TRIES_MAX {
            let found = self.store.storage.get(&key, At::Latest).await.map_err(|e| failed(&e))?;
            let Some(record) = found.record else {
                return Err(Box::new(Status::not_found(self.group_resource(), name)));
            };
            let mut object = self.stored_object(&record)?;
            self.check_conditions(&object, conditions, name, &key)?;
            change(&mut object)?;
            let head = self.at_rest(&object);
            if dry_run || head.bytes() == self.store.head(&record).bytes() {
                return Ok(record);
            }
            let value = NewValue { bytes: head.bytes().clone(), note: head.into_note(), ttl: self.store.ttl };
            match self.store.storage.update(key.clone(), value, record.revision).await {
                Ok(record) => return Ok(record),
                Err(StorageError::Conflict { .. } | StorageError::NotFound { .. }) => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Err(Box::new(Status::stale(self.group_resource(), name)))
    }

    fn check_conditions(&self, object: &Value, conditions: Conditions<'_>, name: &str, key: &str) -> Result<()> {
        let refuse = |what: &str, wanted: &str, found: &str| {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            );
            Err(Box::new(Status::conflict(self.group_resource(), name, why)))
        };
        if !conditions.uid.is_empty() && conditions.uid != object.uid() {
            return refuse("UID", conditions.uid, object.uid());
        }
        if !conditions.resource_version.is_empty() && conditions.resource_version != object.resource_version() {
            return refuse("ResourceVersion", conditions.resource_version, object.resource_version());
        }
        Ok(())
    }
}
