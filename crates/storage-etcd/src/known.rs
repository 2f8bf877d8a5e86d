//! What this process knows without asking etcd: how much is compacted, and records it holds anyway, so that an event's
//! records are those that writers, caches and readers have already, with all that was derived from them.

use crate::convert::{self, from_wire};
use crate::proto::KeyValue;
use parking_lot::Mutex;
use pintle_storage::{Record, Revision};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Records written by this process that are kept until a watch tells them. Later ones are parsed anew.
const OWN_RECORDS_MAX: usize = 256;

/// Records whose holders are remembered; the oldest is forgotten first. 32 bytes each.
const HELD_RECORDS_MAX: usize = 32_768;

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Revisions below are known to be compacted.
    compacted: AtomicU64,
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    own: VecDeque<Arc<Record>>,
    held: BTreeMap<Revision, Weak<Record>>,
}

impl Records {
    fn hold(&mut self, record: &Arc<Record>) {
        self.held.insert(record.revision, Arc::downgrade(record));
        if self.held.len() > HELD_RECORDS_MAX {
            self.held.pop_first();
        }
    }
}

impl Known {
    /// The oldest revision that may be readable.
    pub(crate) fn compacted(&self) -> Revision {
        Revision::new(self.compacted.load(Ordering::Acquire)).unwrap_or(Revision::FIRST)
    }

    /// Revisions before this one are compacted.
    pub(crate) fn note_compacted(&self, revision: Revision) {
        self.compacted.fetch_max(revision.get(), Ordering::AcqRel);
    }

    /// This process wrote a record.
    pub(crate) fn note_own(&self, record: &Arc<Record>) {
        let mut records = self.records.lock();
        if records.own.len() == OWN_RECORDS_MAX {
            records.own.pop_front();
        }
        records.own.push_back(Arc::clone(record));
        records.hold(record);
    }

    /// The record of a version: the one that somebody holds, else a new one.
    pub(crate) fn record(&self, kv: &KeyValue) -> Option<Arc<Record>> {
        let held = self.records.lock().held.get(&from_wire(kv.mod_revision)).and_then(Weak::upgrade);
        // A transaction of somebody else may have written several keys at one revision.
        if let Some(held) = held.filter(|held| held.key.as_bytes() == kv.key) {
            return Some(held);
        }
        let record = convert::record(kv)?;
        self.records.lock().hold(&record);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use pintle_storage::{Key, Note};

    #[test]
    fn held_records_are_found_again() {
        let known = Known::default();
        let revision = Revision::new(7).expect("not 0");
        let (key, value) = (Key::new("a"), Bytes::from_static(b"v"));
        let own = Arc::new(Record { key, revision, value, note: Note::of(Arc::new(1)) });
        known.note_own(&own);
        let kv = KeyValue { key: "a".into(), mod_revision: 7, value: "v".into(), ..KeyValue::default() };
        assert!(Arc::ptr_eq(&known.record(&kv).expect("text"), &own));
        let other = known.record(&KeyValue { key: "b".into(), ..kv }).expect("text");
        assert_eq!((&*other.key, other.note.peek::<i32>()), ("b", None));
    }

    #[test]
    fn compaction_only_moves_on() {
        let known = Known::default();
        known.note_compacted(Revision::new(9).expect("not 0"));
        known.note_compacted(Revision::new(5).expect("not 0"));
        assert_eq!(known.compacted().get(), 9);
    }
}
