//! What a cache costs and gives: start-up of the embedded store and of the cache over it, memory for each object, lists, and
//! events delivered to many watchers.
//!
//! `cargo bench -p pintle-watchcache --bench cache -- [--objects 200000] [--bytes 2048] [--watchers 1,100,1000,10000] [--dir PATH]`

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench reports its numbers, and measures by the real clock"
)]

use bytes::Bytes;
use futures_util::StreamExt;
use pintle_apimachinery::env::Env;
use pintle_storage::{At, Key, ListRequest, MemoryStore, NewValue, Storage, WatchItem, WatchRequest};
use pintle_storage_embedded::testing::TempDir;
use pintle_storage_embedded::{EmbeddedStore, Options as StoreOptions};
use pintle_watchcache::{Options, WatchCache};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PREFIX: &str = "/registry/pods/";

/// Writes at once while the store is filled.
const N_WRITERS: usize = 128;

/// How long watchers are fed for each number of them.
const FEED_TIME: Duration = Duration::from_secs(2);

/// Events that the average watcher may be behind.
const BACKLOG_MAX: u64 = 1000;

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.next().and_then(|_| arguments.next())
}

fn number(name: &str, default: usize) -> usize {
    argument(name).map_or(default, |text| text.parse().expect("a number"))
}

fn main() {
    let (n_objects, n_bytes) = (number("--objects", 200_000), number("--bytes", 2048));
    let watchers = argument("--watchers").unwrap_or_else(|| "1,100,1000,10000".to_owned());
    let temporary = TempDir::new();
    let dir = argument("--dir").map_or_else(|| temporary.path().to_path_buf(), PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        fill(&dir, n_objects, n_bytes).await;
        start(&dir, n_objects, n_bytes).await;
        for n_watchers in watchers.split(',') {
            fan_out(n_watchers.parse().expect("--watchers takes numbers"), n_bytes).await;
        }
    });
}

fn open(dir: &Path) -> EmbeddedStore {
    EmbeddedStore::open(dir, StoreOptions::default(), Env::system()).expect("a store")
}

fn value(n_bytes: usize) -> NewValue {
    NewValue { bytes: Bytes::from(vec![b'x'; n_bytes]), ..NewValue::default() }
}

fn key(n: usize) -> Key {
    Key::new(format!("{PREFIX}namespace-{:03}/pod-{n:08}", n % 100))
}

async fn fill(dir: &Path, n_objects: usize, n_bytes: usize) {
    let (store, started) = (open(dir), Instant::now());
    let writers = (0..N_WRITERS).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in (writer..n_objects).step_by(N_WRITERS) {
                store.create(key(n), value(n_bytes)).await.expect("it is new");
            }
        })
    });
    futures_util::future::join_all(writers).await;
    let seconds = started.elapsed().as_secs_f64();
    println!("{n_objects} durable creates of {n_bytes} bytes: {seconds:.2} s, {:.0}/s", n_objects as f64 / seconds);
    store.close().await;
}

/// Bytes of memory that this process has.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it says so");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") * 1024
}

fn list(limit: usize, at: At) -> ListRequest {
    ListRequest { prefix: PREFIX.into(), start: None, limit, at }
}

async fn start(dir: &Path, n_objects: usize, n_bytes: usize) {
    let before = resident();
    let started = Instant::now();
    let store = open(dir);
    println!("store opened: {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    let opened = resident();
    let per_object = |bytes: usize| bytes as f64 / n_objects as f64;
    println!("memory of its index: {:.0} bytes for each object", per_object(opened.saturating_sub(before)));
    let started = Instant::now();
    let cache = WatchCache::over(Arc::new(store.clone()), PREFIX.into(), Options::default());
    cache.ready().await.expect("it is filled");
    println!("cache filled: {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    let cached = per_object(resident().saturating_sub(before));
    println!("memory of store and cache: {cached:.0} bytes for each object of {n_bytes}");
    for limit in [10_000, 100_000, n_objects] {
        let started = Instant::now();
        let listing = cache.list(list(limit, At::Latest)).await.expect("it is open");
        println!("list of {}: {:.2} ms", listing.records.len(), started.elapsed().as_secs_f64() * 1e3);
    }
    store.close().await;
}

/// Feeds watchers of everything and counts what they read.
async fn fan_out(n_watchers: usize, n_bytes: usize) {
    let store: Arc<dyn Storage> = Arc::new(MemoryStore::new());
    let cache = WatchCache::over(store.clone(), PREFIX.into(), Options::default());
    cache.ready().await.expect("it is filled");
    let before = resident();
    let since = store.current_revision().await.expect("it is open");
    let last = Key::new(format!("{PREFIX}~last"));
    let n_delivered = Arc::new(AtomicU64::new(0));
    let mut watchers = Vec::with_capacity(n_watchers);
    for _ in 0..n_watchers {
        let request = WatchRequest { prefix: PREFIX.into(), since, filter: None, progress: true };
        let (mut watch, last) = (cache.watch(request).await.expect("it is the present"), last.clone());
        let n_delivered = Arc::clone(&n_delivered);
        watchers.push(tokio::spawn(async move {
            loop {
                match watch.next().await.expect("it goes on").expect("it keeps up") {
                    WatchItem::Events(events) => {
                        n_delivered.fetch_add(events.len() as u64, Ordering::Relaxed);
                        if events.iter().any(|event| event.key == last) {
                            return;
                        }
                    }
                    WatchItem::Progress(_) => {}
                }
            }
        }));
    }
    let per_watcher = resident().saturating_sub(before) / n_watchers;
    let started = Instant::now();
    let mut record = store.create(key(0), value(n_bytes)).await.expect("it is new");
    while started.elapsed() < FEED_TIME {
        record = store.update(key(0), value(n_bytes), record.revision).await.expect("nobody else writes it");
        // No faster than the watchers read, on the whole: what is measured is how fast that is.
        let written = record.revision.get() - since.get();
        while written > BACKLOG_MAX + n_delivered.load(Ordering::Relaxed) / n_watchers as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    store.create(last, value(0)).await.expect("it is new");
    for watcher in watchers {
        watcher.await.expect("no watcher panics");
    }
    let rate = n_delivered.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
    println!("{n_watchers} watchers: {rate:.0} events/s delivered, {per_watcher} bytes for each watcher");
}
