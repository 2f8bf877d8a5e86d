//! The log's end: where the next records go, and what happens when they cannot.

use super::batch::Chunk;
use crate::format::{FRAME_BYTES, SegmentKind};
use crate::segment::Segment;
use crate::shared::{Shared, Trouble};
use pintle_storage::{Result, Revision, StorageError};
use std::io;
use std::sync::Arc;

/// Bytes of the buffer kept for the next batch; a larger one is given back.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// The log's end.
#[derive(Debug)]
pub(crate) struct Log {
    segment: Arc<Segment>,
    /// Where the durable records of the segment end.
    end: u64,
    /// Bytes of a segment.
    capacity: u64,
    /// The newest durable revision.
    durable: Revision,
    /// Whether nothing more may be written to the segment: something unfinished lies behind its end.
    is_abandoned: bool,
    /// Whether the segment was made in a hurry: a prepared one takes less time to sync, and is taken as soon as there is
    /// one.
    is_makeshift: bool,
    /// A segment to go on with, got hold of ahead of need.
    next: Option<Arc<Segment>>,
    /// Bytes of log written since the beginning of history.
    bytes_written: u64,
    buffer: Vec<u8>,
}

impl Log {
    /// The log goes on at the end of this segment.
    pub(crate) fn new(segment: Arc<Segment>, end: u64, capacity: u64, durable: Revision, bytes_written: u64) -> Log {
        Log {
            segment,
            end,
            capacity,
            durable,
            is_abandoned: false,
            is_makeshift: true,
            next: None,
            bytes_written,
            buffer: Vec::new(),
        }
    }

    pub(super) fn segment(&self) -> Arc<Segment> {
        Arc::clone(&self.segment)
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn durable(&self) -> Revision {
        self.durable
    }

    /// Whether the next record is to begin another segment, though this one has room.
    pub(super) fn is_over(&self, shared: &Shared) -> bool {
        self.is_abandoned || (self.is_makeshift && shared.spare.lock().is_some())
    }

    pub(super) fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    pub(super) fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if buffer.capacity() <= BUFFER_BYTES_MAX {
            self.buffer = buffer;
        }
    }

    /// Gets hold of a segment to go on with, whose first record is to have revision `first`.
    pub(super) fn next_segment(&mut self, shared: &Shared, first: Revision) -> Result<Arc<Segment>> {
        self.reopen(shared)?;
        let Some(segment) = self.next.take() else {
            return Err(StorageError::Unavailable { why: "no segment to go on with".to_owned() });
        };
        shared.work.notify_one();
        let Segment { name, file, seed, .. } = &*segment;
        Ok(Arc::new(Segment { name: *name, file: Arc::clone(file), seed: *seed, first }))
    }

    /// Sees to it that there is a segment to go on with.
    pub(super) fn reopen(&mut self, shared: &Shared) -> Result<()> {
        if self.next.is_none() {
            let spare = shared.spare.lock().take();
            // Logs are written in the order of their numbers: recovery relies on it.
            self.next = spare.filter(|spare| spare.name.number > self.segment.name.number);
            self.is_makeshift = self.next.is_none();
        }
        if self.next.is_none() {
            let made = shared.make_segment(SegmentKind::Log, self.capacity);
            self.next = Some(made.map_err(|error| self.full_or_broken(shared, "cannot make a segment", &error))?);
        }
        Ok(())
    }

    /// Appends a chunk and makes it durable.
    ///
    /// # Errors
    /// `ReadOnly` when nothing was written, `Unavailable` when nobody knows.
    pub(super) fn append(&mut self, shared: &Shared, chunk: &Chunk) -> Result<()> {
        if chunk.offset == 0 {
            let mut index = shared.index.write();
            index.seal(self.segment.name.number, self.end);
            index.add_segment(Arc::clone(&chunk.segment), 0);
            drop(index);
            self.segment = Arc::clone(&chunk.segment);
            self.is_abandoned = false;
        }
        self.end = chunk.offset;
        if let Err(error) = chunk.segment.file.write_at(&chunk.bytes, chunk.offset) {
            return Err(self.undo(shared, chunk, &error));
        }
        if let Err(error) = chunk.segment.file.sync() {
            return Err(self.broken(shared, &format!("{} cannot be made durable: {error}", chunk.segment.name)));
        }
        self.end += chunk.bytes.len() as u64;
        self.bytes_written += chunk.bytes.len() as u64;
        self.durable = chunk.changes.last().map_or(self.durable, |change| change.version.revision);
        debug_assert!(
            self.end <= self.capacity || chunk.changes.len() == 1,
            "only a lone record is larger than a segment"
        );
        Ok(())
    }

    /// Sees to it that a chunk of which some part was written is not found at the next start.
    fn undo(&mut self, shared: &Shared, chunk: &Chunk, error: &io::Error) -> StorageError {
        self.is_abandoned = true;
        let blank = [0; FRAME_BYTES];
        let undone = chunk.segment.file.write_at(&blank, chunk.offset).and_then(|()| chunk.segment.file.sync());
        match undone {
            Ok(()) => self.full_or_broken(shared, &format!("{} cannot be written", chunk.segment.name), error),
            Err(_) => self.broken(shared, &format!("{} cannot be written: {error}", chunk.segment.name)),
        }
    }

    /// No more writes until there is space again, or until the store is opened again. Nothing was written.
    fn full_or_broken(&self, shared: &Shared, what: &str, error: &io::Error) -> StorageError {
        let trouble = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Trouble::Full(format!("{what}, the disk is full; writes go on by themselves when there is space again"))
            }
            _ => Trouble::Broken(format!("{what}: {error}; the store must be opened again")),
        };
        let why = trouble.why().to_owned();
        tracing::error!(why, "the store is read-only");
        *shared.trouble.lock() = Some(trouble);
        StorageError::ReadOnly { why }
    }

    /// No more writes until the store is opened again. What was to be written may or may not be found then.
    fn broken(&mut self, shared: &Shared, what: &str) -> StorageError {
        self.is_abandoned = true;
        let why = format!("{what}; the store must be opened again");
        tracing::error!(why, "the store is read-only");
        *shared.trouble.lock() = Some(Trouble::Broken(why.clone()));
        StorageError::Unavailable { why }
    }

    /// Gives back what the open segment has reserved and not used. Nothing is lost if that fails.
    pub(super) fn close(&self, shared: &Shared) {
        let is_sound = !self.is_abandoned && shared.trouble.lock().is_none();
        if is_sound && let Err(error) = self.segment.file.set_len(self.end).and_then(|()| self.segment.file.sync()) {
            tracing::warn!(%error, segment = %self.segment.name, "cannot cut the segment to its length");
        }
        for unused in [shared.spare.lock().take(), self.next.clone()].into_iter().flatten() {
            drop(shared.disk.remove(&unused.name.to_string()));
        }
    }
}
