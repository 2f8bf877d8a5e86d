//! Durable updates per second of 2 KB values, beside an append-only log that does nothing else, on the same disk in the
//! same run; with `--peer`, also beside an etcd on the same disk.
//!
//! `cargo bench -p pintle-storage-embedded --bench durable_writes -- [--slices 6] [--seconds 0.5] [--writers 1,16,128] [--dir PATH] [--peer ETCD]`

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that prints what it measures by the clock"
)]

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pintle_apimachinery::env::Env;
use pintle_storage::{Key, NewValue, Storage};
use pintle_storage_embedded::testing::TempDir;
use pintle_storage_embedded::{EmbeddedStore, Options};
use pintle_storage_etcd::EtcdStore;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

const VALUE_BYTES: usize = 2048;

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.next()?;
    arguments.next()
}

fn main() {
    let seconds = argument("--seconds").map_or(0.5, |text| text.parse().expect("--seconds takes a number"));
    let n_slices: usize = argument("--slices").map_or(6, |text| text.parse().expect("--slices takes a number"));
    let writers = argument("--writers").unwrap_or_else(|| "1,16,128".to_owned());
    let writers: Vec<usize> = writers.split(',').map(|n| n.parse().expect("--writers takes numbers")).collect();
    let temporary = TempDir::new();
    let dir = argument("--dir").map_or_else(|| temporary.path().to_path_buf(), PathBuf::from);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    println!("best and median of {n_slices} slices of {seconds} s each, taken in turns");
    println!("{:<28} {:>7} {:>10} {:>10} {:>8} {:>8}", "", "writers", "best/s", "median/s", "p50 us", "p99 us");
    let time = Duration::from_secs_f64(seconds);
    for n_writers in writers {
        let peer = argument("--peer").map(|program| Peer::start(&program, &dir.join("etcd")));
        let subjects = runtime.block_on(subjects(&dir, n_writers, peer.as_ref()));
        let mut outcomes: Vec<Vec<Outcome>> = subjects.iter().map(|_| Vec::new()).collect();
        for _ in 0..n_slices {
            for (subject, outcomes) in subjects.iter().zip(&mut outcomes) {
                outcomes.push(runtime.block_on(measure(n_writers, time, Arc::clone(&subject.write))));
            }
        }
        for (subject, outcomes) in subjects.iter().zip(outcomes) {
            print(subject.name, n_writers, outcomes);
        }
        drop((subjects, peer));
        for entry in std::fs::read_dir(&dir).expect("it is there").flatten() {
            drop(std::fs::remove_dir_all(entry.path()).or_else(|_| std::fs::remove_file(entry.path())));
        }
    }
}

type Write = Arc<dyn Fn(usize) -> BoxFuture<'static, ()> + Send + Sync>;

/// Something that writes.
struct Subject {
    name: &'static str,
    /// One durable update by the writer of this number.
    write: Write,
}

async fn subjects(dir: &Path, n_writers: usize, peer: Option<&Peer>) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for (name, prepared) in [("hand-written log", false), ("hand-written log, prepared", true)] {
        let log = Arc::new(HandWritten::start(&dir.join(format!("log-{prepared}")), prepared));
        let write: Write = Arc::new(move |_| {
            let log = Arc::clone(&log);
            async move { log.write(vec![b'x'; VALUE_BYTES]).await }.boxed()
        });
        subjects.push(Subject { name, write });
    }
    let store = EmbeddedStore::open(dir.join("store"), Options::default(), Env::system()).expect("a fresh directory");
    subjects.push(Subject { name: "embedded store", write: updates(Arc::new(store), n_writers).await });
    if let Some(peer) = peer {
        let store = peer.store();
        subjects.push(Subject { name: "etcd", write: updates(Arc::new(store), n_writers).await });
    }
    subjects
}

/// An etcd on loopback with one member.
struct Peer {
    process: std::process::Child,
    url: String,
}

impl Peer {
    fn start(program: &str, dir: &Path) -> Peer {
        let port = || std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("loopback").port();
        let (url, peer_url) = (format!("http://127.0.0.1:{}", port()), format!("http://127.0.0.1:{}", port()));
        let process = std::process::Command::new(program)
            .arg(format!("--data-dir={}", dir.display()))
            .args([format!("--listen-client-urls={url}"), format!("--advertise-client-urls={url}")])
            .args([format!("--listen-peer-urls={peer_url}"), format!("--initial-advertise-peer-urls={peer_url}")])
            .args([format!("--initial-cluster=default={peer_url}"), "--log-level=error".to_owned()])
            .spawn()
            .expect("--peer names etcd");
        Peer { process, url }
    }

    fn store(&self) -> EtcdStore {
        let options = pintle_storage_etcd::Options { endpoints: vec![self.url.clone()], ..Default::default() };
        EtcdStore::new(&options).expect("a good address")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends with the bench, one way or the other.
        drop(self.process.kill().and_then(|()| self.process.wait()));
    }
}

/// Each writer updates a key of its own again and again.
async fn updates(store: Arc<dyn Storage>, n_writers: usize) -> Write {
    let value = || NewValue { bytes: Bytes::from(vec![b'x'; VALUE_BYTES]), ..NewValue::default() };
    let mut records = Vec::new();
    for n in 0..n_writers {
        let key = Key::new(format!("/registry/pods/default/pod-{n:06}"));
        records.push(Arc::new(parking_lot::Mutex::new(store.create(key, value()).await.expect("it is new"))));
    }
    Arc::new(move |n| {
        let (store, slot) = (Arc::clone(&store), Arc::clone(&records[n]));
        async move {
            let record = Arc::clone(&slot.lock());
            let next = store.update(record.key.clone(), value(), record.revision).await.expect("nobody else writes it");
            *slot.lock() = next;
        }
        .boxed()
    })
}

struct Outcome {
    rate: f64,
    latencies: Vec<Duration>,
}

/// The latencies are those of the best slice.
fn print(name: &str, n_writers: usize, mut outcomes: Vec<Outcome>) {
    outcomes.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    let median = outcomes[outcomes.len() / 2].rate;
    let best = &mut outcomes[0];
    best.latencies.sort();
    let at = |part: f64| best.latencies[((best.latencies.len() - 1) as f64 * part) as usize].as_micros();
    let (p50, p99) = (at(0.5), at(0.99));
    println!("{name:<28} {n_writers:>7} {:>10.0} {median:>10.0} {p50:>8} {p99:>8}", best.rate);
}

/// Lets writers write for so long.
async fn measure(n_writers: usize, time: Duration, write: Write) -> Outcome {
    let started = Instant::now();
    let writers = (0..n_writers).map(|n| {
        let write = Arc::clone(&write);
        tokio::spawn(async move {
            let mut latencies = Vec::new();
            while started.elapsed() < time {
                let begun = Instant::now();
                write(n).await;
                latencies.push(begun.elapsed());
            }
            latencies
        })
    });
    let done = futures_util::future::join_all(writers).await;
    let latencies: Vec<Duration> =
        done.into_iter().flat_map(|latencies| latencies.expect("no writer panics")).collect();
    Outcome { rate: latencies.len() as f64 / started.elapsed().as_secs_f64(), latencies }
}

/// An append-only log with group commit and nothing else: no index, no checksums, no watchers, no preconditions.
struct HandWritten {
    inbox: mpsc::Sender<(Vec<u8>, oneshot::Sender<()>)>,
}

impl HandWritten {
    fn start(path: &Path, prepared: bool) -> HandWritten {
        let file = File::create(path).expect("a fresh file");
        if prepared {
            // As far as a run can come: blocks written once take less time to sync.
            let zeros = vec![0; 1 << 20];
            (0..1024).for_each(|n| file.write_all_at(&zeros, n << 20).expect("the disk is not full"));
            file.sync_all().expect("a sync");
        }
        let (inbox, mut waiting) = mpsc::channel::<(Vec<u8>, oneshot::Sender<()>)>(1024);
        std::thread::spawn(move || {
            let (mut batch, mut buffer, mut end) = (Vec::new(), Vec::new(), 0u64);
            while waiting.blocking_recv_many(&mut batch, 1024) > 0 {
                buffer.clear();
                batch.iter().for_each(|(bytes, _)| buffer.extend_from_slice(bytes));
                file.write_all_at(&buffer, end).expect("the disk is not full");
                file.sync_data().expect("a sync");
                end += buffer.len() as u64;
                if prepared && end > 1000 << 20 {
                    end = 0;
                }
                for (_, reply) in batch.drain(..) {
                    let _ = reply.send(());
                }
            }
        });
        HandWritten { inbox }
    }

    async fn write(&self, bytes: Vec<u8>) {
        let (reply, answer) = oneshot::channel();
        self.inbox.send((bytes, reply)).await.expect("the log runs");
        answer.await.expect("the log runs");
    }
}
