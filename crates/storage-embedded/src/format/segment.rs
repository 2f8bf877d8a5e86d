//! Names and headers of segment files.

use super::{StoreId, Take, VERSION};
use pintle_storage::Revision;

/// Bytes of the header at the beginning of each segment. Records follow.
pub(crate) const HEADER_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"PINTLSEG";

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// Every revision from the first on, as they were written.
    Log,
    /// What was still needed of older segments when they were rewritten. Counts only if the manifest names it.
    Base,
}

/// The name of a segment file, `00000017.log` or `00000017.base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentName {
    pub(crate) number: u32,
    pub(crate) kind: SegmentKind,
}

impl SegmentName {
    pub(crate) fn parse(name: &str) -> Option<SegmentName> {
        let (number, suffix) = name.split_once('.')?;
        let kind = match suffix {
            "log" => SegmentKind::Log,
            "base" => SegmentKind::Base,
            _ => return None,
        };
        let number = number.parse().ok()?;
        let parsed = SegmentName { number, kind };
        (parsed.to_string() == name).then_some(parsed)
    }
}

impl std::fmt::Display for SegmentName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suffix = match self.kind {
            SegmentKind::Log => "log",
            SegmentKind::Base => "base",
        };
        write!(f, "{:08}.{suffix}", self.number)
    }
}

/// What every checksum in a segment begins with.
pub(crate) fn seed(store: &StoreId, number: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(store), &number.to_le_bytes())
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) store: StoreId,
    pub(crate) number: u32,
    pub(crate) kind: SegmentKind,
    /// In a log: the revision of its first record, whether that is there yet or not.
    pub(crate) first: Revision,
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.store);
        bytes[32..36].copy_from_slice(&self.number.to_le_bytes());
        let kind: u32 = match self.kind {
            SegmentKind::Log => 1,
            SegmentKind::Base => 2,
        };
        bytes[36..40].copy_from_slice(&kind.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first.get().to_le_bytes());
        let crc = crc32c::crc32c_append(seed(&self.store, self.number), &bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header, if these bytes are one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let mut take = Take(bytes);
        if take.array::<8>()? != *MAGIC {
            return None;
        }
        let crc = take.u32()?;
        if take.u32()? != VERSION {
            return None;
        }
        let store: StoreId = take.array()?;
        let number = take.u32()?;
        let kind = match take.u32()? {
            1 => SegmentKind::Log,
            2 => SegmentKind::Base,
            _ => return None,
        };
        let first = Revision::new(take.u64()?)?;
        let is_intact = crc == crc32c::crc32c_append(seed(&store, number), bytes.get(12..)?);
        is_intact.then_some(Header { store, number, kind, first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_written() {
        for (text, number, kind) in
            [("00000017.log", 17, SegmentKind::Log), ("123456789.base", 123_456_789, SegmentKind::Base)]
        {
            let name = SegmentName { number, kind };
            assert_eq!(name.to_string(), text);
            assert_eq!(SegmentName::parse(text), Some(name));
        }
        for text in ["17.log", "00000017.tmp", "x.log", "FORMAT", "00000017.log.tmp", "+0000017.log"] {
            assert_eq!(SegmentName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_header_with_a_wrong_bit_is_none() {
        let header = Header { store: [7; 16], number: 3, kind: SegmentKind::Log, first: Revision::FIRST };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Some(header));
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&bytes), None, "bit {bit}");
        }
        assert_eq!(Header::decode(&bytes[..63]), None);
    }
}
