//! Working through a queue with several workers.

use super::{QueueItem, WorkQueue};
use std::future::Future;
use std::time::Duration;
use tokio::task::JoinSet;

/// What is to become of an item whose work went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing until it is added again.
    Done,
    /// It comes again after this long, changed or not.
    RequeueAfter(Duration),
}

/// Works through `queue` with `n_workers` at once until the queue is shut down and empty.
///
/// `reconcile` does the work of one item. When it fails, the item comes again after the rate limiter's pause, longer
/// each time; when it goes well, the rate limiter forgets the item. Dropping the future stops the workers where they
/// are.
pub async fn run_workers<T, F, Fut, E>(queue: &WorkQueue<T>, n_workers: usize, reconcile: F)
where
    T: QueueItem,
    F: Fn(T) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Action, E>> + Send,
    E: std::fmt::Display + Send,
{
    let mut workers = JoinSet::new();
    for _ in 0..n_workers.max(1) {
        let (queue, reconcile) = (queue.clone(), reconcile.clone());
        workers.spawn(async move {
            while let Some(item) = queue.get().await {
                let result = reconcile(T::clone(&item)).await;
                conclude(&queue, &item, result);
            }
        });
    }
    while let Some(ended) = workers.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(queue = queue.name(), %error, "a worker panicked");
        }
    }
}

fn conclude<T: QueueItem, E: std::fmt::Display>(queue: &WorkQueue<T>, item: &T, result: Result<Action, E>) {
    match result {
        Ok(Action::Done) => queue.forget(item),
        Ok(Action::RequeueAfter(pause)) => {
            queue.forget(item);
            queue.add_after(item.clone(), pause);
        }
        Err(error) => {
            let n_failures = queue.num_requeues(item) + 1;
            tracing::warn!(queue = queue.name(), ?item, n_failures, %error, "it will be tried again");
            queue.add_rate_limited(item.clone());
        }
    }
}
