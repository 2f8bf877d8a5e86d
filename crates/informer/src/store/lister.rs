//! Reading a cache that somebody else fills.

use super::{Indexer, Item, UnknownIndex};
use crate::ObjectName;
use pintle_apimachinery::labels::{Labels, Selector};

/// The read side of a cache. Cheap to clone.
///
/// What it gives is what the cache has heard of so far: it may be behind the server, it is never ahead, and it never
/// goes back. Right after a write the old object may still be here.
pub struct Lister<T> {
    indexer: Indexer<T>,
    /// Empty for all namespaces.
    namespace: String,
}

impl<T> Clone for Lister<T> {
    fn clone(&self) -> Lister<T> {
        Lister { indexer: self.indexer.clone(), namespace: self.namespace.clone() }
    }
}

impl<T> std::fmt::Debug for Lister<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lister").field("indexer", &self.indexer).field("namespace", &self.namespace).finish()
    }
}

impl<T: Item> Lister<T> {
    /// Reads `indexer`.
    pub fn new(indexer: Indexer<T>) -> Lister<T> {
        Lister { indexer, namespace: String::new() }
    }

    /// The same cache, only the objects of one namespace; empty for all.
    #[must_use]
    pub fn namespace(&self, namespace: &str) -> Lister<T> {
        Lister { indexer: self.indexer.clone(), namespace: namespace.to_owned() }
    }

    /// The object of this name; in the lister's namespace if it has one, else outside namespaces.
    pub fn get(&self, name: &str) -> Option<T> {
        self.indexer.get(&ObjectName::new(&self.namespace, name))
    }

    /// The object of this namespace and name.
    pub fn get_by_key(&self, name: &ObjectName) -> Option<T> {
        self.indexer.get(name)
    }

    /// All objects, ordered by namespace and name.
    pub fn list(&self) -> Vec<T> {
        self.list_where(|_| true)
    }

    /// The objects that `keep` wants. It is called under the cache's lock: it must be quick and must not use the cache.
    pub fn list_where(&self, keep: impl Fn(&T) -> bool) -> Vec<T> {
        self.indexer.list_where(&self.namespace, keep)
    }

    /// The objects that an index files under `value`; the namespace does not matter here.
    ///
    /// # Errors
    /// [`UnknownIndex`].
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<T>, UnknownIndex> {
        self.indexer.by_index(index, value)
    }

    /// How many objects the cache has, in all namespaces.
    pub fn len(&self) -> usize {
        self.indexer.len()
    }

    /// Whether the cache has none.
    pub fn is_empty(&self) -> bool {
        self.indexer.is_empty()
    }
}

impl<T: Item + Labels> Lister<T> {
    /// The objects whose labels match.
    pub fn select(&self, selector: &Selector) -> Vec<T> {
        self.list_where(|object| selector.matches(object))
    }
}
