//! The watch cache: a `Storage` over a `Storage` that serves one resource from memory.
//!
//! ```text
//!  back end --list, then watch--> feeder --> State: all records, the window of recent events, how far that goes
//!                                   |          (immutable; replaced as a whole; readers never lock)
//!                                   v
//!                                buckets: who is concerned by an event: everybody / a namespace / a trigger value
//!                                   |
//!                                   v
//!                                watchers: a place in the window each, woken when there is something for them
//! ```
//!
//! Lists and watches come from memory, and so do gets that may be old, or that the cache is known to be new enough for.
//! Writes and other gets go to the back end.
//!
//! # Reading what was written
//! A write is answered when the back end has it, which may be before the cache has it. A read of [`At::Latest`] waits for
//! the cache instead: it learns from the back end how far the newest change is ([`Storage::newest`], without waiting, or
//! [`Storage::current_revision`]) and answers from a state that has it. So a client that was told of its write finds it,
//! and writers never wait for caches.
//!
//! # Slow watchers
//! Nothing ever waits for a watcher: an event is put into the window once, whoever is concerned is woken, and each reads
//! the window at its own pace. A watcher that falls behind the window is told `Expired`. So there is no budget of time to
//! be shared among slow watchers, as upstream needs, which sends to a channel of each.
//!
//! [`At::Latest`]: pintle_storage::At::Latest
//! [`Storage::newest`]: pintle_storage::Storage::newest
//! [`Storage::current_revision`]: pintle_storage::Storage::current_revision

mod backfill;
mod buckets;
mod cache;
mod exact;
mod feeder;
mod lazy;
mod options;
mod state;
mod watcher;
mod window;

pub use cache::{Stats, WatchCache};
pub use lazy::LazyCache;
pub use options::{Indexer, Options};

#[cfg(test)]
mod tests;
