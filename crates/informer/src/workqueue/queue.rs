//! [`WorkQueue`]: the queue that controllers use.

use super::QueueItem;
use super::core::{Core, Taken};
use super::metrics::{Metrics, NoMetrics};
use super::rate_limiter::{RateLimiter, default_controller_rate_limiter};
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How a queue behaves.
pub struct WorkQueueOptions<T> {
    /// How long items wait that are added with [`WorkQueue::add_rate_limited`].
    pub rate_limiter: Box<dyn RateLimiter<T>>,
    /// Who counts.
    pub metrics: Box<dyn Metrics>,
}

impl<T: QueueItem> Default for WorkQueueOptions<T> {
    fn default() -> WorkQueueOptions<T> {
        WorkQueueOptions { rate_limiter: default_controller_rate_limiter(), metrics: Box::new(NoMetrics) }
    }
}

impl<T> std::fmt::Debug for WorkQueueOptions<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorkQueueOptions(..)")
    }
}

/// A queue of things to do: deduplicating, delaying, rate limited, with priorities. Cheap to clone.
///
/// ```
/// # use pintle_informer::workqueue::WorkQueue;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue = WorkQueue::new("example");
/// queue.add("a");
/// queue.add("b");
/// queue.add("a");
/// while let Some(item) = queue.try_get() {
///     println!("doing {}", *item); // a, then b
/// } // dropping the item says that it is done
/// # }
/// ```
pub struct WorkQueue<T: QueueItem> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    name: String,
    state: Mutex<State<T>>,
    /// Something became ready, or sooner than before, or the queue was shut down.
    changed: Notify,
    /// Something was done.
    finished: Notify,
}

struct State<T> {
    core: Core<T>,
    rate_limiter: Box<dyn RateLimiter<T>>,
    metrics: Box<dyn Metrics>,
    times: super::metrics::Times<T>,
}

impl<T: QueueItem> Clone for WorkQueue<T> {
    fn clone(&self) -> WorkQueue<T> {
        WorkQueue { shared: Arc::clone(&self.shared) }
    }
}

impl<T: QueueItem> std::fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("WorkQueue")
            .field("name", &self.shared.name)
            .field("n_ready", &state.core.len())
            .field("n_later", &state.core.n_later())
            .finish()
    }
}

impl<T: QueueItem> WorkQueue<T> {
    /// An empty queue with the usual rate limiter. The name is for people.
    pub fn new(name: &str) -> WorkQueue<T> {
        WorkQueue::with_options(name, WorkQueueOptions::default())
    }

    /// An empty queue that behaves as told.
    pub fn with_options(name: &str, options: WorkQueueOptions<T>) -> WorkQueue<T> {
        let state = State {
            core: Core::new(),
            rate_limiter: options.rate_limiter,
            metrics: options.metrics,
            times: super::metrics::Times::default(),
        };
        let shared =
            Shared { name: name.to_owned(), state: Mutex::new(state), changed: Notify::new(), finished: Notify::new() };
        WorkQueue { shared: Arc::new(shared) }
    }

    /// The queue's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Adds an item. Nothing happens if it waits already; if it is worked on, it will be again.
    pub fn add(&self, item: T) {
        self.add_with_priority(item, 0);
    }

    /// Adds an item that comes before all of lower priority. An item that waits already becomes as urgent as the most
    /// urgent call said.
    pub fn add_with_priority(&self, item: T, priority: i32) {
        let mut state = self.shared.state.lock();
        if state.core.is_shut_down() {
            return;
        }
        state.metrics.added();
        if state.core.add(item.clone(), priority) {
            let now = Instant::now();
            state.times.ready(item, now);
            let depth = state.core.len();
            state.metrics.depth(depth);
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Adds an item after a pause. If it is to come sooner anyway, it comes then.
    pub fn add_after(&self, item: T, pause: Duration) {
        self.add_after_with_priority(item, pause, 0);
    }

    /// Adds an item with a priority after a pause.
    pub fn add_after_with_priority(&self, item: T, pause: Duration, priority: i32) {
        if pause.is_zero() {
            return self.add_with_priority(item, priority);
        }
        let mut state = self.shared.state.lock();
        if !state.core.is_shut_down() {
            state.metrics.retried();
        }
        state.core.add_at(item, Instant::now() + pause, priority);
        drop(state);
        // one waiter must look at its alarm clock again
        self.shared.changed.notify_one();
    }

    /// Adds an item after the pause that the rate limiter gives it: longer each time, until [`forget`](Self::forget).
    pub fn add_rate_limited(&self, item: T) {
        let pause = self.shared.state.lock().rate_limiter.when(&item, Instant::now());
        self.add_after(item, pause);
    }

    /// The item's work went well: the rate limiter starts over with it.
    pub fn forget(&self, item: &T) {
        self.shared.state.lock().rate_limiter.forget(item);
    }

    /// How often the item was added with [`add_rate_limited`](Self::add_rate_limited) since it was forgotten.
    pub fn num_requeues(&self, item: &T) -> usize {
        self.shared.state.lock().rate_limiter.num_requeues(item)
    }

    /// The next item, when there is one; `None` when the queue is shut down and empty. While the [`Item`] lives, nobody
    /// else gets the same. Cancel-safe: nothing is taken unless it is returned.
    pub async fn get(&self) -> Option<Item<T>> {
        loop {
            let changed = self.shared.changed.notified();
            match self.take() {
                Taken::Item(item) => return Some(self.item(item)),
                Taken::ShutDown => {
                    // the other waiters must hear of it too
                    self.shared.changed.notify_one();
                    return None;
                }
                Taken::Nothing(None) => changed.await,
                Taken::Nothing(Some(at)) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// The next item if there is one now.
    pub fn try_get(&self) -> Option<Item<T>> {
        match self.take() {
            Taken::Item(item) => Some(self.item(item)),
            Taken::Nothing(_) | Taken::ShutDown => None,
        }
    }

    fn take(&self) -> Taken<T> {
        let mut state = self.shared.state.lock();
        let now = Instant::now();
        let promoted = state.core.promote(now);
        for item in promoted {
            state.times.ready(item, now);
        }
        let taken = state.core.take();
        if let Taken::Item(item) = &taken {
            let waited = state.times.started(item, now);
            state.metrics.started(waited);
            let depth = state.core.len();
            state.metrics.depth(depth);
            if depth > 0 {
                // notifications do not add up: pass the word on
                self.shared.changed.notify_one();
            }
        }
        taken
    }

    fn item(&self, value: T) -> Item<T> {
        Item { value, queue: self.clone() }
    }

    /// Items ready to be taken.
    pub fn len(&self) -> usize {
        let mut state = self.shared.state.lock();
        state.core.promote(Instant::now());
        state.core.len()
    }

    /// Whether nothing is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items that come later.
    pub fn n_delayed(&self) -> usize {
        self.shared.state.lock().core.n_later()
    }

    /// Takes nothing more in. What is ready is still given out, then [`get`](Self::get) gives `None`.
    pub fn shut_down(&self) {
        self.shared.state.lock().core.shut_down(false);
        self.shared.changed.notify_one();
        self.shared.finished.notify_waiters();
    }

    /// As [`shut_down`](Self::shut_down), and waits until everything ready and worked on is done.
    pub async fn shut_down_with_drain(&self) {
        self.shared.state.lock().core.shut_down(true);
        self.shared.changed.notify_one();
        loop {
            let finished = self.shared.finished.notified();
            if self.shared.state.lock().core.is_idle() {
                return;
            }
            finished.await;
        }
    }

    /// Whether the queue was shut down.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.state.lock().core.is_shut_down()
    }
}

/// An item to be worked on. Dropping it says that this is done.
#[derive(Debug)]
pub struct Item<T: QueueItem> {
    value: T,
    queue: WorkQueue<T>,
}

impl<T: QueueItem> Deref for Item<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: QueueItem> Item<T> {
    /// Done, and well.
    pub fn forget(self) {
        self.queue.forget(&self.value);
    }

    /// Done, not well: it comes again after the rate limiter's pause.
    pub fn retry(self) {
        self.queue.add_rate_limited(self.value.clone());
    }
}

impl<T: QueueItem> Drop for Item<T> {
    fn drop(&mut self) {
        let mut state = self.queue.shared.state.lock();
        let now = Instant::now();
        let worked = state.times.finished(&self.value, now);
        state.metrics.finished(worked);
        let is_again = state.core.done(&self.value);
        if is_again {
            state.times.ready(self.value.clone(), now);
            let depth = state.core.len();
            state.metrics.depth(depth);
        }
        drop(state);
        if is_again {
            self.queue.shared.changed.notify_one();
        }
        self.queue.shared.finished.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
