//! The end of the last log, where a crash may have left something unfinished.

use super::Found;
use crate::commit::BATCH_BYTES_MAX;
use crate::disk::read_exact_at;
use crate::format::{FRAME_BYTES, HEADER_BYTES, KEY_BYTES_MAX, decode};
use crate::segment::Segment;
use crate::shared::buffer_of;
use pintle_storage::{Revision, VALUE_BYTES_MAX};
use std::collections::VecDeque;
use std::io;

/// How far behind a damaged record another can vouch for it: it is in the next batch at the latest.
const VOUCH_BYTES_MAX: u64 = 2 * (BATCH_BYTES_MAX + VALUE_BYTES_MAX + KEY_BYTES_MAX + FRAME_BYTES) as u64;

/// The records at the end for which no later one vouches.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Revisions and offsets, oldest first.
    unproven: VecDeque<(Revision, u64)>,
}

impl Tail {
    /// Takes in the next record.
    pub(super) fn take(&mut self, found: &Found<'_>) {
        let revision = found.decoded.entry.revision;
        let durable = revision.get() - 1 - u64::from(found.decoded.entry.n_pending).min(revision.get() - 1);
        while self.unproven.front().is_some_and(|(revision, _)| revision.get() <= durable) {
            self.unproven.pop_front();
        }
        self.unproven.push_back((revision, found.offset));
    }

    /// Makes the records that were found durable, whatever happened before, and cuts off what is behind them.
    ///
    /// Records nobody vouches for may be in the system's memory only: a sync that failed before the restart may have
    /// left them there, marked as written. So they are written again.
    pub(super) fn settle(&self, segment: &Segment, end: u64) -> io::Result<()> {
        // The padding of the last record may be missing.
        let file_bytes = segment.file.len()?;
        if let Some((_, start)) = self.unproven.front() {
            let start = if *start == HEADER_BYTES as u64 { 0 } else { *start };
            let mut bytes = buffer_of(end.min(file_bytes) - start);
            read_exact_at(&*segment.file, &mut bytes, start)?;
            segment.file.write_at(&bytes, start)?;
        }
        if file_bytes != end {
            segment.file.set_len(end)?;
        }
        segment.file.sync()
    }
}

/// Looks behind the end of the intact records for one that says that revision `expected` was durable; answers its own.
pub(super) fn vouched_behind(segment: &Segment, end: u64, expected: Revision) -> io::Result<Option<Revision>> {
    let bytes = segment.file.len()?.saturating_sub(end).min(VOUCH_BYTES_MAX);
    let mut rest = buffer_of(bytes);
    read_exact_at(&*segment.file, &mut rest, end)?;
    for start in (0..rest.len()).step_by(8) {
        let here = rest.get(start..).unwrap_or_default();
        // Most of it is zeros; and few bytes could be the revision of a record that vouches.
        let revision = here.get(8..16).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
        let is_possible = revision > expected.get() && revision - expected.get() < VOUCH_BYTES_MAX;
        if is_possible && let Some(decoded) = decode(here, segment.seed) {
            let durable = revision - 1 - u64::from(decoded.entry.n_pending).min(revision - 1);
            if durable >= expected.get() {
                return Ok(Some(decoded.entry.revision));
            }
        }
    }
    Ok(None)
}
