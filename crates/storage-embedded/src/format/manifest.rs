//! The manifest: which segments count, and how far history is compacted. It is replaced as a whole.
//!
//! ```text
//! offset  bytes  what
//!      0      8  "PINTLMAN"
//!      8      4  CRC-32C of the rest
//!     12      4  format version
//!     16     16  store
//!     32      8  revision at which the store stood, at least
//!     40      8  compacted: history before it is forgotten
//!     48      4  next segment number; logs from it on count without being listed
//!     52      4  number of entries
//!     56    n*24 entries: number (4), kind (4: 1 log, 2 base), records (8; 0: not counted), bytes (8; 0: not known)
//! ```

use super::{SegmentKind, SegmentName, StoreId, Take, VERSION};
use crate::error::to_u32;
use pintle_storage::Revision;

const MAGIC: &[u8; 8] = b"PINTLMAN";

/// Which segments count, and how far history is compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) store: StoreId,
    /// The store stood at least here when the manifest was written: segments that knew may be gone.
    pub(crate) revision: Revision,
    pub(crate) compacted: Revision,
    /// Log segments from this number on count without being listed.
    pub(crate) next_number: u32,
    pub(crate) segments: Vec<SegmentEntry>,
}

/// A segment that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    pub(crate) name: SegmentName,
    /// Records in a base segment, which is written once; 0 for logs.
    pub(crate) n_records: u64,
    /// Bytes of a base segment, header included; 0 for logs.
    pub(crate) bytes: u64,
}

impl Manifest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(56 + 24 * self.segments.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.store);
        bytes.extend_from_slice(&self.revision.get().to_le_bytes());
        bytes.extend_from_slice(&self.compacted.get().to_le_bytes());
        bytes.extend_from_slice(&self.next_number.to_le_bytes());
        bytes.extend_from_slice(&to_u32(self.segments.len() as u64).to_le_bytes());
        for segment in &self.segments {
            let kind: u32 = match segment.name.kind {
                SegmentKind::Log => 1,
                SegmentKind::Base => 2,
            };
            bytes.extend_from_slice(&segment.name.number.to_le_bytes());
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&segment.n_records.to_le_bytes());
            bytes.extend_from_slice(&segment.bytes.to_le_bytes());
        }
        let crc = crc32c::crc32c(bytes.get(12..).unwrap_or_default());
        if let Some(place) = bytes.get_mut(8..12) {
            place.copy_from_slice(&crc.to_le_bytes());
        }
        bytes
    }

    /// The manifest, if these bytes are one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Manifest> {
        let mut take = Take(bytes);
        if take.array::<8>()? != *MAGIC || take.u32()? != crc32c::crc32c(take.0) || take.u32()? != VERSION {
            return None;
        }
        let store = take.array()?;
        let revision = Revision::new(take.u64()?)?;
        let compacted = Revision::new(take.u64()?)?;
        let next_number = take.u32()?;
        let n_segments = take.u32()?;
        let mut segments = Vec::new();
        for _ in 0..n_segments {
            let number = take.u32()?;
            let kind = match take.u32()? {
                1 => SegmentKind::Log,
                2 => SegmentKind::Base,
                _ => return None,
            };
            let name = SegmentName { number, kind };
            segments.push(SegmentEntry { name, n_records: take.u64()?, bytes: take.u64()? });
        }
        take.0.is_empty().then_some(Manifest { store, revision, compacted, next_number, segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_as_written() {
        let name = |number, kind| SegmentName { number, kind };
        let manifest = Manifest {
            store: [3; 16],
            revision: Revision::new(99).expect("not 0"),
            compacted: Revision::new(50).expect("not 0"),
            next_number: 8,
            segments: vec![
                SegmentEntry { name: name(7, SegmentKind::Base), n_records: 12, bytes: 3456 },
                SegmentEntry { name: name(6, SegmentKind::Log), n_records: 0, bytes: 0 },
            ],
        };
        let bytes = manifest.encode();
        assert_eq!(bytes.len(), 56 + 2 * 24);
        assert_eq!(Manifest::decode(&bytes).as_ref(), Some(&manifest));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Manifest::decode(&bytes), None, "bit {bit}");
        }
        for n in 0..bytes.len() {
            assert_eq!(Manifest::decode(&bytes[..n]), None, "{n} bytes");
        }
    }
}
