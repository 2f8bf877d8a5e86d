//! One batch: writes whose preconditions hold, encoded, with what becomes of them when they are durable.

use super::{BATCH_BYTES_MAX, Log, Request, Write, due};
use crate::error::to_u32;
use crate::format::{Entry, HEADER_BYTES, Kind, encode, frame_bytes, padded};
use crate::index;
use crate::segment::{Segment, Version};
use crate::shared::Shared;
use pintle_storage::{Event, Key, NewValue, Note, Record, Result, Revision, StorageError, VALUE_BYTES_MAX};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

type Reply = oneshot::Sender<Result<Arc<Event>>>;

/// A write whose precondition holds.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) event: Arc<Event>,
    pub(super) version: Version,
    pub(super) due: Option<Instant>,
    pub(super) reply: Reply,
}

impl Change {
    pub(super) fn to_index(&self) -> index::Change {
        let held = self.event.record.as_ref().map(Arc::downgrade).unwrap_or_default();
        index::Change { key: self.event.key.clone(), version: self.version, held }
    }
}

/// Records for one place in one segment.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) segment: Arc<Segment>,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) changes: Vec<Change>,
}

/// A batch ready to be written.
#[derive(Debug)]
pub(super) struct Staged {
    /// One, or more where segments end.
    pub(super) chunks: Vec<Chunk>,
    /// Refusals that rest on a write of this batch.
    pub(super) refused: Vec<(Reply, StorageError)>,
}

/// A batch in the making.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    shared: &'a Shared,
    /// Newest revision that is durable.
    durable: Revision,
    /// Newest revision in this batch, or the durable one.
    revision: Revision,
    written_ms: u64,
    now: Instant,
    /// Where the next record goes.
    segment: Arc<Segment>,
    end: u64,
    /// Whether there is no room for another record and no further segment.
    is_stuck: bool,
    staged: Staged,
    /// The newest event of each key in this batch.
    newest: BTreeMap<Key, Arc<Event>>,
    n_bytes: usize,
}

/// What a key holds, and whether that is durable yet.
struct Standing {
    key: Key,
    record: Option<Arc<Record>>,
    is_durable: bool,
}

impl<'a> Batch<'a> {
    pub(super) fn new(shared: &'a Shared, log: &Log) -> Batch<'a> {
        Batch {
            shared,
            durable: log.durable(),
            revision: log.durable(),
            written_ms: shared.wall_ms(),
            now: Instant::now(),
            segment: log.segment(),
            end: log.end(),
            is_stuck: false,
            staged: Staged { chunks: Vec::new(), refused: Vec::new() },
            newest: BTreeMap::new(),
            n_bytes: 0,
        }
    }

    /// Whether it takes no further write.
    pub(super) fn is_done(&self) -> bool {
        self.is_stuck || self.n_bytes >= BATCH_BYTES_MAX
    }

    pub(super) fn finish(self) -> Staged {
        self.staged
    }

    /// Takes up a write, or answers why not.
    pub(super) fn stage(&mut self, write: Write, log: &mut Log) {
        let Write { key, request, reply } = write;
        let standing = match self.standing(key) {
            Ok(standing) => standing,
            Err(error) => return super::answer(reply, Err(error)),
        };
        match check(&standing, &request) {
            Ok(()) => self.accept(standing, request, reply, log),
            Err(refusal) if standing.is_durable => super::answer(reply, Err(refusal)),
            Err(refusal) => self.staged.refused.push((reply, refusal)),
        }
    }

    fn standing(&self, key: Key) -> Result<Standing> {
        if let Some(event) = self.newest.get(&key) {
            return Ok(Standing { key, record: event.record.clone(), is_durable: false });
        }
        let place = self.shared.index.read().newest(&key);
        let Some(place) = place else { return Ok(Standing { key, record: None, is_durable: true }) };
        let record = match place.held {
            Some(record) => record,
            None => place.segment.read(&place.key, &place.version)?,
        };
        Ok(Standing { key: place.key, record: Some(record), is_durable: true })
    }

    fn accept(&mut self, standing: Standing, request: Request, reply: Reply, log: &mut Log) {
        let Standing { key, record: previous, .. } = standing;
        let value = match request {
            Request::Create(value) | Request::Update(value, _) => Some(value),
            Request::Delete(_) => None,
        };
        let bytes = value.as_ref().map_or(&[][..], |value| &value.bytes);
        if let Err(error) = self.make_room(padded(frame_bytes(&key, bytes)), log) {
            return super::answer(reply, Err(error));
        }
        let due = value.as_ref().and_then(|value| due(value, self.now));
        let entry = Entry {
            revision: self.revision.next(),
            previous: previous.as_ref().map(|record| record.revision),
            written_ms: self.written_ms,
            expires_ms: self.expires_ms(value.as_ref()),
            n_pending: to_u32(self.revision.get() - self.durable.get()),
            kind: if value.is_some() { Kind::Put } else { Kind::Delete },
        };
        let Some(chunk) = self.staged.chunks.last_mut() else { return };
        let offset = self.end;
        debug_assert_eq!(offset, chunk.offset + chunk.bytes.len() as u64);
        let length = encode(&mut chunk.bytes, chunk.segment.seed, &entry, &key, bytes);
        let version = Version {
            revision: entry.revision,
            segment: chunk.segment.name.number,
            unit: to_u32(offset / 8),
            bytes: to_u32(length as u64),
            kind: entry.kind,
            is_mortal: entry.expires_ms != 0,
        };
        let revision = entry.revision;
        let record =
            value.map(|value| Arc::new(Record { key: key.clone(), revision, value: value.bytes, note: value.note }));
        let event = Arc::new(Event { key: key.clone(), revision, record, previous, note: Note::default() });
        self.revision = revision;
        self.end += padded(length) as u64;
        self.n_bytes += padded(length);
        self.newest.insert(key, Arc::clone(&event));
        chunk.changes.push(Change { event, version, due, reply });
    }

    fn expires_ms(&self, value: Option<&NewValue>) -> u64 {
        let ttl = value.and_then(|value| value.ttl);
        // 0 means never: a key that expires at once does so a millisecond later.
        ttl.map_or(0, |ttl| self.written_ms.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)).max(1))
    }

    /// Sees to it that the last chunk has room for so many bytes more.
    fn make_room(&mut self, bytes: usize, log: &mut Log) -> Result<()> {
        if self.staged.chunks.is_empty() && log.is_over(self.shared) || self.end + bytes as u64 > log.capacity() {
            let segment = log.next_segment(self.shared, self.revision.next());
            self.is_stuck = segment.is_err();
            self.segment = segment?;
            self.end = HEADER_BYTES as u64;
            let header = self.shared.header(self.segment.name, self.segment.first).to_vec();
            self.staged.chunks.push(Chunk {
                segment: Arc::clone(&self.segment),
                offset: 0,
                bytes: header,
                changes: Vec::new(),
            });
        } else if self.staged.chunks.is_empty() {
            let bytes = log.take_buffer();
            self.staged.chunks.push(Chunk {
                segment: Arc::clone(&self.segment),
                offset: self.end,
                bytes,
                changes: Vec::new(),
            });
        }
        Ok(())
    }
}

/// Whether what is asked for can be done to what is there.
fn check(standing: &Standing, request: &Request) -> Result<()> {
    let key = || standing.key.clone();
    let stored = standing.record.as_ref().map(|record| record.revision);
    match (request, stored) {
        (Request::Create(value) | Request::Update(value, _), _) if value.bytes.len() > VALUE_BYTES_MAX => {
            Err(StorageError::TooLarge { key: key(), bytes: value.bytes.len(), bytes_max: VALUE_BYTES_MAX })
        }
        (Request::Create(_), Some(stored)) => Err(StorageError::AlreadyExists { key: key(), stored }),
        (Request::Update(..) | Request::Delete(_), None) => Err(StorageError::NotFound { key: key() }),
        (Request::Update(_, expected) | Request::Delete(Some(expected)), Some(stored)) if *expected != stored => {
            Err(StorageError::Conflict { key: key(), expected: *expected, stored })
        }
        (Request::Create(_), None) | (Request::Update(..) | Request::Delete(_), Some(_)) => Ok(()),
    }
}
