//! The embedded store: an append-only log with group commit, history and recovery. `docs/storage-format.md` draws its
//! bytes, `docs/adr/0001-embedded-log-engine.md` says why it is our own.
//!
//! ```text
//! create/update/delete --> queue --> writer: check, append, one sync for all that wait
//!                                      |
//!                                      v  publish: index, watchers, answers
//! get/list/watch <-- index (in memory) + segments (on disk)
//!                                      ^
//!                    maintenance: forget old history, rewrite segments, prepare the next one
//! ```
//!
//! One thread writes, so preconditions need no locks; whoever reads takes locations from the index and reads the
//! segments itself. A record is durable before anybody can see it.

mod backup;
mod bases;
mod commit;
mod disk;
mod error;
mod expiry;
mod format;
mod index;
mod maintenance;
mod options;
mod reader;
mod recovery;
mod repair;
mod segment;
mod shared;
mod status;
mod store;
pub mod testing;
mod watchers;

pub use backup::{Done, RestoreOptions, SnapshotStatus, restore, save, snapshot_status};
pub use disk::{Disk, DiskFile, Fault, RealDisk, SimDisk};
pub use error::OpenError;
pub use options::{Options, Runner};
pub use repair::{Damage, Repaired, check, repair};
pub use status::{Status, status};
pub use store::EmbeddedStore;

#[cfg(test)]
mod tests;
