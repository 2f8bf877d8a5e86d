//! Admission as the registry calls it: once to change what is to be written, once to refuse it.

use async_trait::async_trait;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Value};
use pintle_kinds::UserInfo;
use crate::options::Warnings;
use parking_lot::Mutex;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An object is created.
    Create,
    /// An object is changed.
    Update,
    /// An object is deleted.
    Delete,
    /// A connection is opened (exec, attach, portforward, proxy).
    Connect,
}

/// What admission may know of an operation besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// What is being done.
    pub operation: Operation,
    /// The resource in the path.
    pub resource: &'a GroupVersionResource,
    /// The subresource in the path; empty for none.
    pub subresource: &'a str,
    /// The kind of the object (of the body, for subresources such as `scale`).
    pub kind: &'a GroupVersionKind,
    /// The namespace; empty for none.
    pub namespace: &'a str,
    /// The name; empty where it is not known yet.
    pub name: &'a str,
    /// The object before the operation.
    pub old: Option<&'a Value>,
    /// The request's options object.
    pub options: &'a Value,
    /// Whether nothing will be written.
    pub dry_run: bool,
    /// Who asks.
    pub user: &'a UserInfo,
    /// Warnings for the client.
    pub warnings: &'a Mutex<Warnings>,
}

/// The admission chain.
#[async_trait]
pub trait Admission: Send + Sync + std::fmt::Debug {
    /// 1st: may change the object.
    ///
    /// # Errors
    /// The refusal.
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()>;

    /// 2nd, after validation: sees the object as it will be written (`None` for deletes and connects).
    ///
    /// # Errors
    /// The refusal.
    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()>;
}

/// Admits everything.
#[derive(Debug)]
pub struct AdmitAll;

#[async_trait]
impl Admission for AdmitAll {
    async fn mutate(&self, _attributes: &Attributes<'_>, _object: &mut Value) -> Result<()> {
        Ok(())
    }
    async fn validate(&self, _attributes: &Attributes<'_>, _object: Option<&Value>) -> Result<()> {
        Ok(())
    }
}
