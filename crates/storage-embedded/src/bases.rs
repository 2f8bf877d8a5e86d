//! Making a store out of records: base segments and a manifest. For restoring and repairing.

use crate::disk::{Disk, DiskFile, replace_whole};
use crate::error::OpenError;
use crate::format::{
    Entry, HEADER_BYTES, Header, Manifest, SegmentEntry, SegmentKind, SegmentName, StoreId, encode, seed,
};
use crate::shared::MANIFEST_NAME;
use pintle_storage::Revision;
use std::sync::Arc;

/// Bytes of a base segment, beyond its last record.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Bytes collected before they are written.
const PIECE_BYTES: usize = 1 << 20;

/// Base segments in the making. Nothing counts before [`Bases::finish`].
#[derive(Debug)]
pub(crate) struct Bases<'a> {
    disk: &'a dyn Disk,
    id: StoreId,
    next_number: u32,
    open: Option<Open>,
    done: Vec<SegmentEntry>,
}

#[derive(Debug)]
struct Open {
    name: SegmentName,
    file: Arc<dyn DiskFile>,
    seed: u32,
    waiting: Vec<u8>,
    bytes: u64,
    n_records: u64,
}

impl<'a> Bases<'a> {
    /// Base segments with numbers from `next_number` on.
    pub(crate) fn new(disk: &'a dyn Disk, id: StoreId, next_number: u32) -> Bases<'a> {
        Bases { disk, id, next_number, open: None, done: Vec::new() }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(crate) fn add(&mut self, entry: &Entry, key: &str, value: &[u8]) -> Result<(), OpenError> {
        if self.open.as_ref().is_some_and(|open| open.bytes >= SEGMENT_BYTES) {
            self.seal()?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let opened = self.begin()?;
                self.open.insert(opened)
            }
        };
        let n_before = open.waiting.len();
        encode(&mut open.waiting, open.seed, entry, key, value);
        open.bytes += (open.waiting.len() - n_before) as u64;
        open.n_records += 1;
        if open.waiting.len() >= PIECE_BYTES { open.write() } else { Ok(()) }
    }

    fn begin(&mut self) -> Result<Open, OpenError> {
        let name = SegmentName { number: self.next_number, kind: SegmentKind::Base };
        self.next_number += 1;
        let file = self.disk.create(&name.to_string()).map_err(OpenError::io(format!("make {name}")))?;
        let header = Header { store: self.id, number: name.number, kind: name.kind, first: Revision::FIRST };
        let waiting = header.encode().to_vec();
        Ok(Open { name, file, seed: seed(&self.id, name.number), waiting, bytes: HEADER_BYTES as u64, n_records: 0 })
    }

    fn seal(&mut self) -> Result<(), OpenError> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.write()?;
        open.file.sync().map_err(OpenError::io(format!("make {} durable", open.name)))?;
        self.done.push(SegmentEntry { name: open.name, n_records: open.n_records, bytes: open.bytes });
        Ok(())
    }

    /// Puts the records in force: a store that stands at `revision` and has no history.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(crate) fn finish(mut self, revision: Revision) -> Result<(), OpenError> {
        self.seal()?;
        let manifest = Manifest {
            store: self.id,
            revision,
            compacted: revision,
            next_number: self.next_number,
            segments: self.done,
        };
        replace_whole(self.disk, MANIFEST_NAME, &manifest.encode()).map_err(OpenError::io("write MANIFEST"))
    }
}

impl Open {
    fn write(&mut self) -> Result<(), OpenError> {
        let offset = self.bytes - self.waiting.len() as u64;
        self.file.write_at(&self.waiting, offset).map_err(OpenError::io(format!("write {}", self.name)))?;
        self.waiting.clear();
        Ok(())
    }
}
