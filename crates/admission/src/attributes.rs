//! Admission as its callers see it: what is being done, and the two calls.

use async_trait::async_trait;
use parking_lot::Mutex;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Value};
use pintle_kinds::UserInfo;

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

impl Operation {
    /// As upstream spells it: `CREATE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
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

impl Attributes<'_> {
    /// Whether the operation is about this resource (not one of its subresources).
    pub fn is_on(&self, group: &str, resource: &str) -> bool {
        self.subresource.is_empty() && self.is_about(group, resource)
    }

    /// Whether the operation is about this resource or one of its subresources.
    pub fn is_about(&self, group: &str, resource: &str) -> bool {
        self.resource.resource == resource && self.resource.group == group
    }

    /// Whether the operation is a create or an update.
    pub fn is_write(&self) -> bool {
        matches!(self.operation, Operation::Create | Operation::Update)
    }

    /// Adds a warning for the client.
    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.lock().add(text);
    }
}

/// Texts for `Warning: 299` headers, in order, each once.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Vec<String>);

impl Warnings {
    /// Adds a warning unless it was given already.
    pub fn add(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() && !self.0.contains(&text) {
            self.0.push(text);
        }
    }

    /// Adds several.
    pub fn extend(&mut self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            self.add(text);
        }
    }

    /// The texts.
    pub fn texts(&self) -> &[String] {
        &self.0
    }
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
    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<()> {
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: Option<&Value>) -> Result<()> {
        Ok(())
    }
}
