//! A process that writes is killed in the middle of it, again and again; the next one finds everything it acknowledged and
//! everything it told its watcher, event by event.
//!
//! The process is this test binary, told by its environment to be the writer.

use super::key;
use crate::testing::TempDir;
use crate::{EmbeddedStore, OpenError, Options};
use bytes::Bytes;
use futures_util::StreamExt;
use pintle_apimachinery::env::{Env, IdSource, SeededIds};
use pintle_storage::{At, NewValue, Record, Revision, Storage, WatchItem, WatchRequest};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// Where the writer finds its directory.
const DIRECTORY: &str = "PINTLE_KILL_TEST_DIRECTORY";

const ROUNDS: u64 = 6;

fn open(directory: &Path) -> Result<EmbeddedStore, OpenError> {
    // Small segments: many end, and are rewritten, while the process lives.
    let options = Options { segment_bytes: 64 << 10, history_events_max: 3000, ..Options::default() };
    EmbeddedStore::open(directory, options, Env::system())
}

fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    // The one who listens kills this process when it has heard enough.
    let _ = writeln!(out, "{words}").and_then(|()| out.flush());
}

/// Not a test by itself: the process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writer() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let store = open(Path::new(&directory)).expect("the one before was killed");
    let since = store.current_revision().await.expect("it is open");
    let request = WatchRequest { prefix: "/".into(), since, filter: None, progress: false };
    let mut watch = store.watch(request).await.expect("it is the present");
    tokio::spawn(async move {
        while let Some(Ok(WatchItem::Events(events))) = watch.next().await {
            for event in events {
                let text = event
                    .record
                    .as_ref()
                    .map_or_else(|| "-".into(), |r| String::from_utf8_lossy(&r.value[..20]).into_owned());
                say(&format!("TOLD {} {} {text}", event.revision, event.key));
            }
        }
    });
    let tasks = (0..8u64).map(|n| tokio::spawn(write(store.clone(), since.get() * 8 + n)));
    futures_util::future::join_all(tasks).await;
}

async fn write(store: EmbeddedStore, seed: u64) {
    let dice = SeededIds::new(seed);
    for n in 0.. {
        let key = key(&format!("k{}", dice.random_u64() % 50));
        let found = store.get(&key, At::Latest).await.expect("it is open").record;
        let mut bytes = format!("{seed:010}{n:010}").into_bytes();
        bytes.resize(20 + usize::try_from(dice.random_u64() % 1000).expect("few"), b'.');
        let value = NewValue { bytes: Bytes::from(bytes), ..NewValue::default() };
        let answer: Result<Option<Arc<Record>>, _> = match found {
            None => store.create(key.clone(), value).await.map(Some),
            Some(found) if dice.random_u64().is_multiple_of(5) => {
                store.delete(found.key.clone(), Some(found.revision)).await.map(|_| None)
            }
            Some(found) => store.update(key.clone(), value, found.revision).await.map(Some),
        };
        // Conflicts with the other tasks are no writes.
        if let Ok(Some(record)) = answer {
            say(&format!("DONE {} {key}", record.revision));
        }
    }
}

fn start(directory: &Path) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = Command::new(std::env::current_exe().expect("a test binary"));
    command.args(["--exact", "tests::kill::writer", "--nocapture"]).env(DIRECTORY, directory);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it can be started");
    let stdout = child.stdout.take().expect("it was asked for");
    (child, BufReader::new(stdout))
}

/// What a writer said before it was killed: what it did, and what its watcher was told.
#[derive(Debug, Default)]
struct Said {
    done: BTreeMap<u64, String>,
    told: BTreeMap<u64, String>,
}

fn listen(directory: &Path, n_lines: u64) -> Said {
    let (mut child, mut lines) = start(directory);
    let mut said = Said::default();
    let mut n_heard = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line).expect("text") == 0 {
            break;
        }
        let mut words = line.trim_end().splitn(3, ' ');
        let (verb, revision, rest) = (words.next(), words.next().and_then(|n| n.parse().ok()), words.next());
        match (verb, revision, rest) {
            (Some("DONE"), Some(revision), Some(rest)) => drop(said.done.insert(revision, rest.to_owned())),
            (Some("TOLD"), Some(revision), Some(rest)) => drop(said.told.insert(revision, rest.to_owned())),
            // What the test harness says.
            _ => continue,
        }
        n_heard += 1;
        if n_heard == n_lines {
            // What it has said already is still heard.
            child.kill().expect("it runs");
        }
    }
    child.wait().expect("it was killed");
    said
}

#[tokio::test]
async fn a_killed_process_loses_nothing() {
    let directory = TempDir::new();
    let dice = SeededIds::new(7);
    for round in 0..ROUNDS {
        let before = if round == 0 {
            Revision::FIRST
        } else {
            let store = open(directory.path()).expect("the one before was killed");
            let revision = store.current_revision().await.expect("it is open");
            store.close().await;
            revision
        };
        let said = listen(directory.path(), 200 + dice.random_u64() % 2000);
        assert!(said.done.len() > 50 && said.told.len() > 50, "round {round}: it said too little");
        let store = open(directory.path()).expect("its process is gone");
        let current = store.current_revision().await.expect("it is open");
        // From where the killed watcher began: the same events, and then those it was not told of.
        let request = WatchRequest { prefix: "/".into(), since: before, filter: None, progress: false };
        let mut watch = store.watch(request).await.expect("history is kept");
        let mut seen = BTreeMap::new();
        while seen.last_key_value().is_none_or(|(last, _)| *last < current.get()) {
            let Some(Ok(WatchItem::Events(events))) = watch.next().await else { panic!("the watch broke") };
            for event in events {
                let text = event
                    .record
                    .as_ref()
                    .map_or_else(|| "-".into(), |r| String::from_utf8_lossy(&r.value[..20]).into_owned());
                seen.insert(event.revision.get(), format!("{} {text}", event.key));
            }
        }
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), (before.get() + 1..=current.get()).collect::<Vec<_>>());
        for (revision, told) in &said.told {
            assert_eq!(seen.get(revision), Some(told), "round {round}: told at {revision}");
        }
        for (revision, key) in &said.done {
            let is_there = seen.get(revision).is_some_and(|event| event.starts_with(&format!("{key} ")));
            assert!(is_there, "round {round}: {key} was acknowledged at {revision}");
        }
        store.close().await;
    }
}
