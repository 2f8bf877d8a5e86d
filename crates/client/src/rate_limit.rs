//! The client's own limit on requests: a token bucket, in the order of arrival.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Lets through `qps` requests a second on average and `burst` at once; the others wait their turn.
#[derive(Debug)]
pub struct RateLimiter {
    interval: Duration,
    burst: u32,
    /// When the bucket would be full if nothing more came.
    full_at: Mutex<Option<Instant>>,
}

impl RateLimiter {
    /// A limiter; `None` when `qps` is not positive.
    pub fn new(qps: f32, burst: u32) -> Option<RateLimiter> {
        let interval = Duration::try_from_secs_f32(1.0 / qps).ok().filter(|interval| !interval.is_zero())?;
        Some(RateLimiter { interval, burst: burst.max(1), full_at: Mutex::new(None) })
    }

    /// Takes a place and says how long to wait for it.
    pub fn reserve(&self, now: Instant) -> Duration {
        let mut full_at = self.full_at.lock();
        let start = full_at.map_or(now, |at| at.max(now));
        let next = start + self.interval;
        *full_at = Some(next);
        // a request may go once the bucket lacks no more than `burst` tokens
        (next - now).saturating_sub(self.interval * self.burst)
    }

    /// Waits for this request's turn.
    pub async fn wait(&self) {
        let delay = self.reserve(Instant::now());
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_then_the_rate() {
        let limiter = RateLimiter::new(10.0, 3).unwrap();
        let start = Instant::now();
        let waits: Vec<u128> = (0..5).map(|_| limiter.reserve(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let later = start + Duration::from_secs(10);
        assert_eq!((0..4).map(|_| limiter.reserve(later).as_millis()).collect::<Vec<_>>(), [0, 0, 0, 100]);
        assert!(RateLimiter::new(0.0, 1).is_none());
    }
}
