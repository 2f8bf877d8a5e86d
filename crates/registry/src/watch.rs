//! Watch: initial state where it is asked for, then events, with the enter and leave transitions of selectors, and
//! bookmarks.

use crate::call::Call;
use crate::errors::{expired_watch, storage_status};
use crate::options::ListOptions;
use crate::resource::Resource;
use crate::select::OwnedSelection;
use futures_util::stream::{self, BoxStream, StreamExt};
use pintle_apimachinery::Status;
use pintle_apimachinery::status::Result;
use pintle_storage::{
    At, Event, Filter, ListRequest, Record, Revision, StorageError, WatchItem, WatchRequest, WatchStream,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How often a watcher that allows bookmarks gets one. Upstream's is about a minute.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// How long before its end a watcher that allows bookmarks gets one.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Events told at once. Longer initial states are told in several pieces, so that nobody's memory holds all of it in
/// wire form.
const BATCH_EVENTS_MAX: usize = 512;

/// How an event looks to one watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// The object is new to the watcher.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone from the watcher's sight.
    Deleted,
}

impl EventKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
        }
    }
}

/// What a watcher is told.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// An object.
    Object {
        /// What became of it.
        kind: EventKind,
        /// Its content.
        record: Arc<Record>,
        /// The version it shows: that of the event.
        revision: Revision,
        /// The event; none for initial state.
        event: Option<Arc<Event>>,
    },
    /// Everything up to this version was told.
    Bookmark {
        /// The version.
        revision: Revision,
        /// Whether this ends the initial events.
        is_initial_end: bool,
    },
    /// The watch cannot go on. Its last event.
    Error(Box<Status>),
}

/// A running watch, told in batches.
pub type Watch = BoxStream<'static, Vec<WatchEvent>>;

/// Where a watch begins.
enum Start {
    /// With the state that a list finds, told as ADDED; whether a bookmark ends it.
    State(At, bool),
    /// Behind a version.
    Behind(Revision),
    /// Now.
    Now,
}

impl Resource {
    /// Opens a watch. `deadline` is when the caller will end it.
    ///
    /// # Errors
    /// 400 for bad selectors, 504 for a version ahead of the store where initial state is asked for. A version that is
    /// too old is told inside the stream.
    pub async fn watch(&self, call: &Call<'_>, options: &ListOptions, deadline: Instant) -> Result<Watch> {
        let selection = Arc::new(OwnedSelection::new(self, options)?);
        let prefix = self.store.prefix(call.namespace);
        let start = start_of(options);
        let mut initial = Vec::new();
        let since = match start {
            Start::Behind(revision) => revision,
            Start::Now => self
                .store
                .storage
                .current_revision()
                .await
                .map_err(|e| storage_status(&e, self.group_resource(), ""))?,
            Start::State(at, ends_in_bookmark) => {
                let request = ListRequest { prefix: prefix.clone(), start: None, limit: 0, at };
                let listing = self.store.storage.list(request).await;
                let listing = listing.map_err(|e| storage_status(&e, self.group_resource(), ""))?;
                initial.extend(listing.records.into_iter().filter(|r| selection.matches(r)).map(added));
                if ends_in_bookmark && options.allow_bookmarks {
                    initial.push(WatchEvent::Bookmark { revision: listing.revision, is_initial_end: true });
                }
                listing.revision
            }
        };
        let filter = (!selection.is_everything()).then(|| selection.clone() as Arc<dyn Filter>);
        let request = WatchRequest { prefix, since, filter: filter.clone(), progress: options.allow_bookmarks };
        let live = match self.store.storage.watch(request).await {
            Ok(live) => live,
            Err(error) => {
                let last = WatchEvent::Error(watch_error(&error, self));
                return Ok(stream::iter([vec![last]]).boxed());
            }
        };
        let told = chunks(initial);
        let group_resource = self.group_resource().clone();
        let live = Live {
            stream: live,
            filter,
            told: since,
            bookmarks: options.allow_bookmarks.then(|| Bookmarks::new(deadline)),
            resource: group_resource,
            is_over: false,
        };
        Ok(stream::iter(told).chain(stream::unfold(live, Live::next)).boxed())
    }
}

fn added(record: Arc<Record>) -> WatchEvent {
    let revision = record.revision;
    WatchEvent::Object { kind: EventKind::Added, record, revision, event: None }
}

fn chunks(events: Vec<WatchEvent>) -> Vec<Vec<WatchEvent>> {
    let mut events = events.into_iter().peekable();
    let mut out = Vec::new();
    while events.peek().is_some() {
        out.push(events.by_ref().take(BATCH_EVENTS_MAX).collect());
    }
    out
}

fn start_of(options: &ListOptions) -> Start {
    let revision = options.resource_version.map(Revision::new);
    match (options.send_initial_events, revision) {
        (Some(true), None) => Start::State(At::Latest, true),
        (Some(true), Some(None)) => Start::State(At::Any, true),
        (Some(true), Some(Some(revision))) => Start::State(At::NotOlderThan(revision), true),
        (Some(false), None | Some(None)) => Start::Now,
        (None, None) => Start::State(At::Latest, false),
        (None, Some(None)) => Start::State(At::Any, false),
        (Some(false) | None, Some(Some(revision))) => Start::Behind(revision),
    }
}

fn watch_error(error: &StorageError, resource: &Resource) -> Box<Status> {
    match error {
        StorageError::Expired { requested, compacted } => Box::new(expired_watch(requested.get(), compacted.get())),
        other => storage_status(other, resource.group_resource(), ""),
    }
}

/// When the next bookmark is due.
struct Bookmarks {
    next: Instant,
    /// The bookmark before the end; `None` once it was sent or when the watch is too short for one.
    last: Option<Instant>,
}

impl Bookmarks {
    fn new(deadline: Instant) -> Bookmarks {
        let now = Instant::now();
        let last = deadline.checked_sub(BOOKMARK_BEFORE_END).filter(|at| *at > now);
        Bookmarks { next: now + BOOKMARK_PERIOD, last }
    }

    fn due(&self) -> Instant {
        self.last.map_or(self.next, |last| last.min(self.next))
    }

    fn sent(&mut self) {
        let now = Instant::now();
        self.next = now + BOOKMARK_PERIOD;
        self.last = self.last.filter(|last| *last > now);
    }
}

/// The live part of a watch.
struct Live {
    stream: WatchStream,
    filter: Option<Arc<dyn Filter>>,
    /// Everything up to this version was told.
    told: Revision,
    bookmarks: Option<Bookmarks>,
    resource: pintle_apimachinery::GroupResource,
    is_over: bool,
}

impl Live {
    async fn next(mut self) -> Option<(Vec<WatchEvent>, Live)> {
        if self.is_over {
            return None;
        }
        loop {
            let item = match &self.bookmarks {
                None => self.stream.next().await,
                Some(bookmarks) => {
                    let due = bookmarks.due();
                    tokio::select! {
                        biased;
                        item = self.stream.next() => item,
                        () = sleep_until(due) => {
                            return Some((vec![self.bookmark()], self));
                        }
                    }
                }
            };
            let events = match item {
                None => return None,
                Some(Ok(WatchItem::Events(events))) => self.view(&events),
                Some(Ok(WatchItem::Progress(revision))) => {
                    self.told = self.told.max(revision);
                    continue;
                }
                Some(Err(error)) => {
                    self.is_over = true;
                    let status = match &error {
                        StorageError::Expired { requested, compacted } => {
                            Box::new(expired_watch(requested.get(), compacted.get()))
                        }
                        other => storage_status(other, &self.resource, ""),
                    };
                    vec![WatchEvent::Error(status)]
                }
            };
            if !events.is_empty() {
                return Some((events, self));
            }
        }
    }

    fn bookmark(&mut self) -> WatchEvent {
        if let Some(bookmarks) = &mut self.bookmarks {
            bookmarks.sent();
        }
        WatchEvent::Bookmark { revision: self.told, is_initial_end: false }
    }

    /// The events as this watcher sees them.
    fn view(&mut self, events: &[Arc<Event>]) -> Vec<WatchEvent> {
        if let Some(last) = events.last() {
            self.told = self.told.max(last.revision);
        }
        events.iter().filter_map(|event| view(event, self.filter.as_deref())).collect()
    }
}

/// An event as a watcher with this filter sees it; `None` when it does not concern it.
fn view(event: &Arc<Event>, filter: Option<&dyn Filter>) -> Option<WatchEvent> {
    let is_seen = |record: &Option<Arc<Record>>| match (record, filter) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(record), Some(filter)) => filter.matches(record),
    };
    let (kind, record) = match (is_seen(&event.previous), is_seen(&event.record)) {
        (false, false) => return None,
        (false, true) => (EventKind::Added, event.record.clone()?),
        (true, true) => (EventKind::Modified, event.record.clone()?),
        (true, false) => (EventKind::Deleted, event.previous.clone()?),
    };
    Some(WatchEvent::Object { kind, record, revision: event.revision, event: Some(event.clone()) })
}
