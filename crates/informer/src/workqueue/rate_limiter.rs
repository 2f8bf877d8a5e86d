//! How long an item waits before it is tried again.

use super::QueueItem;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Decides how long items wait.
pub trait RateLimiter<T>: Send + Sync {
    /// How long `item` waits now. Counts as a failure of it.
    fn when(&mut self, item: &T, now: Instant) -> Duration;

    /// `item` went well, or is given up: nothing is remembered of it.
    fn forget(&mut self, item: &T);

    /// How often `item` failed since it was forgotten.
    fn num_requeues(&self, item: &T) -> usize;
}

/// What controllers use: 5 ms doubling to 1,000 s for each item, and ten a second with bursts of a hundred for all.
pub fn default_controller_rate_limiter<T: QueueItem>() -> Box<dyn RateLimiter<T>> {
    let per_item = ItemExponentialFailureRateLimiter::new(Duration::from_millis(5), Duration::from_secs(1000));
    let overall = BucketRateLimiter::new(10.0, 100);
    Box::new(MaxOfRateLimiter::new(vec![Box::new(per_item), Box::new(overall)]))
}

/// `base * 2^failures`, at most `max`.
#[derive(Debug)]
pub struct ItemExponentialFailureRateLimiter<T> {
    base: Duration,
    max: Duration,
    failures: BTreeMap<T, u32>,
}

impl<T> ItemExponentialFailureRateLimiter<T> {
    /// From `base` doubling to `max`.
    pub fn new(base: Duration, max: Duration) -> ItemExponentialFailureRateLimiter<T> {
        ItemExponentialFailureRateLimiter { base, max, failures: BTreeMap::new() }
    }
}

impl<T: QueueItem> RateLimiter<T> for ItemExponentialFailureRateLimiter<T> {
    fn when(&mut self, item: &T, _now: Instant) -> Duration {
        let failures = self.failures.entry(item.clone()).or_default();
        let factor = 1_u32.checked_shl(*failures);
        *failures = failures.saturating_add(1);
        factor.and_then(|factor| self.base.checked_mul(factor)).unwrap_or(self.max).min(self.max)
    }

    fn forget(&mut self, item: &T) {
        self.failures.remove(item);
    }

    fn num_requeues(&self, item: &T) -> usize {
        self.failures.get(item).map_or(0, |failures| *failures as usize)
    }
}

/// A short wait for the first failures of an item, a long one for those after.
#[derive(Debug)]
pub struct ItemFastSlowRateLimiter<T> {
    fast: Duration,
    slow: Duration,
    n_fast_max: usize,
    failures: BTreeMap<T, usize>,
}

impl<T> ItemFastSlowRateLimiter<T> {
    /// `fast` for the first `n_fast_max` failures, then `slow`.
    pub fn new(fast: Duration, slow: Duration, n_fast_max: usize) -> ItemFastSlowRateLimiter<T> {
        ItemFastSlowRateLimiter { fast, slow, n_fast_max, failures: BTreeMap::new() }
    }
}

impl<T: QueueItem> RateLimiter<T> for ItemFastSlowRateLimiter<T> {
    fn when(&mut self, item: &T, _now: Instant) -> Duration {
        let failures = self.failures.entry(item.clone()).or_default();
        *failures += 1;
        if *failures <= self.n_fast_max { self.fast } else { self.slow }
    }

    fn forget(&mut self, item: &T) {
        self.failures.remove(item);
    }

    fn num_requeues(&self, item: &T) -> usize {
        self.failures.get(item).copied().unwrap_or_default()
    }
}

/// So many a second for all items together, whatever they are.
#[derive(Debug)]
pub struct BucketRateLimiter {
    bucket: Option<pintle_client::RateLimiter>,
}

impl BucketRateLimiter {
    /// `qps` a second on average, `burst` at once; no limit when `qps` is not positive.
    pub fn new(qps: f32, burst: u32) -> BucketRateLimiter {
        BucketRateLimiter { bucket: pintle_client::RateLimiter::new(qps, burst) }
    }
}

impl<T: QueueItem> RateLimiter<T> for BucketRateLimiter {
    fn when(&mut self, _item: &T, now: Instant) -> Duration {
        self.bucket.as_ref().map_or(Duration::ZERO, |bucket| bucket.reserve(now))
    }

    fn forget(&mut self, _item: &T) {}

    fn num_requeues(&self, _item: &T) -> usize {
        0
    }
}

/// The longest wait of several limiters.
pub struct MaxOfRateLimiter<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

impl<T> std::fmt::Debug for MaxOfRateLimiter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MaxOfRateLimiter(of {})", self.limiters.len())
    }
}

impl<T> MaxOfRateLimiter<T> {
    /// The longest wait of these.
    pub fn new(limiters: Vec<Box<dyn RateLimiter<T>>>) -> MaxOfRateLimiter<T> {
        MaxOfRateLimiter { limiters }
    }
}

impl<T: QueueItem> RateLimiter<T> for MaxOfRateLimiter<T> {
    fn when(&mut self, item: &T, now: Instant) -> Duration {
        self.limiters.iter_mut().map(|limiter| limiter.when(item, now)).max().unwrap_or_default()
    }

    fn forget(&mut self, item: &T) {
        self.limiters.iter_mut().for_each(|limiter| limiter.forget(item));
    }

    fn num_requeues(&self, item: &T) -> usize {
        self.limiters.iter().map(|limiter| limiter.num_requeues(item)).max().unwrap_or_default()
    }
}

/// Another limiter's wait, cut at a maximum.
#[derive(Debug)]
pub struct WithMaxWait<L> {
    /// The other.
    pub limiter: L,
    /// The longest wait.
    pub max: Duration,
}

impl<T: QueueItem, L: RateLimiter<T>> RateLimiter<T> for WithMaxWait<L> {
    fn when(&mut self, item: &T, now: Instant) -> Duration {
        self.limiter.when(item, now).min(self.max)
    }

    fn forget(&mut self, item: &T) {
        self.limiter.forget(item);
    }

    fn num_requeues(&self, item: &T) -> usize {
        self.limiter.num_requeues(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(limiter: &mut dyn RateLimiter<&'static str>, item: &'static str, n: usize) -> Vec<u128> {
        let now = Instant::now();
        (0..n).map(|_| limiter.when(&item, now).as_millis()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_limiter() {
        let mut exponential =
            ItemExponentialFailureRateLimiter::new(Duration::from_millis(1), Duration::from_millis(20));
        assert_eq!(waits(&mut exponential, "a", 7), [1, 2, 4, 8, 16, 20, 20]);
        assert_eq!(waits(&mut exponential, "b", 1), [1]);
        assert_eq!(exponential.num_requeues(&"a"), 7);
        exponential.forget(&"a");
        assert_eq!(waits(&mut exponential, "a", 1), [1]);
        assert_eq!(waits(&mut exponential, "c", 200)[199], 20, "no overflow");

        let mut fast_slow = ItemFastSlowRateLimiter::new(Duration::from_millis(5), Duration::from_secs(10), 3);
        assert_eq!(waits(&mut fast_slow, "a", 5), [5, 5, 5, 10_000, 10_000]);

        let bucket = BucketRateLimiter::new(10.0, 2);
        let mut max_of = MaxOfRateLimiter::new(vec![
            Box::new(ItemFastSlowRateLimiter::new(Duration::from_millis(5), Duration::from_millis(150), 3)),
            Box::new(bucket),
        ]);
        assert_eq!(waits(&mut max_of, "a", 5), [5, 5, 100, 200, 300]);
        let mut capped = WithMaxWait { limiter: max_of, max: Duration::from_millis(250) };
        assert_eq!(waits(&mut capped, "a", 1), [250]);
    }
}
