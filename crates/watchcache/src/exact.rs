//! The state at a revision of the window: the present one with the newer events undone. Pages of a long list ask for the
//! same revision again and again, so the last few states are kept.

use crate::state::{Records, State};
use parking_lot::Mutex;
use pintle_storage::Revision;
use std::collections::VecDeque;
use std::sync::Arc;

/// States kept. The one that was not asked for longest goes first. Beside what the window keeps anyway, a state costs the
/// nodes of the map that have changed since.
const STATES_MAX: usize = 16;

/// Some states of the recent past.
#[derive(Debug, Default)]
pub(crate) struct ExactStates {
    /// The one that was asked for last is the last.
    states: Mutex<VecDeque<(Revision, Records)>>,
}

impl ExactStates {
    /// Keeps a state that will be asked for again.
    pub(crate) fn keep(&self, revision: Revision, records: &Records) {
        let mut states = self.states.lock();
        states.retain(|(other, _)| *other != revision);
        if states.len() == STATES_MAX {
            states.pop_front();
        }
        states.push_back((revision, records.clone()));
    }

    /// The records as they were at a revision that lies in the window and is reached.
    pub(crate) fn at(&self, state: &Arc<State>, revision: Revision) -> Records {
        if let Some(records) = self.find(revision) {
            return records;
        }
        let mut records = state.records.clone();
        let mut n_undone = 0;
        for event in state.window.newest_until(revision) {
            n_undone += 1;
            match &event.previous {
                Some(previous) => records.insert(event.key.clone(), Arc::clone(previous)),
                None => records.remove(&event.key),
            };
        }
        if n_undone > 0 {
            self.keep(revision, &records);
        }
        records
    }

    fn find(&self, revision: Revision) -> Option<Records> {
        let mut states = self.states.lock();
        let idx = states.iter().position(|(other, _)| *other == revision)?;
        let found = states.remove(idx)?;
        let records = found.1.clone();
        states.push_back(found);
        Some(records)
    }

    /// Lets go of states that are older than the window.
    pub(crate) fn trim(&self, since: Revision) {
        self.states.lock().retain(|(revision, _)| *revision >= since);
    }

    /// Lets go of everything.
    pub(crate) fn clear(&self) {
        self.states.lock().clear();
    }
}
