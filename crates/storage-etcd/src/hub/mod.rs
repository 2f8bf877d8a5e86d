//! Many watches in one stream of etcd's. A task of its own reads the stream and fills a queue for each watcher; when the
//! stream breaks, it opens another, on another member if need be, and resumes each watch after what it was told.

mod queue;
mod session;
mod watch;

use crate::cluster::Cluster;
use crate::convert::{range_end, to_wire};
use crate::known::Known;
use bytes::Bytes;
use parking_lot::Mutex;
use pintle_storage::{Result, StorageError, WatchRequest, WatchStream};
use queue::{Queue, Watcher};
use session::{Outbox, Session};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use watch::{Phase, Watch};

/// Time for a watch to be opened. Then it fails as `Unavailable`.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// First pause before a broken stream is opened again; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The watches of one stream. Its end is the end of them all.
#[derive(Debug)]
pub(crate) struct Hub {
    mailbox: Arc<Mailbox>,
    task: AbortHandle,
    n_opened: AtomicU64,
}

/// Tells the hub's task what to do. Bounded by the watches: each has at most one of its commands waiting.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    inbox: Mutex<Inbox>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Inbox {
    commands: Vec<Command>,
    is_progress_wanted: bool,
}

/// What concerns one watch.
#[derive(Debug)]
enum Command {
    Open(u64, Box<Watch>),
    /// Its watcher has read everything that was queued when it was too slow.
    Resume(u64),
    Close(u64),
}

impl Mailbox {
    fn put(&self, command: Command) {
        self.inbox.lock().commands.push(command);
        self.news.notify_one();
    }

    pub(crate) fn resume(&self, number: u64) {
        self.put(Command::Resume(number));
    }

    pub(crate) fn close(&self, number: u64) {
        self.put(Command::Close(number));
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hub {
    /// A hub without watches.
    pub(crate) fn start(cluster: Arc<Cluster>, known: Arc<Known>) -> Hub {
        let mailbox = Arc::new(Mailbox::default());
        let task = Task { cluster, known, mailbox: Arc::clone(&mailbox), watches: Watches::default() };
        Hub { mailbox, task: tokio::spawn(task.run()).abort_handle(), n_opened: AtomicU64::new(0) }
    }

    /// Opens a watch.
    ///
    /// # Errors
    /// `Unavailable` when etcd does not open it in time, `Expired` when its beginning is compacted.
    pub(crate) async fn watch(&self, request: &WatchRequest) -> Result<WatchStream> {
        let number = self.n_opened.fetch_add(1, Ordering::Relaxed);
        let queue = Arc::new(Queue::default());
        let (reply, opened) = oneshot::channel();
        let watch = Watch::new(
            Bytes::copy_from_slice(request.prefix.as_bytes()),
            range_end(&request.prefix),
            request.since,
            request.progress,
            Arc::clone(&queue),
            reply,
        );
        self.mailbox.put(Command::Open(number, Box::new(watch)));
        // Dropped, it closes the watch again.
        let watcher = Watcher::new(number, queue, Arc::clone(&self.mailbox));
        match tokio::time::timeout(OPEN_TIMEOUT, opened).await {
            Ok(Ok(opened)) => opened.map(|()| Box::pin(watcher) as WatchStream),
            Ok(Err(_)) => Err(StorageError::Unavailable { why: "the store is closed".to_owned() }),
            Err(_) => Err(StorageError::Unavailable { why: "etcd opens no watch in time".to_owned() }),
        }
    }

    /// Asks that every watch be told soon how far it has come.
    pub(crate) fn request_progress(&self) {
        self.mailbox.inbox.lock().is_progress_wanted = true;
        self.mailbox.news.notify_one();
    }
}

/// All watches of a hub.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    by_number: BTreeMap<u64, Watch>,
    /// The number of the watch that has this id in the stream. Ids are never used again.
    by_id: BTreeMap<i64, u64>,
    last_id: i64,
}

impl Watches {
    /// Gives a watch an id for the stream and asks etcd to open it.
    fn begin(&mut self, number: u64, outbox: &mut Outbox) {
        let Some(watch) = self.by_number.get_mut(&number) else { return };
        self.last_id += 1;
        if let Some(former) = watch.phase.id() {
            self.by_id.remove(&former);
        }
        watch.phase = Phase::Opening(self.last_id);
        watch.fragments.clear();
        self.by_id.insert(self.last_id, number);
        outbox.create(watch, self.last_id, to_wire(watch.told.next()));
    }

    /// Takes a watch out.
    fn remove(&mut self, number: u64) -> Option<Watch> {
        let watch = self.by_number.remove(&number)?;
        if let Some(id) = watch.phase.id() {
            self.by_id.remove(&id);
        }
        Some(watch)
    }

    fn of_id(&mut self, id: i64) -> Option<(u64, &mut Watch)> {
        let number = *self.by_id.get(&id)?;
        Some((number, self.by_number.get_mut(&number)?))
    }
}

/// The hub's task.
struct Task {
    cluster: Arc<Cluster>,
    known: Arc<Known>,
    mailbox: Arc<Mailbox>,
    watches: Watches,
}

impl Task {
    async fn run(mut self) {
        let mut pause = PAUSE_MIN;
        loop {
            self.take_commands(None);
            if self.watches.by_number.values().all(Watch::is_paused) {
                self.mailbox.news.notified().await;
                continue;
            }
            match self.session().await {
                // It was of use.
                Ok(()) => pause = PAUSE_MIN,
                Err(why) => {
                    tracing::warn!(%why, "etcd opens no stream of watches; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Opens a stream and serves all watches from it until it breaks or none is left.
    async fn session(&mut self) -> Result<(), String> {
        let member = self.cluster.member().await?;
        let mut outbox = Outbox::default();
        let resumed: Vec<u64> =
            self.watches.by_number.iter().filter(|(_, watch)| !watch.is_paused()).map(|(number, _)| *number).collect();
        for number in resumed {
            self.watches.begin(number, &mut outbox);
        }
        let opened = Session::open(&self.cluster, &member, outbox).await;
        let mut session = opened.map_err(|fault| {
            self.cluster.pass_over(&member);
            format!("{fault:?}")
        })?;
        let mut n_answers = 0u64;
        let broken = loop {
            self.take_commands(Some(&mut session));
            if self.watches.by_number.is_empty() {
                return Ok(());
            }
            let step = tokio::select! {
                step = session.step() => step,
                () = self.mailbox.news.notified() => continue,
            };
            let taken = match step {
                Ok(None) => Ok(()),
                Ok(Some(answer)) => {
                    n_answers += 1;
                    session.take(answer, &mut self.watches, &self.known)
                }
                Err(why) => Err(why),
            };
            if let Err(why) = taken {
                break why;
            }
            // A stream that always has more must not keep this thread to itself.
            tokio::task::coop::consume_budget().await;
        };
        tracing::debug!(%broken, "a stream of watches ended; resuming");
        self.cluster.pass_over(&member);
        if n_answers == 0 { Err(broken) } else { Ok(()) }
    }

    /// Does what was asked for meanwhile; without a session, as far as that is possible.
    fn take_commands(&mut self, mut session: Option<&mut Session>) {
        let inbox = std::mem::take(&mut *self.mailbox.inbox.lock());
        for command in inbox.commands {
            match command {
                Command::Open(number, watch) => {
                    self.watches.by_number.insert(number, *watch);
                    if let Some(session) = session.as_deref_mut() {
                        self.watches.begin(number, &mut session.outbox);
                    }
                }
                Command::Resume(number) => match session.as_deref_mut() {
                    Some(session) => self.watches.begin(number, &mut session.outbox),
                    None => {
                        if let Some(watch) = self.watches.by_number.get_mut(&number) {
                            watch.phase = Phase::Waiting;
                        }
                    }
                },
                Command::Close(number) => {
                    let id = self.watches.remove(number).and_then(|watch| watch.phase.id());
                    if let (Some(id), Some(session)) = (id, session.as_deref_mut()) {
                        session.outbox.cancel(id);
                    }
                }
            }
        }
        if inbox.is_progress_wanted {
            match session {
                Some(session) => session.want_progress(),
                // The next session asks.
                None => self.mailbox.inbox.lock().is_progress_wanted = true,
            }
        }
    }
}
