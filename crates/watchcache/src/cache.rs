//! The cache itself: reads from its state, writes to the back end.

use crate::backfill::Past;
use crate::buckets::{self, Bucket, Buckets};
use crate::exact::ExactStates;
use crate::feeder;
use crate::options::Options;
use crate::state::{State, page};
use crate::watcher::{Bridge, Watcher};
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use parking_lot::Mutex;
use pintle_storage::{
    At, Event, Found, Key, ListRequest, Listing, NewValue, Newest, Record, Result, Revision, Storage, StorageError,
    WatchRequest, WatchStream,
};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

/// How often progress is asked for again while somebody waits for it.
const PROGRESS_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A watch cache of one prefix.
#[derive(Debug)]
pub struct WatchCache {
    inner: Arc<Inner>,
    feeder: AbortHandle,
}

impl Drop for WatchCache {
    fn drop(&mut self) {
        self.feeder.abort();
        self.inner.end();
    }
}

/// How large a cache is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records.
    pub n_records: usize,
    /// Events in the window.
    pub n_events: usize,
    /// Bytes of values in the window.
    pub window_bytes: usize,
    /// Watchers.
    pub n_watchers: usize,
    /// How often it was filled. More than once: the back end's watch could not be resumed.
    pub n_fillings: u64,
    /// How far it has come.
    pub revision: Option<Revision>,
}

/// What the cache, its feeder and its watchers share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) backend: Arc<dyn Storage>,
    pub(crate) prefix: Key,
    pub(crate) options: Options,
    /// `None` until it is filled. Replaced only under the lock of `buckets`.
    pub(crate) state: ArcSwapOption<State>,
    pub(crate) buckets: Mutex<Buckets>,
    exact: ExactStates,
    /// Held while the window is widened into the past.
    pub(crate) past: tokio::sync::Mutex<Past>,
    /// Told when the state was replaced; its value means nothing.
    changed: watch::Sender<()>,
    is_ended: AtomicBool,
}

/// A state together with how far it is known to be complete, which may be further than it was fed.
pub(crate) struct Fresh {
    pub(crate) state: Arc<State>,
    pub(crate) revision: Revision,
}

impl WatchCache {
    /// A cache over the keys of a back end that begin with `prefix`. It begins to fill at once; reads wait for that. Must
    /// be called on a runtime.
    pub fn over(backend: Arc<dyn Storage>, prefix: Key, options: Options) -> Arc<WatchCache> {
        let inner = Arc::new(Inner {
            backend,
            prefix,
            options,
            state: ArcSwapOption::empty(),
            buckets: Mutex::default(),
            exact: ExactStates::default(),
            past: tokio::sync::Mutex::default(),
            changed: watch::Sender::new(()),
            is_ended: AtomicBool::new(false),
        });
        let feeder = tokio::spawn(feeder::feed(Arc::downgrade(&inner))).abort_handle();
        Arc::new(WatchCache { inner, feeder })
    }

    /// Waits until the cache is filled.
    ///
    /// # Errors
    /// `Unavailable` when that takes longer than the options allow.
    pub async fn ready(&self) -> Result<()> {
        self.inner.ready().await.map(|_| ())
    }

    /// Whether the cache is filled.
    pub fn is_ready(&self) -> bool {
        self.inner.state.load().is_some()
    }

    /// How large the cache is.
    pub fn stats(&self) -> Stats {
        let n_watchers = self.inner.buckets.lock().all().map(|bucket| bucket.n_watchers()).sum();
        let Some(state) = self.inner.state.load_full() else { return Stats { n_watchers, ..Stats::default() } };
        Stats {
            n_records: state.records.len(),
            n_events: state.window.len(),
            window_bytes: state.window.bytes(),
            n_watchers,
            n_fillings: state.filling,
            revision: Some(state.revision),
        }
    }
}

impl Inner {
    /// Whether the cache is gone: watches end.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        let all: Vec<Arc<Bucket>> = self.buckets.lock().all().map(Arc::clone).collect();
        all.iter().for_each(|bucket| bucket.wake());
    }

    /// Shows a new filling. Watchers of the one before end.
    pub(crate) fn refill(&self, state: State) {
        let all: Vec<Arc<Bucket>> = {
            let buckets = self.buckets.lock();
            self.exact.clear();
            self.state.store(Some(Arc::new(state)));
            buckets.all().map(Arc::clone).collect()
        };
        self.changed.send_replace(());
        all.iter().for_each(|bucket| bucket.wake());
    }

    /// Takes in events that follow on the state, shows the new state, and wakes whom they concern.
    pub(crate) fn apply(&self, events: &[Arc<Event>]) {
        let mut concerned: Vec<Arc<Bucket>> = Vec::new();
        {
            let buckets = self.buckets.lock();
            let Some(old) = self.state.load_full() else { return };
            let mut state = State::clone(&old);
            for event in events {
                let number = state.window.end();
                state.apply(event);
                buckets.announce(number, event, &self.options.indexer, &mut concerned);
            }
            state.window.trim(self.options.window_events_max, self.options.window_bytes_max);
            let since = state.window.since();
            self.state.store(Some(Arc::new(state)));
            if since != old.window.since() {
                self.exact.trim(since);
            }
            concerned.push(Arc::clone(buckets.everybody()));
        }
        self.changed.send_replace(());
        for bucket in concerned {
            bucket.wake();
        }
    }

    /// Changes the state without an event.
    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        let _only_one_at_a_time = self.buckets.lock();
        let Some(old) = self.state.load_full() else { return };
        let mut state = State::clone(&old);
        change(&mut state);
        self.state.store(Some(Arc::new(state)));
    }

    /// Takes note that there is no event that was not told up to a revision.
    pub(crate) fn advance(&self, revision: Revision) {
        let is_news = self.state.load().as_ref().is_some_and(|state| state.revision < revision);
        if !is_news {
            return;
        }
        self.change(|state| state.revision = state.revision.max(revision));
        self.changed.send_replace(());
    }

    /// The state, when the cache is filled.
    async fn ready(&self) -> Result<Arc<State>> {
        if let Some(state) = self.state.load_full() {
            return Ok(state);
        }
        let deadline = Instant::now() + self.options.ready_timeout;
        let mut changed = self.changed.subscribe();
        // The first look comes after the subscription: a filling in between would be waited for in vain.
        let filled = changed.wait_for(|()| self.state.load().is_some());
        // Whether it is filled or the time is over, the state says.
        let _ = timeout_at(deadline, filled).await;
        self.state.load_full().ok_or_else(|| StorageError::Unavailable {
            why: format!("the watch cache of {} is not filled yet", self.prefix),
        })
    }

    /// A state that has everything which was acknowledged before this call.
    async fn latest(&self) -> Result<Option<Fresh>> {
        self.ready().await?;
        match self.backend.newest(&self.prefix) {
            Some(newest) => self.reach(newest.change, newest.current).await,
            None => {
                let current = self.backend.current_revision().await?;
                self.reach(current, current).await
            }
        }
    }

    /// A state that has everything up to a revision; `None` when the cache does not get there in time.
    ///
    /// # Errors
    /// `Future` when the revision lies ahead of the back end.
    async fn at_least(&self, requested: Revision) -> Result<Option<Fresh>> {
        let state = self.ready().await?;
        if state.revision >= requested {
            return Ok(Some(Fresh { revision: state.revision, state }));
        }
        match self.backend.newest(&self.prefix) {
            Some(newest) if newest.current < requested => {
                Err(StorageError::Future { requested, current: newest.current })
            }
            Some(newest) => self.reach(newest.change, newest.current).await,
            None => {
                // Another process may have written it: it may come yet.
                let fresh = self.reach(requested, requested).await?;
                if fresh.is_none() {
                    let current = self.backend.current_revision().await?;
                    if current < requested {
                        return Err(StorageError::Future { requested, current });
                    }
                }
                Ok(fresh)
            }
        }
    }

    /// Waits until the cache has everything up to `change`, knowing that nothing changed from there to `current`.
    async fn reach(&self, change: Revision, current: Revision) -> Result<Option<Fresh>> {
        let mut changed = self.changed.subscribe();
        let deadline = Instant::now() + self.options.fresh_timeout;
        let is_told = self.backend.newest(&self.prefix).is_some();
        loop {
            let state = self.ready().await?;
            if state.revision >= change {
                return Ok(Some(Fresh { revision: state.revision.max(current), state }));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            let mut retry = deadline;
            if !is_told {
                self.backend.request_progress().await?;
                retry = deadline.min(Instant::now() + PROGRESS_RETRY_INTERVAL);
            }
            // Whether it is reached or the time is over, the state says.
            let reached = changed.wait_for(|()| self.state.load().as_ref().is_some_and(|s| s.revision >= change));
            let _ = timeout_at(retry, reached).await;
        }
    }

    /// How far a state is complete, without waiting: the newest revision known to have nothing after it.
    pub(crate) fn progress(&self, state: &State) -> Revision {
        match self.backend.newest(&self.prefix) {
            Some(newest) if state.revision >= newest.change => state.revision.max(newest.current),
            Some(_) | None => state.revision,
        }
    }

    /// Whether keys of this prefix are in the cache.
    fn covers(&self, prefix: &Key) -> bool {
        prefix.starts_with(&*self.prefix)
    }

    async fn list(&self, request: ListRequest) -> Result<Listing> {
        if !self.covers(&request.prefix) {
            return self.backend.list(request).await;
        }
        let fresh = match request.at {
            At::Any => {
                let state = self.ready().await?;
                Some(Fresh { revision: state.revision, state })
            }
            At::Latest => self.latest().await?,
            At::NotOlderThan(revision) | At::Exact(revision) => self.at_least(revision).await?,
        };
        let Some(Fresh { state, revision }) = fresh else { return self.backend.list(request).await };
        let covers_all = request.prefix == self.prefix;
        match request.at {
            At::Exact(requested) if requested < state.floor => {
                Err(StorageError::Expired { requested, compacted: state.floor })
            }
            At::Exact(requested) if requested < state.window.since() => self.backend.list(request).await,
            At::Exact(requested) => Ok(page(&self.exact.at(&state, requested), &request, requested, covers_all)),
            At::Any | At::Latest | At::NotOlderThan(_) => {
                let listing = page(&state.records, &request, revision, covers_all);
                if listing.remaining > 0 {
                    self.keep_for_pages(&state, revision);
                }
                Ok(listing)
            }
        }
    }

    /// Keeps a state whose further pages will be asked for, unless it is known how to find it again.
    fn keep_for_pages(&self, state: &Arc<State>, revision: Revision) {
        let _no_state_is_trimmed_meanwhile = self.buckets.lock();
        let is_in_window = self.state.load().as_ref().is_some_and(|now| now.window.since() <= revision);
        if is_in_window {
            self.exact.keep(revision, &state.records);
        }
    }

    async fn get(&self, key: &Key, at: At) -> Result<Found> {
        if self.covers(key) {
            // Before the state is looked at: what comes in between only makes it newer.
            let newest = if at == At::Latest { self.backend.newest(&self.prefix) } else { None };
            let state = self.ready().await?;
            let complete_to = match (at, newest) {
                (At::Any, _) => Some(state.revision),
                (At::NotOlderThan(revision), _) => Some(state.revision).filter(|reached| *reached >= revision),
                (At::Latest, Some(newest)) if state.revision >= newest.change => {
                    Some(state.revision.max(newest.current))
                }
                // One record is quickly found where it is newest for certain.
                (At::Latest | At::Exact(_), _) => None,
            };
            if let Some(revision) = complete_to {
                return Ok(Found { record: state.records.get(key).cloned(), revision });
            }
        }
        self.backend.get(key, at).await
    }

    async fn watch(self: &Arc<Self>, request: WatchRequest) -> Result<WatchStream> {
        if !self.covers(&request.prefix) {
            return self.backend.watch(request).await;
        }
        let state = self.ready().await?;
        if request.since < state.floor {
            return Err(StorageError::Expired { requested: request.since, compacted: state.floor });
        }
        let mut bridge = None;
        if request.since < state.window.since() {
            self.backfill(request.since).await?;
            let is_in_window = self.state.load().as_ref().is_some_and(|now| request.since >= now.window.since());
            bridge = if is_in_window { None } else { Some(self.bridge(&request).await?) };
        }
        let interest = buckets::interest(&request, &self.prefix, &self.options.indexer);
        let (membership, state) = {
            let mut buckets = self.buckets.lock();
            let state = self.state.load_full().unwrap_or(state);
            (buckets.join(interest, state.window.end()), state)
        };
        if bridge.is_none() && request.since < state.window.since() {
            // It left the window between the two looks.
            let (requested, compacted) = (request.since, state.window.since());
            self.buckets.lock().leave(&membership);
            return Err(StorageError::Expired { requested, compacted });
        }
        Ok(Box::pin(Watcher::new(Arc::clone(self), request, membership, &state, bridge)))
    }

    /// A watch of the back end, for what is older than the window.
    pub(crate) async fn bridge(&self, request: &WatchRequest) -> Result<Bridge> {
        let request = WatchRequest { progress: true, ..request.clone() };
        let stream = self.backend.watch(request).await?;
        // Tells when the past is over, in case no event does.
        self.backend.request_progress().await?;
        Ok(Bridge { stream })
    }
}

#[async_trait]
impl Storage for WatchCache {
    async fn create(&self, key: Key, value: NewValue) -> Result<Arc<Record>> {
        self.inner.backend.create(key, value).await
    }

    async fn update(&self, key: Key, value: NewValue, expected: Revision) -> Result<Arc<Record>> {
        self.inner.backend.update(key, value, expected).await
    }

    async fn delete(&self, key: Key, expected: Option<Revision>) -> Result<Arc<Event>> {
        self.inner.backend.delete(key, expected).await
    }

    async fn get(&self, key: &Key, at: At) -> Result<Found> {
        self.inner.get(key, at).await
    }

    async fn list(&self, request: ListRequest) -> Result<Listing> {
        self.inner.list(request).await
    }

    async fn count(&self, prefix: &Key) -> Result<usize> {
        if !self.inner.covers(prefix) {
            return self.inner.backend.count(prefix).await;
        }
        let state = self.inner.ready().await?;
        if *prefix == self.inner.prefix {
            return Ok(state.records.len());
        }
        let range = state.records.range::<_, str>((Bound::Included(&**prefix), Bound::Unbounded));
        Ok(range.take_while(|(key, _)| key.starts_with(&**prefix)).count())
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream> {
        self.inner.watch(request).await
    }

    async fn current_revision(&self) -> Result<Revision> {
        self.inner.backend.current_revision().await
    }

    fn newest(&self, prefix: &Key) -> Option<Newest> {
        self.inner.backend.newest(prefix)
    }

    async fn request_progress(&self) -> Result<()> {
        if let Some(Fresh { revision, .. }) = self.inner.latest().await? {
            self.inner.change(|state| {
                state.revision = state.revision.max(revision);
                state.n_progress_requests += 1;
            });
            let all: Vec<Arc<Bucket>> = self.inner.buckets.lock().all().map(Arc::clone).collect();
            all.iter().for_each(|bucket| bucket.wake());
        }
        Ok(())
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.inner.backend.compact(revision).await?;
        self.inner.change(|state| state.floor = state.floor.max(revision));
        Ok(())
    }

    async fn health(&self) -> Result<()> {
        self.inner.backend.health().await
    }
}
