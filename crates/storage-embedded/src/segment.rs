//! Segments as the running store sees them: open files, and reading records out of them.

use crate::disk::{DiskFile, read_exact_at};
use crate::error::to_usize;
use crate::format::{Decoded, Kind, SegmentName, TIMES_OFFSET, Take, decode};
use bytes::Bytes;
use pintle_storage::{Key, Note, Record, Result, Revision, StorageError};
use std::io;
use std::sync::Arc;

/// An open segment file.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) name: SegmentName,
    pub(crate) file: Arc<dyn DiskFile>,
    /// What its checksums begin with.
    pub(crate) seed: u32,
    /// In a log: the revision of its first record.
    pub(crate) first: Revision,
}

/// One version of a key and where it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) revision: Revision,
    /// The segment's number.
    pub(crate) segment: u32,
    /// Offset in the segment, in units of 8 bytes.
    pub(crate) unit: u32,
    /// Length of the record without padding.
    pub(crate) bytes: u32,
    pub(crate) kind: Kind,
    /// Whether the record says when it expires.
    pub(crate) is_mortal: bool,
}

impl Version {
    pub(crate) fn offset(&self) -> u64 {
        u64::from(self.unit) * 8
    }

    pub(crate) fn padded_bytes(&self) -> u64 {
        u64::from(self.bytes).next_multiple_of(8)
    }

    pub(crate) fn is_put(&self) -> bool {
        self.kind == Kind::Put
    }
}

impl Segment {
    /// Reads the record of a version.
    pub(crate) fn read(&self, key: &Key, version: &Version) -> Result<Arc<Record>> {
        let mut buffer = vec![0; to_usize(u64::from(version.bytes))];
        read_exact_at(&*self.file, &mut buffer, version.offset()).map_err(|error| StorageError::Corrupt {
            what: format!("{key} at revision {} cannot be read from {}: {error}", version.revision, self.name),
        })?;
        self.record(key, version, &buffer)
    }

    /// When a record was written and when it expires, in milliseconds since 1970.
    pub(crate) fn times(&self, version: &Version) -> io::Result<(u64, u64)> {
        let mut bytes = [0; 16];
        read_exact_at(&*self.file, &mut bytes, version.offset() + TIMES_OFFSET)?;
        let mut take = Take(&bytes);
        Ok((take.u64().unwrap_or_default(), take.u64().unwrap_or_default()))
    }

    /// The record of a version, of which `bytes` are what is stored.
    pub(crate) fn record(&self, key: &Key, version: &Version, bytes: &[u8]) -> Result<Arc<Record>> {
        let decoded = self.decoded(key, version, bytes)?;
        // A copy of the exact size: a slice would keep the frame, or a whole run of records, in memory.
        let value = Bytes::copy_from_slice(decoded.value);
        Ok(Arc::new(Record { key: key.clone(), revision: version.revision, value, note: Note::default() }))
    }

    fn decoded<'a>(&self, key: &Key, version: &Version, bytes: &'a [u8]) -> Result<Decoded<'a>> {
        let intact = decode(bytes, self.seed)
            .filter(|decoded| decoded.entry.revision == version.revision && decoded.key == key.as_str());
        intact.ok_or_else(|| StorageError::Corrupt {
            what: format!("{key} at revision {} is not at {} of {}", version.revision, version.offset(), self.name),
        })
    }
}
