//! Objects that are worth reading once: configurations whose rules and expressions are compiled.

use parking_lot::Mutex;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Str, Value};
use pintle_auth::Lookup;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The objects of a resource, each compiled once per version of it.
#[derive(Debug)]
pub(crate) struct Compiled<T> {
    group: &'static str,
    resource: &'static str,
    lookup: Arc<dyn Lookup>,
    /// By name.
    known: Mutex<BTreeMap<Str, Known<T>>>,
}

#[derive(Debug)]
struct Known<T> {
    /// uid and resourceVersion of what was compiled.
    version: (Str, Str),
    compiled: Arc<T>,
}

impl<T> Compiled<T> {
    pub(crate) fn new(group: &'static str, resource: &'static str, lookup: Arc<dyn Lookup>) -> Compiled<T> {
        Compiled { group, resource, lookup, known: Mutex::default() }
    }

    /// All of them as they are now, in the order of their names.
    pub(crate) async fn all(&self, compile: impl Fn(&Value) -> T) -> Vec<Arc<T>> {
        let objects = self.lookup.list(self.group, self.resource, "").await;
        let mut known = self.known.lock();
        if objects.is_empty() {
            known.clear();
            return Vec::new();
        }
        let mut next = BTreeMap::new();
        for object in &objects {
            let version = (Str::new(object.uid()), Str::new(object.resource_version()));
            let old = known.remove(object.name()).filter(|old| old.version == version);
            let entry = old.unwrap_or_else(|| Known { version, compiled: Arc::new(compile(object)) });
            next.insert(Str::new(object.name()), entry);
        }
        *known = next;
        known.values().map(|entry| entry.compiled.clone()).collect()
    }
}
