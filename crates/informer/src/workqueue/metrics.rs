//! Counting what a queue does.

use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Hears what a queue does: the numbers that client-go exports under `workqueue_*`. Called with the queue locked.
pub trait Metrics: Send + Sync {
    /// `workqueue_adds_total`: something was added, waiting already or not.
    fn added(&self);
    /// `workqueue_depth`: so many items are ready.
    fn depth(&self, n_ready: usize);
    /// `workqueue_queue_duration_seconds`: an item was taken out after it was ready for so long.
    fn started(&self, waited: Duration);
    /// `workqueue_work_duration_seconds`: an item was done after so long.
    fn finished(&self, worked: Duration);
    /// `workqueue_retries_total`: something was added with a pause.
    fn retried(&self);
}

/// Makes the metrics of queues by their names.
pub trait MetricsProvider: Send + Sync {
    /// The metrics of the queue `name`.
    fn metrics(&self, name: &str) -> Box<dyn Metrics>;
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMetrics;

impl Metrics for NoMetrics {
    fn added(&self) {}
    fn depth(&self, _n_ready: usize) {}
    fn started(&self, _waited: Duration) {}
    fn finished(&self, _worked: Duration) {}
    fn retried(&self) {}
}

impl MetricsProvider for NoMetrics {
    fn metrics(&self, _name: &str) -> Box<dyn Metrics> {
        Box::new(NoMetrics)
    }
}

/// Since when items are ready or worked on.
#[derive(Debug)]
pub(super) struct Times<T> {
    ready_since: BTreeMap<T, Instant>,
    working_since: BTreeMap<T, Instant>,
}

impl<T> Default for Times<T> {
    fn default() -> Times<T> {
        Times { ready_since: BTreeMap::new(), working_since: BTreeMap::new() }
    }
}

impl<T: Ord + Clone> Times<T> {
    pub(super) fn ready(&mut self, item: T, now: Instant) {
        self.ready_since.entry(item).or_insert(now);
    }

    pub(super) fn started(&mut self, item: &T, now: Instant) -> Duration {
        self.working_since.insert(item.clone(), now);
        self.ready_since.remove(item).map_or(Duration::ZERO, |since| now - since)
    }

    pub(super) fn finished(&mut self, item: &T, now: Instant) -> Duration {
        self.working_since.remove(item).map_or(Duration::ZERO, |since| now - since)
    }
}
