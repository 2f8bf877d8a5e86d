//! Watchers that check what they get: every event once and in the order of its writer, and how long it was on its way.
//! Frames are scanned for the mark of the write that made them and not understood otherwise.

use crate::bodies::{Mark, MarkFinder};
use crate::histogram::Histogram;
use crate::lab::Lab;
use crate::link::{Call, Link};
use crate::tally::{Fault, Faults, Live};
use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What all watchers have seen together.
#[derive(Debug)]
pub(crate) struct Seen {
    n_deliveries: AtomicU64,
    latency: Mutex<Histogram>,
    faults: Mutex<Faults>,
    /// Told after deliveries.
    pub(crate) progress: Notify,
    live: Arc<Live>,
    origin: Instant,
}

impl Seen {
    /// Deliveries since the start.
    pub(crate) fn n_deliveries(&self) -> u64 {
        self.n_deliveries.load(Ordering::Relaxed)
    }

    /// Latencies and faults since the last call.
    pub(crate) fn take(&self) -> (Histogram, Faults) {
        (std::mem::take(&mut *self.latency.lock()), std::mem::take(&mut *self.faults.lock()))
    }

    fn fault(&self, fault: Fault) {
        self.live.add(false);
        self.faults.lock().add(fault);
    }
}

/// Which events are checked and timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// All: each is of a write of its own.
    Every,
    /// Those of new objects: the others repeat the mark of the first.
    Added,
}

/// Watchers at work; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Watchers {
    pub(crate) seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

impl Watchers {
    /// Opens one watcher for each of `paths`, from the present version of `collection` on; returns when all are open.
    pub(crate) async fn open(lab: &Lab, collection: &str, paths: Vec<String>, check: Check) -> Result<Watchers> {
        let shared = lab.settings.load.watchers_per_connection;
        let links = lab.dialer.links(paths.len().div_ceil(shared)).await?;
        let seen = Arc::new(Seen {
            n_deliveries: AtomicU64::new(0),
            latency: Mutex::default(),
            faults: Mutex::default(),
            progress: Notify::new(),
            live: lab.live.clone(),
            origin: lab.origin,
        });
        let version = lab.version(&mut lab.dialer.link().await?, collection).await?;
        let mut tasks = JoinSet::new();
        for (idx, path) in paths.iter().enumerate() {
            let call = Call::get(&format!("{path}&resourceVersion={version}"))?;
            let mut link: Link = links[idx / shared].clone();
            let body = link.open(&call).await.context("cannot open a watch")?.into_body();
            tasks.spawn(Watcher::new(seen.clone(), check).follow(body));
        }
        Ok(Watchers { seen, _tasks: tasks })
    }
}

struct Watcher {
    seen: Arc<Seen>,
    finder: MarkFinder,
    /// The begin of a frame whose end has not come yet.
    rest: BytesMut,
    check: Check,
    expected: Expected,
}

impl Watcher {
    fn new(seen: Arc<Seen>, check: Check) -> Watcher {
        Watcher { seen, finder: MarkFinder::new(), rest: BytesMut::new(), check, expected: Expected::default() }
    }

    async fn follow(mut self, mut body: Incoming) {
        while let Some(frame) = body.frame().await {
            match frame.map(|frame| frame.into_data()) {
                Ok(Ok(data)) => self.chunk(data),
                Ok(Err(_trailers)) => {}
                Err(why) => return self.seen.fault(Fault::of_connection(&why)),
            }
        }
        self.seen.fault(Fault::new("ended watch", "the server ended a watch"));
    }

    fn chunk(&mut self, data: Bytes) {
        let mut latencies = [0_u64; LATENCIES_AT_ONCE];
        let (mut n, mut begin) = (0, 0);
        for end in memchr::memchr_iter(b'\n', &data) {
            let told = if self.rest.is_empty() {
                self.line(&data[begin..end])
            } else {
                self.rest.extend_from_slice(&data[begin..end]);
                let line = std::mem::take(&mut self.rest);
                self.line(&line)
            };
            begin = end + 1;
            if let Some(nanos) = told {
                latencies[n] = nanos;
                n += 1;
                if n == LATENCIES_AT_ONCE {
                    self.delivered(&latencies);
                    n = 0;
                }
            }
        }
        self.rest.extend_from_slice(&data[begin..]);
        self.delivered(&latencies[..n]);
    }

    /// One event; gives its latency.
    fn line(&mut self, line: &[u8]) -> Option<u64> {
        if line.starts_with(b"{\"type\":\"ERROR\"") {
            self.seen.fault(Fault::of_answer(http::StatusCode::GONE, line));
            return None;
        }
        let is_unchecked = self.check == Check::Added && !line.starts_with(b"{\"type\":\"ADDED\"");
        if is_unchecked || line.starts_with(b"{\"type\":\"BOOKMARK\"") {
            return None;
        }
        let Some(mark) = Mark::find(&self.finder, line) else {
            self.seen.fault(Fault::new("event without mark", String::from_utf8_lossy(line)));
            return None;
        };
        if let Err(fault) = self.expected.check(mark) {
            self.seen.fault(fault);
        }
        let now = u64::try_from(self.seen.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Some(now.saturating_sub(mark.nanos))
    }

    fn delivered(&self, latencies: &[u64]) {
        if latencies.is_empty() {
            return;
        }
        let mut histogram = self.seen.latency.lock();
        latencies.iter().for_each(|nanos| histogram.record_nanos(*nanos));
        drop(histogram);
        self.seen.n_deliveries.fetch_add(latencies.len() as u64, Ordering::Relaxed);
        self.seen.live.add_operations(latencies.len() as u64);
        self.seen.progress.notify_one();
    }
}

/// Deliveries that are counted together.
const LATENCIES_AT_ONCE: usize = 32;

/// Which event of each writer is the next.
#[derive(Debug, Default)]
struct Expected(BTreeMap<u32, u64>);

impl Expected {
    /// Ordered, Unique and Reliable, for one event.
    fn check(&mut self, mark: Mark) -> Result<(), Fault> {
        let next = self.0.entry(mark.writer).or_insert(1);
        let expected = *next;
        if mark.sequence == expected {
            *next += 1;
            return Ok(());
        }
        *next = (*next).max(mark.sequence + 1);
        let message = format!("writer {}: event {} where {expected} was due", mark.writer, mark.sequence);
        Err(Fault::new(if mark.sequence < expected { "event twice or late" } else { "lost event" }, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::{Template, config_map};

    #[test]
    fn events_are_checked_and_timed_however_they_are_cut() {
        let template = Template::new(config_map("a", 0));
        let event = |sequence| {
            let object = template.with(Mark { writer: 3, sequence, nanos: 0 });
            [b"{\"type\":\"MODIFIED\",\"object\":", &object[..], b"}\n"].concat()
        };
        let stream = [event(1), event(2), b"{\"type\":\"BOOKMARK\"}\n".to_vec(), event(4), event(2)].concat();
        for cut in [1, 7, 1000, 1_000_000] {
            let seen = Arc::new(Seen {
                n_deliveries: AtomicU64::new(0),
                latency: Mutex::default(),
                faults: Mutex::default(),
                progress: Notify::new(),
                live: Arc::default(),
                origin: Instant::now(),
            });
            let mut watcher = Watcher::new(seen.clone(), Check::Every);
            for chunk in stream.chunks(cut) {
                watcher.chunk(Bytes::copy_from_slice(chunk));
            }
            let (latency, faults) = seen.take();
            assert_eq!((seen.n_deliveries(), latency.len()), (4, 4), "cut {cut}");
            let kinds: Vec<_> = faults.iter().map(|(kind, n, _)| (kind, n)).collect();
            assert_eq!(kinds, [("event twice or late", 1), ("lost event", 1)]);
        }
    }
}
