//! Reading a segment from its beginning, in large pieces.

use crate::disk::DiskFile;
use crate::error::to_usize;
use crate::format::{Decoded, HEADER_BYTES, claimed_bytes, decode, padded};
use std::io;

/// Bytes read at once.
const PIECE_BYTES: usize = 1 << 20;

/// A record and where it was found.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) offset: u64,
    pub(crate) decoded: Decoded<'a>,
}

/// Calls `take` for each record from the header on, until one is not intact or `take` answers `false`. Answers where
/// that is.
///
/// # Errors
/// When the disk cannot read.
pub(crate) fn scan(file: &dyn DiskFile, seed: u32, mut take: impl FnMut(&Found<'_>) -> bool) -> io::Result<u64> {
    let file_bytes = file.len()?;
    let mut buffer = Vec::new();
    // The buffer holds the file from `start` on.
    let mut start = HEADER_BYTES as u64;
    let mut n_done = 0;
    loop {
        let rest = buffer.get(n_done..).unwrap_or_default();
        let offset = start + n_done as u64;
        if let Some(decoded) = decode(rest, seed) {
            let length = padded(decoded.bytes);
            if !take(&Found { offset, decoded }) {
                return Ok(offset);
            }
            n_done += length;
            continue;
        }
        // Either it is not intact, or the buffer ends before it does.
        let n_wanted = claimed_bytes(rest).unwrap_or(8).max(8);
        let is_whole = n_wanted <= rest.len() && rest.len() >= 8;
        if is_whole || offset + rest.len() as u64 >= file_bytes {
            return Ok(offset);
        }
        let n_done_now = n_done.min(buffer.len());
        buffer.drain(..n_done_now);
        // Padding may reach beyond the buffer.
        start = offset;
        n_done = 0;
        let n_have = buffer.len();
        let n_more = n_wanted.max(PIECE_BYTES).min(to_usize(file_bytes.saturating_sub(offset)));
        buffer.resize(n_more.max(n_have), 0);
        let unread = buffer.get_mut(n_have..).unwrap_or_default();
        crate::disk::read_exact_at(file, unread, offset + n_have as u64)?;
    }
}
