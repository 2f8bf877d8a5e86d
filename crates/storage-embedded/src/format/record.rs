//! Records: one change of one key each.
//!
//! ```text
//! offset  bytes  what
//!      0      4  CRC-32C of the rest, seeded with store and segment
//!      4      4  length of the whole without padding
//!      8      8  revision
//!     16      8  revision that the key had before; 0: it was not there
//!     24      8  when it was written, milliseconds since 1970
//!     32      8  when it expires, milliseconds since 1970; 0: never
//!     40      4  how many revisions before this one were not known to be durable when it was written
//!     44      2  length of the key
//!     46      1  1: put, 2: delete
//!     47      1  0
//!     48         key, value, zeros up to a multiple of 8
//! ```

use super::Take;
use crate::error::to_u32;
use pintle_storage::{Revision, VALUE_BYTES_MAX};

/// Bytes of a record before its key.
pub(crate) const FRAME_BYTES: usize = 48;

/// Where in a record it says when it was written; when it expires comes next.
pub(crate) const TIMES_OFFSET: u64 = 24;

/// Bytes of a key; what the format can say. Keys longer than that are refused.
pub(crate) const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// What a record does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Delete,
}

/// What a record says beside key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) revision: Revision,
    /// The version of the key before this one.
    pub(crate) previous: Option<Revision>,
    pub(crate) written_ms: u64,
    /// 0: never.
    pub(crate) expires_ms: u64,
    /// How many revisions before this one were not known to be durable when it was written.
    pub(crate) n_pending: u32,
    pub(crate) kind: Kind,
}

/// A record that was found intact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded<'a> {
    pub(crate) entry: Entry,
    pub(crate) key: &'a str,
    pub(crate) value: &'a [u8],
    /// Length without padding.
    pub(crate) bytes: usize,
}

/// The length of a record without padding.
pub(crate) fn frame_bytes(key: &str, value: &[u8]) -> usize {
    FRAME_BYTES + key.len() + value.len()
}

/// The length with padding.
pub(crate) fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(8)
}

/// Appends a record with its padding; answers its length without.
pub(crate) fn encode(out: &mut Vec<u8>, seed: u32, entry: &Entry, key: &str, value: &[u8]) -> usize {
    debug_assert!(key.len() <= KEY_BYTES_MAX && value.len() <= VALUE_BYTES_MAX);
    let start = out.len();
    let bytes = frame_bytes(key, value);
    out.reserve(padded(bytes));
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&to_u32(bytes as u64).to_le_bytes());
    out.extend_from_slice(&entry.revision.get().to_le_bytes());
    out.extend_from_slice(&entry.previous.map_or(0, Revision::get).to_le_bytes());
    out.extend_from_slice(&entry.written_ms.to_le_bytes());
    out.extend_from_slice(&entry.expires_ms.to_le_bytes());
    out.extend_from_slice(&entry.n_pending.to_le_bytes());
    out.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.push(match entry.kind {
        Kind::Put => 1,
        Kind::Delete => 2,
    });
    out.push(0);
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(value);
    let crc = crc32c::crc32c_append(seed, out.get(start + 4..).unwrap_or_default());
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
    out.resize(start + padded(bytes), 0);
    bytes
}

/// The length that the record at the front of the bytes claims to have, if it can be one.
pub(crate) fn claimed_bytes(bytes: &[u8]) -> Option<usize> {
    let mut take = Take(bytes);
    take.u32()?;
    let claimed = usize::try_from(take.u32()?).ok()?;
    let is_possible = (FRAME_BYTES..=FRAME_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX).contains(&claimed);
    is_possible.then_some(claimed)
}

/// The record at the front of the bytes, if it is intact.
pub(crate) fn decode(bytes: &[u8], seed: u32) -> Option<Decoded<'_>> {
    let claimed = claimed_bytes(bytes)?;
    let record = bytes.get(..claimed)?;
    let mut take = Take(record);
    let crc = take.u32()?;
    if crc != crc32c::crc32c_append(seed, take.0) {
        return None;
    }
    take.u32()?;
    let revision = Revision::new(take.u64()?)?;
    let previous = Revision::new(take.u64()?);
    let written_ms = take.u64()?;
    let expires_ms = take.u64()?;
    let n_pending = take.u32()?;
    let key_bytes = usize::from(take.u16()?);
    let kind = match take.array()? {
        [1, 0] => Kind::Put,
        [2, 0] => Kind::Delete,
        _ => return None,
    };
    let key = std::str::from_utf8(take.bytes(key_bytes)?).ok()?;
    let entry = Entry { revision, previous, written_ms, expires_ms, n_pending, kind };
    Some(Decoded { entry, key, value: take.0, bytes: claimed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn revision() -> impl Strategy<Value = Revision> {
        (1..u64::MAX).prop_map(|n| Revision::new(n).unwrap_or(Revision::FIRST))
    }

    proptest! {
        #[test]
        fn records_are_read_as_written(
            revision in revision(), previous in proptest::option::of(revision()), times: (u64, u64), n_pending: u32,
            is_put: bool, key in ".{0,40}", value: Vec<u8>, seed: u32, flipped: usize
        ) {
            let kind = if is_put { Kind::Put } else { Kind::Delete };
            let entry = Entry { revision, previous, written_ms: times.0, expires_ms: times.1, n_pending, kind };
            let mut bytes = Vec::new();
            let length = encode(&mut bytes, seed, &entry, &key, &value);
            prop_assert_eq!(bytes.len(), padded(length));
            let decoded = decode(&bytes, seed).expect("it was just written");
            prop_assert_eq!((decoded.entry, decoded.key, decoded.value), (entry, &*key, &*value));
            prop_assert!(decode(&bytes[..length - 1], seed).is_none());
            prop_assert!(decode(&bytes, seed ^ 1).is_none());
            let bit = flipped % (length * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode(&bytes, seed).is_none());
        }

        #[test]
        fn garbage_is_no_record(bytes: Vec<u8>, seed: u32) {
            prop_assert!(decode(&bytes, seed).is_none());
        }
    }
}
