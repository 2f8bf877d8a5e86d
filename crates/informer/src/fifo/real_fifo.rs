//! [`RealFifo`]: a queue of changes in the order in which they came.

use super::{Deleted, Delta, KnownObjects, Popped, Process, Queue};
use crate::ObjectName;
use crate::store::{Item, Store};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Changes that may wait before a reflector stops reading; lists may go over it. The server then holds the events
/// back and, in time, closes the watch of so slow a reader.
pub const WAITING_CHANGES_MAX: usize = 100_000;

/// A queue of single changes in their order: what is processed after some change has seen every change before it, of
/// any object. Upstream's default since 1.33 (`InOrderInformers`).
pub struct RealFifo<T> {
    state: Mutex<State<T>>,
    known: Arc<dyn KnownObjects<T>>,
    arrived: Notify,
    popped: Notify,
}

struct State<T> {
    changes: VecDeque<Delta<T>>,
    /// How many of `changes` each object has. No zeroes.
    n_waiting: BTreeMap<ObjectName, usize>,
    is_populated: bool,
    n_initial: usize,
    is_closed: bool,
}

impl<T: Item> State<T> {
    fn push(&mut self, delta: Delta<T>) {
        *self.n_waiting.entry(delta.object().object_name()).or_default() += 1;
        self.changes.push_back(delta);
    }

    fn pop(&mut self) -> Option<(ObjectName, Delta<T>)> {
        let delta = self.changes.pop_front()?;
        let name = delta.object().object_name();
        if let Some(n_waiting) = self.n_waiting.get_mut(&name) {
            *n_waiting -= 1;
            if *n_waiting == 0 {
                self.n_waiting.remove(&name);
            }
        }
        Some((name, delta))
    }

    /// The field comments above, executed.
    fn check(&self) {
        debug_assert!(self.n_waiting.len() <= self.changes.len());
        debug_assert_eq!(self.n_waiting.is_empty(), self.changes.is_empty());
    }
}

impl<T> std::fmt::Debug for RealFifo<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.lock();
        f.debug_struct("RealFifo")
            .field("n_changes", &state.changes.len())
            .field("is_closed", &state.is_closed)
            .finish()
    }
}

impl<T: Item> RealFifo<T> {
    /// A queue in front of `known`.
    pub fn new(known: Arc<dyn KnownObjects<T>>) -> RealFifo<T> {
        let state = State {
            changes: VecDeque::new(),
            n_waiting: BTreeMap::new(),
            is_populated: false,
            n_initial: 0,
            is_closed: false,
        };
        RealFifo { state: Mutex::new(state), known, arrived: Notify::new(), popped: Notify::new() }
    }

    fn push(&self, delta: Delta<T>) {
        let mut state = self.state.lock();
        state.is_populated = true;
        state.push(delta);
        state.check();
        drop(state);
        self.arrived.notify_waiters();
    }
}

impl<T: Item> Store<T> for RealFifo<T> {
    fn add(&self, object: T) {
        self.push(Delta::Added(object));
    }

    fn update(&self, object: T) {
        self.push(Delta::Updated(object));
    }

    fn delete(&self, object: T) {
        self.push(Delta::Deleted(Deleted::Final(object)));
    }

    fn replace(&self, objects: Vec<T>, _resource_version: &str) {
        let mut state = self.state.lock();
        let listed: BTreeSet<ObjectName> = objects.iter().map(Item::object_name).collect();
        // what will be known downstream once everything that waits is processed
        let mut last: BTreeMap<ObjectName, Option<T>> = BTreeMap::new();
        for delta in &state.changes {
            let object = (!matches!(delta, Delta::Deleted(_))).then(|| delta.object().clone());
            last.insert(delta.object().object_name(), object);
        }
        for name in self.known.list_keys() {
            last.entry(name.clone()).or_insert_with(|| self.known.get_by_key(&name));
        }
        let mut n_changes = objects.len();
        for (_, gone) in last.into_iter().filter(|(name, _)| !listed.contains(name)) {
            if let Some(object) = gone {
                state.push(Delta::Deleted(Deleted::FinalStateUnknown(object)));
                n_changes += 1;
            }
        }
        for object in objects {
            state.push(Delta::Replaced(object));
        }
        if !state.is_populated {
            state.is_populated = true;
            state.n_initial = n_changes;
        }
        state.check();
        drop(state);
        self.arrived.notify_waiters();
    }

    fn resync(&self) {
        let mut state = self.state.lock();
        for name in self.known.list_keys() {
            // an object that waits will be looked at anyway, and with newer content
            if state.n_waiting.contains_key(&name) {
                continue;
            }
            if let Some(object) = self.known.get_by_key(&name) {
                state.push(Delta::Sync(object));
            }
        }
        state.check();
        drop(state);
        self.arrived.notify_waiters();
    }

    fn held(&self, object: T) -> T {
        self.known.held(object)
    }

    fn has_room(&self) -> bool {
        self.state.lock().changes.len() < WAITING_CHANGES_MAX
    }
}

impl<T: Item> Queue<T> for RealFifo<T> {
    fn try_pop(&self, process: Process<'_, T>) -> Popped {
        let mut state = self.state.lock();
        let Some((name, delta)) = state.pop() else {
            return if state.is_closed { Popped::Closed } else { Popped::Empty };
        };
        let is_in_initial_list = !(state.is_populated && state.n_initial == 0);
        state.n_initial = state.n_initial.saturating_sub(1);
        state.check();
        let result = process(vec![delta], is_in_initial_list);
        drop(state);
        self.popped.notify_waiters();
        Popped::Processed(name, result)
    }

    fn arrived(&self) -> Notified<'_> {
        self.arrived.notified()
    }

    fn popped(&self) -> Notified<'_> {
        self.popped.notified()
    }

    fn add_if_not_present(&self, deltas: Vec<Delta<T>>) {
        let Some(first) = deltas.first() else { return };
        let mut state = self.state.lock();
        state.is_populated = true;
        if !state.n_waiting.contains_key(&first.object().object_name()) {
            for delta in deltas {
                state.push(delta);
            }
        }
        state.check();
        drop(state);
        self.arrived.notify_waiters();
    }

    fn has_synced(&self) -> bool {
        let state = self.state.lock();
        state.is_populated && state.n_initial == 0
    }

    fn close(&self) {
        self.state.lock().is_closed = true;
        self.arrived.notify_waiters();
    }

    fn len(&self) -> usize {
        self.state.lock().changes.len()
    }
}
