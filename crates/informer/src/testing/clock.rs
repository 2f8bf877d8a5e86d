//! A wall clock that moves with tokio's time, which tests can pause.

use jiff::{SignedDuration, Timestamp};
use pintle_apimachinery::env::{Env, WallClock};
use std::sync::Arc;
use tokio::time::Instant;

/// Shows 2026-01-01 and what has passed of tokio's time since it was made.
#[derive(Debug)]
pub struct TokioClock {
    start: Instant,
}

impl TokioClock {
    /// A clock that starts now.
    pub fn new() -> TokioClock {
        TokioClock { start: Instant::now() }
    }

    /// A world with this clock and the dice of `seed`.
    pub fn env(seed: u64) -> Env {
        Env { clock: Arc::new(TokioClock::new()), ids: Env::seeded(seed).ids }
    }
}

impl Default for TokioClock {
    fn default() -> TokioClock {
        TokioClock::new()
    }
}

impl WallClock for TokioClock {
    fn now(&self) -> Timestamp {
        let epoch = Timestamp::constant(1_767_225_600, 0);
        let passed = SignedDuration::try_from(self.start.elapsed()).unwrap_or(SignedDuration::MAX);
        epoch.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}
