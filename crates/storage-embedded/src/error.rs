//! Why a store cannot be opened, and small conversions.

use std::io;

/// Why a data directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the directory.
    #[error("the data directory is in use by another process")]
    InUse,
    /// The directory holds something else.
    #[error("the data directory holds files that are not a store's ({name}); give an empty one")]
    NotAStore {
        /// One of the files.
        name: String,
    },
    /// The directory was written by another version of this program.
    #[error("the data directory has format {found}, this program reads format {expected}: use the matching version")]
    Format {
        /// What the FORMAT file says.
        found: String,
        /// What this program reads.
        expected: u32,
    },
    /// What was acknowledged cannot be read any more.
    #[error(
        "the store is damaged: {what}; `pintle storage check` tells more, `pintle storage repair` keeps what is intact"
    )]
    Corrupt {
        /// Which file is damaged where, and what is lost.
        what: String,
    },
    /// The operating system refuses something.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: String,
        /// How it failed.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
        let action = action.into();
        move |source| OpenError::Io { action, source }
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> OpenError {
        OpenError::Corrupt { what: what.into() }
    }
}

/// A size or count that is bounded far below 2^32 where it is made; saturates rather than wraps.
pub(crate) fn to_u32(n: u64) -> u32 {
    debug_assert!(u32::try_from(n).is_ok(), "{n}");
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A size in memory; saturates where addresses are short.
pub(crate) fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
