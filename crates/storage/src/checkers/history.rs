//! What really happened: all events of a store, in order.

use super::{Guarantee, Verdict, at, broken};
use crate::{Event, Key, Record, Revision};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All events of a store after one revision, in order.
#[derive(Clone, Debug)]
pub struct History {
    /// Where the history begins: the state before the first event.
    pub base: BTreeMap<Key, Arc<Record>>,
    /// The revision of that state.
    pub since: Revision,
    /// The events.
    pub events: Vec<Arc<Event>>,
}

impl History {
    /// The history of a store that was empty at `since`.
    pub fn from_empty(since: Revision, events: Vec<Arc<Event>>) -> History {
        History { base: BTreeMap::new(), since, events }
    }

    /// Events after `since`, up to and including `until`, of keys that begin with `prefix`.
    pub fn between(&self, since: Revision, until: Revision, prefix: &str) -> impl Iterator<Item = &Arc<Event>> {
        let first = self.events.partition_point(|event| event.revision <= since);
        let end = self.events.partition_point(|event| event.revision <= until);
        self.events.get(first..end.max(first)).unwrap_or_default().iter().filter(move |e| e.key.starts_with(prefix))
    }

    /// The state at a revision.
    pub fn state_at(&self, revision: Revision) -> BTreeMap<Key, Arc<Record>> {
        let mut state = self.base.clone();
        let end = self.events.partition_point(|event| event.revision <= revision);
        for event in self.events.get(..end).unwrap_or_default() {
            fold(&mut state, event);
        }
        state
    }

    /// Whether the history makes sense by itself: revisions grow, creates are of absent keys, deletions of present ones,
    /// and every event carries what the key held before.
    ///
    /// # Errors
    /// The first event that does not fit.
    pub fn check(&self) -> Verdict {
        let mut state = self.base.clone();
        let mut newest = self.since;
        for event in &self.events {
            let name = at(&event.key, event.revision);
            if event.revision <= newest {
                return broken(Guarantee::Ordered, format!("{name} comes after revision {newest}"));
            }
            newest = event.revision;
            let held = state.get(&event.key);
            if event.is_delete() && held.is_none() {
                return broken(Guarantee::Linearizable, format!("{name} deletes what is not there"));
            }
            if !is_same(held, event.previous.as_ref()) {
                return broken(
                    Guarantee::PrevKv,
                    format!("{name} carries {}, the key held {}", show(event.previous.as_ref()), show(held)),
                );
            }
            if let Some(record) = &event.record
                && (record.revision != event.revision || record.key != event.key)
            {
                return broken(Guarantee::Reliable, format!("{name} carries {}", show(Some(record))));
            }
            fold(&mut state, event);
        }
        Ok(())
    }
}

/// Applies one event to a state.
pub fn fold(state: &mut BTreeMap<Key, Arc<Record>>, event: &Event) {
    match &event.record {
        Some(record) => state.insert(event.key.clone(), Arc::clone(record)),
        None => state.remove(&event.key),
    };
}

/// Whether both are the same version with the same value, or both are nothing.
pub(super) fn is_same(a: Option<&Arc<Record>>, b: Option<&Arc<Record>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.key == b.key && a.revision == b.revision && a.value == b.value,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// A record in few words.
pub(super) fn show(record: Option<&Arc<Record>>) -> String {
    record.map_or_else(
        || "nothing".to_owned(),
        |record| {
            let text = String::from_utf8_lossy(&record.value);
            let start: String = text.chars().take(24).collect();
            format!("{} {start:?}", at(&record.key, record.revision))
        },
    )
}
