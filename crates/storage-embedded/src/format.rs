//! The bytes on disk: segment headers, records, the manifest. `docs/storage-format.md` describes the same in prose.
//!
//! All numbers are little-endian. Every piece carries a CRC-32C that is seeded with the store and the file it belongs to,
//! so that a piece in the wrong place does not pass for one in the right place.

mod manifest;
mod record;
mod segment;

pub(crate) use manifest::{Manifest, SegmentEntry};
pub(crate) use record::{
    Decoded, Entry, FRAME_BYTES, KEY_BYTES_MAX, Kind, TIMES_OFFSET, claimed_bytes, decode, encode, frame_bytes, padded,
};
pub(crate) use segment::{HEADER_BYTES, Header, SegmentKind, SegmentName, seed};

/// The version of everything in the directory. A store refuses a directory of another version.
pub(crate) const VERSION: u32 = 1;

/// Identifies one store: pieces of another are not taken for its own.
pub(crate) type StoreId = [u8; 16];

/// Takes numbers off the front of bytes; `None` when they end.
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    pub(crate) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N).and_then(|bytes| bytes.try_into().ok())
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
