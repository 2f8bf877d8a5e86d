//! The reference model: a store in memory, as plain as can be. Every other back end is tested against it. It keeps its
//! history as a list of events and answers reads at old revisions by undoing the newer ones.
//!
//! Not here: speed. A lock guards everything, and a read at an old revision copies the key map.

use crate::{
    At, Event, Found, Key, ListRequest, Listing, NewValue, Note, Record, Result, Revision, Storage, StorageError,
    VALUE_BYTES_MAX, WatchItem, WatchRequest, WatchStream,
};
use async_trait::async_trait;
use futures_util::stream;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// Events that the store remembers; older ones are compacted as new ones come.
pub const HISTORY_EVENTS_MAX: usize = 100_000;

/// Events told to a watcher in one item.
const BATCH_EVENTS_MAX: usize = 256;

/// A store in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Counts changes that watchers want to hear of; its value means nothing.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    revision: Revision,
    /// The oldest revision that can be read. Nothing in `history` is as old.
    compacted: Revision,
    live: BTreeMap<Key, Arc<Record>>,
    /// All events after `compacted`, oldest first.
    history: VecDeque<Arc<Event>>,
    /// When keys with a time to live are due, with the revision that gave it to them.
    deadlines: BTreeMap<(Instant, Revision), Key>,
    /// How often progress was asked for.
    n_progress_requests: u64,
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        let state = State {
            revision: Revision::FIRST,
            compacted: Revision::FIRST,
            live: BTreeMap::new(),
            history: VecDeque::new(),
            deadlines: BTreeMap::new(),
            n_progress_requests: 0,
        };
        MemoryStore { shared: Arc::new(Shared { state: Mutex::new(state), changed: watch::Sender::new(0) }) }
    }
}

impl MemoryStore {
    /// An empty store, at [`Revision::FIRST`].
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Runs `act` on the state as it is now, with everything that is due expired.
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        self.shared.with(act)
    }
}

impl Shared {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let before = (state.revision, state.compacted, state.n_progress_requests, state.next_deadline());
        state.expire(Instant::now());
        let answer = act(&mut state);
        let after = (state.revision, state.compacted, state.n_progress_requests, state.next_deadline());
        drop(state);
        if before != after {
            self.changed.send_modify(|n| *n = n.wrapping_add(1));
        }
        answer
    }
}

impl State {
    fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.keys().next().map(|(due, _)| *due)
    }

    /// Deletes what is due.
    fn expire(&mut self, now: Instant) {
        while let Some(entry) = self.deadlines.first_entry() {
            if entry.key().0 > now {
                return;
            }
            let ((_, revision), key) = entry.remove_entry();
            if self.live.get(&key).is_some_and(|record| record.revision == revision) {
                self.remove(key);
            }
        }
    }

    /// Gives the next revision to a new value of `key`.
    fn put(&mut self, key: Key, value: NewValue) -> Arc<Record> {
        let revision = self.revision.next();
        if let Some(due) = value.ttl.and_then(|ttl| Instant::now().checked_add(ttl)) {
            self.deadlines.insert((due, revision), key.clone());
        }
        let record = Arc::new(Record { key: key.clone(), revision, value: value.bytes, note: value.note });
        let previous = self.live.insert(key.clone(), Arc::clone(&record));
        self.commit(Event { key, revision, record: Some(Arc::clone(&record)), previous, note: Note::default() });
        record
    }

    /// Gives the next revision to the deletion of `key`.
    fn remove(&mut self, key: Key) -> Arc<Event> {
        let previous = self.live.remove(&key);
        self.commit(Event { key, revision: self.revision.next(), record: None, previous, note: Note::default() })
    }

    fn commit(&mut self, event: Event) -> Arc<Event> {
        let event = Arc::new(event);
        self.revision = event.revision;
        self.history.push_back(Arc::clone(&event));
        if self.history.len() > HISTORY_EVENTS_MAX
            && let Some(oldest) = self.history.pop_front()
        {
            self.compacted = oldest.revision;
        }
        event
    }

    /// The record of a key that must stand at `expected`, if that is given.
    fn stored(&self, key: &Key, expected: Option<Revision>) -> Result<&Arc<Record>> {
        let record = self.live.get(key).ok_or_else(|| StorageError::NotFound { key: key.clone() })?;
        match expected {
            Some(expected) if expected != record.revision => {
                Err(StorageError::Conflict { key: key.clone(), expected, stored: record.revision })
            }
            Some(_) | None => Ok(record),
        }
    }

    /// The revision at which a read of this kind is answered.
    fn resolve(&self, at: At) -> Result<Revision> {
        match at {
            At::Latest | At::Any => Ok(self.revision),
            At::NotOlderThan(requested) | At::Exact(requested) if requested > self.revision => {
                Err(StorageError::Future { requested, current: self.revision })
            }
            At::NotOlderThan(_) => Ok(self.revision),
            At::Exact(requested) if requested < self.compacted => {
                Err(StorageError::Expired { requested, compacted: self.compacted })
            }
            At::Exact(requested) => Ok(requested),
        }
    }

    /// All records as they were at a revision that is not compacted.
    fn at(&self, revision: Revision) -> BTreeMap<Key, Arc<Record>> {
        let mut records = self.live.clone();
        for event in self.history.iter().rev().take_while(|event| event.revision > revision) {
            match &event.previous {
                Some(previous) => records.insert(event.key.clone(), Arc::clone(previous)),
                None => records.remove(&event.key),
            };
        }
        records
    }

    /// The next events for a watcher that was told everything up to `cursor`.
    fn events_after(&self, cursor: Revision, prefix: &str) -> Result<Vec<Arc<Event>>> {
        if cursor < self.compacted {
            return Err(StorageError::Expired { requested: cursor, compacted: self.compacted });
        }
        let first = self.history.partition_point(|event| event.revision <= cursor);
        let news = self.history.range(first..).filter(|event| event.key.starts_with(prefix));
        Ok(news.take(BATCH_EVENTS_MAX).map(Arc::clone).collect())
    }
}

/// Reads one page of a key map.
fn page(records: &BTreeMap<Key, Arc<Record>>, request: &ListRequest, revision: Revision) -> Listing {
    let start = request.start.as_ref().map_or(&*request.prefix, |start| start.as_str().max(request.prefix.as_str()));
    let range = (Bound::Included(start), Bound::Unbounded);
    let mut found = records
        .range::<str, _>(range)
        .map(|(_, record)| record)
        .take_while(|record| record.key.starts_with(request.prefix.as_str()));
    let limit = if request.limit == 0 { usize::MAX } else { request.limit };
    let records: Vec<Arc<Record>> = found.by_ref().take(limit).map(Arc::clone).collect();
    Listing { records, revision, remaining: found.count() }
}

#[async_trait]
impl Storage for MemoryStore {
    async fn create(&self, key: Key, value: NewValue) -> Result<Arc<Record>> {
        fits(&key, &value)?;
        self.with(|state| match state.live.get(&key) {
            Some(record) => Err(StorageError::AlreadyExists { key: key.clone(), stored: record.revision }),
            None => Ok(state.put(key, value)),
        })
    }

    async fn update(&self, key: Key, value: NewValue, expected: Revision) -> Result<Arc<Record>> {
        fits(&key, &value)?;
        self.with(|state| {
            state.stored(&key, Some(expected))?;
            Ok(state.put(key, value))
        })
    }

    async fn delete(&self, key: Key, expected: Option<Revision>) -> Result<Arc<Event>> {
        self.with(|state| {
            state.stored(&key, expected)?;
            Ok(state.remove(key))
        })
    }

    async fn get(&self, key: &Key, at: At) -> Result<Found> {
        self.with(|state| {
            let revision = state.resolve(at)?;
            let record = match at {
                At::Exact(_) => state.at(revision).remove(key),
                At::Latest | At::Any | At::NotOlderThan(_) => state.live.get(key).cloned(),
            };
            Ok(Found { record, revision })
        })
    }

    async fn list(&self, request: ListRequest) -> Result<Listing> {
        self.with(|state| {
            let revision = state.resolve(request.at)?;
            Ok(match request.at {
                At::Exact(_) => page(&state.at(revision), &request, revision),
                At::Latest | At::Any | At::NotOlderThan(_) => page(&state.live, &request, revision),
            })
        })
    }

    async fn count(&self, prefix: &Key) -> Result<usize> {
        let request = ListRequest { prefix: prefix.clone(), start: None, limit: 0, at: At::Latest };
        Ok(self.list(request).await?.records.len())
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream> {
        let watcher = self.with(|state| {
            state.events_after(request.since, &request.prefix)?;
            Ok(Watcher {
                shared: Arc::clone(&self.shared),
                changed: self.shared.changed.subscribe(),
                prefix: request.prefix,
                cursor: request.since,
                n_progress_told: request.progress.then_some(state.n_progress_requests),
                ended: false,
            })
        })?;
        Ok(Box::pin(stream::unfold(watcher, |mut watcher| async move {
            let item = watcher.next().await?;
            Some((item, watcher))
        })))
    }

    async fn current_revision(&self) -> Result<Revision> {
        Ok(self.with(|state| state.revision))
    }

    async fn request_progress(&self) -> Result<()> {
        self.with(|state| state.n_progress_requests += 1);
        Ok(())
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.with(|state| {
            if revision > state.revision {
                return Err(StorageError::Future { requested: revision, current: state.revision });
            }
            if revision <= state.compacted {
                return Err(StorageError::Expired { requested: revision, compacted: state.compacted });
            }
            state.compacted = revision;
            let n_old = state.history.partition_point(|event| event.revision <= revision);
            state.history.drain(..n_old);
            Ok(())
        })
    }

    async fn health(&self) -> Result<()> {
        Ok(())
    }
}

/// Whether the value has a size that the store takes.
fn fits(key: &Key, value: &NewValue) -> Result<()> {
    let bytes = value.bytes.len();
    if bytes > VALUE_BYTES_MAX {
        return Err(StorageError::TooLarge { key: key.clone(), bytes, bytes_max: VALUE_BYTES_MAX });
    }
    Ok(())
}

/// One running watch.
#[derive(Debug)]
struct Watcher {
    shared: Arc<Shared>,
    changed: watch::Receiver<u64>,
    prefix: Key,
    /// Everything up to here was told.
    cursor: Revision,
    /// How many requests for progress were answered; `None` when the watcher wants no progress.
    n_progress_told: Option<u64>,
    ended: bool,
}

impl Watcher {
    async fn next(&mut self) -> Option<Result<WatchItem>> {
        while !self.ended {
            // Marks the present change as seen before the state is read: a later one wakes the wait below.
            self.changed.borrow_and_update();
            let (item, next_deadline) = {
                let shared = Arc::clone(&self.shared);
                shared.with(|state| (self.poll(state), state.next_deadline()))
            };
            if item.is_some() {
                return item;
            }
            self.wait(next_deadline).await?;
        }
        None
    }

    fn poll(&mut self, state: &State) -> Option<Result<WatchItem>> {
        let events = match state.events_after(self.cursor, &self.prefix) {
            Ok(events) => events,
            Err(error) => {
                self.ended = true;
                return Some(Err(error));
            }
        };
        if let Some(last) = events.last() {
            self.cursor = last.revision;
            return Some(Ok(WatchItem::Events(events)));
        }
        self.cursor = self.cursor.max(state.revision);
        let told = self.n_progress_told.as_mut()?;
        let is_asked = *told != state.n_progress_requests;
        *told = state.n_progress_requests;
        is_asked.then(|| Ok(WatchItem::Progress(state.revision)))
    }

    /// Waits for a change or for the next key to expire. `None` when the store is gone.
    async fn wait(&mut self, next_deadline: Option<Instant>) -> Option<()> {
        match next_deadline {
            Some(due) => match tokio::time::timeout_at(due, self.changed.changed()).await {
                Ok(changed) => changed.ok(),
                Err(_elapsed) => Some(()),
            },
            None => self.changed.changed().await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::storage_conformance!(memory, async { MemoryStore::new() });
}
