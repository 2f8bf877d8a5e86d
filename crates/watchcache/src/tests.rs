//! Tests of the whole cache.

use crate::{LazyCache, Options, WatchCache};
use pintle_storage::conformance::{PREFIX, Subject};
use pintle_storage::{MemoryStore, Record, Storage, storage_conformance};
use pintle_storage_embedded::testing::{RuntimeClock, TempDir};
use pintle_storage_embedded::{EmbeddedStore, SimDisk};
use std::sync::Arc;

/// An index by the words of the value.
fn by_words() -> crate::Indexer {
    crate::Indexer::new(["word"], |record: &Record, sink| {
        let text = String::from_utf8_lossy(&record.value);
        text.split(' ').for_each(|word| sink("word", word));
    })
}

fn over(backend: impl Storage) -> Subject {
    let options = Options { indexer: by_words(), ..Options::default() };
    Subject::from(WatchCache::over(Arc::new(backend), PREFIX.into(), options) as Arc<dyn Storage>)
}

async fn over_memory() -> Subject {
    over(MemoryStore::new())
}

/// A window of few events: much has to come from the back end.
async fn narrow_over_memory() -> Subject {
    let options = Options { indexer: by_words(), window_events_max: 5, ..Options::default() };
    let backend: Arc<dyn Storage> = Arc::new(MemoryStore::new());
    Subject::from(WatchCache::over(backend, PREFIX.into(), options) as Arc<dyn Storage>)
}

async fn lazy_over_memory() -> Subject {
    let options = Options { indexer: by_words(), ..Options::default() };
    Subject::from(LazyCache::over(Arc::new(MemoryStore::new()), PREFIX.into(), options) as Arc<dyn Storage>)
}

fn simulated_store() -> EmbeddedStore {
    let env = RuntimeClock::env(1, "2026-01-01T00:00:00Z".parse().expect("a time"));
    let options = pintle_storage_embedded::Options::simulated();
    EmbeddedStore::open_on(Arc::new(SimDisk::new(1)), options, env).expect("a fresh disk")
}

async fn over_simulated() -> Subject {
    over(simulated_store())
}

async fn over_a_directory() -> Subject {
    let directory = TempDir::new();
    let env = pintle_apimachinery::env::Env::system();
    let options = pintle_storage_embedded::Options { segment_bytes: 1 << 20, ..Default::default() };
    let store = EmbeddedStore::open(directory.path(), options, env).expect("a fresh directory");
    Subject { keep: Box::new(directory), ..over(store) }
}

storage_conformance!(conformance_over_memory, over_memory());
storage_conformance!(conformance_lazy_over_memory, lazy_over_memory());

/// With a narrow window, those scenarios that do not let a watcher fall behind: what is older comes from the back end.
mod conformance_narrow_over_memory {
    use super::*;

    macro_rules! scenarios {
        ($($scenario:ident)*) => {
            $( pintle_storage::storage_conformance_scenario! { paused (narrow_over_memory()) $scenario } )*
        };
    }

    scenarios! {
        list_pages_give_everything_once list_pages_are_of_one_state list_exact_gives_every_state
        list_exact_with_limit_and_start list_latest_sees_acknowledged_writes get_exact_finds_every_version
        compact_expires_older_exact_reads compact_expires_older_watches compact_keeps_what_is_newer
        compact_keeps_the_state_it_names compact_forgets_deleted_keys watch_from_every_revision
        watch_resumes_after_every_event watch_resumes_after_progress watch_of_a_namespace_from_the_past
        watch_follows_a_list watch_events_agree_with_exact_reads concurrent_calls_are_linearizable
        concurrent_lists_are_states_of_the_history
    }
}

storage_conformance!(conformance_over_simulated, over_simulated());
storage_conformance!(conformance_over_a_directory, over_a_directory(), real_time);
