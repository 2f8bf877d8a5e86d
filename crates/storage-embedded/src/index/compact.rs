//! Forgetting: moving the compacted revision on, and following records that a rewrite moved or dropped.

use super::{Index, SegmentState, Slot};
use crate::format::Kind;
use crate::segment::{Segment, Version};
use pintle_storage::{Key, Revision};
use std::sync::Arc;

/// A record that a rewrite copied.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub(crate) key: Key,
    /// Where it is now.
    pub(crate) version: Version,
    /// The segment it was in.
    pub(crate) from: u32,
}

/// A record that a rewrite left behind.
#[derive(Clone, Debug)]
pub(crate) struct Dropped {
    pub(crate) key: Key,
    pub(crate) kind: Kind,
}

impl Index {
    /// Moves the compacted revision on towards `target`, past at most `n_max` revisions. Answers whether it got there.
    pub(crate) fn compact(&mut self, target: Revision, n_max: usize) -> bool {
        let target = target.min(self.revision);
        for _ in 0..n_max {
            if self.compacted >= target {
                break;
            }
            let Some(key) = self.history.pop_front() else { break };
            self.compacted = self.compacted.next();
            self.prune(&key);
        }
        if self.history.capacity() > 1024 && self.history.len() < self.history.capacity() / 4 {
            self.history.shrink_to(self.history.len() * 2);
        }
        self.compacted >= target
    }

    /// Lets go of the versions of a key that the compacted revision has made useless.
    fn prune(&mut self, key: &Key) {
        let compacted = self.compacted;
        let Some(slot) = self.keys.get_mut(key) else { return };
        let mut useless = Vec::new();
        if let Some(older) = &mut slot.older {
            // Of the versions up to the compacted revision the newest stays, unless it is a deletion that is not the
            // end of the key: "not there" needs no record.
            let n_old = older.partition_point(|version| version.revision <= compacted);
            let newest_is_old = slot.newest.revision <= compacted;
            let keeps_last = !newest_is_old && n_old > 0 && older.get(n_old - 1).is_some_and(Version::is_put);
            useless.extend(older.drain(..n_old - usize::from(keeps_last)));
            if older.is_empty() {
                slot.older = None;
            }
        }
        slot.n_garbage += useless.iter().map(|version| u32::from(version.is_put())).sum::<u32>();
        let is_over = is_over(slot, compacted);
        for version in &useless {
            self.count_out(version);
        }
        if is_over {
            self.forget(key);
        }
    }

    /// Forgets a deleted key of which no segment holds a put.
    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(slot) = self.keys.remove(key) {
            self.count_out(&slot.newest);
        }
    }

    /// The version that a record found in a segment is, if it is needed there.
    pub(crate) fn needed(&self, key: &str, revision: Revision, segment: u32) -> Option<(Key, Version)> {
        let (key, slot) = self.keys.get_key_value(key)?;
        let version = slot.at(revision)?;
        let is_here = version.revision == revision && version.segment == segment;
        is_here.then(|| (key.clone(), *version))
    }

    /// Follows some records that a rewrite copied, to where they are now.
    pub(crate) fn follow<'a>(&mut self, moved: impl IntoIterator<Item = &'a Moved>) {
        for Moved { key, version, from } in moved {
            let Some(slot) = self.keys.get_mut(key) else { continue };
            let Some(current) = slot.version_mut(version.revision).filter(|current| current.segment == *from) else {
                // Needed no more since it was copied: the copy is garbage as the original was.
                continue;
            };
            let old = std::mem::replace(current, *version);
            self.count_out(&old);
            if let Some(state) = self.segments.get_mut(&version.segment) {
                state.needed_bytes += version.padded_bytes();
            }
        }
    }

    /// Takes note of puts that are in no segment any more.
    pub(crate) fn drop_garbage<'a>(&mut self, dropped: impl IntoIterator<Item = &'a Dropped>) {
        for Dropped { key, kind } in dropped {
            let Some(slot) = self.keys.get_mut(key) else { continue };
            if *kind == Kind::Put {
                debug_assert!(slot.n_garbage > 0, "{key}");
                slot.n_garbage = slot.n_garbage.saturating_sub(1);
                if is_over(slot, self.compacted) {
                    self.forget(key);
                }
            }
        }
    }

    /// Puts a finished base segment in. Its records are needed as they are followed.
    pub(crate) fn add_base(&mut self, segment: Arc<Segment>, used_bytes: u64, n_records: u64, last: Revision) {
        let number = segment.name.number;
        let state = SegmentState { segment, used_bytes, needed_bytes: 0, last, n_records, is_sealed: true };
        self.segments.insert(number, state);
    }

    /// Takes a segment out that nothing refers to any more.
    pub(crate) fn remove_segment(&mut self, number: u32) -> Option<SegmentState> {
        debug_assert!(self.segments.get(&number).is_none_or(|state| state.needed_bytes == 0), "segment {number}");
        self.segments.remove(&number)
    }
}

/// Whether the key is deleted for good: no read can ask for it and no segment holds a put of it.
pub(super) fn is_over(slot: &Slot, compacted: Revision) -> bool {
    !slot.newest.is_put() && slot.newest.revision <= compacted && slot.n_garbage == 0
}
