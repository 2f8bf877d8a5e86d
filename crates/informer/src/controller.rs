//! [`Controller`]: a reflector, the queue that it fills, and who processes what comes out; and [`new_informer`], the
//! simplest informer.

use crate::fifo::{Deleted, Delta, Popped, ProcessError, Queue, RealFifo};
use crate::handler::ResourceEventHandler;
use crate::lister_watcher::ListerWatcher;
use crate::reflector::{Reflector, ReflectorConfig};
use crate::store::{Indexer, Item, Lister, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Changes processed before other tasks get their turn.
pub(crate) const POPS_AT_ONCE_MAX: usize = 256;

/// Processes the changes of one object. Called with the queue locked: it must be quick and must not use the queue.
pub type ProcessFunc<T> = Box<dyn Fn(&[Delta<T>], bool) -> Result<(), ProcessError> + Send + Sync>;

/// Moves changes from a source through a queue to a process function.
pub struct Controller<T> {
    queue: Arc<dyn Queue<T>>,
    reflector: Reflector<T>,
    process: ProcessFunc<T>,
    retries_on_error: bool,
}

impl<T> std::fmt::Debug for Controller<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("reflector", &self.reflector).finish_non_exhaustive()
    }
}

impl<T: Item> Controller<T> {
    /// Reflects `source` into `queue` and processes what comes out. `retries_on_error`: changes that could not be
    /// processed go into the queue again, unless the object has newer ones.
    pub fn new<Q: Queue<T> + 'static>(
        source: Arc<dyn ListerWatcher<T>>,
        queue: Arc<Q>,
        config: ReflectorConfig,
        process: ProcessFunc<T>,
        retries_on_error: bool,
    ) -> Controller<T> {
        let store: Arc<dyn Store<T>> = Arc::<Q>::clone(&queue);
        let reflector = Reflector::new(source, store, config);
        Controller { queue, reflector, process, retries_on_error }
    }

    /// Runs until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = self.reflector.run(stop) => {}
            () = self.process_all() => {}
        }
        self.queue.close();
    }

    async fn process_all(&self) {
        let mut n_pops = 0;
        loop {
            let arrived = self.queue.arrived();
            let mut kept: Option<Vec<Delta<T>>> = None;
            let popped = self.queue.try_pop(&mut |deltas, is_in_initial_list| {
                let result = (self.process)(&deltas, is_in_initial_list);
                if result.is_err() && self.retries_on_error {
                    kept = Some(deltas);
                }
                result
            });
            match popped {
                Popped::Processed(name, result) => {
                    if let Err(error) = result {
                        tracing::warn!(object = %name, %error, "a change could not be processed");
                    }
                    if let Some(deltas) = kept {
                        self.queue.add_if_not_present(deltas);
                    }
                    n_pops += 1;
                    if n_pops % POPS_AT_ONCE_MAX == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                Popped::Empty => arrived.await,
                Popped::Closed => return,
            }
        }
    }

    /// Whether the first list has been processed.
    pub fn has_synced(&self) -> bool {
        self.queue.has_synced()
    }

    /// The version up to which the queue was told.
    pub fn last_sync_resource_version(&self) -> String {
        self.reflector.last_sync_resource_version()
    }
}

/// A cache of `source`, and the controller that fills it and calls `handler`, each change in turn.
///
/// For one handler that is quick. [`SharedInformer`](crate::SharedInformer) serves several, each at its own pace.
pub fn new_informer<T: Item>(
    source: Arc<dyn ListerWatcher<T>>,
    resync_period: Option<Duration>,
    handler: impl ResourceEventHandler<T>,
) -> (Lister<T>, Controller<T>) {
    let indexer = Indexer::new();
    let config = ReflectorConfig { resync_period, ..ReflectorConfig::default() };
    let queue = Arc::new(RealFifo::new(Arc::new(indexer.clone())));
    let cache = indexer.clone();
    let process: ProcessFunc<T> = Box::new(move |deltas, is_in_initial_list| {
        for delta in deltas {
            match apply_delta(&cache, delta) {
                Applied::Added(object) => handler.on_add(object, is_in_initial_list),
                Applied::Updated(old, new) => handler.on_update(&old, new),
                Applied::Deleted(deleted) => handler.on_delete(deleted),
                Applied::Nothing => {}
            }
        }
        Ok(())
    });
    (Lister::new(indexer), Controller::new(source, queue, config, process, false))
}

/// What a change was for a cache.
pub(crate) enum Applied<'a, T> {
    Added(&'a T),
    Updated(T, &'a T),
    Deleted(&'a Deleted<T>),
    /// A deletion of what was not there: whoever never heard of the object does not hear of its end.
    Nothing,
}

/// Puts a change into a cache and says what it was for the cache.
pub(crate) fn apply_delta<'a, T: Item>(cache: &Indexer<T>, delta: &'a Delta<T>) -> Applied<'a, T> {
    match delta {
        Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) | Delta::Sync(object) => {
            match cache.insert(object.clone()) {
                Some(old) => Applied::Updated(old, object),
                None => Applied::Added(object),
            }
        }
        Delta::Deleted(deleted) => match cache.remove(&deleted.object().object_name()) {
            Some(_) => Applied::Deleted(deleted),
            None => Applied::Nothing,
        },
    }
}
