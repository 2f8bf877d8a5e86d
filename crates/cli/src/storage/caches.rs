//! The watch cache of each resource: which resources have one, and how large its window is.

use anyhow::{Result, bail};
use parking_lot::Mutex;
use pintle_apimachinery::GroupResource;
use pintle_registry::Head;
use pintle_registry::fields::Fields;
use pintle_registry::select::TRIGGER_FIELDS;
use pintle_storage::{Key, Record, Storage};
use pintle_watchcache::{Indexer, LazyCache, Options};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Resources without a cache unless the flags say otherwise, as upstream has it: many are written, few are read, and
/// nobody acts on them.
const UNCACHED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

/// The caches of all resources.
#[derive(Debug)]
pub(super) struct Caches {
    is_enabled: bool,
    /// Events in the window of these; 0 for no cache.
    sizes: BTreeMap<GroupResource, usize>,
    /// Those that were given out, to be ended when their resource is not served any more.
    given: Mutex<BTreeMap<GroupResource, Weak<LazyCache>>>,
}

impl Caches {
    /// From `--watch-cache` and `--watch-cache-sizes`.
    pub(super) fn new(is_enabled: bool, sizes: &[String]) -> Result<Caches> {
        let mut all: BTreeMap<GroupResource, usize> =
            UNCACHED.iter().map(|(group, resource)| (GroupResource::new(group, resource), 0)).collect();
        for text in sizes.iter().filter(|text| !text.is_empty()) {
            let (resource, size) = parse(text)?;
            all.insert(resource, size);
        }
        Ok(Caches { is_enabled, sizes: all, given: Mutex::default() })
    }

    /// The storage of a resource over its back end.
    pub(super) fn over(
        &self,
        backend: Arc<dyn Storage>,
        resource: &GroupResource,
        root: &Key,
        fields: &Fields,
    ) -> Arc<dyn Storage> {
        let size = self.sizes.get(resource).copied();
        if !self.is_enabled || size == Some(0) {
            return backend;
        }
        let mut options = Options { indexer: indexer(root, fields), ..Options::default() };
        options.window_events_max = size.unwrap_or(options.window_events_max);
        let cache = LazyCache::over(backend, root.clone(), options);
        let former = self.given.lock().insert(resource.clone(), Arc::downgrade(&cache));
        if let Some(former) = former.and_then(|former| former.upgrade()) {
            former.end();
        }
        cache
    }

    /// Ends the cache of a resource.
    pub(super) fn end(&self, resource: &GroupResource) {
        let cache = self.given.lock().remove(resource);
        if let Some(cache) = cache.and_then(|cache| cache.upgrade()) {
            cache.end();
        }
    }
}

/// Reads `resource[.group]#size`.
fn parse(text: &str) -> Result<(GroupResource, usize)> {
    let Some((resource, size)) = text.split_once('#').filter(|(resource, _)| !resource.is_empty()) else {
        bail!("--watch-cache-sizes={text}: write it as resource[.group]#size, such as pods#1000 or deployments.apps#0")
    };
    let Ok(size) = size.parse::<usize>() else {
        bail!("--watch-cache-sizes={text}: the size {size:?} is no whole number from 0 on")
    };
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    Ok((GroupResource::new(group, resource), size))
}

/// Finds the values of those trigger fields that the resource has.
fn indexer(root: &Key, fields: &Fields) -> Indexer {
    let position = |field: &&'static str| fields.position(field).map(|idx| (*field, idx));
    let positions: Vec<(&'static str, usize)> = TRIGGER_FIELDS.iter().filter_map(position).collect();
    let names = ["metadata.name"].into_iter().chain(positions.iter().map(|(field, _)| *field));
    let (n_root, fields) = (root.len(), fields.clone());
    Indexer::new(names.collect::<Vec<_>>(), move |record: &Record, sink| {
        sink("metadata.name", name(&record.key, n_root));
        if !positions.is_empty() {
            let head = Head::of(record, &fields);
            positions.iter().for_each(|(field, idx)| sink(field, head.field(*idx)));
        }
    })
}

/// The object's name in a key whose first `n_root` bytes are those of the resource's root.
fn name(key: &Key, n_root: usize) -> &str {
    let rest = key.as_str().get(n_root..).unwrap_or_default();
    rest.split_once('/').map_or(rest, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_storage::{At, ListRequest, MemoryStore, NewValue};

    fn caches(is_enabled: bool, sizes: &[&str]) -> Caches {
        Caches::new(is_enabled, &sizes.iter().map(|&size| size.to_owned()).collect::<Vec<_>>()).expect("good sizes")
    }

    fn is_cached(caches: &Caches, group: &str, resource: &str) -> bool {
        let backend: Arc<dyn Storage> = Arc::new(MemoryStore::new());
        let resource = GroupResource::new(group, resource);
        let storage = caches.over(backend.clone(), &resource, &"/registry/x/".into(), &Fields::NONE);
        !Arc::ptr_eq(&storage, &backend)
    }

    #[test]
    fn who_has_a_cache() {
        let default = caches(true, &[]);
        assert!(is_cached(&default, "", "pods") && is_cached(&default, "apps", "deployments"));
        assert!(!is_cached(&default, "", "events"));
        let sized = caches(true, &["pods#0", "deployments.apps#0", "secrets#10", "events#1000"]);
        let seen = [("", "pods"), ("apps", "deployments"), ("", "deployments"), ("", "secrets"), ("", "events")];
        assert_eq!(seen.map(|(group, resource)| is_cached(&sized, group, resource)), [false, false, true, true, true]);
        assert!(!is_cached(&caches(false, &["pods#10"]), "", "pods"));
    }

    #[test]
    fn bad_sizes() {
        for bad in ["pods", "#1", "pods#", "pods#-1", "pods#many"] {
            assert!(Caches::new(true, &[bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_in_keys() {
        let n_root = "/registry/pods/".len();
        assert_eq!(name(&"/registry/pods/default/web".into(), n_root), "web");
        assert_eq!(name(&"/registry/minion/one".into(), "/registry/minion/".len()), "one");
    }

    #[tokio::test]
    async fn a_resource_that_comes_back_gets_a_fresh_cache() {
        let (caches, backend): (Caches, Arc<dyn Storage>) = (caches(true, &[]), Arc::new(MemoryStore::new()));
        let (resource, root) = (GroupResource::new("example.com", "things"), Key::new("/registry/example.com/things/"));
        let first = caches.over(backend.clone(), &resource, &root, &Fields::NONE);
        let since = first.current_revision().await.expect("it is open");
        let request = pintle_storage::WatchRequest { prefix: root.clone(), since, filter: None, progress: false };
        let mut watch = first.watch(request).await.expect("it is the present");
        caches.end(&resource);
        assert!(futures_util::StreamExt::next(&mut watch).await.is_none());
        let second = caches.over(backend, &resource, &root, &Fields::NONE);
        first.create(Key::new(format!("{root}a")), NewValue::default()).await.expect("it is new");
        let request = ListRequest { prefix: root, start: None, limit: 0, at: At::Latest };
        assert_eq!(second.list(request).await.expect("it is open").records.len(), 1);
    }
}
