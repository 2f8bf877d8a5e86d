//! Keys with a time to live: which is due next. The deletion itself is an ordinary write.

use parking_lot::Mutex;
use pintle_storage::{Key, Revision};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The deadlines of all keys that have one.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    deadlines: Mutex<Deadlines>,
    /// Told when another key is due next.
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Deadlines {
    /// Every entry is in `by_key`, too, and the other way round.
    by_time: BTreeSet<(Instant, Key)>,
    by_key: BTreeMap<Key, (Instant, Revision)>,
}

impl Expiry {
    /// Takes note of a write: the key is due then, or no more.
    pub(crate) fn set(&self, key: &Key, revision: Revision, due: Option<Instant>) {
        let mut deadlines = self.deadlines.lock();
        if due.is_none() && deadlines.by_key.is_empty() {
            return;
        }
        let first_before = deadlines.by_time.first().map(|(due, _)| *due);
        if let Some((old, _)) = deadlines.by_key.remove(key) {
            deadlines.by_time.remove(&(old, key.clone()));
        }
        if let Some(due) = due {
            deadlines.by_time.insert((due, key.clone()));
            deadlines.by_key.insert(key.clone(), (due, revision));
        }
        debug_assert_eq!(deadlines.by_time.len(), deadlines.by_key.len());
        let is_earlier = due.is_some_and(|due| first_before.is_none_or(|first| due < first));
        drop(deadlines);
        if is_earlier {
            self.changed.notify_one();
        }
    }

    /// Forgets the deadline that this revision set, if it is still the key's.
    pub(crate) fn forget(&self, key: &Key, revision: Revision) {
        let is_current = self.deadlines.lock().by_key.get(key).is_some_and(|(_, current)| *current == revision);
        if is_current {
            self.set(key, revision, None);
        }
    }

    /// When the next key is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.deadlines.lock().by_time.first().map(|(due, _)| *due)
    }

    /// Up to `n_max` keys that are due, with the revision that is to be deleted. They stay until [`Expiry::set`].
    pub(crate) fn due(&self, now: Instant, n_max: usize) -> Vec<(Key, Revision)> {
        let deadlines = self.deadlines.lock();
        let due = deadlines.by_time.iter().take_while(|(due, _)| *due <= now).take(n_max);
        due.filter_map(|(_, key)| deadlines.by_key.get(key).map(|(_, revision)| (key.clone(), *revision))).collect()
    }

    /// Told when another key is due next.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }
}
