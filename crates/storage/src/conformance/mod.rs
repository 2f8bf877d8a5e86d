//! The contract of [`Storage`] as a suite of scenarios, written once against the trait and run for every back end and for
//! the cache over each of them:
//!
//! ```ignore
//! pintle_storage::storage_conformance!(memory, async { MemoryStore::new() });
//! pintle_storage::storage_conformance!(on_disk, open_in_a_fresh_directory(), real_time);
//! pintle_storage::storage_conformance!(served, start_a_server(), if_there);
//! ```
//!
//! The second argument is a future of something that turns [`Into`] a [`Subject`]; it is evaluated once per scenario. The
//! first form runs on paused time, for stores that live on the test's runtime; `real_time` is for those with threads or
//! servers of their own; `if_there` is the same with an `Option`, for what a machine may not have: who answers `None` says
//! what was skipped. Scenarios use keys below [`PREFIX`] only, rely on nobody else using the store meanwhile, and assume
//! nothing about revisions but that they grow.

#![expect(clippy::missing_panics_doc, reason = "every scenario panics when the store breaks the contract")]

mod concurrent;
mod create;
mod expiry;
mod history;
mod listing;
mod reading;
mod watching;
mod watching_resumed;
mod writing;

pub use concurrent::*;
pub use create::*;
pub use expiry::*;
pub use history::*;
pub use listing::*;
pub use reading::*;
pub use watching::*;
pub use watching_resumed::*;
pub use writing::*;

use crate::checkers::{History, Recording};
use crate::{
    At, Event, Key, ListRequest, Listing, NewValue, Record, Result, Revision, Storage, StorageError, WatchItem,
    WatchRequest, WatchStream,
};
use bytes::Bytes;
use futures_util::StreamExt;
use pintle_apimachinery::env::{IdSource, SeededIds};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// What the keys of all scenarios begin with. A cache under test covers this prefix.
pub const PREFIX: &str = "/registry/things/";

/// How long a scenario waits for an event that must come. Only reached when the store is wrong.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

/// A store under test.
pub struct Subject {
    /// The store.
    pub store: Arc<dyn Storage>,
    /// Whatever must live as long as the store: its directory, its server.
    pub keep: Box<dyn Any + Send>,
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject").field("store", &self.store).finish_non_exhaustive()
    }
}

impl<S: Storage> From<S> for Subject {
    fn from(store: S) -> Subject {
        Subject { store: Arc::new(store), keep: Box::new(()) }
    }
}

impl From<Arc<dyn Storage>> for Subject {
    fn from(store: Arc<dyn Storage>) -> Subject {
        Subject { store, keep: Box::new(()) }
    }
}

/// Instantiates the conformance suite as a module of tests. The calling crate needs `tokio` with `test-util`.
#[macro_export]
macro_rules! storage_conformance {
    ($name:ident, $subject:expr) => {
        mod $name {
            use super::*;
            $crate::storage_conformance_scenarios! { paused ($subject) }
        }
    };
    ($name:ident, $subject:expr, real_time) => {
        mod $name {
            use super::*;
            $crate::storage_conformance_scenarios! { real ($subject) }
        }
    };
    ($name:ident, $subject:expr, if_there) => {
        mod $name {
            use super::*;
            $crate::storage_conformance_scenarios! { if_there ($subject) }
        }
    };
}

/// One test of the suite.
#[doc(hidden)]
#[macro_export]
macro_rules! storage_conformance_scenario {
    (paused ($subject:expr) $scenario:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $scenario() {
            $crate::conformance::$scenario(&$crate::conformance::Subject::from($subject.await)).await;
        }
    };
    (if_there ($subject:expr) $scenario:ident) => {
        #[tokio::test]
        async fn $scenario() {
            if let Some(subject) = $subject.await {
                $crate::conformance::$scenario(&$crate::conformance::Subject::from(subject)).await;
            }
        }
    };
    (real ($subject:expr) $scenario:ident) => {
        #[tokio::test]
        async fn $scenario() {
            $crate::conformance::$scenario(&$crate::conformance::Subject::from($subject.await)).await;
        }
    };
}

/// All scenarios, in the order of the files that hold them.
#[doc(hidden)]
#[macro_export]
macro_rules! storage_conformance_scenarios {
    ($time:ident $subject:tt) => {
        $crate::storage_conformance_scenarios! { $time $subject:
            create_answers_the_record create_makes_revisions_grow create_of_an_existing_key_is_refused
            create_after_delete_succeeds create_keeps_every_byte create_keeps_an_empty_value
            create_keeps_a_large_value create_of_a_huge_value_is_refused create_takes_keys_of_any_text
            create_keeps_the_note

            get_of_a_missing_key_finds_nothing get_latest_sees_acknowledged_writes
            get_not_older_than_a_write_sees_it get_any_finds_a_version_that_was get_exact_finds_every_version
            get_exact_finds_nothing_before_and_after get_ahead_of_the_store_is_refused

            list_is_in_order_of_keys list_of_an_empty_prefix_is_empty list_keeps_to_its_prefix
            list_limit_counts_what_remains list_limit_of_all_leaves_nothing list_pages_give_everything_once
            list_starts_between_keys list_starts_outside_the_prefix list_pages_are_of_one_state
            list_exact_gives_every_state list_exact_with_limit_and_start list_not_older_than_a_write_sees_it
            list_any_gives_a_state_that_was list_latest_sees_acknowledged_writes list_revision_covers_its_records
            list_ahead_of_the_store_is_refused list_shows_no_deleted_keys count_counts_keys

            update_replaces_the_value update_of_a_stale_revision_conflicts update_of_a_missing_key_is_refused
            update_of_a_successor_conflicts update_with_the_same_value_counts update_leaves_other_keys_alone
            update_of_a_huge_value_is_refused delete_answers_what_was_deleted delete_at_its_revision_succeeds
            delete_of_a_stale_revision_conflicts delete_of_a_missing_key_is_refused delete_hides_the_key
            delete_of_many_leaves_the_rest refused_writes_are_not_told

            ttl_deletes_the_key ttl_is_renewed_by_an_update ttl_ends_with_an_update_without_it
            ttl_does_not_strike_a_successor ttl_of_many_keys_in_their_order

            watch_tells_creates_updates_and_deletes watch_carries_previous_values watch_keeps_to_its_prefix
            watch_of_one_key_tells_that_key watch_from_now_tells_nothing_old watch_ahead_of_the_store_waits
            watch_is_told_to_all_watchers_alike watch_dropped_leaves_others_running watch_tells_thousands_in_order
            watch_tells_recreated_keys watch_reports_progress_on_request watch_without_progress_gets_none
            watch_filter_keeps_what_matches watch_filter_keeps_what_begins_or_ceases_to_match
            watch_trigger_keeps_what_matches watch_never_read_disturbs_nobody

            watch_from_every_revision watch_resumes_after_every_event watch_resumes_after_progress
            watch_follows_a_list watch_catches_up_while_writes_go_on watch_of_a_namespace_from_the_past
            watch_events_agree_with_exact_reads

            compact_expires_older_exact_reads compact_expires_older_watches compact_keeps_live_records
            compact_keeps_what_is_newer compact_keeps_the_state_it_names compact_twice_is_refused
            compact_ahead_is_refused compact_leaves_running_watches_alone compact_forgets_deleted_keys
            current_revision_covers_acknowledged_writes current_revision_rests_when_nothing_is_written
            health_is_good random_writes_match_the_model

            concurrent_creates_have_one_winner concurrent_updates_lose_nothing concurrent_deletes_have_one_winner
            concurrent_calls_are_linearizable concurrent_watchers_see_one_history
            concurrent_lists_are_states_of_the_history concurrent_compaction_disturbs_no_reader
        }
    };
    ($time:ident $subject:tt : $($scenario:ident)*) => {
        $( $crate::storage_conformance_scenario! { $time $subject $scenario } )*
    };
}

/// A key below [`PREFIX`].
pub(crate) fn key(name: &str) -> Key {
    Key::new(format!("{PREFIX}{name}"))
}

/// A value of this text.
pub(crate) fn value(text: impl AsRef<str>) -> NewValue {
    NewValue { bytes: Bytes::copy_from_slice(text.as_ref().as_bytes()), ..NewValue::default() }
}

/// The revision so many after this one.
pub(crate) fn ahead(revision: Revision, n: u64) -> Revision {
    (0..n).fold(revision, |revision, _| revision.next())
}

/// The text of a record.
pub(crate) fn text(record: &Record) -> String {
    String::from_utf8_lossy(&record.value).into_owned()
}

/// `Ok` or the end of the test.
#[track_caller]
pub(crate) fn ok<T>(answer: Result<T>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(error) => fail(&format!("the store refuses: {error}")),
    }
}

/// Ends the test.
#[track_caller]
pub(crate) fn fail(why: &str) -> ! {
    assert!(why.is_empty(), "{why}");
    unreachable!("an empty reason to fail")
}

/// Whether what was recorded can be.
#[track_caller]
pub(crate) fn holds(verdict: crate::checkers::Verdict) {
    assert_eq!(verdict, Ok(()));
}

impl Subject {
    pub(crate) async fn create(&self, name: &str, text: &str) -> Arc<Record> {
        ok(self.store.create(key(name), value(text)).await)
    }

    pub(crate) async fn update(&self, record: &Record, text: &str) -> Arc<Record> {
        ok(self.store.update(record.key.clone(), value(text), record.revision).await)
    }

    pub(crate) async fn delete(&self, name: &str) -> Arc<Event> {
        ok(self.store.delete(key(name), None).await)
    }

    pub(crate) async fn revision(&self) -> Revision {
        ok(self.store.current_revision().await)
    }

    pub(crate) async fn list(&self, at: At) -> Listing {
        self.page(None, 0, at).await
    }

    pub(crate) async fn page(&self, start: Option<Key>, limit: usize, at: At) -> Listing {
        ok(self.try_page(start, limit, at).await)
    }

    pub(crate) async fn try_page(&self, start: Option<Key>, limit: usize, at: At) -> Result<Listing> {
        self.store.list(ListRequest { prefix: PREFIX.into(), start, limit, at }).await
    }

    pub(crate) async fn watch(&self, since: Revision) -> Watch {
        ok(self.try_watch(PREFIX.into(), since).await)
    }

    pub(crate) async fn try_watch(&self, prefix: Key, since: Revision) -> Result<Watch> {
        self.open(WatchRequest { prefix, since, filter: None, progress: false }).await
    }

    pub(crate) async fn open(&self, request: WatchRequest) -> Result<Watch> {
        let mut recording = Recording::new(request.prefix.clone(), request.since);
        recording.filter = request.filter.clone();
        Ok(Watch { stream: self.store.watch(request).await?, recording })
    }

    /// All events after `since`, read by a watch of its own up to the present.
    pub(crate) async fn history(&self, since: Revision) -> History {
        let base = ok(self.try_page(None, 0, At::Exact(since)).await);
        let mut watch = self.watch(since).await;
        self.tell_all(&mut watch).await;
        let base = base.records.into_iter().map(|record| (record.key.clone(), record)).collect();
        History { base, since, events: watch.recording.events().map(Arc::clone).collect() }
    }

    /// Reads a watch of everything up to the present: until it tells a write that is made now.
    pub(crate) async fn tell_all(&self, watch: &mut Watch) {
        let marker = format!("{}~marker", watch.recording.prefix.strip_prefix(PREFIX).unwrap_or_default());
        let created = self.create(&marker, "marker").await;
        let deleted = ok(self.store.delete(created.key.clone(), None).await);
        while watch.recording.resume_at() < deleted.revision {
            watch.item().await;
        }
    }
}

/// A running watch and what it told.
pub(crate) struct Watch {
    pub(crate) stream: WatchStream,
    pub(crate) recording: Recording,
}

impl Watch {
    /// The next item, with its recording.
    pub(crate) async fn item(&mut self) -> WatchItem {
        match self.try_item().await {
            Ok(item) => item,
            Err(error) => fail(&format!("the watch broke: {error}")),
        }
    }

    pub(crate) async fn try_item(&mut self) -> Result<WatchItem> {
        let Ok(told) = tokio::time::timeout(EVENT_TIMEOUT, self.stream.next()).await else {
            let told: Vec<_> = self.recording.events().map(|event| event.revision.get()).collect();
            fail(&format!("the watch tells nothing more; so far, since {}: {told:?}", self.recording.since))
        };
        let Some(item) = told else { fail("the watch ended") };
        let item = item?;
        self.recording.items.push(item.clone());
        Ok(item)
    }

    /// The next events, at least so many.
    pub(crate) async fn events(&mut self, n: usize) -> Vec<Arc<Event>> {
        let mut events = Vec::new();
        while events.len() < n {
            if let WatchItem::Events(more) = self.item().await {
                events.extend(more);
            }
        }
        events
    }

    /// The next progress, with all events before it recorded.
    pub(crate) async fn progress(&mut self) -> Revision {
        loop {
            if let WatchItem::Progress(revision) = self.item().await {
                return revision;
            }
        }
    }
}

/// Events in few words: `+a=1` created, `a=2` updated, `-a` deleted; in brackets what was there before.
pub(crate) fn told(events: &[Arc<Event>]) -> String {
    let name = |key: &Key| key.strip_prefix(PREFIX).unwrap_or(key).to_owned();
    let words = events.iter().map(|event| match (&event.record, &event.previous) {
        (Some(record), None) => format!("+{}={}", name(&event.key), text(record)),
        (Some(record), Some(old)) => format!("{}={}[{}]", name(&event.key), text(record), text(old)),
        (None, Some(old)) => format!("-{}[{}]", name(&event.key), text(old)),
        (None, None) => format!("-{}[?]", name(&event.key)),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Keys and values of a listing in few words.
pub(crate) fn listed(listing: &Listing) -> String {
    let words = listing
        .records
        .iter()
        .map(|record| format!("{}={}", record.key.strip_prefix(PREFIX).unwrap_or(&record.key), text(record)));
    words.collect::<Vec<_>>().join(" ")
}

/// A seeded die.
pub(crate) struct Dice(SeededIds);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(SeededIds::new(seed))
    }

    /// A number below `n`.
    pub(crate) fn below(&self, n: usize) -> usize {
        usize::try_from(self.0.random_u64() % (n.max(1) as u64)).unwrap_or_default()
    }
}

/// Whether an error is the one expected; on any other, and on success, the test ends.
#[macro_export]
#[doc(hidden)]
macro_rules! assert_refused {
    ($answer:expr, $pattern:pat) => {{
        let answer = $answer;
        assert!(
            matches!(answer, Err($pattern)),
            "expected {}, got {:?}",
            stringify!($pattern),
            answer.map(|_| "success")
        );
    }};
}
pub(crate) use assert_refused;

/// The stored revision that an error tells.
pub(crate) fn stored(error: &StorageError) -> Option<Revision> {
    match error {
        StorageError::AlreadyExists { stored, .. } | StorageError::Conflict { stored, .. } => Some(*stored),
        _ => None,
    }
}
