//! What can go wrong in a store, by what the caller is to do about it.

use crate::{Key, Revision};

/// The result of a storage operation.
pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// Why a storage operation did not do what it was asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// The key to be created is there. Nothing was written.
    #[error("{key} exists already, at revision {stored}")]
    AlreadyExists {
        /// The key.
        key: Key,
        /// Where it stands.
        stored: Revision,
    },
    /// The key is not there. Nothing was written.
    #[error("{key} does not exist")]
    NotFound {
        /// The key.
        key: Key,
    },
    /// The key stands at another revision than expected. Nothing was written: read again, then retry.
    #[error("{key} changed: expected revision {expected}, stored {stored}")]
    Conflict {
        /// The key.
        key: Key,
        /// What the caller expected.
        expected: Revision,
        /// Where it stands.
        stored: Revision,
    },
    /// The history asked for is compacted: list again.
    #[error("revision {requested} is compacted: history begins at {compacted}")]
    Expired {
        /// What was asked for.
        requested: Revision,
        /// The oldest revision that can be asked for.
        compacted: Revision,
    },
    /// The revision asked for lies ahead of the store: try again a little later.
    #[error("revision {requested} is ahead of the store, which stands at {current}")]
    Future {
        /// What was asked for.
        requested: Revision,
        /// Where the store stands.
        current: Revision,
    },
    /// The value is larger than the back end takes. Nothing was written.
    #[error("the value of {key} has {bytes} bytes; the store takes at most {bytes_max}")]
    TooLarge {
        /// The key.
        key: Key,
        /// The value's size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The store takes no writes for now (the disk is full, say). Nothing was written; reads still work.
    #[error("the store is read-only: {why}")]
    ReadOnly {
        /// Why, and what would help.
        why: String,
    },
    /// The back end did not answer. A write may or may not have happened.
    #[error("cannot reach the back end: {why}")]
    Unavailable {
        /// What was tried and how it failed.
        why: String,
    },
    /// What is stored cannot be read as what was written.
    #[error("the store is damaged: {what}")]
    Corrupt {
        /// What is damaged and where.
        what: String,
    },
}
