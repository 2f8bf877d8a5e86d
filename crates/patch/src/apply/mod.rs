//! Field ownership: server-side apply, and the managedFields of every other write.
//!
//! Who wrote which field stands in `metadata.managedFields`, one entry per manager, operation, version and
//! subresource. A write other than apply takes over the fields that it changes ([`update`]). An apply owns what its
//! configuration names, together with whoever applied the same; it may change what others own only by force, and takes
//! away what it owned alone and names no more ([`apply()`]).
//!
//! Follows: structured-merge-diff v6.3 and apimachinery/pkg/util/managedfields v0.35 in what they do, not in how: sets
//! of fields stay in their wire form, what a write does not change is not parsed, and objects are compared and merged
//! without copies of what is equal.

mod compare;
mod configuration;
mod conflict;
mod element;
mod fields;
mod last_applied;
mod list;
mod managed;
mod merge;
mod place;
mod prune;
mod reconcile;
mod remove;
mod scale;
mod set;
mod times;
mod update;

pub use configuration::{Applied, apply};
pub use managed::UPDATE_ENTRIES_MAX;
pub use scale::{ReplicasPaths, to_parent, to_scale};
pub use set::FieldSet;
pub use times::keep_times;
pub use update::{update, validate as validate_managed_fields};

use jiff::Timestamp;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Status;
use pintle_apimachinery::{GroupVersionKind, Value};
use pintle_schema::{Node, zero_value};
use place::Place;

/// An endpoint that objects are written through: a resource or subresource in one version.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The kind, in the version of the endpoint.
    pub kind: &'a GroupVersionKind,
    /// Describes objects of that version.
    pub node: Node<'a>,
    /// The subresource; empty for the resource itself.
    pub subresource: &'a str,
    /// Fields that the strategy of the endpoint resets in this version: nobody owns them through it.
    pub reset_fields: Option<&'a FieldSet>,
    /// Whether it is a custom resource: a new object is empty then, where built-in types have members from the start.
    pub is_custom: bool,
    /// The kind's other versions.
    pub versions: &'a dyn Versions,
}

impl std::fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope")
            .field("kind", &self.kind)
            .field("subresource", &self.subresource)
            .finish_non_exhaustive()
    }
}

/// How to see an object in the other versions of its kind. Managers are recorded with the version they wrote in.
pub trait Versions {
    /// The object (whose `apiVersion` says what it is in) in another version; `None` when the kind has no such version.
    ///
    /// # Errors
    /// Why the conversion fails, which fails an apply.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<Value>, String>;

    /// The schema of a version.
    fn node(&self, api_version: &str) -> Option<Node<'_>>;

    /// The fields that the endpoint resets in a version.
    fn reset_fields(&self, api_version: &str) -> Option<&FieldSet>;
}

/// A kind with one version.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneVersion;

impl Versions for OneVersion {
    fn convert(&self, _object: &Value, _api_version: &str) -> Result<Option<Value>, String> {
        Ok(None)
    }

    fn node(&self, _api_version: &str) -> Option<Node<'_>> {
        None
    }

    fn reset_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }
}

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The name of the manager; empty means `unknown`.
    pub manager: &'a str,
    /// The time of the write.
    pub now: Timestamp,
}

impl<'a> Scope<'a> {
    fn place(&self) -> Place<'a> {
        Place::root(self.node)
    }

    /// A new object of the kind, before anything was written into it.
    fn empty(&self) -> Value {
        let mut object = if self.is_custom { Value::object() } else { zero_value(self.node) };
        object.set("apiVersion", self.kind.api_version());
        object.set("kind", self.kind.kind.as_str());
        object
    }

    /// The answer when the result of an apply does not decode along the schema or cannot be converted.
    pub fn conversion_failed(&self, config: &Value, why: impl std::fmt::Display) -> Box<Status> {
        let object = described(config);
        Box::new(Status::plain_error(format!("failed to convert new object ({object}) to proper version: {why}")))
    }
}

/// An object as error texts name it: `default/a; apps/v1, Kind=Deployment`.
fn described(object: &Value) -> String {
    format!("{}/{}; {}", object.namespace(), object.name(), object.gvk().unwrap_or_default())
}

#[cfg(test)]
mod tests;
