//! What the cache knows, as one immutable value: all records, the window of recent events, and how far that goes.

use crate::window::Window;
use imbl::OrdMap;
use pintle_storage::{Event, Key, ListRequest, Listing, Record, Revision};
use std::ops::Bound;
use std::sync::Arc;

/// All records of the prefix, by their keys.
pub(crate) type Records = OrdMap<Key, Arc<Record>>;

/// What the cache knows.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) records: Records,
    pub(crate) window: Window,
    /// Every event up to here is in `records`. Never less than the newest event of the window.
    pub(crate) revision: Revision,
    /// What is older than this was compacted by whoever uses this cache, though it may still be in the window.
    pub(crate) floor: Revision,
    /// Counts how often the cache was filled. Watchers of another filling end.
    pub(crate) filling: u64,
    /// How often progress was asked for.
    pub(crate) n_progress_requests: u64,
}

impl State {
    /// The state that a list found.
    pub(crate) fn filled(listing: Listing, filling: u64, floor: Revision) -> State {
        State {
            records: listing.records.into_iter().map(|record| (record.key.clone(), record)).collect(),
            window: Window::new(listing.revision),
            revision: listing.revision,
            floor,
            filling,
            n_progress_requests: 0,
        }
    }

    /// Takes in the next event.
    pub(crate) fn apply(&mut self, event: &Arc<Event>) {
        debug_assert!(event.revision >= self.revision);
        match &event.record {
            Some(record) => self.records.insert(event.key.clone(), Arc::clone(record)),
            None => self.records.remove(&event.key),
        };
        self.revision = event.revision;
        self.window.push(Arc::clone(event));
    }
}

/// One page of records.
pub(crate) fn page(records: &Records, request: &ListRequest, revision: Revision, covers_all: bool) -> Listing {
    let prefix = request.prefix.as_str();
    let start = request.start.as_ref().map_or(prefix, |start| start.as_str().max(prefix));
    let is_whole = covers_all && request.start.is_none();
    if is_whole && request.limit == 0 {
        return Listing { records: records.values().map(Arc::clone).collect(), revision, remaining: 0 };
    }
    let range = records.range::<_, str>((Bound::Included(start), Bound::Unbounded));
    let mut found = range.map(|(_, record)| record).take_while(|record| record.key.starts_with(prefix));
    let limit = if request.limit == 0 { usize::MAX } else { request.limit };
    let page: Vec<Arc<Record>> = found.by_ref().take(limit).map(Arc::clone).collect();
    let remaining = if is_whole { records.len() - page.len() } else { found.count() };
    Listing { records: page, revision, remaining }
}
