//! Processes that are killed under load: every write that was acknowledged is there afterwards, and a watch goes on where
//! it was, with no event lost, doubled or out of order.

use crate::http::Connection;
use crate::server::{Server, eventually};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const N_ROUNDS: usize = 5;
const N_WRITERS: usize = 4;

/// Acknowledged writes in a round before the process is killed.
const N_WRITES: usize = 150;

/// Object and version.
type Written = (String, u64);

fn version(object: &serde_json::Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a version")
}

/// Creates objects, and changes each once, until the server goes away. Returns what was acknowledged.
fn write(mut connection: Connection, prefix: &str, n_acknowledged: &AtomicUsize) -> Vec<Written> {
    let mut acknowledged = Vec::new();
    for n in 0.. {
        let name = format!("{prefix}-{n}");
        let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
        let change = format!(r#"{{"data":{{"n":"{n}"}}}}"#);
        let one = format!("{MAPS}/{name}");
        for (method, path, body) in [("POST", MAPS, &body), ("PATCH", one.as_str(), &change)] {
            let Ok(response) = connection.request(method, path, body.as_bytes()) else { return acknowledged };
            assert!(response.status < 300, "{}", response.text());
            acknowledged.push((name.clone(), version(&response.json())));
            n_acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }
    acknowledged
}

/// A watch from a version.
fn follow(server: &Server, since: u64) -> io::Result<Connection> {
    let mut connection = Connection::open(server)?;
    let path = format!("{MAPS}?watch=1&resourceVersion={since}");
    let response = connection.send("GET", &path, &[], b"")?;
    assert_eq!(response.status, 200);
    Ok(connection)
}

/// Events of one connection go into `events` as long as it lives.
fn read_events(mut connection: Connection, events: &mpsc::SyncSender<Written>) {
    while let Ok(Some(event)) = connection.event() {
        let kind = event["type"].as_str().unwrap_or_default();
        assert!(matches!(kind, "ADDED" | "MODIFIED"), "{event}");
        let name = event["object"]["metadata"]["name"].as_str().expect("a name").to_owned();
        if events.send((name, version(&event["object"]))).is_err() {
            return;
        }
    }
}

#[test]
fn killed_under_load() {
    let mut server = Server::start("killed");
    let start = version(&server.request("GET", MAPS, "").json());
    let mut acknowledged: Vec<Written> = Vec::new();
    let mut heard: Vec<Written> = Vec::new();
    for round in 0..N_ROUNDS {
        let since = heard.last().map_or(start, |(_, version)| *version);
        let watch = follow(&server, since).expect("a watch");
        let (sender, receiver) = mpsc::sync_channel(1 << 16);
        let reader = std::thread::spawn(move || read_events(watch, &sender));
        let n_acknowledged = Arc::new(AtomicUsize::new(0));
        let writers: Vec<_> = (0..N_WRITERS)
            .map(|writer| {
                let connection = Connection::open(&server).expect("a connection");
                let count = Arc::clone(&n_acknowledged);
                std::thread::spawn(move || write(connection, &format!("r{round}-w{writer}"), &count))
            })
            .collect();
        eventually("writes", || (n_acknowledged.load(Ordering::Relaxed) >= N_WRITES).then_some(()));
        let port = server.port;
        let dir = server.kill();
        for writer in writers {
            acknowledged.extend(writer.join().expect("a writer"));
        }
        reader.join().expect("a reader");
        heard.extend(receiver.try_iter());
        server = Server::start_in(dir, port, "apiserver", &[]);

        let list = server.request("GET", MAPS, "").json();
        let there: BTreeMap<&str, u64> = list["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|map| (map["metadata"]["name"].as_str().expect("a name"), version(map)))
            .collect();
        for (name, version) in &acknowledged {
            assert!(there.get(name.as_str()) >= Some(version), "round {round}: {name} at {version} was acknowledged");
        }
    }
    // the rest of the events, up to the last object that is there
    let last = version(
        &server.request("POST", MAPS, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"end"}}"#).json(),
    );
    let since = heard.last().map_or(start, |(_, version)| *version);
    let mut connection = follow(&server, since).expect("a watch");
    while heard.last().is_none_or(|(_, version)| *version < last) {
        let event = connection.event().expect("an event").expect("no end");
        heard.push((
            event["object"]["metadata"]["name"].as_str().expect("a name").to_owned(),
            version(&event["object"]),
        ));
    }
    assert!(heard.is_sorted_by(|(_, one), (_, next)| one < next), "in order, and none twice");
    let heard: BTreeSet<Written> = heard.into_iter().collect();
    let lost: Vec<&Written> = acknowledged.iter().filter(|written| !heard.contains(*written)).collect();
    assert!(lost.is_empty(), "never heard of: {lost:?}");
    assert!(acknowledged.len() >= N_ROUNDS * N_WRITES);
}

#[test]
fn a_stop_lets_running_requests_finish() {
    let server = Server::start("graceful");
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..N_WRITERS)
        .map(|writer| {
            let connection = Connection::open(&server).expect("a connection");
            let count = AtomicUsize::new(0);
            std::thread::spawn(move || write(connection, &format!("w{writer}"), &count))
        })
        .collect();
    let mut watch = follow(&server, 0).expect("a watch");
    let over = Arc::clone(&is_over);
    let watcher = std::thread::spawn(move || {
        // an open watch is ended properly: with the last chunk, not with a broken connection
        while watch.event().expect("a proper end").is_some() {}
        over.store(true, Ordering::Relaxed);
    });
    eventually("some load", || (server.request("GET", MAPS, "").json()["items"].as_array()?.len() > 50).then_some(()));
    let port = server.port;
    let (status, dir) = server.signal(rustix::process::Signal::TERM);
    assert_eq!(status.code(), Some(0));
    let acknowledged: Vec<Written> = writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect();
    watcher.join().expect("a watcher");
    assert!(is_over.load(Ordering::Relaxed));
    let server = Server::start_in(dir, port, "apiserver", &[]);
    let n_there = server.request("GET", MAPS, "").json()["items"].as_array().expect("items").len();
    let names: BTreeSet<&String> = acknowledged.iter().map(|(name, _)| name).collect();
    assert_eq!(n_there, names.len(), "what was not acknowledged was not begun");
}

#[test]
fn a_watch_resumes_across_a_clean_restart() {
    let server = Server::start("resume");
    let first = server.request("POST", MAPS, r#"{"metadata":{"name":"first"}}"#).version();
    server.request("POST", MAPS, r#"{"metadata":{"name":"second"}}"#);
    server.request("DELETE", &format!("{MAPS}/first"), "");
    let port = server.port;
    let (_, dir) = server.signal(rustix::process::Signal::TERM);
    let server = Server::start_in(dir, port, "apiserver", &[]);
    let mut connection = follow(&server, first.parse().expect("a number")).expect("a watch");
    let mut told = Vec::new();
    for _ in 0..2 {
        let event = connection.event().expect("an event").expect("no end");
        told.push(format!("{} {}", event["type"], event["object"]["metadata"]["name"]));
    }
    assert_eq!(told, [r#""ADDED" "second""#, r#""DELETED" "first""#]);
}
