//! The line that tells what is being measured while it is.

use crate::tally::Live;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often the line is written anew.
const TICK: Duration = Duration::from_millis(500);

/// Writes the line until it is dropped. Without a terminal, it is written once for each round.
#[derive(Debug)]
pub(crate) struct Progress(Option<JoinHandle<()>>);

impl Progress {
    /// Begins.
    pub(crate) fn of(what: String, live: Arc<Live>) -> Progress {
        if !std::io::stderr().is_terminal() {
            tell(&format!("{what}\n"));
            return Progress(None);
        }
        Progress(Some(tokio::spawn(async move {
            let mut last = live.read();
            loop {
                tokio::time::sleep(TICK).await;
                let now = live.read();
                let per_second = (now.0 - last.0) as f64 / TICK.as_secs_f64();
                let faults = if now.1 > 0 { format!(", {} errors so far", now.1) } else { String::new() };
                tell(&format!("\r\x1b[K{what}: {per_second:.0}/s{faults}"));
                last = now;
            }
        })))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
            tell("\r\x1b[K");
        }
    }
}

fn tell(text: &str) {
    // a terminal that is gone does not end the measuring
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
