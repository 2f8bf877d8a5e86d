//! [`DeltaFifo`]: a queue of objects with their gathered changes.

use super::{Deleted, Delta, KnownObjects, Popped, Process, Queue};
use crate::ObjectName;
use crate::store::{Item, Store};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// A queue in which an object waits once, with all its changes since it was last taken out.
///
/// Use it to process every change, to process each object at most once at a time, and to hear of the deletion of what
/// is no longer there. Consecutive deletions are one. Differs from upstream: it never emits `Sync` for a list, always
/// `Replaced` (upstream's `EmitDeltaTypeReplaced`).
pub struct DeltaFifo<T> {
    state: Mutex<State<T>>,
    known: Option<Arc<dyn KnownObjects<T>>>,
    arrived: Notify,
    popped: Notify,
}

struct State<T> {
    /// Names in pop order. A name is here if and only if it is in `items`. No duplicates.
    order: VecDeque<ObjectName>,
    /// Changes per object, oldest first. Never an empty vector.
    items: BTreeMap<ObjectName, Vec<Delta<T>>>,
    /// Whether something was put in: the first list, or a change before it.
    is_populated: bool,
    /// Objects of the first list that were not taken out yet.
    n_initial: usize,
    is_closed: bool,
}

impl<T: Item> State<T> {
    /// The field comments above, executed while the queue is short.
    fn check(&self) {
        const CHECKED_ITEMS_MAX: usize = 64;
        debug_assert_eq!(self.order.len(), self.items.len());
        if self.order.len() <= CHECKED_ITEMS_MAX {
            debug_assert!(self.order.iter().all(|name| self.items.get(name).is_some_and(|d| !d.is_empty())));
        }
    }

    fn push(&mut self, name: ObjectName, delta: Delta<T>) {
        if let Some(deltas) = self.items.get_mut(&name) {
            deltas.push(delta);
            merge_deletions(deltas);
        } else {
            self.order.push_back(name.clone());
            self.items.insert(name, vec![delta]);
        }
    }
}

/// Two deletions in a row are one: the one that knows the final state, else the later.
fn merge_deletions<T>(deltas: &mut Vec<Delta<T>>) {
    if let [.., Delta::Deleted(earlier), Delta::Deleted(later)] = deltas.as_slice() {
        let keep_earlier = later.is_final_state_unknown() && !earlier.is_final_state_unknown();
        let redundant = if keep_earlier { deltas.len() - 1 } else { deltas.len() - 2 };
        deltas.remove(redundant);
    }
}

impl<T> std::fmt::Debug for DeltaFifo<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.lock();
        f.debug_struct("DeltaFifo").field("n_items", &state.order.len()).field("is_closed", &state.is_closed).finish()
    }
}

impl<T: Item> DeltaFifo<T> {
    /// A queue in front of `known`; `None` when there is no cache downstream, and then deletions that a list implies
    /// are found only for objects that still wait here.
    pub fn new(known: Option<Arc<dyn KnownObjects<T>>>) -> DeltaFifo<T> {
        let state = State {
            order: VecDeque::new(),
            items: BTreeMap::new(),
            is_populated: false,
            n_initial: 0,
            is_closed: false,
        };
        DeltaFifo { state: Mutex::new(state), known, arrived: Notify::new(), popped: Notify::new() }
    }

    fn push(&self, delta: Delta<T>) {
        let mut state = self.state.lock();
        state.is_populated = true;
        state.push(delta.object().object_name(), delta);
        state.check();
        drop(state);
        self.arrived.notify_waiters();
    }

    /// The changes that wait for an object.
    pub fn get(&self, name: &ObjectName) -> Option<Vec<Delta<T>>> {
        self.state.lock().items.get(name).cloned()
    }
}

impl<T: Item> Store<T> for DeltaFifo<T> {
    fn add(&self, object: T) {
        self.push(Delta::Added(object));
    }

    fn update(&self, object: T) {
        self.push(Delta::Updated(object));
    }

    fn delete(&self, object: T) {
        let name = object.object_name();
        let is_known = self.known.as_ref().is_some_and(|known| known.get_by_key(&name).is_some());
        if !is_known && !self.state.lock().items.contains_key(&name) {
            // gone before anybody heard of it
            self.state.lock().is_populated = true;
            return;
        }
        self.push(Delta::Deleted(Deleted::Final(object)));
    }

    fn replace(&self, objects: Vec<T>, _resource_version: &str) {
        let mut state = self.state.lock();
        let mut listed = BTreeSet::new();
        for object in objects {
            let name = object.object_name();
            state.push(name.clone(), Delta::Replaced(object));
            listed.insert(name);
        }
        let mut n_gone = 0;
        let waiting: Vec<ObjectName> = state.items.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in waiting {
            let Some(newest) = state.items.get(&name).and_then(|deltas| deltas.last()) else { continue };
            let last = newest.object().clone();
            state.push(name, Delta::Deleted(Deleted::FinalStateUnknown(last)));
            n_gone += 1;
        }
        if let Some(known) = &self.known {
            for name in known.list_keys() {
                if listed.contains(&name) || state.items.contains_key(&name) {
                    continue;
                }
                if let Some(last) = known.get_by_key(&name) {
                    state.push(name, Delta::Deleted(Deleted::FinalStateUnknown(last)));
                    n_gone += 1;
                }
            }
        }
        if !state.is_populated {
            state.is_populated = true;
            state.n_initial = listed.len() + n_gone;
        }
        state.check();
        drop(state);
        self.arrived.notify_waiters();
    }

    fn resync(&self) {
        let Some(known) = &self.known else { return };
        let mut state = self.state.lock();
        for name in known.list_keys() {
            // an object that waits will be looked at anyway, and with newer content
            if state.items.contains_key(&name) {
                continue;
            }
            if let Some(object) = known.get_by_key(&name) {
                state.push(name, Delta::Sync(object));
            }
        }
        state.check();
        drop(state);
        self.arrived.notify_waiters();
    }

    fn held(&self, object: T) -> T {
        match &self.known {
            Some(known) => known.held(object),
            None => object,
        }
    }
}

impl<T: Item> Queue<T> for DeltaFifo<T> {
    fn try_pop(&self, process: Process<'_, T>) -> Popped {
        let mut state = self.state.lock();
        let Some(name) = state.order.pop_front() else {
            return if state.is_closed { Popped::Closed } else { Popped::Empty };
        };
        let is_in_initial_list = !(state.is_populated && state.n_initial == 0);
        state.n_initial = state.n_initial.saturating_sub(1);
        let deltas = state.items.remove(&name).unwrap_or_default();
        debug_assert!(!deltas.is_empty(), "{name} waited without a change");
        state.check();
        let result = process(deltas, is_in_initial_list);
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
        let name = first.object().object_name();
        let mut state = self.state.lock();
        state.is_populated = true;
        if !state.items.contains_key(&name) {
            state.order.push_back(name.clone());
            state.items.insert(name, deltas);
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
        self.state.lock().order.len()
    }
}
