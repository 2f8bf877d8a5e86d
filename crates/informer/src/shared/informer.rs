//! [`SharedInformer`]: one cache, many handlers.

use super::listener::{Listener, Notification, Registration};
use crate::Cached;
use crate::controller::{Applied, POPS_AT_ONCE_MAX, apply_delta};
use crate::fifo::{Popped, Queue, RealFifo};
use crate::handler::ResourceEventHandler;
use crate::lister_watcher::ListerWatcher;
use crate::reflector::{Reflector, ReflectorConfig};
use crate::store::{Indexer, Item, Lister, Store};
use parking_lot::Mutex;
use pintle_apimachinery::Str;
use pintle_client::Object;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Notifications that may wait for one handler. At the limit the informer waits for the handler, and in time the
/// server for the informer. A handler so slow should hand its work to a queue.
pub const NOTIFICATIONS_MAX: usize = 100_000;

/// How an informer behaves.
#[derive(Clone, Debug, Default)]
pub struct SharedInformerOptions {
    /// How often handlers that do not say otherwise are shown every object again; `None` for never.
    pub resync_period: Option<Duration>,
    /// How the reflector behaves. Its own `resync_period` does not count here.
    pub reflector: ReflectorConfig,
}

/// A cache of one kind of objects that follows a server, and tells its handlers of every change.
///
/// # What is promised
///
/// * **Eventual.** When the collection rests and the server can be reached, the cache becomes equal to it.
/// * **Never back.** The states that the cache shows of one object are a subsequence of the states that the object
///   had: some may be skipped, none comes after a later one.
/// * **Snapshot.** A query of the cache is answered from one state of it.
/// * **Told after the fact.** Handlers hear of a change after the cache and its indices have it; the cache may be
///   further by then. Each handler hears of every change of the cache, one at a time, those about one object in order.
///   A handler that comes later first hears of everything that is in the cache as additions.
///
/// # What is not
///
/// * An order between different objects, or between different informers.
/// * Every state: what happens while a watch is down is seen as its result. A deletion that was missed is told with
///   the last state known ([`Deleted::FinalStateUnknown`]); an object deleted and made again is told as an update with
///   another uid.
/// * That the cache holds what was just written: it holds it when the watch has brought it.
///
/// Cheap to clone; all clones are the same informer.
pub struct SharedInformer<K> {
    shared: Arc<Shared<Cached<K>>>,
}

impl<K> Clone for SharedInformer<K> {
    fn clone(&self) -> SharedInformer<K> {
        SharedInformer { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Object> std::fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedInformer")
            .field("indexer", &self.shared.indexer)
            .field("has_synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}

struct Shared<T> {
    indexer: Indexer<T>,
    queue: Arc<RealFifo<T>>,
    reflector: Reflector<T>,
    options: SharedInformerOptions,
    /// Locked while a change goes into the cache and out to the handlers, and while a handler is added: a new handler
    /// hears of each object once. Taken after the queue's lock, never before it.
    listeners: Mutex<Vec<Arc<Listener<T>>>>,
    /// Counts the handlers that were added.
    joined: watch::Sender<u64>,
    synced: watch::Sender<bool>,
    is_started: AtomicBool,
    is_stopped: AtomicBool,
}

impl<K: Object> SharedInformer<K> {
    /// An informer over `source`, which is usually a [`ListWatch`](crate::ListWatch). Nothing runs before
    /// [`run`](SharedInformer::run).
    pub fn new(source: impl ListerWatcher<Cached<K>>) -> SharedInformer<K> {
        SharedInformer::with_options(source, SharedInformerOptions::default())
    }

    /// An informer that behaves as told.
    pub fn with_options(source: impl ListerWatcher<Cached<K>>, options: SharedInformerOptions) -> SharedInformer<K> {
        let indexer = Indexer::new();
        let queue = Arc::new(RealFifo::new(Arc::new(indexer.clone())));
        let config = ReflectorConfig { resync_period: None, ..options.reflector.clone() };
        let store: Arc<dyn Store<Cached<K>>> = Arc::<RealFifo<Cached<K>>>::clone(&queue);
        let shared = Shared {
            reflector: Reflector::new(Arc::new(source), store, config),
            indexer,
            queue,
            options,
            listeners: Mutex::new(Vec::new()),
            joined: watch::Sender::new(0),
            synced: watch::Sender::new(false),
            is_started: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        };
        SharedInformer { shared: Arc::new(shared) }
    }

    /// Adds a handler, before or after the informer starts. It is resynced with the informer's period.
    pub fn add_event_handler(&self, handler: impl ResourceEventHandler<Cached<K>>) -> Registration<Cached<K>> {
        self.add_event_handler_with_resync_period(handler, self.shared.options.resync_period)
    }

    /// Adds a handler that is shown every object again after each `resync_period`; `None` for never.
    pub fn add_event_handler_with_resync_period(
        &self,
        handler: impl ResourceEventHandler<Cached<K>>,
        resync_period: Option<Duration>,
    ) -> Registration<Cached<K>> {
        let listener = Arc::new(Listener::new(Box::new(handler), resync_period));
        let mut listeners = self.shared.listeners.lock();
        for object in self.shared.indexer.list() {
            listener.push(Notification::Add(object, true));
        }
        if *self.shared.synced.borrow() {
            listener.push_synced();
        }
        listeners.push(Arc::clone(&listener));
        drop(listeners);
        self.shared.joined.send_modify(|n_joined| *n_joined += 1);
        Registration { listener }
    }

    /// Takes a handler away. It hears nothing more, except for the call that may be under way. Does nothing the second
    /// time.
    pub fn remove_event_handler(&self, registration: &Registration<Cached<K>>) {
        registration.listener.remove();
        self.shared.listeners.lock().retain(|listener| !Arc::ptr_eq(listener, &registration.listener));
    }

    /// Adds an index, before or after the informer starts. An index of the same name is replaced.
    pub fn add_index(&self, name: &str, func: impl Fn(&Cached<K>) -> Vec<Str> + Send + Sync + 'static) {
        self.shared.indexer.add_index(name, func);
    }

    /// The cache, to read.
    pub fn lister(&self) -> Lister<Cached<K>> {
        Lister::new(self.shared.indexer.clone())
    }

    /// Whether the first list is in the cache. A handler may be behind: see [`Registration::has_synced`].
    pub fn has_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Waits until the first list is in the cache. For ever, if the informer never runs.
    pub async fn synced(&self) {
        let mut synced = self.shared.synced.subscribe();
        // the sender lives as long as this informer: no error can come
        let _ = synced.wait_for(|is_synced| *is_synced).await;
    }

    /// The version up to which the informer has heard.
    pub fn last_sync_resource_version(&self) -> String {
        self.shared.reflector.last_sync_resource_version()
    }

    /// Whether the informer has run and ended. It does not run again.
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopped.load(Ordering::Relaxed)
    }

    /// Follows the server until `stop`. The second run of an informer returns at once.
    pub async fn run(&self, stop: CancellationToken) {
        if self.shared.is_started.swap(true, Ordering::Relaxed) {
            tracing::warn!("an informer was started twice");
            return;
        }
        let shared = &self.shared;
        tokio::select! {
            () = stop.cancelled() => {}
            () = shared.reflector.run(CancellationToken::new()) => {}
            () = shared.process_all() => {}
            () = shared.resync_all() => {}
            () = shared.handle_all() => {}
        }
        shared.queue.close();
        shared.is_stopped.store(true, Ordering::Relaxed);
    }
}

impl<T: Item> Shared<T> {
    /// Moves changes from the queue into the cache and on to the handlers.
    async fn process_all(&self) {
        let mut n_pops = 0;
        loop {
            let arrived = self.queue.arrived();
            let popped = self.queue.try_pop(&mut |deltas, is_in_initial_list| {
                let mut listeners = self.listeners.lock();
                listeners.retain(|listener| !listener.is_removed());
                for delta in &deltas {
                    distribute(&listeners, apply_delta(&self.indexer, delta), is_in_initial_list);
                }
                Ok(())
            });
            if !*self.synced.borrow() && self.queue.has_synced() {
                let listeners = self.listeners.lock();
                self.synced.send_replace(true);
                listeners.iter().for_each(|listener| listener.push_synced());
            }
            match popped {
                Popped::Processed(..) => {
                    n_pops += 1;
                    if n_pops % POPS_AT_ONCE_MAX == 0 {
                        self.wait_for_slow_handlers().await;
                        tokio::task::yield_now().await;
                    }
                }
                Popped::Empty => arrived.await,
                Popped::Closed => return,
            }
        }
    }

    async fn wait_for_slow_handlers(&self) {
        loop {
            let slow = self.listeners.lock().iter().find(|listener| listener.n_waiting() > NOTIFICATIONS_MAX).cloned();
            let Some(slow) = slow else { return };
            let handled = slow.handled.notified();
            if slow.n_waiting() > NOTIFICATIONS_MAX {
                handled.await;
            }
        }
    }

    /// Shows handlers every object again when their time has come.
    async fn resync_all(&self) {
        let mut joined = self.joined.subscribe();
        loop {
            let next = self.listeners.lock().iter().filter_map(|listener| listener.next_resync()).min();
            let Some(next) = next else {
                // the sender is in `self`: no error can come
                let _ = joined.changed().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                _ = joined.changed() => continue,
            }
            let now = Instant::now();
            let listeners = self.listeners.lock().clone();
            let n_due = listeners.iter().filter(|listener| listener.begin_resync(now)).count();
            if n_due > 0 {
                self.queue.resync();
            }
        }
    }

    /// Runs every handler in a task of its own, also those that come later.
    async fn handle_all(&self) {
        // dropped with this future: the tasks end with the informer
        let mut tasks = JoinSet::new();
        let mut running: Vec<Arc<Listener<T>>> = Vec::new();
        let mut joined = self.joined.subscribe();
        loop {
            let listeners = self.listeners.lock().clone();
            for listener in &listeners {
                if !running.iter().any(|other| Arc::ptr_eq(other, listener)) {
                    let listener = Arc::clone(listener);
                    tasks.spawn(async move { listener.run().await });
                }
            }
            running = listeners;
            tokio::select! {
                _ = joined.changed() => {}
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended && error.is_panic() {
                        tracing::error!(%error, "a handler panicked and hears nothing more");
                    }
                }
            }
        }
    }
}

/// Tells the handlers what a change was, each through its own queue.
fn distribute<T: Item>(listeners: &[Arc<Listener<T>>], applied: Applied<'_, T>, is_in_initial_list: bool) {
    match applied {
        Applied::Added(object) => {
            listeners.iter().for_each(|l| l.push(Notification::Add(object.clone(), is_in_initial_list)));
        }
        Applied::Updated(old, new) => {
            // an object as it was is news only for those who asked to see it again
            let is_resync = old.resource_version() == new.resource_version();
            for listener in listeners.iter().filter(|listener| !is_resync || listener.is_syncing()) {
                listener.push(Notification::Update(old.clone(), new.clone()));
            }
        }
        Applied::Deleted(deleted) => {
            listeners.iter().for_each(|l| l.push(Notification::Delete(deleted.clone())));
        }
        Applied::Nothing => {}
    }
}

#[cfg(test)]
mod tests;
