//! How authentication and admission read other objects.

use async_trait::async_trait;
use parking_lot::RwLock;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Str, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads objects of the API. The registry implements it over its caches.
///
/// Objects come in the wire form of the version that clients see first (`v1` where there is one), and `namespace` is
/// empty for cluster-scoped resources.
#[async_trait]
pub trait Lookup: Send + Sync + std::fmt::Debug {
    /// An object from memory: it may be a moment old. `None` when it is not there.
    async fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// An object as it is now, for decisions that must not rest on a stale copy. By default what [`Lookup::get`] says.
    ///
    /// # Errors
    /// What the back end answered when it could not be read.
    async fn get_live(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Result<Option<Arc<Value>>> {
        Ok(self.get(group, resource, namespace, name).await)
    }

    /// The objects of a resource from memory, in order of namespace and name; of all namespaces when `namespace` is
    /// empty.
    async fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>>;
}

/// A lookup over objects that are put into it by hand: for tests, and where there is no registry.
#[derive(Debug, Default)]
pub struct StaticLookup {
    objects: RwLock<BTreeMap<ObjectKey, Arc<Value>>>,
}

/// Group, resource, namespace, name.
type ObjectKey = (Str, Str, Str, Str);

impl StaticLookup {
    /// Puts an object in, in place of one of the same name.
    pub fn put(&self, group: &str, resource: &str, object: Value) {
        let key = (Str::new(group), Str::new(resource), Str::new(object.namespace()), Str::new(object.name()));
        self.objects.write().insert(key, Arc::new(object));
    }

    /// Takes an object out.
    pub fn remove(&self, group: &str, resource: &str, namespace: &str, name: &str) {
        let key = (Str::new(group), Str::new(resource), Str::new(namespace), Str::new(name));
        self.objects.write().remove(&key);
    }
}

#[async_trait]
impl Lookup for StaticLookup {
    async fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key = (Str::new(group), Str::new(resource), Str::new(namespace), Str::new(name));
        self.objects.read().get(&key).cloned()
    }

    async fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        let objects = self.objects.read();
        let is_wanted =
            |key: &ObjectKey| key.0 == group && key.1 == resource && (namespace.is_empty() || key.2 == namespace);
        objects.iter().filter(|(key, _)| is_wanted(key)).map(|(_, object)| Arc::clone(object)).collect()
    }
}
