//! The thread-safe cache with indices.

use super::{Item, Store};
use crate::ObjectName;
use parking_lot::RwLock;
use pintle_apimachinery::Str;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The values under which an object is found in an index. Called whenever the object changes; it must depend on the
/// object alone.
pub type IndexFunc<T> = Arc<dyn Fn(&T) -> Vec<Str> + Send + Sync>;

/// There is no index of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index with name {0:?} does not exist")]
pub struct UnknownIndex(pub String);

/// A cache of objects by name, with indices. Cheap to clone; all clones are the same cache.
///
/// Every query is answered from one state of the cache. Lists are ordered by namespace and name.
pub struct Indexer<T> {
    shared: Arc<RwLock<Contents<T>>>,
}

struct Contents<T> {
    objects: BTreeMap<ObjectName, T>,
    indices: BTreeMap<Str, Index<T>>,
    resource_version: String,
}

/// Invariant: `names[v]` holds exactly the names of the objects for which `func` gives `v`; no set is empty.
struct Index<T> {
    func: IndexFunc<T>,
    names: BTreeMap<Str, BTreeSet<ObjectName>>,
}

impl<T> Clone for Indexer<T> {
    fn clone(&self) -> Indexer<T> {
        Indexer { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Item> Default for Indexer<T> {
    fn default() -> Indexer<T> {
        Indexer::new()
    }
}

impl<T> std::fmt::Debug for Indexer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let contents = self.shared.read();
        let indices: Vec<&Str> = contents.indices.keys().collect();
        f.debug_struct("Indexer").field("n_objects", &contents.objects.len()).field("indices", &indices).finish()
    }
}

impl<T: Item> Indexer<T> {
    /// An empty cache without indices.
    pub fn new() -> Indexer<T> {
        let contents = Contents { objects: BTreeMap::new(), indices: BTreeMap::new(), resource_version: String::new() };
        Indexer { shared: Arc::new(RwLock::new(contents)) }
    }

    /// Adds an index, also over what is already there. An index of the same name is replaced.
    pub fn add_index(&self, name: &str, func: impl Fn(&T) -> Vec<Str> + Send + Sync + 'static) {
        let mut contents = self.shared.write();
        let mut index = Index { func: Arc::new(func), names: BTreeMap::new() };
        for (object_name, object) in &contents.objects {
            index.insert(object_name, object);
        }
        contents.indices.insert(Str::new(name), index);
    }

    /// Names of the indices.
    pub fn index_names(&self) -> Vec<Str> {
        self.shared.read().indices.keys().cloned().collect()
    }

    /// The object of this name.
    pub fn get(&self, name: &ObjectName) -> Option<T> {
        self.shared.read().objects.get(name).cloned()
    }

    /// Whether there is an object of this name.
    pub fn contains(&self, name: &ObjectName) -> bool {
        self.shared.read().objects.contains_key(name)
    }

    /// All objects.
    pub fn list(&self) -> Vec<T> {
        self.shared.read().objects.values().cloned().collect()
    }

    /// The objects that `keep` wants, of one namespace if `namespace` is not empty.
    pub fn list_where(&self, namespace: &str, keep: impl Fn(&T) -> bool) -> Vec<T> {
        let contents = self.shared.read();
        if namespace.is_empty() {
            return contents.objects.values().filter(|object| keep(object)).cloned().collect();
        }
        let from = ObjectName::new(namespace, "");
        let in_namespace = contents.objects.range(from..).take_while(|(name, _)| name.namespace == namespace);
        in_namespace.map(|(_, object)| object).filter(|object| keep(object)).cloned().collect()
    }

    /// Names of all objects.
    pub fn list_keys(&self) -> Vec<ObjectName> {
        self.shared.read().objects.keys().cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.shared.read().objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that an index files under `value`.
    ///
    /// # Errors
    /// [`UnknownIndex`].
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<T>, UnknownIndex> {
        let contents = self.shared.read();
        let names = contents.index(index)?.names.get(value);
        Ok(names.into_iter().flatten().filter_map(|name| contents.objects.get(name)).cloned().collect())
    }

    /// Names of the objects that an index files under `value`.
    ///
    /// # Errors
    /// [`UnknownIndex`].
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectName>, UnknownIndex> {
        let contents = self.shared.read();
        Ok(contents.index(index)?.names.get(value).into_iter().flatten().cloned().collect())
    }

    /// The objects that share a value of an index with `object`.
    ///
    /// # Errors
    /// [`UnknownIndex`].
    pub fn index(&self, index: &str, object: &T) -> Result<Vec<T>, UnknownIndex> {
        let contents = self.shared.read();
        let index = contents.index(index)?;
        let values = (index.func)(object);
        let names: BTreeSet<&ObjectName> = values.iter().filter_map(|value| index.names.get(value)).flatten().collect();
        Ok(names.into_iter().filter_map(|name| contents.objects.get(name)).cloned().collect())
    }

    /// The values that an index has.
    ///
    /// # Errors
    /// [`UnknownIndex`].
    pub fn index_values(&self, index: &str) -> Result<Vec<Str>, UnknownIndex> {
        Ok(self.shared.read().index(index)?.names.keys().cloned().collect())
    }

    /// Puts an object in and gives the one it replaces.
    pub fn insert(&self, object: T) -> Option<T> {
        let mut contents = self.shared.write();
        let old = contents.insert(object);
        contents.check();
        old
    }

    /// Takes an object out.
    pub fn remove(&self, name: &ObjectName) -> Option<T> {
        let mut contents = self.shared.write();
        let old = contents.objects.remove(name)?;
        for index in contents.indices.values_mut() {
            index.remove(name, &old);
        }
        contents.check();
        Some(old)
    }

    /// The version of the last [`Store::replace`] or [`Store::bookmark`].
    pub fn resource_version(&self) -> String {
        self.shared.read().resource_version.clone()
    }
}

impl<T: Item> Store<T> for Indexer<T> {
    fn add(&self, object: T) {
        self.insert(object);
    }

    fn update(&self, object: T) {
        self.insert(object);
    }

    fn delete(&self, object: T) {
        self.remove(&object.object_name());
    }

    fn replace(&self, objects: Vec<T>, resource_version: &str) {
        let mut contents = self.shared.write();
        contents.objects.clear();
        for index in contents.indices.values_mut() {
            index.names.clear();
        }
        for object in objects {
            contents.insert(object);
        }
        resource_version.clone_into(&mut contents.resource_version);
        contents.check();
    }

    fn bookmark(&self, resource_version: &str) {
        resource_version.clone_into(&mut self.shared.write().resource_version);
    }

    fn held(&self, object: T) -> T {
        let held = self.get(&object.object_name());
        held.filter(|held| held.resource_version() == object.resource_version() && held.uid() == object.uid())
            .unwrap_or(object)
    }
}

impl<T: Item> Contents<T> {
    fn index(&self, name: &str) -> Result<&Index<T>, UnknownIndex> {
        self.indices.get(name).ok_or_else(|| UnknownIndex(name.to_owned()))
    }

    fn insert(&mut self, object: T) -> Option<T> {
        let name = object.object_name();
        if self.indices.is_empty() {
            return self.objects.insert(name, object);
        }
        let old = self.objects.insert(name.clone(), object.clone());
        for index in self.indices.values_mut() {
            if let Some(old) = &old {
                index.remove(&name, old);
            }
            index.insert(&name, &object);
        }
        old
    }

    /// The invariant of [`Index`], executed while the cache is small.
    fn check(&self) {
        const CHECKED_OBJECTS_MAX: usize = 64;
        if !cfg!(debug_assertions) || self.objects.len() > CHECKED_OBJECTS_MAX {
            return;
        }
        for index in self.indices.values() {
            let n_filed: usize = index.names.values().map(BTreeSet::len).sum();
            let n_wanted: usize = self.objects.values().map(|o| BTreeSet::from_iter((index.func)(o)).len()).sum();
            debug_assert_eq!(n_filed, n_wanted, "an index has lost or kept an object");
            debug_assert!(index.names.values().all(|names| !names.is_empty()));
        }
    }
}

impl<T> Index<T> {
    fn insert(&mut self, name: &ObjectName, object: &T) {
        for value in (self.func)(object) {
            self.names.entry(value).or_default().insert(name.clone());
        }
    }

    fn remove(&mut self, name: &ObjectName, object: &T) {
        for value in (self.func)(object) {
            if let Some(names) = self.names.get_mut(&value) {
                names.remove(name);
                if names.is_empty() {
                    self.names.remove(&value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;
    use proptest::prelude::*;

    fn node_index(cache: &Indexer<crate::testing::TestObject>) {
        cache.add_index("node", |object| object.text_at(&["spec", "node"]).map(Str::from).into_iter().collect());
    }

    #[test]
    fn queries() {
        let cache = Indexer::new();
        for (name, node) in [("a/1", "n1"), ("a/2", "n2"), ("b/1", "n1"), ("ab/1", "n1")] {
            cache.insert(object(name, 1, node));
        }
        node_index(&cache);
        let names = |objects: Vec<crate::testing::TestObject>| {
            objects.iter().map(|o| o.object_name().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(cache.by_index("node", "n1").unwrap()), ["a/1", "ab/1", "b/1"]);
        assert_eq!(names(cache.list_where("a", |_| true)), ["a/1", "a/2"]);
        assert_eq!(names(cache.index("node", &object("x/y", 1, "n2")).unwrap()), ["a/2"]);
        cache.insert(object("a/1", 2, "n2"));
        assert_eq!(names(cache.by_index("node", "n2").unwrap()), ["a/1", "a/2"]);
        assert_eq!(cache.index_values("node").unwrap(), ["n1", "n2"]);
        assert_eq!(cache.by_index("zone", "z").unwrap_err().to_string(), r#"index with name "zone" does not exist"#);
    }

    proptest! {
        /// Whatever is done, the cache holds what a plain map holds and the index finds what a search finds.
        #[test]
        fn as_a_map(steps in proptest::collection::vec((0..3_u8, 0..6_u8, 0..3_u8), 0..60)) {
            let cache = Indexer::new();
            node_index(&cache);
            let mut model = BTreeMap::new();
            for (version, (action, name, node)) in steps.into_iter().enumerate() {
                let object = object(&format!("ns/{name}"), version as u64, &format!("n{node}"));
                match action {
                    0 => { cache.insert(object.clone()); model.insert(object.object_name(), object); }
                    1 => { prop_assert_eq!(cache.remove(&object.object_name()).is_some(), model.remove(&object.object_name()).is_some()); }
                    _ => { cache.replace(vec![object.clone()], "7"); model.clear(); model.insert(object.object_name(), object); }
                }
                prop_assert_eq!(cache.list_keys(), model.keys().cloned().collect::<Vec<_>>());
                for node in 0..3 {
                    let node = format!("n{node}");
                    let found = cache.index_keys("node", &node).unwrap();
                    let searched: Vec<_> = model.iter().filter(|(_, o)| o.text_at(&["spec", "node"]).as_deref() == Some(&node)).map(|(name, _)| name.clone()).collect();
                    prop_assert_eq!(found, searched);
                }
            }
        }
    }
}
