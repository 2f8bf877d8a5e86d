//! Caches of objects: the [`Store`] that a reflector fills, the thread-safe [`Indexer`], the read-only [`Lister`].

mod indexer;
mod lister;

pub use indexer::{IndexFunc, Indexer, UnknownIndex};
pub use lister::Lister;

use crate::{Cached, ObjectName};
use std::sync::Arc;

/// What a cache can hold: something with a name and a version, cheap to clone. [`Cached`] objects are, and decoded
/// ones behind an [`Arc`].
pub trait Item: Clone + Send + Sync + 'static {
    /// Namespace and name.
    fn object_name(&self) -> ObjectName;

    /// The version; equal versions of one name mean equal objects.
    fn resource_version(&self) -> &str;

    /// The uid.
    fn uid(&self) -> &str;
}

impl<K: pintle_client::Object> Item for Cached<K> {
    fn object_name(&self) -> ObjectName {
        Cached::object_name(self)
    }

    fn resource_version(&self) -> &str {
        Cached::resource_version(self)
    }

    fn uid(&self) -> &str {
        Cached::uid(self)
    }
}

impl<K: pintle_client::Object> Item for Arc<K> {
    fn object_name(&self) -> ObjectName {
        ObjectName::of(self.as_ref())
    }

    fn resource_version(&self) -> &str {
        self.as_ref().resource_version()
    }

    fn uid(&self) -> &str {
        self.as_ref().uid()
    }
}

/// What a reflector fills: a cache, or a queue in front of one. Upstream's `ReflectorStore`.
pub trait Store<T: Item>: Send + Sync {
    /// The object is new.
    fn add(&self, object: T);

    /// The object has changed.
    fn update(&self, object: T);

    /// The object is gone; `object` is its last content.
    fn delete(&self, object: T);

    /// These and no others are there, at this version.
    fn replace(&self, objects: Vec<T>, resource_version: &str);

    /// Tells every object again to those who asked for it. Nothing, for a mere cache.
    fn resync(&self) {}

    /// Nothing has changed up to this version.
    fn bookmark(&self, _resource_version: &str) {}

    /// The equal of `object` that is held already, so that a list read again does not take memory twice.
    fn held(&self, object: T) -> T {
        object
    }

    /// How many more changes may be put in before the reflector has to wait.
    fn has_room(&self) -> bool {
        true
    }
}
