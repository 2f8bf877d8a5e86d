//! What happened to the objects of one resource, for watches.

use super::tracker::{Key, Selection};
use bytes::Bytes;
use pintle_apimachinery::{Status, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The objects of a collection at some revision.
pub(super) type Objects = BTreeMap<Key, Arc<Value>>;

/// One change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) revision: u64,
    pub(super) key: Key,
    pub(super) old: Option<Arc<Value>>,
    /// `None`: deleted.
    pub(super) new: Option<Arc<Value>>,
}

/// All changes, oldest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    changes: Vec<Change>,
    /// Changes up to this revision are not shown to watches any more.
    compacted: u64,
}

impl Log {
    pub(super) fn push(&mut self, change: Change) {
        debug_assert!(self.changes.last().is_none_or(|last| last.revision < change.revision));
        self.changes.push(change);
    }

    /// Watches from before `revision` are too old from now on.
    pub(super) fn compact(&mut self, revision: u64) {
        self.compacted = revision;
    }

    /// Takes every change after `revision` back.
    pub(super) fn undo(&self, revision: u64, objects: &mut Objects) {
        for change in self.changes.iter().rev().take_while(|change| change.revision > revision) {
            match &change.old {
                Some(old) => drop(objects.insert(change.key.clone(), Arc::clone(old))),
                None => drop(objects.remove(&change.key)),
            }
        }
    }

    /// The first change after `revision`.
    ///
    /// # Errors
    /// `Expired` when some of them may be forgotten.
    pub(super) fn after(&self, revision: u64) -> Result<Option<&Change>, Status> {
        if revision < self.compacted {
            return Err(Status::expired(format!("too old resource version: {revision} ({})", self.compacted)));
        }
        let idx = self.changes.partition_point(|change| change.revision <= revision);
        Ok(self.changes.get(idx))
    }
}

impl Change {
    /// The frame that a watch of `selection` shows; `None` when it does not concern it.
    pub(super) fn frame(&self, selection: &Selection) -> Option<Bytes> {
        let is_selected =
            |object: &Option<Arc<Value>>| object.as_ref().is_some_and(|object| selection.matches(&self.key, object));
        match (is_selected(&self.old), is_selected(&self.new)) {
            (false, false) => None,
            (false, true) => Some(frame("ADDED", self.new.as_deref()?)),
            (true, true) => Some(frame("MODIFIED", self.new.as_deref()?)),
            (true, false) => {
                let mut last = self.old.as_deref()?.clone();
                last.make("metadata").set("resourceVersion", self.revision.to_string());
                Some(frame("DELETED", &last))
            }
        }
    }
}

pub(super) fn frame(event_type: &str, object: &Value) -> Bytes {
    let mut line = json!({ "type": event_type }).to_json();
    line.pop();
    line.extend_from_slice(b",\"object\":");
    object_into(&mut line, object);
    line.extend_from_slice(b"}\n");
    Bytes::from(line)
}

fn object_into(line: &mut Vec<u8>, object: &Value) {
    pintle_apimachinery::value::write_value(line, object);
}

/// A bookmark of this revision.
pub(super) fn bookmark(api_version: &str, kind: &str, revision: u64, is_initial_events_end: bool) -> Bytes {
    let mut object =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "resourceVersion": revision.to_string() } });
    if is_initial_events_end {
        let end = pintle_apimachinery::meta::well_known::INITIAL_EVENTS_END;
        object.make("metadata.annotations").set(end, "true");
    }
    frame("BOOKMARK", &object)
}
