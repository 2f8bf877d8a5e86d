//! Three members, of which one at a time is killed, frozen or started again while several stores write and watch: no
//! acknowledged write is lost, and no watcher misses an event or sees one twice.

use super::server::{Server, until};
use super::{store_on, value};
use crate::EtcdStore;
use futures_util::StreamExt;
use pintle_apimachinery::env::{IdSource, SeededIds};
use pintle_storage::checkers::{History, Recording, check_watch};
use pintle_storage::conformance::PREFIX;
use pintle_storage::{At, Key, ListRequest, Revision, Storage, StorageError, WatchItem, WatchRequest};
use pintle_watchcache::WatchCache;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Keys of one writer.
const N_KEYS: u64 = 8;

/// What one writer knows of its keys: where they stand, or that nobody knows.
type Standing = BTreeMap<Key, Option<Revision>>;

/// Writes keys of its own until it is told to stop. What is unknown is looked up, as every client has to.
async fn write(store: EtcdStore, number: u64, stop: Arc<AtomicBool>) -> (Standing, u64) {
    let dice = SeededIds::new(number);
    let mut standing = Standing::new();
    let mut n_done = 0;
    while !stop.load(Ordering::Relaxed) {
        let key = Key::new(format!("{PREFIX}w{number}/k{}", dice.random_u64() % N_KEYS));
        let text = value(&format!("{n_done}"));
        let outcome = match standing.get(&key).copied().flatten() {
            None => store.create(key.clone(), text).await.map(|record| Some(record.revision)),
            Some(revision) if dice.random_u64().is_multiple_of(4) => {
                store.delete(key.clone(), Some(revision)).await.map(|_| None)
            }
            Some(revision) => store.update(key.clone(), text, revision).await.map(|record| Some(record.revision)),
        };
        match outcome {
            Ok(stands) => {
                n_done += 1;
                standing.insert(key, stands);
            }
            Err(StorageError::Unavailable { .. }) => {
                let mut found = store.get(&key, At::Latest).await;
                while found.is_err() {
                    found = store.get(&key, At::Latest).await;
                }
                standing.insert(key, found.expect("just seen").record.map(|record| record.revision));
            }
            Err(other) => unreachable!("nobody else writes {key}: {other}"),
        }
    }
    (standing, n_done)
}

/// Watches until it has seen a key, opening the watch again whenever it ends.
async fn watch(store: Arc<dyn Storage>, since: Revision, last: Key) -> Recording {
    let mut recording = Recording::new(PREFIX.into(), since);
    loop {
        let since = recording.resume_at();
        let request = WatchRequest { prefix: PREFIX.into(), since, filter: None, progress: true };
        let Ok(mut stream) = store.watch(request).await else { continue };
        while let Some(Ok(item)) = stream.next().await {
            recording.items.push(item.clone());
            if let WatchItem::Events(events) = item
                && events.iter().any(|event| event.key == last)
            {
                return recording;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go() {
    let Some(mut members) = Server::cluster(3, &[]) else { return };
    let urls: Vec<String> = members.iter().map(|member| member.url.clone()).collect();
    // Each begins with another member.
    let stores: Vec<EtcdStore> = (0..3).map(|n| store_on(&[&urls[n..], &urls[..n]].concat())).collect();
    until(async || {
        stores[0].health().await.is_ok() && stores[1].health().await.is_ok() && stores[2].health().await.is_ok()
    })
    .await;
    let since = stores[0].current_revision().await.expect("it answers");
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..6).map(|n| tokio::spawn(write(stores[n as usize % 3].clone(), n, Arc::clone(&stop)))).collect();
    let last = Key::new(format!("{PREFIX}last"));
    let mut watchers = Vec::new();
    for store in &stores {
        let store: Arc<dyn Storage> = Arc::new(store.clone());
        let cache = WatchCache::over(Arc::clone(&store), PREFIX.into(), pintle_watchcache::Options::default());
        watchers.push(tokio::spawn(watch(store, since, last.clone())));
        watchers.push(tokio::spawn(watch(cache, since, last.clone())));
    }
    for round in 0..6 {
        let n = round % 3;
        let before = written(&stores).await;
        if round % 2 == 0 {
            members[n].kill()
        } else {
            members[n].freeze()
        }
        // The others go on.
        until(async || written(&stores).await.get() > before.get() + 50).await;
        if round % 2 == 0 {
            members[n].run()
        } else {
            members[n].thaw()
        }
        members[n].ready().await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut standing = Standing::new();
    for writer in writers {
        let (of_writer, n_done) = writer.await.expect("no writer panics");
        assert!(n_done > 20, "a writer did only {n_done} writes");
        standing.extend(of_writer);
    }
    stores[0].create(last.clone(), value("end")).await.expect("it is new");

    let request = ListRequest { prefix: PREFIX.into(), start: None, limit: 0, at: At::Latest };
    let listing = stores[1].list(request).await.expect("it answers");
    let there: Standing = listing.records.iter().map(|record| (record.key.clone(), Some(record.revision))).collect();
    let expected: Standing = standing.into_iter().filter(|(_, stands)| stands.is_some()).collect();
    assert_eq!(there.into_iter().filter(|(key, _)| *key != last).collect::<Standing>(), expected);

    let whole = watch(Arc::new(stores[2].clone()), since, last.clone()).await;
    let history = History::from_empty(since, whole.events().map(Arc::clone).collect());
    assert_eq!(history.check(), Ok(()));
    for watcher in watchers {
        let recording = watcher.await.expect("no watcher panics");
        assert_eq!(check_watch(&recording, &history), Ok(()));
    }
}

/// Where the first store stands that answers.
async fn written(stores: &[EtcdStore]) -> Revision {
    loop {
        for store in stores {
            let asked = tokio::time::timeout(Duration::from_secs(2), store.current_revision());
            if let Ok(Ok(revision)) = asked.await {
                return revision;
            }
        }
    }
}

/// A watch of a member that has lost the others moves to one that has not.
#[tokio::test]
async fn a_member_alone_is_left() {
    let Some(mut members) = Server::cluster(3, &[]) else { return };
    let urls: Vec<String> = members.iter().map(|member| member.url.clone()).collect();
    let (first, others) = (store_on(&urls), store_on(&urls[1..]));
    until(async || first.health().await.is_ok() && others.health().await.is_ok()).await;
    let since = first.current_revision().await.expect("it answers");
    let request = WatchRequest { prefix: PREFIX.into(), since, filter: None, progress: false };
    let mut stream = first.watch(request).await.expect("it is the present");
    members[1].kill();
    members[2].kill();
    // Nobody leads; nothing can be written.
    let asked = tokio::time::timeout(Duration::from_secs(3), first.current_revision()).await;
    assert!(!matches!(asked, Ok(Ok(_))));
    members[1].run();
    members[2].run();
    members[1].ready().await;
    members[0].kill();
    until(async || others.health().await.is_ok()).await;
    others.create(super::key("a"), value("1")).await.expect("it is new");
    let Some(Ok(WatchItem::Events(events))) = stream.next().await else { panic!("the watch ended") };
    assert_eq!(events.iter().map(|event| event.key.to_string()).collect::<Vec<_>>(), [super::key("a").to_string()]);
}
