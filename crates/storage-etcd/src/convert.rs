//! Between etcd's messages and the store's records.

use crate::known::Known;
use crate::proto::{self, EventType, KeyValue};
use bytes::Bytes;
use pintle_storage::{Event, Key, Note, Record, Revision};
use std::sync::Arc;

/// A revision as etcd writes it.
pub(crate) fn to_wire(revision: Revision) -> i64 {
    i64::try_from(revision.get()).unwrap_or(i64::MAX)
}

/// A revision that etcd wrote. None is below 1.
pub(crate) fn from_wire(revision: i64) -> Revision {
    u64::try_from(revision).ok().and_then(Revision::new).unwrap_or(Revision::FIRST)
}

/// The first key behind all those that begin with a prefix; "\0" stands for the end of all keys.
pub(crate) fn range_end(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end.into();
        }
    }
    Bytes::from_static(b"\0")
}

/// A record of its own memory: what etcd sends lies in buffers of many records, which one of them would keep alive.
/// `None` for a key that is no text, which nobody can ask for.
pub(crate) fn record(kv: &KeyValue) -> Option<Arc<Record>> {
    let Ok(text) = std::str::from_utf8(&kv.key) else {
        tracing::warn!(key = %kv.key.escape_ascii(), "a key in etcd is no text; it is passed over");
        return None;
    };
    let value = Bytes::copy_from_slice(&kv.value);
    let revision = from_wire(kv.mod_revision);
    Some(Arc::new(Record { key: Key::new(text), revision, value, note: Note::default() }))
}

/// What one event of a watch means.
#[derive(Debug)]
pub(crate) enum Told {
    /// A change.
    Event(Arc<Event>),
    /// A change whose previous value is compacted.
    Compacted(Revision),
    /// Nothing that concerns anybody.
    Nothing,
}

/// An event, with records that are known already where there are such.
pub(crate) fn event(event: &proto::Event, known: &Known) -> Told {
    let Some(kv) = &event.kv else { return Told::Nothing };
    let revision = from_wire(kv.mod_revision);
    let is_delete = event.r#type == EventType::Delete as i32;
    let is_create = !is_delete && kv.create_revision == kv.mod_revision;
    let previous = event.prev_kv.as_ref().and_then(|kv| known.record(kv));
    if previous.is_none() && !is_create {
        return if std::str::from_utf8(&kv.key).is_ok() { Told::Compacted(revision) } else { Told::Nothing };
    }
    let record = if is_delete { None } else { known.record(kv) };
    let Some(key) = record.as_ref().or(previous.as_ref()).map(|record| record.key.clone()) else {
        return Told::Nothing;
    };
    Told::Event(Arc::new(Event { key, revision, record, previous, note: Note::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(key: &'static [u8], create: i64, modified: i64) -> KeyValue {
        let key = Bytes::from_static(key);
        KeyValue { key, create_revision: create, mod_revision: modified, version: 1, value: Bytes::from_static(b"v") }
    }

    #[test]
    fn ends_of_ranges() {
        assert_eq!(range_end("/registry/pods/"), "/registry/pods0");
        assert_eq!(range_end("a"), "b");
        assert_eq!(range_end(""), "\0");
        assert_eq!(range_end("\u{7f}"), Bytes::from_static(b"\x80"));
    }

    #[test]
    fn events_tell_what_was_before() {
        let known = Known::default();
        let make = |r#type: EventType, kv, prev_kv| {
            let told = event(&proto::Event { r#type: r#type as i32, kv: Some(kv), prev_kv }, &known);
            match told {
                Told::Event(event) => format!(
                    "{} {} {:?} {:?}",
                    event.key,
                    event.revision,
                    event.record.as_ref().map(|record| record.revision.get()),
                    event.previous.as_ref().map(|record| record.revision.get())
                ),
                Told::Compacted(revision) => format!("compacted at {revision}"),
                Told::Nothing => "nothing".to_owned(),
            }
        };
        assert_eq!(make(EventType::Put, kv(b"a", 5, 5), None), "a 5 Some(5) None");
        assert_eq!(make(EventType::Put, kv(b"a", 5, 7), Some(kv(b"a", 5, 5))), "a 7 Some(7) Some(5)");
        assert_eq!(make(EventType::Put, kv(b"a", 5, 7), None), "compacted at 7");
        assert_eq!(make(EventType::Delete, kv(b"a", 0, 8), Some(kv(b"a", 5, 7))), "a 8 None Some(7)");
        assert_eq!(make(EventType::Delete, kv(b"a", 0, 8), None), "compacted at 8");
        assert_eq!(make(EventType::Put, kv(b"\xff", 5, 5), None), "nothing");
    }
}
