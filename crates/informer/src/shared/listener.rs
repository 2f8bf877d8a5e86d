//! A handler of a shared informer: its own queue, its own pace, its own resync.

use crate::fifo::Deleted;
use crate::handler::ResourceEventHandler;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Notifications handled before other tasks get their turn.
const HANDLED_AT_ONCE_MAX: usize = 128;

/// What a handler is to be told.
pub(super) enum Notification<T> {
    Add(T, bool),
    Update(T, T),
    Delete(Deleted<T>),
    /// Everything of the first list was before this.
    Synced,
}

pub(super) struct Listener<T> {
    handler: Box<dyn ResourceEventHandler<T>>,
    waiting: Mutex<VecDeque<Notification<T>>>,
    arrived: Notify,
    pub(super) handled: Notify,
    /// It was taken away, or has panicked: it hears nothing more.
    is_removed: AtomicBool,
    synced: watch::Sender<bool>,
    /// Whether [`Notification::Synced`] was put in.
    is_told_of_sync: AtomicBool,
    /// `None`: no resyncs.
    resync: Option<Mutex<Resync>>,
}

struct Resync {
    period: Duration,
    next_at: Instant,
    /// Whether the notifications of the resync that is under way are for this handler.
    is_syncing: bool,
}

impl<T: Send + Sync + 'static> Listener<T> {
    pub(super) fn new(handler: Box<dyn ResourceEventHandler<T>>, resync_period: Option<Duration>) -> Listener<T> {
        let resync = resync_period
            .filter(|period| !period.is_zero())
            .map(|period| Mutex::new(Resync { period, next_at: Instant::now() + period, is_syncing: false }));
        Listener {
            handler,
            waiting: Mutex::new(VecDeque::new()),
            arrived: Notify::new(),
            handled: Notify::new(),
            is_removed: AtomicBool::new(false),
            synced: watch::Sender::new(false),
            is_told_of_sync: AtomicBool::new(false),
            resync,
        }
    }

    pub(super) fn push(&self, notification: Notification<T>) {
        if !self.is_removed() {
            self.waiting.lock().push_back(notification);
            self.arrived.notify_one();
        }
    }

    /// Takes the handler away: it hears nothing more.
    pub(super) fn remove(&self) {
        self.is_removed.store(true, Ordering::Relaxed);
        self.waiting.lock().clear();
        self.arrived.notify_one();
        self.handled.notify_waiters();
    }

    pub(super) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Relaxed)
    }

    /// Says, once, that everything of the first list was put in.
    pub(super) fn push_synced(&self) {
        if !self.is_told_of_sync.swap(true, Ordering::Relaxed) {
            self.push(Notification::Synced);
        }
    }

    pub(super) fn n_waiting(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Handles notifications until the handler is removed or the future dropped. A handler that panics is removed.
    pub(super) async fn run(&self) {
        let _removed_at_the_end = RemoveOnDrop(self);
        let mut batch = VecDeque::new();
        while !self.is_removed() {
            {
                let mut waiting = self.waiting.lock();
                let n_taken = waiting.len().min(HANDLED_AT_ONCE_MAX);
                batch.extend(waiting.drain(..n_taken));
            }
            if batch.is_empty() {
                self.arrived.notified().await;
                continue;
            }
            for notification in batch.drain(..) {
                if self.is_removed() {
                    return;
                }
                self.handle(notification);
            }
            self.handled.notify_waiters();
            tokio::task::yield_now().await;
        }
    }

    fn handle(&self, notification: Notification<T>) {
        match notification {
            Notification::Add(object, is_in_initial_list) => self.handler.on_add(&object, is_in_initial_list),
            Notification::Update(old, new) => self.handler.on_update(&old, &new),
            Notification::Delete(deleted) => self.handler.on_delete(&deleted),
            Notification::Synced => {
                self.synced.send_replace(true);
            }
        }
    }

    /// When the next resync is due.
    pub(super) fn next_resync(&self) -> Option<Instant> {
        self.resync.as_ref().map(|resync| resync.lock().next_at)
    }

    /// Decides whether the resync that begins now is for this handler.
    pub(super) fn begin_resync(&self, now: Instant) -> bool {
        let Some(resync) = &self.resync else { return false };
        let mut resync = resync.lock();
        resync.is_syncing = now >= resync.next_at;
        if resync.is_syncing {
            resync.next_at = now + resync.period;
        }
        resync.is_syncing
    }

    /// Whether this handler wants to hear of objects that did not change.
    pub(super) fn is_syncing(&self) -> bool {
        self.resync.as_ref().is_some_and(|resync| resync.lock().is_syncing)
    }
}

/// Nobody waits for a handler whose task is gone.
struct RemoveOnDrop<'a, T: Send + Sync + 'static>(&'a Listener<T>);

impl<T: Send + Sync + 'static> Drop for RemoveOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// A handler's place at an informer. Dropping it leaves the handler there.
pub struct Registration<T> {
    pub(super) listener: Arc<Listener<T>>,
}

impl<T> Clone for Registration<T> {
    fn clone(&self) -> Registration<T> {
        Registration { listener: Arc::clone(&self.listener) }
    }
}

impl<T> std::fmt::Debug for Registration<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("has_synced", &self.has_synced()).finish_non_exhaustive()
    }
}

impl<T> Registration<T> {
    /// Whether the handler has been told of every object of the first list.
    pub fn has_synced(&self) -> bool {
        *self.listener.synced.borrow()
    }

    /// Waits until the handler has been told of every object of the first list. For ever, if the informer never runs.
    pub async fn synced(&self) {
        let mut synced = self.listener.synced.subscribe();
        // the sender lives in the listener, which this registration holds: no error can come
        let _ = synced.wait_for(|is_synced| *is_synced).await;
    }

    /// Notifications that the handler has not heard yet.
    pub fn n_waiting(&self) -> usize {
        self.listener.waiting.lock().len()
    }
}
