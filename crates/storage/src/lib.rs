//! The storage contract: one revision line per store, compare-and-swap writes, ordered watch. Back ends implement
//! [`Storage`]; the watch cache is a `Storage` over a `Storage`; the registry sees nothing else.
//!
//! Not here: what a value means. Values are bytes; whoever writes them may keep what it has derived from them in the
//! [`Note`] of a [`Record`], where all readers of that record find it.

pub mod checkers;
pub mod conformance;
mod error;
pub mod memory;
mod record;

pub use error::{Result, StorageError};
pub use memory::MemoryStore;
pub use record::{Event, Key, Note, Record, Revision};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of one value. A larger one is refused with [`StorageError::TooLarge`] by the memory store and the embedded
/// store; etcd has its own limit. Far above the 3 MiB that a request body may have, so that defaulting cannot reach it.
pub const VALUE_BYTES_MAX: usize = 8 << 20;

/// A value to be written.
#[derive(Clone, Debug, Default)]
pub struct NewValue {
    /// The value.
    pub bytes: Bytes,
    /// What the writer has derived from it; the back end hands it on with the record where it can.
    pub note: Note,
    /// After this time the key is deleted by the store itself.
    pub ttl: Option<Duration>,
}

/// Which state a read is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The newest state: every write that was acknowledged before the read began is in it.
    Latest,
    /// Any state, however old; what is quickest.
    Any,
    /// Any state that is not older than this revision.
    NotOlderThan(Revision),
    /// Exactly the state at this revision.
    Exact(Revision),
}

/// A range of keys to be read.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// Keys that begin with this text.
    pub prefix: Key,
    /// Keys not before this one; the beginning when `None`.
    pub start: Option<Key>,
    /// At most so many records; all when 0.
    pub limit: usize,
    /// Which state.
    pub at: At,
}

/// What a list found.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The records in order of their keys.
    pub records: Vec<Arc<Record>>,
    /// The state that was read. With [`At::Exact`] the revision asked for, else at least that of every record.
    pub revision: Revision,
    /// How many further records there are behind the limit.
    pub remaining: usize,
}

/// What a get found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The record, if the key is there.
    pub record: Option<Arc<Record>>,
    /// The state that was read: at least the record's revision.
    pub revision: Revision,
}

/// Decides which records a watcher is interested in. Cheap and pure: it runs on the dispatch path.
pub trait Filter: Send + Sync + std::fmt::Debug {
    /// Whether the watcher wants to know of this record.
    fn matches(&self, record: &Record) -> bool;
    /// A necessary condition that an index can answer: the name of an indexed field and the value it must have.
    fn trigger(&self) -> Option<(&str, &str)> {
        None
    }
}

/// A watch to be opened.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// Keys that begin with this text. A watch of one key gives that key.
    pub prefix: Key,
    /// Events after this revision: exactly those with a greater one.
    pub since: Revision,
    /// Lets the store leave out events that interest nobody here. A store may ignore it, so the watcher still applies
    /// it; an event is left out only if neither its record nor its previous record matches.
    pub filter: Option<Arc<dyn Filter>>,
    /// Ask for [`WatchItem::Progress`] now and then.
    pub progress: bool,
}

/// What a watch tells.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// Events in order of their revisions; never empty.
    Events(Vec<Arc<Event>>),
    /// Every event up to and including this revision has been told.
    Progress(Revision),
}

/// A running watch. An error is its last item; it may also end without one, whenever the store has to begin anew: open
/// it again from the revision last told. Dropping it ends it and disturbs no other.
pub type WatchStream = BoxStream<'static, Result<WatchItem>>;

/// How far a prefix has come, as told by a store that knows without asking anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// The revision of the newest change under the prefix, or a later one when the store cannot tell so exactly.
    pub change: Revision,
    /// Where the store stands: every write acknowledged before the question is in it.
    pub current: Revision,
}

/// A store with one revision line.
///
/// Laws, which the conformance suite executes:
/// - Every committed write has one revision, greater than those of all writes acknowledged before it began.
/// - A write that was acknowledged is durable on the back end.
/// - A write that failed with [`StorageError::Unavailable`] may or may not have happened; with any other error it has
///   not.
/// - Dropping the future of a write may or may not undo the write.
#[async_trait]
pub trait Storage: Send + Sync + std::fmt::Debug + 'static {
    /// Writes a key that must not be there.
    ///
    /// # Errors
    /// `AlreadyExists` when it is there.
    async fn create(&self, key: Key, value: NewValue) -> Result<Arc<Record>>;

    /// Replaces the value of a key that must stand at revision `expected`.
    ///
    /// # Errors
    /// `NotFound` when the key is not there, `Conflict` when it stands at another revision.
    async fn update(&self, key: Key, value: NewValue, expected: Revision) -> Result<Arc<Record>>;

    /// Deletes a key that must be there (at revision `expected`, when given). Answers the event: its revision is that
    /// of the deletion, its previous record what was deleted.
    ///
    /// # Errors
    /// `NotFound` when the key is not there, `Conflict` when it stands at another revision.
    async fn delete(&self, key: Key, expected: Option<Revision>) -> Result<Arc<Event>>;

    /// Reads one key.
    ///
    /// # Errors
    /// `Future` when the revision asked for lies ahead of the store, `Expired` when an exact one is compacted.
    async fn get(&self, key: &Key, at: At) -> Result<Found>;

    /// Reads the keys of a prefix.
    ///
    /// # Errors
    /// As [`Storage::get`].
    async fn list(&self, request: ListRequest) -> Result<Listing>;

    /// How many keys the prefix has, now or a moment ago.
    ///
    /// # Errors
    /// `Unavailable` when the back end does not answer.
    async fn count(&self, prefix: &Key) -> Result<usize>;

    /// Watches the keys of a prefix. Guarantees, by their names: Ordered (revisions never go back), Unique (each event
    /// once), Atomic (events of one revision come together), Reliable (no gap after `since`), Resumable (from the
    /// revision of any event told), Bookmarkable (and of any progress told), PrevKV (each event carries what the key
    /// held before it, if it was there).
    ///
    /// A revision ahead of the store is no error: the watch tells what comes after it.
    ///
    /// # Errors
    /// `Expired` if and only if events after `since` are compacted: list again. The same may end the stream later,
    /// when the watcher is too slow.
    async fn watch(&self, request: WatchRequest) -> Result<WatchStream>;

    /// The newest revision, linearizably.
    ///
    /// # Errors
    /// `Unavailable` when the back end does not answer.
    async fn current_revision(&self) -> Result<Revision>;

    /// How far a prefix has come, if the store knows that without asking anybody: who has every event up to `change`
    /// has the state of the prefix at `current`. `None` means: ask [`Storage::current_revision`] and wait for
    /// [`WatchItem::Progress`].
    fn newest(&self, prefix: &Key) -> Option<Newest> {
        let _ = prefix;
        None
    }

    /// Asks that every open watch with [`WatchRequest::progress`] soon tells a [`WatchItem::Progress`] that covers at
    /// least the revision at which the store stands now. Answers before they do.
    ///
    /// # Errors
    /// `Unavailable` when the back end does not answer.
    async fn request_progress(&self) -> Result<()>;

    /// Forgets history: exact reads at, and watches since, anything before `revision` answer `Expired` from now on.
    /// Live records stay, and so does everything after `revision`.
    ///
    /// # Errors
    /// `Expired` when that much is compacted already, `Future` when the revision lies ahead.
    async fn compact(&self, revision: Revision) -> Result<()>;

    /// Whether the back end can serve reads and writes.
    ///
    /// # Errors
    /// Why it cannot.
    async fn health(&self) -> Result<()>;
}
