//! A watch cache that comes into being when somebody lists or watches: a server has caches for all its resources, and most
//! are never asked for anything.

use crate::cache::{Stats, WatchCache};
use crate::options::Options;
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use parking_lot::Mutex;
use pintle_storage::{
    At, Event, Found, Key, ListRequest, Listing, NewValue, Newest, Record, Result, Revision, Storage, WatchRequest,
    WatchStream,
};
use std::sync::Arc;

/// A watch cache of one prefix that is filled when the first list or watch asks for it. Until then, and after its end,
/// it is the back end itself.
#[derive(Debug)]
pub struct LazyCache {
    backend: Arc<dyn Storage>,
    prefix: Key,
    options: Options,
    cache: ArcSwapOption<WatchCache>,
    /// Held while the cache is made or ended.
    life: Mutex<Life>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// The cache is made when it is needed.
    Running,
    /// It is made no more.
    Ended,
}

impl LazyCache {
    /// A cache over the keys of a back end that begin with `prefix`.
    pub fn over(backend: Arc<dyn Storage>, prefix: Key, options: Options) -> Arc<LazyCache> {
        let (cache, life) = (ArcSwapOption::empty(), Mutex::new(Life::Running));
        Arc::new(LazyCache { backend, prefix, options, cache, life })
    }

    /// How large the cache is; `None` while there is none.
    pub fn stats(&self) -> Option<Stats> {
        self.cache.load().as_ref().map(|cache| cache.stats())
    }

    /// Ends the cache for good: its watches end, and what is asked later goes to the back end.
    pub fn end(&self) {
        *self.life.lock() = Life::Ended;
        // Whoever still uses it finishes first.
        self.cache.store(None);
    }

    /// The cache, made if need be; `None` when it is ended.
    fn cache(&self) -> Option<Arc<WatchCache>> {
        if let Some(cache) = self.cache.load_full() {
            return Some(cache);
        }
        let life = self.life.lock();
        if *life == Life::Ended {
            return None;
        }
        // Somebody else may have been quicker.
        Some(self.cache.load_full().unwrap_or_else(|| {
            let cache = WatchCache::over(self.backend.clone(), self.prefix.clone(), self.options.clone());
            self.cache.store(Some(cache.clone()));
            cache
        }))
    }
}

#[async_trait]
impl Storage for LazyCache {
    async fn create(&self, key: Key, value: NewValue) -> Result<Arc<Record>> {
        self.backend.create(key, value).await
    }

    async fn update(&self, key: Key, value: NewValue, expected: Revision) -> Result<Arc<Record>> {
        self.backend.update(key, value, expected).await
    }

    async fn delete(&self, key: Key, expected: Option<Revision>) -> Result<Arc<Event>> {
        self.backend.delete(key, expected).await
    }

    async fn get(&self, key: &Key, at: At) -> Result<Found> {
        // One record is no reason to read all others.
        match self.cache.load_full().filter(|cache| cache.is_ready()) {
            Some(cache) => cache.get(key, at).await,
            None => self.backend.get(key, at).await,
        }
    }

    async fn list(&self, request: ListRequest) -> Result<Listing> {
        let Some(cache) = self.cache() else { return self.backend.list(request).await };
        // Nor is one page a reason to wait for all others.
        let is_waiting_worthwhile = request.limit == 0 || cache.is_ready();
        if is_waiting_worthwhile { cache.list(request).await } else { self.backend.list(request).await }
    }

    async fn count(&self, prefix: &Key) -> Result<usize> {
        match self.cache.load_full().filter(|cache| cache.is_ready()) {
            Some(cache) => cache.count(prefix).await,
            None => self.backend.count(prefix).await,
        }
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream> {
        match self.cache() {
            Some(cache) => cache.watch(request).await,
            None => self.backend.watch(request).await,
        }
    }

    async fn current_revision(&self) -> Result<Revision> {
        self.backend.current_revision().await
    }

    fn newest(&self, prefix: &Key) -> Option<Newest> {
        self.backend.newest(prefix)
    }

    async fn request_progress(&self) -> Result<()> {
        match self.cache.load_full() {
            Some(cache) => cache.request_progress().await,
            None => self.backend.request_progress().await,
        }
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        match self.cache.load_full() {
            Some(cache) => cache.compact(revision).await,
            None => self.backend.compact(revision).await,
        }
    }

    async fn health(&self) -> Result<()> {
        self.backend.health().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use pintle_storage::MemoryStore;

    fn things() -> Key {
        "/registry/things/".into()
    }

    fn lazy() -> Arc<LazyCache> {
        LazyCache::over(Arc::new(MemoryStore::new()), things(), Options::default())
    }

    fn list(limit: usize) -> ListRequest {
        ListRequest { prefix: things(), start: None, limit, at: At::Latest }
    }

    async fn create(store: &LazyCache, name: &str) {
        store.create(Key::new(format!("{}{name}", things())), NewValue::default()).await.expect("it is new");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_comes_with_the_first_list() {
        let store = lazy();
        create(&store, "a").await;
        store.get(&"/registry/things/a".into(), At::Latest).await.expect("it is there");
        assert_eq!(store.count(&things()).await.expect("it is open"), 1);
        assert_eq!(store.stats(), None);
        assert_eq!(store.list(list(0)).await.expect("it is open").records.len(), 1);
        assert_eq!(store.stats().map(|stats| stats.n_records), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_page_does_not_wait_for_the_cache() {
        let store = lazy();
        create(&store, "a").await;
        create(&store, "b").await;
        let page = store.list(list(1)).await.expect("it is open");
        assert_eq!((page.records.len(), page.remaining), (1, 1));
        assert_eq!(store.stats().map(|stats| stats.revision), Some(None));
    }

    #[tokio::test(start_paused = true)]
    async fn watches_end_with_the_cache() {
        let store = lazy();
        let since = store.current_revision().await.expect("it is open");
        let request = WatchRequest { prefix: things(), since, filter: None, progress: false };
        let mut watch = store.watch(request.clone()).await.expect("it is the present");
        create(&store, "a").await;
        assert!(matches!(watch.next().await, Some(Ok(_))));
        store.end();
        assert!(watch.next().await.is_none());
        let mut watch = store.watch(request).await.expect("the back end is there");
        assert!(matches!(watch.next().await, Some(Ok(_))));
        assert_eq!(store.list(list(0)).await.expect("so is its state").records.len(), 1);
        assert_eq!(store.stats(), None);
    }
}
