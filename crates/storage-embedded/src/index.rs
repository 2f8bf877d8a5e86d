//! The index in memory: for each key its versions and where they are stored, for each retained revision its key, for each
//! segment how much of it is still needed.
//!
//! A version is *needed* while an exact read or a watch may ask for it: the newest at or before the compacted revision,
//! and every one after it. What is not needed is garbage until its segment is rewritten. A deletion is needed for longer:
//! as long as an older put of its key lies in some segment, which would come back to life at the next start otherwise.
//!
//! ```text
//! compacted = 7      put a@3, put a@5, delete a@6, put b@9, put a@12
//! a: newest 12, older [6]; garbage puts: 2 (3 and 5 are still in their segments)
//! b: newest 9
//! history: [8: ?, 9: b, 10: .., 11: .., 12: a]
//! ```

mod compact;
mod recover;

pub(crate) use compact::{Dropped, Moved};
pub(crate) use recover::{Builder, Physical};

use crate::error::to_usize;
use crate::options::Options;
use crate::segment::{Segment, Version};
use pintle_storage::{Key, Record, Result, Revision, StorageError};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Weak};

/// Everything the store knows about keys, revisions and segments.
#[derive(Debug)]
pub(crate) struct Index {
    keys: BTreeMap<Key, Slot>,
    /// The keys of the revisions after `compacted` up to `revision`, in order, without gaps.
    history: VecDeque<Key>,
    compacted: Revision,
    revision: Revision,
    segments: BTreeMap<u32, SegmentState>,
    /// How many keys are there, deleted ones not counted.
    n_live: usize,
    /// When the store stood where, oldest first.
    marks: VecDeque<Mark>,
    /// Bytes of log written since the beginning of history.
    log_bytes: u64,
}

/// The store stood at this revision at this time, after so many bytes of log.
#[derive(Clone, Copy, Debug)]
struct Mark {
    revision: Revision,
    ms: u64,
    bytes: u64,
}

/// Milliseconds between marks, unless many bytes are written.
pub(crate) const MARK_MS: u64 = 1000;

/// Bytes between marks, unless time passes.
pub(crate) const MARK_BYTES: u64 = 256 << 10;

/// The versions of one key.
#[derive(Debug)]
struct Slot {
    newest: Version,
    /// Older versions that are still needed, oldest first. Never an empty vector.
    #[expect(clippy::box_collection, reason = "most keys have none: 8 bytes instead of 24")]
    older: Option<Box<Vec<Version>>>,
    /// Puts of this key that are in some segment and needed no more.
    n_garbage: u32,
    /// The newest record while anybody holds it, so that it is in memory once.
    held: Weak<Record>,
}

/// A segment and how much of it is needed.
#[derive(Clone, Debug)]
pub(crate) struct SegmentState {
    pub(crate) segment: Arc<Segment>,
    /// Bytes written, header included.
    pub(crate) used_bytes: u64,
    /// Bytes of needed records.
    pub(crate) needed_bytes: u64,
    /// The newest revision in it.
    pub(crate) last: Revision,
    pub(crate) n_records: u64,
    /// Whether nothing will be appended any more.
    pub(crate) is_sealed: bool,
}

/// A version with what it takes to read it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) key: Key,
    pub(crate) version: Version,
    pub(crate) segment: Arc<Segment>,
    /// The record, if somebody holds it.
    pub(crate) held: Option<Arc<Record>>,
}

/// One past event, not read yet.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    /// `None` for a deletion.
    pub(crate) record: Option<Place>,
    pub(crate) previous: Option<Place>,
}

/// A change that is durable and becomes visible.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) key: Key,
    pub(crate) version: Version,
    pub(crate) held: Weak<Record>,
}

impl Slot {
    fn new(newest: Version) -> Slot {
        Slot { newest, older: None, n_garbage: 0, held: Weak::new() }
    }

    fn older(&self) -> &[Version] {
        self.older.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The version that the key had at a revision that is not compacted, deletions included.
    fn at(&self, revision: Revision) -> Option<&Version> {
        if self.newest.revision <= revision {
            return Some(&self.newest);
        }
        self.older().iter().rev().find(|version| version.revision <= revision)
    }

    fn version_mut(&mut self, revision: Revision) -> Option<&mut Version> {
        if self.newest.revision == revision {
            return Some(&mut self.newest);
        }
        self.older.as_deref_mut()?.iter_mut().find(|version| version.revision == revision)
    }
}

impl Index {
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.compacted
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// As [`Index::mark`], for a revision of the past. Marks come in their order.
    pub(crate) fn mark_past(&mut self, revision: Revision, ms: u64, bytes: u64) {
        self.marks.push_back(Mark { revision, ms, bytes });
        self.log_bytes = bytes;
    }

    pub(crate) fn n_live(&self) -> usize {
        self.n_live
    }

    pub(crate) fn segments(&self) -> impl DoubleEndedIterator<Item = &SegmentState> {
        self.segments.values()
    }

    /// Takes note of a segment.
    pub(crate) fn add_segment(&mut self, segment: Arc<Segment>, used_bytes: u64) {
        let number = segment.name.number;
        let last = segment.first;
        let state = SegmentState { segment, used_bytes, needed_bytes: 0, last, n_records: 0, is_sealed: false };
        self.segments.insert(number, state);
    }

    /// Nothing will be appended to this segment any more.
    pub(crate) fn seal(&mut self, number: u32, used_bytes: u64) {
        if let Some(state) = self.segments.get_mut(&number) {
            state.is_sealed = true;
            state.used_bytes = used_bytes;
        }
    }

    /// The newest version of a key, if the key is there.
    pub(crate) fn newest(&self, key: &str) -> Option<Place> {
        let (key, slot) = self.keys.get_key_value(key)?;
        self.place(key, slot, &slot.newest)
    }

    /// A version to be read, unless it is a deletion.
    fn place(&self, key: &Key, slot: &Slot, version: &Version) -> Option<Place> {
        if !version.is_put() {
            return None;
        }
        let held = if version.revision == slot.newest.revision { slot.held.upgrade() } else { None };
        let segment = Arc::clone(&self.segments.get(&version.segment)?.segment);
        Some(Place { key: key.clone(), version: *version, segment, held })
    }

    /// Whether the state at a revision can be read.
    pub(crate) fn readable(&self, requested: Revision) -> Result<()> {
        if requested > self.revision {
            return Err(StorageError::Future { requested, current: self.revision });
        }
        if requested < self.compacted {
            return Err(StorageError::Expired { requested, compacted: self.compacted });
        }
        Ok(())
    }

    /// The version that a key had at a revision that is readable.
    pub(crate) fn at(&self, key: &str, revision: Revision) -> Option<Place> {
        let (key, slot) = self.keys.get_key_value(key)?;
        self.place(key, slot, slot.at(revision)?)
    }

    /// Up to `n_max` keys that begin with `prefix`, from `start` on, in the state at a revision that is readable. Also
    /// answers the key to go on from, if the prefix may have more.
    pub(crate) fn page(
        &self,
        prefix: &str,
        start: Bound<&str>,
        revision: Revision,
        n_max: usize,
    ) -> (Vec<Place>, Option<Key>) {
        let mut places = Vec::new();
        let range = self.keys.range::<str, _>((start, Bound::Unbounded)).take_while(|(key, _)| key.starts_with(prefix));
        for (n_seen, (key, slot)) in range.enumerate() {
            if n_seen == n_max {
                return (places, Some(key.clone()));
            }
            places.extend(slot.at(revision).and_then(|version| self.place(key, slot, version)));
        }
        (places, None)
    }

    /// Counts keys as [`Index::page`] finds them.
    pub(crate) fn count(
        &self,
        prefix: &str,
        start: Bound<&str>,
        revision: Revision,
        n_max: usize,
    ) -> (usize, Option<Key>) {
        let mut n_found = 0;
        let range = self.keys.range::<str, _>((start, Bound::Unbounded)).take_while(|(key, _)| key.starts_with(prefix));
        for (n_seen, (key, slot)) in range.enumerate() {
            if n_seen == n_max {
                return (n_found, Some(key.clone()));
            }
            n_found += usize::from(slot.at(revision).is_some_and(Version::is_put));
        }
        (n_found, None)
    }

    /// Events after `cursor` of keys that begin with `prefix`: of the next `n_scanned_max` revisions, and at most
    /// `n_max`. Also answers how far it looked.
    pub(crate) fn past(
        &self,
        cursor: Revision,
        prefix: &str,
        n_scanned_max: usize,
        n_max: usize,
    ) -> Result<(Vec<Past>, Revision)> {
        if cursor < self.compacted {
            return Err(StorageError::Expired { requested: cursor, compacted: self.compacted });
        }
        let n_skipped = to_usize(cursor.get() - self.compacted.get());
        let mut found = Vec::new();
        let mut scanned = cursor;
        for key in self.history.iter().skip(n_skipped).take(n_scanned_max) {
            if found.len() == n_max {
                break;
            }
            scanned = scanned.next();
            if key.starts_with(prefix) {
                found.extend(self.past_event(key, scanned));
            }
        }
        Ok((found, scanned))
    }

    fn past_event(&self, key: &Key, revision: Revision) -> Option<Past> {
        let slot = self.keys.get(key)?;
        let version = slot.at(revision).filter(|version| version.revision == revision)?;
        let before = Revision::new(revision.get() - 1).and_then(|before| slot.at(before));
        let previous = before.and_then(|version| self.place(key, slot, version));
        Some(Past { key: key.clone(), revision, record: self.place(key, slot, version), previous })
    }

    /// Makes durable changes visible. Their revisions follow on the index's own.
    pub(crate) fn publish(&mut self, changes: impl IntoIterator<Item = Change>) {
        for Change { key, version, held } in changes {
            debug_assert_eq!(version.revision, self.revision.next());
            self.revision = version.revision;
            self.count_in(&version);
            self.n_live += usize::from(version.is_put());
            match self.keys.entry(key) {
                Entry::Occupied(mut entry) => {
                    // The history shares the text of the key that the map has.
                    self.history.push_back(entry.key().clone());
                    let slot = entry.get_mut();
                    let old = std::mem::replace(&mut slot.newest, version);
                    slot.held = held;
                    slot.older.get_or_insert_default().push(old);
                    self.n_live -= usize::from(old.is_put());
                }
                Entry::Vacant(entry) => {
                    self.history.push_back(entry.key().clone());
                    entry.insert(Slot { held, ..Slot::new(version) });
                }
            }
        }
    }

    /// Notes that the store stands where it does at this time, after so many bytes of log.
    pub(crate) fn mark(&mut self, ms: u64, bytes: u64) {
        self.log_bytes = bytes;
        let is_news = self.marks.back().is_none_or(|last| ms >= last.ms + MARK_MS || bytes >= last.bytes + MARK_BYTES);
        if is_news {
            self.marks.push_back(Mark { revision: self.revision, ms, bytes });
        }
    }

    /// Up to where history is to be forgotten, by time, bytes and number of revisions.
    pub(crate) fn compaction_target(&mut self, now_ms: u64, bytes: u64, options: &Options) -> Revision {
        let oldest_ms = now_ms.saturating_sub(u64::try_from(options.history_time.as_millis()).unwrap_or(u64::MAX));
        let mut target = self.revision.get().saturating_sub(options.history_events_max);
        while let Some(mark) = self.marks.front() {
            let is_kept = mark.ms > oldest_ms && bytes - mark.bytes <= options.history_bytes_max;
            if is_kept && mark.revision.get() > target {
                break;
            }
            target = target.max(if is_kept { 0 } else { mark.revision.get() });
            self.marks.pop_front();
        }
        Revision::new(target).unwrap_or(Revision::FIRST).max(self.compacted)
    }

    /// Remembers records that were read, while anybody holds them.
    pub(crate) fn hold<'a>(&mut self, records: impl IntoIterator<Item = &'a Arc<Record>>) {
        for record in records {
            if let Some(slot) = self.keys.get_mut(&record.key)
                && slot.newest.revision == record.revision
                && slot.held.strong_count() == 0
            {
                slot.held = Arc::downgrade(record);
            }
        }
    }

    fn count_in(&mut self, version: &Version) {
        if let Some(state) = self.segments.get_mut(&version.segment) {
            state.needed_bytes += version.padded_bytes();
            state.used_bytes = state.used_bytes.max(version.offset() + version.padded_bytes());
            state.last = state.last.max(version.revision);
            state.n_records += 1;
        }
    }

    fn count_out(&mut self, version: &Version) {
        if let Some(state) = self.segments.get_mut(&version.segment) {
            debug_assert!(state.needed_bytes >= version.padded_bytes());
            state.needed_bytes = state.needed_bytes.saturating_sub(version.padded_bytes());
        }
    }

    /// The sentences above, executed. Slow; for tests.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(self.history.len() as u64, self.revision.get() - self.compacted.get());
        assert_eq!(self.n_live, self.keys.values().filter(|slot| slot.newest.is_put()).count());
        let mut needed: BTreeMap<u32, u64> = self.segments.keys().map(|number| (*number, 0)).collect();
        for (key, slot) in &self.keys {
            let all: Vec<&Version> = slot.older().iter().chain([&slot.newest]).collect();
            assert!(all.windows(2).all(|pair| pair[0].revision < pair[1].revision), "{key}: {slot:?}");
            assert!(slot.older.as_ref().is_none_or(|older| !older.is_empty()), "{key}: {slot:?}");
            let n_old = all.iter().filter(|version| version.revision <= self.compacted).count();
            assert!(n_old <= 1, "{key} at {}: {slot:?}", self.compacted);
            if !slot.newest.is_put() && slot.newest.revision <= self.compacted {
                assert!(slot.n_garbage > 0, "{key}: a deletion that hides nothing");
            }
            for version in all {
                *needed.get_mut(&version.segment).expect("its segment is known") += version.padded_bytes();
            }
        }
        for (number, needed) in needed {
            let state = &self.segments[&number];
            assert_eq!(state.needed_bytes, needed, "segment {number}");
            assert!(state.needed_bytes <= state.used_bytes, "segment {number}");
        }
    }
}

#[cfg(test)]
mod tests;
