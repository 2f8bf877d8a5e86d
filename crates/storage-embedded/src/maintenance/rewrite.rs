//! Rewriting segments that are mostly garbage. Readers keep reading the old files until they have let go of them; a crash
//! at any step leaves either the old segments or the new one in force, as the manifest says.

use crate::format::{HEADER_BYTES, SegmentKind, encode};
use crate::index::{Dropped, Moved, SegmentState};
use crate::recovery::scan;
use crate::segment::{Segment, Version};
use crate::shared::Shared;
use pintle_storage::{Key, Revision};
use std::io;
use std::sync::Arc;

/// Bytes collected before they are written.
const PIECE_BYTES: usize = 1 << 20;

/// Small segments that may lie about before they are put together.
const SMALL_SEGMENTS_MAX: usize = 16;

/// Records followed or dropped before the index is let go for others.
const FOLLOW_RECORDS_MAX: usize = 128;

impl Shared {
    /// Rewrites until nothing is worth it.
    pub(super) fn rewrite_what_is_worth_it(&self) -> io::Result<()> {
        loop {
            let _no_other_file_comes_or_goes = self.manifest.lock();
            if self.is_closed() {
                return Ok(());
            }
            let victims = self.choose();
            if victims.is_empty() {
                return Ok(());
            }
            self.rewrite(&victims)?;
        }
    }

    /// Which segments to rewrite into one: those of the most garbage, once there is as much garbage as half of what is
    /// needed; and small ones, once there are many.
    fn choose(&self) -> Vec<SegmentState> {
        let index = self.index.read();
        let compacted = index.compacted();
        let is_old = |state: &&SegmentState| state.is_sealed && state.last <= compacted;
        let mut old: Vec<SegmentState> = index.segments().filter(is_old).cloned().collect();
        drop(index);
        if old.iter().any(|state| state.needed_bytes == 0) {
            old.retain(|state| state.needed_bytes == 0);
            return old;
        }
        let used: u64 = old.iter().map(|state| state.used_bytes).sum();
        let needed: u64 = old.iter().map(|state| state.needed_bytes).sum();
        let is_wasteful = used - needed.min(used) > self.options.segment_bytes.max(needed / 2);
        if !is_wasteful {
            old.retain(|state| state.used_bytes < self.options.segment_bytes / 4);
            if old.len() <= SMALL_SEGMENTS_MAX {
                return Vec::new();
            }
        }
        // Least needed part first; the fraction in 1/1024.
        old.sort_by_key(|state| state.needed_bytes * 1024 / state.used_bytes.max(1));
        let mut room = self.options.segment_bytes;
        let n_victims = old.iter().take_while(|state| {
            let fits = state.needed_bytes <= room;
            room = room.saturating_sub(state.needed_bytes);
            fits
        });
        let n_victims = n_victims.count().max(1);
        old.truncate(n_victims);
        old
    }

    /// Puts what is needed of these segments into a new one, in their place.
    fn rewrite(&self, victims: &[SegmentState]) -> io::Result<()> {
        let mut copy = Copy::new(self);
        for victim in victims {
            copy.take(&victim.segment)?;
        }
        let gone: Vec<u32> = victims.iter().map(|victim| victim.segment.name.number).collect();
        let Copy { out, moved, dropped, .. } = copy.finish()?;
        let number = out.as_ref().map(|out| out.segment.name.number);
        if let Some(Out { segment, bytes, n_records, last, .. }) = out {
            self.index.write().add_base(segment, bytes, n_records, last);
        }
        if let Err(error) = self.write_manifest(&gone) {
            // Either manifest may be in force now, and with either everything is there: the new file stays until the
            // next start has found out.
            if let Some(number) = number {
                self.index.write().remove_segment(number);
            }
            return Err(error);
        }
        for some in moved.chunks(FOLLOW_RECORDS_MAX) {
            self.index.write().follow(some);
        }
        for some in dropped.chunks(FOLLOW_RECORDS_MAX) {
            self.index.write().drop_garbage(some);
        }
        for victim in victims {
            self.index.write().remove_segment(victim.segment.name.number);
            let name = victim.segment.name.to_string();
            if let Err(error) = self.disk.remove(&name) {
                tracing::warn!(%error, name, "cannot remove a segment that is rewritten; the next start will");
            }
        }
        Ok(())
    }
}

/// A copy under way.
struct Copy<'a> {
    shared: &'a Shared,
    out: Option<Out>,
    moved: Vec<Moved>,
    dropped: Vec<Dropped>,
}

/// The segment that is made.
struct Out {
    segment: Arc<Segment>,
    /// Bytes written or waiting to be.
    bytes: u64,
    waiting: Vec<u8>,
    n_records: u64,
    last: Revision,
}

impl<'a> Copy<'a> {
    fn new(shared: &'a Shared) -> Copy<'a> {
        Copy { shared, out: None, moved: Vec::new(), dropped: Vec::new() }
    }

    /// Takes what is needed of a segment.
    fn take(&mut self, victim: &Segment) -> io::Result<()> {
        let number = victim.name.number;
        let mut failure = None;
        scan(&*victim.file, victim.seed, |found| {
            let entry = found.decoded.entry;
            let needed = self.shared.index.read().needed(found.decoded.key, entry.revision, number);
            match needed {
                Some((key, version)) => failure = self.copy(victim, key, version, found).err(),
                None => self.dropped.push(Dropped { key: Key::new(found.decoded.key), kind: entry.kind }),
            }
            failure.is_none()
        })?;
        failure.map_or(Ok(()), Err)
    }

    fn copy(
        &mut self,
        victim: &Segment,
        key: Key,
        version: Version,
        found: &crate::recovery::Found<'_>,
    ) -> io::Result<()> {
        if self.out.is_none() {
            self.out = Some(self.begin()?);
        }
        let Some(out) = &mut self.out else { return Ok(()) };
        let length = encode(&mut out.waiting, out.segment.seed, &found.decoded.entry, &key, found.decoded.value);
        debug_assert_eq!(length, found.decoded.bytes);
        let unit = crate::error::to_u32(out.bytes / 8);
        let moved = Version { segment: out.segment.name.number, unit, ..version };
        out.bytes += version.padded_bytes();
        out.n_records += 1;
        out.last = out.last.max(version.revision);
        self.moved.push(Moved { key, version: moved, from: victim.name.number });
        if out.waiting.len() >= PIECE_BYTES {
            out.write_waiting()?;
            // Little by little, so that the writer's sync finds little to wait for.
            out.segment.file.sync()?;
        }
        Ok(())
    }

    fn begin(&self) -> io::Result<Out> {
        let segment = self.shared.make_segment(SegmentKind::Base, 0)?;
        let waiting = self.shared.header(segment.name, Revision::FIRST).to_vec();
        Ok(Out { segment, bytes: HEADER_BYTES as u64, waiting, n_records: 0, last: Revision::FIRST })
    }

    /// Makes the copy durable.
    fn finish(mut self) -> io::Result<Copy<'a>> {
        if let Some(out) = &mut self.out {
            out.write_waiting()?;
            out.segment.file.sync()?;
        }
        Ok(self)
    }
}

impl Out {
    fn write_waiting(&mut self) -> io::Result<()> {
        let offset = self.bytes - self.waiting.len() as u64;
        self.segment.file.write_at(&self.waiting, offset)?;
        self.waiting.clear();
        Ok(())
    }
}
