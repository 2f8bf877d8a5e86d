//! What a handler heard, and whether it may have: the promises of [`SharedInformer`](crate::SharedInformer), executed.

use crate::fifo::Deleted;
use crate::handler::ResourceEventHandler;
use crate::store::Item;
use crate::{Cached, ObjectName};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A handler that keeps what it hears, and checks it.
#[derive(Debug)]
pub struct HistoryHandler {
    history: History,
}

/// What a handler heard so far. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct History {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// What is there, as far as the handler was told: uid and version.
    told: BTreeMap<ObjectName, (String, String)>,
    lines: Vec<String>,
    violations: Vec<Violation>,
    has_initial_list_ended: bool,
}

/// Something that a handler must not hear.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An addition of what was there.
    #[error("{0} was added twice")]
    AddedTwice(ObjectName),
    /// An update of what was not there.
    #[error("{0} was updated before it was added")]
    UpdatedUnknown(ObjectName),
    /// A deletion of what was not there.
    #[error("{0} was deleted before it was added")]
    DeletedUnknown(ObjectName),
    /// An update whose old state is not the last one told.
    #[error("{name} was updated from version {from}, but {told} was told last")]
    Gap {
        /// The object.
        name: ObjectName,
        /// The version told last.
        told: String,
        /// The version that the update says was before.
        from: String,
    },
    /// An older state after a newer one.
    #[error("{name} went back from version {from} to {to}")]
    WentBack {
        /// The object.
        name: ObjectName,
        /// The newer version.
        from: String,
        /// The older one.
        to: String,
    },
    /// An addition of the initial list after one that was not of it.
    #[error("{0} was of the initial list after that had ended")]
    LateInitial(ObjectName),
}

impl HistoryHandler {
    /// A handler, and what it will have heard.
    pub fn new() -> (HistoryHandler, History) {
        let history = History::default();
        (HistoryHandler { history: history.clone() }, history)
    }
}

impl History {
    /// What the handler heard, one line each: `add ns/name@3`.
    pub fn lines(&self) -> Vec<String> {
        self.state.lock().lines.clone()
    }

    /// What it must not have heard.
    pub fn violations(&self) -> Vec<Violation> {
        self.state.lock().violations.clone()
    }

    /// What is there, as far as the handler was told: names and versions.
    pub fn told(&self) -> BTreeMap<ObjectName, String> {
        self.state.lock().told.iter().map(|(name, (_, version))| (name.clone(), version.clone())).collect()
    }
}

/// Versions are opaque to programs. A checker may know that the server under test counts.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

impl State {
    fn put<T: Item>(&mut self, object: &T) {
        let state = (object.uid().to_owned(), object.resource_version().to_owned());
        self.told.insert(object.object_name(), state);
    }
}

impl<K: pintle_client::Object> ResourceEventHandler<Cached<K>> for HistoryHandler {
    fn on_add(&self, object: &Cached<K>, is_in_initial_list: bool) {
        let mut state = self.history.state.lock();
        let name = object.object_name();
        if state.told.contains_key(&name) {
            state.violations.push(Violation::AddedTwice(name.clone()));
        }
        if is_in_initial_list && state.has_initial_list_ended {
            state.violations.push(Violation::LateInitial(name));
        }
        state.has_initial_list_ended |= !is_in_initial_list;
        state.lines.push(format!("add {object:?}{}", if is_in_initial_list { " (initial)" } else { "" }));
        state.put(object);
    }

    fn on_update(&self, old: &Cached<K>, new: &Cached<K>) {
        let mut state = self.history.state.lock();
        let name = new.object_name();
        let (from, to) = (old.resource_version().to_owned(), new.resource_version().to_owned());
        match state.told.get(&name).cloned() {
            None => state.violations.push(Violation::UpdatedUnknown(name.clone())),
            Some((_, told)) if told != from => {
                state.violations.push(Violation::Gap { name: name.clone(), told, from: from.clone() });
            }
            Some(_) => {}
        }
        if is_older(&to, &from) {
            state.violations.push(Violation::WentBack { name, from: from.clone(), to });
        }
        state.lines.push(format!("update {new:?} from {from}"));
        state.put(new);
    }

    fn on_delete(&self, deleted: &Deleted<Cached<K>>) {
        let mut state = self.history.state.lock();
        let name = deleted.object_name();
        if state.told.remove(&name).is_none() {
            state.violations.push(Violation::DeletedUnknown(name));
        }
        let how = if deleted.is_final_state_unknown() { " (final state unknown)" } else { "" };
        state.lines.push(format!("delete {:?}{how}", deleted.object()));
    }
}
