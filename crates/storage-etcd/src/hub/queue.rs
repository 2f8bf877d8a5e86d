//! What is told to one watcher and not read yet.

use super::Mailbox;
use futures_util::Stream;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use pintle_storage::{Event, Result, Revision, StorageError, WatchItem};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Events in one queue. At the limit the watch is cancelled, and resumed when its watcher has read them.
const QUEUE_EVENTS_MAX: usize = 16_384;

/// Bytes of values in one queue. As above.
const QUEUE_BYTES_MAX: usize = 32 << 20;

/// What the hub and one watcher share.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    content: Mutex<Content>,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct Content {
    items: VecDeque<WatchItem>,
    n_events: usize,
    n_bytes: usize,
    /// Whether the hub tells nothing more until the watcher has read all this and says so.
    is_paused: bool,
    /// The end, after all items: an error, or none.
    end: Option<Option<StorageError>>,
}

/// Bytes that an event keeps alive.
fn bytes_of(event: &Event) -> usize {
    [&event.record, &event.previous].into_iter().flatten().map(|record| record.value.len()).sum()
}

impl Queue {
    /// Adds events. Answers whether there is room for more; if not, the watch is to be paused.
    #[must_use]
    pub(crate) fn push(&self, events: Vec<Arc<Event>>) -> bool {
        let mut content = self.content.lock();
        content.n_events += events.len();
        content.n_bytes += events.iter().map(|event| bytes_of(event)).sum::<usize>();
        content.items.push_back(WatchItem::Events(events));
        content.is_paused = content.n_events > QUEUE_EVENTS_MAX || content.n_bytes > QUEUE_BYTES_MAX;
        let has_room = !content.is_paused;
        drop(content);
        self.waker.wake();
        has_room
    }

    /// Tells progress, in place of an earlier one that was not read.
    pub(crate) fn progress(&self, revision: Revision) {
        let mut content = self.content.lock();
        if let Some(WatchItem::Progress(last)) = content.items.back_mut() {
            *last = revision;
        } else {
            content.items.push_back(WatchItem::Progress(revision));
        }
        drop(content);
        self.waker.wake();
    }

    /// Nothing follows.
    pub(crate) fn end(&self, error: Option<StorageError>) {
        self.content.lock().end.get_or_insert(error);
        self.waker.wake();
    }
}

/// One watcher's end of its queue.
#[derive(Debug)]
pub(crate) struct Watcher {
    number: u64,
    queue: Arc<Queue>,
    mailbox: Arc<Mailbox>,
    is_over: bool,
}

impl Watcher {
    pub(crate) fn new(number: u64, queue: Arc<Queue>, mailbox: Arc<Mailbox>) -> Watcher {
        Watcher { number, queue, mailbox, is_over: false }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.mailbox.close(self.number);
    }
}

impl Stream for Watcher {
    type Item = Result<WatchItem>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<WatchItem>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        // Before the look, so that what comes after it wakes this task.
        this.queue.waker.register(context.waker());
        let mut content = this.queue.content.lock();
        if let Some(item) = content.items.pop_front() {
            if let WatchItem::Events(events) = &item {
                content.n_events -= events.len();
                content.n_bytes -= events.iter().map(|event| bytes_of(event)).sum::<usize>();
            }
            if content.items.is_empty() && std::mem::take(&mut content.is_paused) {
                drop(content);
                this.mailbox.resume(this.number);
            }
            return Poll::Ready(Some(Ok(item)));
        }
        match content.end.take() {
            None => Poll::Pending,
            Some(error) => {
                this.is_over = true;
                Poll::Ready(error.map(Err))
            }
        }
    }
}
