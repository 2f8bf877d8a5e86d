//! What tests of this store and of what stands on it need: directories that vanish and a wall clock that follows the
//! runtime's clock, paused or not.

use jiff::Timestamp;
use pintle_apimachinery::env::{Env, SeededIds, WallClock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// A fresh directory that is removed with this value.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// A fresh directory.
    ///
    /// # Panics
    /// When it cannot be made.
    #[expect(clippy::new_without_default, reason = "it makes a directory: nothing to be done in passing")]
    pub fn new() -> TempDir {
        static N_MADE: AtomicU64 = AtomicU64::new(0);
        let n = N_MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pintle-test-{}-{n}", std::process::id()));
        let made = std::fs::create_dir_all(&path);
        assert!(made.is_ok(), "cannot make {}: {made:?}", path.display());
        TempDir { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What cannot be removed stays for whoever cleans the machine.
        drop(std::fs::remove_dir_all(&self.path));
    }
}

/// A wall clock that runs with the runtime's clock.
#[derive(Debug)]
pub struct RuntimeClock {
    base: Timestamp,
    started: Instant,
}

impl RuntimeClock {
    /// A world whose wall clock shows `base` now and whose dice follow from `seed`.
    pub fn env(seed: u64, base: Timestamp) -> Env {
        let clock = RuntimeClock { base, started: Instant::now() };
        Env { clock: Arc::new(clock), ids: Arc::new(SeededIds::new(seed)) }
    }
}

impl WallClock for RuntimeClock {
    fn now(&self) -> Timestamp {
        let elapsed: Duration = self.started.elapsed();
        self.base.checked_add(elapsed).unwrap_or(self.base)
    }
}
