//! The commit pipeline: takes all writes that wait, checks their preconditions in order, appends them, makes them durable
//! with one sync, and only then lets anybody see them. While the disk syncs, the next writes gather.

mod batch;
mod log;

pub(crate) use log::Log;

use crate::shared::{Shared, Trouble};
use batch::{Batch, Staged};
use pintle_storage::{Event, Key, NewValue, Result, Revision, StorageError};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Writes that wait to be taken up. At the limit the next caller waits to get in.
pub(crate) const WRITES_WAITING_MAX: usize = 1024;

/// Writes taken up at once.
pub(crate) const BATCH_WRITES_MAX: usize = 1024;

/// Bytes of one batch beyond its last record. The search for what a crash left behind looks so far.
pub(crate) const BATCH_BYTES_MAX: usize = 8 << 20;

/// What a write is to do.
#[derive(Debug)]
pub(crate) enum Request {
    Create(NewValue),
    Update(NewValue, Revision),
    Delete(Option<Revision>),
}

/// A write that waits.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) key: Key,
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Arc<Event>>>,
}

/// What reaches the writer.
#[derive(Debug)]
pub(crate) enum Message {
    Write(Write),
    /// Finish: nothing will be written after the answer.
    Close(oneshot::Sender<()>),
}

/// The one who writes.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    log: Log,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, log: Log) -> Writer {
        Writer { shared, log }
    }

    /// Writes until all who could ask are gone. On a thread of its own.
    pub(crate) fn run_on_thread(mut self, mut inbox: mpsc::Receiver<Message>) {
        let mut messages = Vec::new();
        while inbox.blocking_recv_many(&mut messages, BATCH_WRITES_MAX) > 0 {
            if !self.take(&mut messages) {
                return;
            }
        }
    }

    /// The same as a task.
    pub(crate) async fn run_as_task(mut self, mut inbox: mpsc::Receiver<Message>) {
        let mut messages = Vec::new();
        while inbox.recv_many(&mut messages, BATCH_WRITES_MAX).await > 0 {
            if !self.take(&mut messages) {
                return;
            }
        }
    }

    /// Answers whether to go on.
    fn take(&mut self, messages: &mut Vec<Message>) -> bool {
        let mut writes = Vec::with_capacity(messages.len());
        let mut closing = None;
        for message in messages.drain(..) {
            match message {
                Message::Write(write) => writes.push(write),
                Message::Close(reply) => closing = Some(reply),
            }
        }
        let mut waiting = writes.into_iter();
        while waiting.len() > 0 {
            self.commit(&mut waiting);
        }
        match closing {
            Some(reply) => {
                self.log.close(&self.shared);
                // Whoever asked may have gone away.
                let _ = reply.send(());
                false
            }
            None => true,
        }
    }

    /// Takes up as many of the waiting writes as one batch takes and answers them.
    fn commit(&mut self, waiting: &mut std::vec::IntoIter<Write>) {
        if let Some(refusal) = self.refusal() {
            for write in waiting {
                answer(write.reply, Err(refusal.clone()));
            }
            return;
        }
        let mut batch = Batch::new(&self.shared, &self.log);
        for write in waiting.by_ref() {
            batch.stage(write, &mut self.log);
            if batch.is_done() {
                break;
            }
        }
        let Staged { chunks, refused } = batch.finish();
        let mut failure = None;
        for chunk in chunks {
            let outcome = failure.clone().map_or_else(|| self.log.append(&self.shared, &chunk), Err);
            match outcome {
                Ok(()) => {
                    self.publish(chunk.changes);
                    self.log.give_buffer(chunk.bytes);
                }
                Err(error) => {
                    for staged in chunk.changes {
                        answer(staged.reply, Err(error.clone()));
                    }
                    failure = Some(error);
                }
            }
        }
        for (reply, refusal) in refused {
            // A refusal that rests on a write of this batch holds only if that write was done.
            answer(reply, Err(failure.clone().unwrap_or(refusal)));
        }
    }

    /// Why writes are refused now, if they are; tries to get out of it.
    fn refusal(&mut self) -> Option<StorageError> {
        let trouble = self.shared.trouble.lock().clone()?;
        match trouble {
            Trouble::Full(_) if self.log.reopen(&self.shared).is_ok() => {
                tracing::info!("there is space on the disk again: the store takes writes");
                *self.shared.trouble.lock() = None;
                None
            }
            Trouble::Full(why) | Trouble::Broken(why) => Some(StorageError::ReadOnly { why }),
        }
    }

    /// Lets everybody see changes that are durable, then answers their writers.
    fn publish(&self, changes: Vec<batch::Change>) {
        let events: Vec<Arc<Event>> = changes.iter().map(|change| Arc::clone(&change.event)).collect();
        for change in &changes {
            self.shared.expiry.set(&change.event.key, change.event.revision, change.due);
        }
        {
            let mut index = self.shared.index.write();
            index.publish(changes.iter().map(batch::Change::to_index));
            index.mark(self.shared.running_ms(), self.log.bytes_written());
            // Watchers hear of it before any reader can: who has seen a revision finds everybody at it.
            self.shared.watchers.tell(&events);
        }
        for (change, event) in changes.into_iter().zip(events) {
            answer(change.reply, Ok(event));
        }
    }
}

fn answer(reply: oneshot::Sender<Result<Arc<Event>>>, answer: Result<Arc<Event>>) {
    // Whoever asked may have gone away; the write stands.
    let _ = reply.send(answer);
}

/// When a key is due that is written now.
fn due(value: &NewValue, now: Instant) -> Option<Instant> {
    value.ttl.and_then(|ttl| now.checked_add(ttl))
}
