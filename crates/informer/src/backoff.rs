//! Growing pauses between attempts.

use pintle_apimachinery::env::IdSource;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How pauses grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffConfig {
    /// The first pause.
    pub base: Duration,
    /// The longest pause, before jitter.
    pub max: Duration,
    /// Each pause is so many times the one before.
    pub factor: f64,
    /// Each pause is prolonged by up to so many times itself, so that many clients do not come back together.
    pub jitter: f64,
    /// After so long without asking for a pause the next one is the first again.
    pub reset_after: Duration,
}

impl BackoffConfig {
    /// What client-go's reflector uses: 0.8 to 30 s doubling, full jitter, reset after two minutes.
    pub const REFLECTOR: BackoffConfig = BackoffConfig {
        base: Duration::from_millis(800),
        max: Duration::from_secs(30),
        factor: 2.0,
        jitter: 1.0,
        reset_after: Duration::from_secs(120),
    };
}

/// Growing pauses with jitter.
#[derive(Clone, Debug)]
pub struct Backoff {
    config: BackoffConfig,
    next: Duration,
    last_at: Option<Instant>,
    ids: Arc<dyn IdSource>,
}

impl Backoff {
    /// Pauses by `config`, jitter from `ids`.
    pub fn new(config: BackoffConfig, ids: Arc<dyn IdSource>) -> Backoff {
        Backoff { next: config.base, config, last_at: None, ids }
    }

    /// The pause to make now.
    pub fn next(&mut self, now: Instant) -> Duration {
        if self.last_at.is_some_and(|at| now.saturating_duration_since(at) > self.config.reset_after) {
            self.next = self.config.base;
        }
        self.last_at = Some(now);
        let pause = self.next;
        self.next = pause.mul_f64(self.config.factor).min(self.config.max);
        jittered(pause, self.config.jitter, self.ids.as_ref())
    }

    /// Things go well: the next pause is the first again.
    pub fn reset(&mut self) {
        self.next = self.config.base;
    }
}

/// `pause` prolonged by up to `jitter` times itself.
pub(crate) fn jittered(pause: Duration, jitter: f64, ids: &dyn IdSource) -> Duration {
    const SCALE: f64 = (1_u64 << 32) as f64;
    let share = f64::from(u32::try_from(ids.random_u64() >> 32).unwrap_or_default()) / SCALE;
    pause + pause.mul_f64(share * jitter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::env::Env;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_and_start_over() {
        let config = BackoffConfig { jitter: 0.0, ..BackoffConfig::REFLECTOR };
        let mut backoff = Backoff::new(config, Env::seeded(1).ids);
        let start = Instant::now();
        let pauses: Vec<u128> = (0..8).map(|_| backoff.next(start).as_millis()).collect();
        assert_eq!(pauses, [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        assert_eq!(backoff.next(start + Duration::from_secs(121)).as_millis(), 800);
        let jittered = Backoff::new(BackoffConfig::REFLECTOR, Env::seeded(1).ids).next(start);
        assert!(jittered >= Duration::from_millis(800) && jittered <= Duration::from_millis(1600));
    }
}
