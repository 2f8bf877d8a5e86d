//! Tests of the whole store.

mod backups;
mod damage;
mod kill;
mod simulation;

use crate::testing::{RuntimeClock, TempDir};
use crate::{EmbeddedStore, OpenError, Options, SimDisk};
use bytes::Bytes;
use expect_test::expect;
use futures_util::StreamExt;
use pintle_apimachinery::env::Env;
use pintle_storage::conformance::Subject;
use pintle_storage::{
    At, Key, ListRequest, NewValue, Storage, StorageError, WatchItem, WatchRequest, storage_conformance,
};
use std::sync::Arc;

/// A world in which the wall clock follows the runtime's clock, from 2026 on.
pub(crate) fn env(seed: u64) -> Env {
    RuntimeClock::env(seed, "2026-01-01T00:00:00Z".parse().expect("a time"))
}

async fn simulated() -> Subject {
    let store = EmbeddedStore::open_on(Arc::new(SimDisk::new(1)), Options::simulated(), env(1)).expect("a fresh disk");
    Subject::from(store)
}

async fn in_a_directory() -> Subject {
    let directory = TempDir::new();
    let options = Options { segment_bytes: 1 << 20, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options, Env::system()).expect("a fresh directory");
    Subject { store: Arc::new(store), keep: Box::new(directory) }
}

storage_conformance!(conformance_simulated, simulated());
storage_conformance!(conformance_in_a_directory, in_a_directory(), real_time);

fn key(name: &str) -> Key {
    Key::new(format!("/registry/things/{name}"))
}

fn value(text: &str) -> NewValue {
    NewValue { bytes: Bytes::copy_from_slice(text.as_bytes()), ..NewValue::default() }
}

async fn listed(store: &EmbeddedStore, at: At) -> Vec<(String, u64, Bytes)> {
    let request = ListRequest { prefix: "/".into(), start: None, limit: 0, at };
    let listing = store.list(request).await.expect("a list");
    listing.records.iter().map(|r| (r.key.to_string(), r.revision.get(), r.value.clone())).collect()
}

#[tokio::test]
async fn a_store_is_found_again_as_it_was_left() {
    let directory = TempDir::new();
    let open = || EmbeddedStore::open(directory.path(), Options::default(), Env::system());
    let store = open().expect("a fresh directory");
    let first = store.create(key("a"), value("1")).await.expect("it is new");
    store.create(key("b"), value("1")).await.expect("it is new");
    let second = store.update(key("a"), value("2"), first.revision).await.expect("it stands there");
    store.delete(key("b"), None).await.expect("it is there");
    assert!(matches!(open(), Err(OpenError::InUse)));
    let (left, status) = (listed(&store, At::Latest).await, store.status());
    store.close().await;
    assert!(matches!(store.create(key("c"), value("1")).await, Err(StorageError::Unavailable { .. })));
    assert_eq!(crate::status(directory.path()).expect("it is closed").revision, status.revision);
    let store = open().expect("it was closed");
    assert_eq!(listed(&store, At::Latest).await, left);
    assert_eq!(store.status().revision, status.revision);
    assert_eq!(listed(&store, At::Exact(first.revision)).await.len(), 1);
    let request = WatchRequest { prefix: "/".into(), since: second.revision, filter: None, progress: false };
    let mut watch = store.watch(request).await.expect("history is kept");
    let Some(Ok(WatchItem::Events(events))) = watch.next().await else { panic!("there is one event more") };
    assert!(events[0].is_delete() && events[0].previous.as_ref().is_some_and(|previous| &previous.value[..] == b"1"));
    let third = store.update(key("a"), value("3"), second.revision).await.expect("it stands there");
    assert_eq!(third.revision.get(), status.revision.get() + 1);
}

#[tokio::test]
async fn directories_of_others_are_refused() {
    let directory = TempDir::new();
    let open = || EmbeddedStore::open(directory.path(), Options::default(), Env::system()).map(|_| ());
    std::fs::write(directory.path().join("diary.txt"), "private").expect("a file");
    expect![[r#"the data directory holds files that are not a store's (diary.txt); give an empty one"#]]
        .assert_eq(&open().expect_err("it is somebody's").to_string());
    std::fs::remove_file(directory.path().join("diary.txt")).expect("it is there");
    std::fs::write(directory.path().join("FORMAT"), "pintle embedded store\nformat 9\n").expect("a file");
    expect!["the data directory has format 9, this program reads format 1: use the matching version"]
        .assert_eq(&open().expect_err("it is from the future").to_string());
}

/// Whoever has listed and then watches learns that nothing is missing, though others wrote elsewhere in between.
#[tokio::test]
async fn a_watch_tells_where_the_past_ends() {
    let directory = TempDir::new();
    let store = EmbeddedStore::open(directory.path(), Options::default(), Env::system()).expect("a fresh directory");
    let since = store.create(key("a"), value("1")).await.expect("it is new").revision;
    store.create("/registry/others/b".into(), value("1")).await.expect("it is new");
    let prefix = Key::new("/registry/things/");
    let request = WatchRequest { prefix: prefix.clone(), since, filter: None, progress: true };
    let mut watch = store.watch(request).await.expect("history is kept");
    let Some(Ok(WatchItem::Progress(told))) = watch.next().await else { panic!("there is no event") };
    assert!(store.newest(&prefix).is_some_and(|newest| told >= newest.change && newest.change > since));
}
