//! How a store is to behave.

use std::time::Duration;

/// How a store is to behave. The defaults suit a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long history is kept: exact reads and watches may go back so far, unless one of the limits below is reached
    /// first. Zero forgets at once.
    pub history_time: Duration,
    /// Revisions of history; older ones are forgotten as new ones come. One takes 16 bytes of memory, a superseded
    /// version 24 more.
    pub history_events_max: u64,
    /// Bytes of history on disk; older revisions are forgotten as new ones come.
    pub history_bytes_max: u64,
    /// Bytes of one segment file. A store has at least two: one that is written, one prepared to be next.
    pub segment_bytes: u64,
    /// What writes to the disk.
    pub runner: Runner,
}

/// What writes to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// A thread of its own, so that nobody else waits for the disk.
    Thread,
    /// A task of the runtime. For simulated disks, which take no time: everything happens in an order that follows from
    /// the test.
    Task,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            history_time: Duration::from_secs(600),
            history_events_max: 1_000_000,
            history_bytes_max: 512 << 20,
            segment_bytes: 64 << 20,
            runner: Runner::Thread,
        }
    }
}

impl Options {
    /// For a simulated disk: small segments, so that they fill, and no thread.
    pub fn simulated() -> Options {
        Options { segment_bytes: 256 << 10, runner: Runner::Task, ..Options::default() }
    }
}
