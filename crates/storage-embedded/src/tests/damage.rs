//! Damaged stores: what is said, and what a repair keeps. Full disks.

use super::{env, key, listed, value};
use crate::recovery::read_format;
use crate::repair::repair_on;
use crate::{EmbeddedStore, Fault, OpenError, Options, SimDisk};
use expect_test::{Expect, expect};
use pintle_storage::{At, Storage, StorageError, WatchRequest};
use std::sync::Arc;

/// Opens the store; segments hold about 30 of the records below.
fn open(disk: &SimDisk) -> Result<EmbeddedStore, OpenError> {
    let options = Options { segment_bytes: 4 << 10, ..Options::simulated() };
    EmbeddedStore::open_on(Arc::new(disk.clone()), options, env(1))
}

/// A closed store with keys k00 to k99, one revision each from 2 on.
async fn filled() -> SimDisk {
    let disk = SimDisk::new(1);
    let store = open(&disk).expect("a fresh disk");
    for n in 0..100 {
        store.create(key(&format!("k{n:02}")), value(&format!("value {n:02}"))).await.expect("it is new");
    }
    store.close().await;
    disk
}

/// Flips a bit of the record that holds this text, in the segment of this name.
fn rot(disk: &SimDisk, name: &str, text: &str) {
    let content = disk.content(name).expect("the segment is there");
    let at = content.windows(text.len()).position(|window| window == text.as_bytes()).expect("the text is there");
    disk.corrupt(name, at as u64, &[content[at] ^ 4]);
}

/// The store does not open, for this reason.
fn refused(disk: &SimDisk, expected: &Expect) {
    let Err(OpenError::Corrupt { what }) = open(disk) else { panic!("it is damaged") };
    expected.assert_eq(&format!("{what}\n"));
}

#[tokio::test(start_paused = true)]
async fn a_rotten_record_is_refused_and_a_repair_keeps_the_others() {
    let disk = filled().await;
    rot(&disk, "00000002.log", "value 40");
    refused(
        &disk,
        &expect![[r#"
            00000002.log is damaged at byte 3184: revision 42 cannot be read; the next segment begins with revision 53
        "#]],
    );
    let id = read_format(&disk).expect("a disk").expect("a store");
    let repaired = repair_on(&disk, id, &mut |_| {}).expect("a disk");
    assert_eq!(repaired.n_records, 99);
    let damages: Vec<_> = repaired.damages.iter().map(ToString::to_string).collect();
    expect!["00000002.log at byte 3184: 80 bytes are not what was written"].assert_eq(&damages.join("\n"));
    let store = open(&disk).expect("it was repaired");
    let state = listed(&store, At::Latest).await;
    assert_eq!(state.len(), 99);
    assert!(state.iter().all(|(key, revision, value)| {
        let n: u64 = key[key.len() - 2..].parse().expect("a number");
        *revision == n + 2 && &value[..] == format!("value {n:02}").as_bytes() && n != 40
    }));
    assert_eq!(store.status().revision.get(), 101 + 1_000_000);
    let request = WatchRequest { prefix: "/".into(), since: repaired.revision, filter: None, progress: false };
    assert!(store.watch(request).await.is_ok(), "history begins anew");
    store.create(key("k40"), value("again")).await.expect("it was lost");
    assert_eq!(repair_on(&disk, id, &mut |_| {}).expect("a disk").damages, [], "a sound store is left alone");
}

#[tokio::test(start_paused = true)]
async fn missing_pieces_are_refused() {
    use crate::Disk;
    let disk = filled().await;
    disk.remove("00000002.log").expect("it is there");
    refused(
        &disk,
        &expect![[r#"
            00000001.log is damaged at byte 144: revision 3 cannot be read; the next segment begins with revision 53
        "#]],
    );
    let disk = filled().await;
    disk.remove("FORMAT").expect("it is there");
    refused(
        &disk,
        &expect![[r#"
        the file FORMAT is missing
    "#]],
    );
    let disk = filled().await;
    let store = open(&disk).expect("it is sound");
    store.compact(store.status().revision).await.expect("there is history");
    store.close().await;
    rot(&disk, "MANIFEST", "PINT");
    refused(
        &disk,
        &expect![[r#"
        MANIFEST is not what was written
    "#]],
    );
    let id = read_format(&disk).expect("a disk").expect("a store");
    assert_eq!(repair_on(&disk, id, &mut |_| {}).expect("a disk").n_records, 100);
    assert_eq!(listed(&open(&disk).expect("it was repaired"), At::Latest).await.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn the_torn_end_of_the_log_is_cut_off() {
    // The last record was never known to be durable as far as the disk tells: it is as if it had not been written.
    let disk = filled().await;
    rot(&disk, "00000003.log", "value 99");
    let store = open(&disk).expect("what nobody vouches for may be torn");
    assert_eq!(listed(&store, At::Latest).await.len(), 99);
    assert_eq!(store.status().revision.get(), 100);
    // The one before it is vouched for by the last.
    let disk = filled().await;
    rot(&disk, "00000003.log", "value 98");
    refused(
        &disk,
        &expect![[r#"
            00000003.log is damaged at byte 3824: revision 100 cannot be read, revision 101 behind it can
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_read_only_until_there_is_space() {
    let disk = SimDisk::new(1);
    let store = open(&disk).expect("a fresh disk");
    let first = store.create(key("a"), value("1")).await.expect("it is new");
    disk.set_capacity(disk.used() + 5000);
    let mut n_written = 0;
    let why = loop {
        match store.create(key(&format!("k{n_written}")), value(&"x".repeat(500))).await {
            Ok(_) => n_written += 1,
            Err(StorageError::ReadOnly { why }) => break why,
            Err(error) => panic!("{error}"),
        }
    };
    expect!["cannot make a segment, the disk is full; writes go on by themselves when there is space again"]
        .assert_eq(&why);
    assert!(n_written > 5);
    assert!(matches!(store.health().await, Err(StorageError::ReadOnly { .. })));
    assert_eq!(listed(&store, At::Latest).await.len(), n_written + 1);
    let again = store.update(key("a"), value("2"), first.revision).await;
    assert!(matches!(again, Err(StorageError::ReadOnly { .. })));
    disk.set_capacity(1 << 30);
    let second = store.update(key("a"), value("2"), first.revision).await.expect("there is space again");
    assert_eq!(second.revision.get(), store.status().revision.get());
    assert!(store.health().await.is_ok());
    let left = listed(&store, At::Latest).await;
    drop(store);
    let disk = disk.after_power_cut();
    assert_eq!(listed(&open(&disk).expect("it is sound"), At::Latest).await, left);
}

#[tokio::test(start_paused = true)]
async fn a_failed_sync_is_never_acknowledged() {
    let disk = SimDisk::new(1);
    let store = open(&disk).expect("a fresh disk");
    let first = store.create(key("a"), value("1")).await.expect("it is new");
    // The write is the next call, its sync the one after.
    disk.fail_at(2, Fault::Error);
    let answer = store.update(key("a"), value("2"), first.revision).await;
    let Err(StorageError::Unavailable { why }) = answer else { panic!("{answer:?}") };
    expect!["00000002.log cannot be made durable: the simulated disk fails; the store must be opened again"]
        .assert_eq(&why);
    let answer = store.update(key("a"), value("3"), first.revision).await;
    assert!(matches!(answer, Err(StorageError::ReadOnly { .. })), "nobody knows what is durable");
    assert_eq!(listed(&store, At::Latest).await[0].1, first.revision.get(), "reads go on");
    store.close().await;
    let store = open(&disk).expect("it is sound");
    let found = &listed(&store, At::Latest).await[0];
    assert!([&b"1"[..], b"2"].contains(&&found.2[..]), "it may or may not have been done");
    store
        .update(key("a"), value("4"), pintle_storage::Revision::new(found.1).expect("not 0"))
        .await
        .expect("it stands there");
}
