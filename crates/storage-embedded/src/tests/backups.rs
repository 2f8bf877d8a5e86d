//! Snapshots: taken while the store runs, by its process and by another, and restored.

use super::{env, key, listed, value};
use crate::testing::TempDir;
use crate::{EmbeddedStore, OpenError, Options, RestoreOptions, restore, save, snapshot_status};
use pintle_storage::{At, NewValue, Revision, Storage, WatchRequest};
use std::time::Duration;

/// A store with some keys that changed and went.
async fn filled(directory: &TempDir) -> EmbeddedStore {
    let options = Options { segment_bytes: 1 << 16, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options, env(1)).expect("a fresh directory");
    for n in 0..300 {
        let record = store.create(key(&format!("k{n:03}")), value(&n.to_string())).await.expect("it is new");
        if n % 3 == 0 {
            store.update(record.key.clone(), value("changed"), record.revision).await.expect("it stands there");
        }
        if n % 5 == 0 {
            store.delete(record.key.clone(), None).await.expect("it is there");
        }
    }
    let mortal = NewValue { ttl: Some(Duration::from_secs(100_000)), ..value("mortal") };
    store.create(key("mortal"), mortal).await.expect("it is new");
    store
}

#[tokio::test]
async fn a_snapshot_is_the_state_of_its_revision() {
    let (directory, files) = (TempDir::new(), TempDir::new());
    let store = filled(&directory).await;
    let state = listed(&store, At::Latest).await;
    let (by_itself, by_another) = (files.path().join("a.snap"), files.path().join("b.snap"));
    let taken = store.save(&by_itself, |_| {}).await.expect("there is space");
    assert_eq!((taken.n_records, taken.revision), (state.len() as u64, store.status().revision));
    let mut words = Vec::new();
    let other = save(directory.path(), &by_another, &env(1), &mut |done| words.push(done)).expect("it is only read");
    assert_eq!((other.n_records, other.revision, other.bytes), (taken.n_records, taken.revision, taken.bytes));
    assert_eq!(words.last().map(|done| (done.n_records, done.n_total)), Some((state.len() as u64, state.len() as u64)));
    store.create(key("later"), value("1")).await.expect("the store runs on");
    for (n, file) in [by_itself, by_another].iter().enumerate() {
        assert_eq!(snapshot_status(file, &mut |_| {}).expect("it is whole").revision, taken.revision);
        let into = files.path().join(format!("restored-{n}"));
        let options = RestoreOptions { revisions_skipped: 1000 };
        restore(file, &into, options, &env(2), &mut |_| {}).expect("the directory is new");
        let restored = EmbeddedStore::open(&into, Options::default(), env(3)).expect("it was restored");
        assert_eq!(listed(&restored, At::Latest).await, state);
        assert_eq!(restored.status().revision.get(), taken.revision.get() + 1000);
        let request = |since| WatchRequest { prefix: "/".into(), since, filter: None, progress: false };
        assert!(restored.watch(request(taken.revision)).await.is_err(), "what came after the snapshot is unknown");
        assert!(restored.shared().expiry.next().is_some(), "times to live are kept");
        let next = restored.create(key("next"), value("1")).await.expect("it is new");
        assert_eq!(next.revision.get(), taken.revision.get() + 1001);
        restored.close().await;
        let again = restore(file, &into, options, &env(4), &mut |_| {});
        assert!(matches!(again, Err(OpenError::NotAStore { .. })), "a store is not overwritten");
    }
}

#[tokio::test]
async fn a_snapshot_is_taken_by_another_process_while_writes_go_on() {
    let (directory, files) = (TempDir::new(), TempDir::new());
    let store = filled(&directory).await;
    let writing = tokio::spawn({
        let store = store.clone();
        async move {
            for n in 0..2000 {
                store.create(key(&format!("more{n:04}")), value("x")).await.expect("it is new");
            }
        }
    });
    let path = files.path().join("a.snap");
    let mut revisions: Vec<Revision> = Vec::new();
    while !writing.is_finished() {
        let (from, to) = (directory.path().to_path_buf(), path.clone());
        let saved = tokio::task::spawn_blocking(move || save(from, to, &env_system(), &mut |_| {})).await;
        let saved = saved.expect("no panic").expect("only the end of the log changes");
        // It may have a write that is not acknowledged yet.
        while store.status().revision < saved.revision {
            tokio::task::yield_now().await;
        }
        let n_expected = listed(&store, At::Exact(saved.revision)).await.len() as u64;
        assert_eq!(saved.n_records, n_expected);
        revisions.push(saved.revision);
    }
    assert!(writing.await.is_ok() && revisions.is_sorted());
}

fn env_system() -> pintle_apimachinery::env::Env {
    pintle_apimachinery::env::Env::system()
}

#[tokio::test]
async fn a_damaged_snapshot_is_refused() {
    let (directory, files) = (TempDir::new(), TempDir::new());
    let store = filled(&directory).await;
    let path = files.path().join("a.snap");
    store.save(&path, |_| {}).await.expect("there is space");
    let whole = std::fs::read(&path).expect("it was saved");
    for offset in [3, 20, 60, whole.len() / 2, whole.len() - 40, whole.len() - 10] {
        let mut bytes = whole.clone();
        bytes[offset] ^= 1;
        std::fs::write(&path, &bytes).expect("a file");
        let status = snapshot_status(&path, &mut |_| {});
        assert!(matches!(status, Err(OpenError::Corrupt { .. })), "byte {offset}: {status:?}");
    }
    std::fs::write(&path, &whole[..whole.len() - 1]).expect("a file");
    let into = files.path().join("restored");
    let restored = restore(&path, &into, RestoreOptions::default(), &env(1), &mut |_| {});
    assert!(matches!(restored, Err(OpenError::Corrupt { .. })));
    assert!(EmbeddedStore::open(&into, Options::default(), env(1)).is_ok(), "nothing was begun");
}
