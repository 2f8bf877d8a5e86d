//! Building the index from what is found in the segments at start.

use super::compact::is_over;
use super::{Index, Slot};
use crate::segment::Version;
use pintle_storage::{Key, Revision};
use std::collections::{BTreeMap, VecDeque};

/// A record found in a segment.
#[derive(Clone, Debug)]
pub(crate) struct Physical<'a> {
    pub(crate) key: &'a str,
    pub(crate) version: Version,
    /// The version of the key that it replaced, as it says.
    pub(crate) previous: Option<Revision>,
}

/// Builds an index.
#[derive(Debug)]
pub(crate) struct Builder {
    index: Index,
    /// Creations after `index.compacted` of keys of which older records were found: what is older is garbage, though
    /// the deletion between the two may be gone.
    births: BTreeMap<Key, Revision>,
}

impl Builder {
    /// An index of nothing whose history begins at `compacted`. Its segments must be added before their records.
    pub(crate) fn new(compacted: Revision) -> Builder {
        let index = Index {
            keys: BTreeMap::new(),
            history: VecDeque::new(),
            compacted,
            revision: compacted,
            segments: BTreeMap::new(),
            n_live: 0,
            marks: VecDeque::new(),
            log_bytes: 0,
        };
        Builder { index, births: BTreeMap::new() }
    }

    /// The index so far, to add segments.
    pub(crate) fn index(&mut self) -> &mut Index {
        &mut self.index
    }

    /// The newest revision found.
    pub(crate) fn revision(&self) -> Revision {
        self.index.revision
    }

    /// Takes in a record that a segment holds. Records up to the compacted revision come in any order, then the others
    /// in theirs.
    pub(crate) fn found(&mut self, record: &Physical<'_>) {
        let version = record.version;
        let index = &mut self.index;
        index.revision = index.revision.max(version.revision);
        index.count_in(&version);
        let Some(slot) = index.keys.get_mut(record.key) else {
            index.keys.insert(Key::new(record.key), Slot::new(version));
            return;
        };
        if record.previous.is_none() && version.revision > index.compacted && !self.births.contains_key(record.key) {
            self.births.insert(Key::new(record.key), version.revision);
        }
        // For now, all versions are kept; `finish` sorts out which are needed.
        let older = if version.revision > slot.newest.revision {
            std::mem::replace(&mut slot.newest, version)
        } else {
            version
        };
        let versions = slot.older.get_or_insert_default();
        let at = versions.partition_point(|version| version.revision < older.revision);
        versions.insert(at, older);
    }

    /// Sorts out what is needed, once everything was found; the store stands at least at `revision`.
    ///
    /// # Errors
    /// The first revision that is missing, if one is.
    pub(crate) fn finish(self, revision: Revision) -> Result<Index, Revision> {
        let Builder { mut index, births } = self;
        index.revision = index.revision.max(revision);
        let compacted = index.compacted;
        let mut history: Vec<(Revision, Key)> = Vec::new();
        let mut useless: Vec<Version> = Vec::new();
        let mut over: Vec<Key> = Vec::new();
        for (key, slot) in &mut index.keys {
            useless.extend(slot.sort_out(compacted, births.get(key).copied()));
            let news = slot.older().iter().chain([&slot.newest]).filter(|version| version.revision > compacted);
            history.extend(news.map(|version| (version.revision, key.clone())));
            if is_over(slot, compacted) {
                over.push(key.clone());
            }
        }
        for version in &useless {
            index.count_out(version);
        }
        for key in over {
            index.forget(&key);
        }
        index.n_live = index.keys.values().filter(|slot| slot.newest.is_put()).count();
        history.sort_unstable_by_key(|(revision, _)| *revision);
        let mut expected = compacted.next();
        for (revision, key) in history {
            if revision != expected {
                return Err(expected);
            }
            index.history.push_back(key);
            expected = expected.next();
        }
        if expected <= index.revision { Err(expected) } else { Ok(index) }
    }
}

impl Slot {
    /// Takes out the versions that are not needed, counting the puts among them. `birth` is the first creation after the
    /// compacted revision, if older records of the key were found.
    fn sort_out(&mut self, compacted: Revision, birth: Option<Revision>) -> Vec<Version> {
        let Some(older) = &mut self.older else { return Vec::new() };
        let n_old = older.partition_point(|version| version.revision <= compacted);
        let first_new = older.get(n_old).unwrap_or(&self.newest).revision;
        let is_current = first_new > compacted && birth != Some(first_new);
        let keeps_last = is_current && n_old > 0 && older.get(n_old - 1).is_some_and(Version::is_put);
        let useless: Vec<Version> = older.drain(..n_old - usize::from(keeps_last)).collect();
        self.n_garbage += useless.iter().map(|version| u32::from(version.is_put())).sum::<u32>();
        if older.is_empty() {
            self.older = None;
        }
        useless
    }
}
