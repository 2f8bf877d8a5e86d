//! Work queues: what is to be done, each thing once at a time.
//!
//! A [`WorkQueue`] is **fair** (first come, first served), **stingy** (what is added several times before it is taken
//! out is done once), safe for **many workers** (one thing is never done by two at once; what is added meanwhile is
//! done afterwards) and can be **shut down**.

mod core;
mod metrics;
mod queue;
mod rate_limiter;
mod run;

pub use metrics::{Metrics, MetricsProvider, NoMetrics};
pub use queue::{Item, WorkQueue, WorkQueueOptions};
pub use rate_limiter::{
    BucketRateLimiter, ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter, MaxOfRateLimiter, RateLimiter,
    WithMaxWait, default_controller_rate_limiter,
};
pub use run::{Action, run_workers};

/// What can wait in a queue.
pub trait QueueItem: Clone + Ord + Send + Sync + std::fmt::Debug + 'static {}

impl<T: Clone + Ord + Send + Sync + std::fmt::Debug + 'static> QueueItem for T {}
