//! The forms of objects: the versions in which one and the same object is served.

use async_trait::async_trait;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Value};

/// What webhooks and policies need to know of the server's resources. The registry implements it.
#[async_trait]
pub trait Forms: Send + Sync + std::fmt::Debug {
    /// The resources as which the objects of `resource` are served (it is one of them), each with the kind that
    /// `subresource` (empty for none) has there, in the server's order.
    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)>;

    /// The object, which is of the kind `from`, in the form `to`.
    ///
    /// # Errors
    /// 500 when it cannot be converted.
    async fn convert(&self, object: Value, from: &GroupVersionKind, to: &GroupVersionKind) -> Result<Value>;

    /// What someone made of an object of this kind, read anew: pruned and defaulted.
    ///
    /// # Errors
    /// Why it is no such object.
    fn read(&self, kind: &GroupVersionKind, object: Value) -> Result<Value, String>;
}

/// Every resource has one form, which is taken as it comes: for tests, and where there is no registry.
#[derive(Debug)]
pub struct SingleForms;

#[async_trait]
impl Forms for SingleForms {
    fn equivalents(&self, _: &GroupVersionResource, _: &str) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        Vec::new()
    }

    async fn convert(&self, object: Value, _from: &GroupVersionKind, _to: &GroupVersionKind) -> Result<Value> {
        Ok(object)
    }

    fn read(&self, _kind: &GroupVersionKind, object: Value) -> Result<Value, String> {
        Ok(object)
    }
}
