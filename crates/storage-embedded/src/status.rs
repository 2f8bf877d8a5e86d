//! Where a store stands, for people.

use crate::disk::RealDisk;
use crate::error::OpenError;
use crate::index::Index;
use crate::recovery::read_format;
use pintle_storage::Revision;
use std::path::Path;

/// Where a store stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The newest revision.
    pub revision: Revision,
    /// History begins here.
    pub compacted: Revision,
    /// Keys that are there.
    pub n_keys: usize,
    /// Segment files.
    pub n_segments: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// Bytes of records that are needed: for the keys that are there and for history.
    pub needed_bytes: u64,
    /// Why the store takes no writes, if it does not.
    pub read_only: Option<String>,
}

impl Status {
    pub(crate) fn of(index: &Index) -> Status {
        Status {
            revision: index.revision(),
            compacted: index.compacted(),
            n_keys: index.n_live(),
            n_segments: index.segments().count(),
            bytes: index.segments().map(|state| state.used_bytes).sum(),
            needed_bytes: index.segments().map(|state| state.needed_bytes).sum(),
            read_only: None,
        }
    }
}

/// Where the store in a directory stands, whether somebody has it open or not. Changes nothing.
///
/// # Errors
/// As [`crate::EmbeddedStore::open`], but never `InUse`; `NotAStore` for an empty directory.
pub fn status(directory: impl AsRef<Path>) -> Result<Status, OpenError> {
    let directory = directory.as_ref();
    let disk = RealDisk::existing(directory).map_err(OpenError::io(format!("open {}", directory.display())))?;
    let id = read_format(&disk)?.ok_or_else(|| OpenError::NotAStore { name: "it is empty".to_owned() })?;
    Ok(Status::of(&crate::backup::look(&disk, id)?))
}
