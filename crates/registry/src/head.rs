//! An object at rest: its JSON bytes, and what is read from them often.
//!
//! Stored bytes begin with `{"apiVersion":"V","kind":"K","metadata":{` and carry no resourceVersion, so that three
//! constant-time cuts serve every reader: the whole object with its version spliced in, an item of a typed list (which
//! carries neither apiVersion nor kind), an event's object. What was written by others (a kube-apiserver over the same
//! etcd) is brought to this form when it is first read.

use crate::fields::Fields;
use bytes::Bytes;
use parking_lot::Mutex;
use pintle_apimachinery::labels::Labels;
use pintle_apimachinery::value::{write_json_string, write_value};
use pintle_apimachinery::{Str, Value};
use pintle_storage::{Note, Record, Revision};
use std::sync::Arc;

/// What is kept beside a record's bytes.
#[derive(Debug)]
pub struct Head {
    /// The object's bytes in the form above; usually the record's own.
    bytes: Bytes,
    /// Where the members after `apiVersion` and `kind` begin: at `"metadata"`.
    body: u32,
    /// Where the members of `metadata` begin.
    meta: u32,
    /// Whether `metadata` has no members.
    is_meta_empty: bool,
    /// Labels, sorted by key.
    labels: Box<[(Str, Str)]>,
    /// Values of the fields that selectors of this kind may name, in the order of the kind's table.
    fields: Box<[Str]>,
    /// `metadata.uid`.
    pub uid: Str,
    /// Whether deletion has begun.
    pub is_terminating: bool,
    /// Other wire forms of this revision, made at most once while it is hot: keyed by who made them.
    forms: Mutex<Vec<(u32, Bytes)>>,
}

/// The members of metadata that are written first, in this order, as readers of raw JSON are used to.
const FIRST_METADATA: [&str; 4] = ["name", "generateName", "namespace", "uid"];

/// Serialises an object to the stored form: apiVersion, kind and metadata first, resourceVersion left out.
pub fn stored_bytes(object: &Value) -> Bytes {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(b"{\"apiVersion\":");
    write_json_string(&mut out, object["apiVersion"].str_or_empty());
    out.extend_from_slice(b",\"kind\":");
    write_json_string(&mut out, object["kind"].str_or_empty());
    out.extend_from_slice(b",\"metadata\":{");
    let mut is_first = true;
    let mut member = |key: &str, value: &Value, out: &mut Vec<u8>| {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        write_json_string(out, key);
        out.push(b':');
        write_value(out, value);
    };
    let metadata = &object["metadata"];
    for key in FIRST_METADATA {
        if let Some(value) = metadata.as_object().and_then(|m| m.get(key)) {
            member(key, value, &mut out);
        }
    }
    for (key, value) in metadata.entries() {
        if key != "resourceVersion" && !FIRST_METADATA.contains(&key.as_str()) {
            member(key, value, &mut out);
        }
    }
    out.push(b'}');
    for (key, value) in object.entries() {
        if matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        out.push(b',');
        write_json_string(&mut out, key);
        out.push(b':');
        write_value(&mut out, value);
    }
    out.push(b'}');
    out.shrink_to_fit();
    Bytes::from(out)
}

impl Head {
    /// The head of an object that is about to be written as `bytes` (made by [`stored_bytes`]).
    pub fn new(bytes: Bytes, object: &Value, fields: &Fields) -> Head {
        let (body, meta) = cuts(&bytes).unwrap_or_default();
        let metadata = &object["metadata"];
        Head {
            is_meta_empty: bytes.get(meta as usize) == Some(&b'}'),
            bytes,
            body,
            meta,
            labels: metadata["labels"].entries().map(|(k, v)| (k.clone(), Str::new(v.str_or_empty()))).collect(),
            fields: fields.values(object),
            uid: Str::new(metadata["uid"].str_or_empty()),
            is_terminating: !metadata["deletionTimestamp"].is_null(),
            forms: Mutex::default(),
        }
    }

    /// The head of a record, made when it is first asked for.
    pub fn of(record: &Record, fields: &Fields) -> Arc<Head> {
        record.note.get_or_make(|| {
            let object = crate::foreign::read(&record.value).unwrap_or_else(|why| {
                tracing::error!(key = %record.key, %why, "a stored object cannot be read");
                Value::Null
            });
            let bytes = if cuts(&record.value).is_some() { record.value.clone() } else { stored_bytes(&object) };
            Arc::new(Head::new(bytes, &object, fields))
        })
    }

    /// This head as a record's note.
    pub fn into_note(self) -> Note {
        Note::of(Arc::new(self))
    }

    /// The object without resourceVersion.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Bytes that this head keeps alive beyond the record's own.
    pub fn n_extra_bytes(&self) -> usize {
        self.forms.lock().iter().map(|(_, form)| form.len()).sum()
    }

    /// The value of the `idx`-th field of the kind's table.
    pub fn field(&self, idx: usize) -> &str {
        self.fields.get(idx).map_or("", Str::as_str)
    }

    /// Appends the whole object as of `revision`.
    pub fn write_object(&self, out: &mut Vec<u8>, revision: Revision) {
        let meta = self.meta as usize;
        out.extend_from_slice(&self.bytes[..meta]);
        self.write_version(out, revision);
        out.extend_from_slice(&self.bytes[meta..]);
    }

    /// Appends the object as an item of a typed list, which says neither its apiVersion nor its kind.
    pub fn write_item(&self, out: &mut Vec<u8>, revision: Revision) {
        let (body, meta) = (self.body as usize, self.meta as usize);
        out.push(b'{');
        out.extend_from_slice(&self.bytes[body..meta]);
        self.write_version(out, revision);
        out.extend_from_slice(&self.bytes[meta..]);
    }

    fn write_version(&self, out: &mut Vec<u8>, revision: Revision) {
        out.extend_from_slice(b"\"resourceVersion\":\"");
        write_u64(out, revision.get());
        out.extend_from_slice(if self.is_meta_empty { b"\"" } else { b"\"," });
    }

    /// The wire form `key` of this revision, made by `make` unless it is there. `None` when `make` fails.
    ///
    /// # Errors
    /// What `make` answers.
    pub fn form<E>(&self, key: u32, make: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        if let Some((_, form)) = self.forms.lock().iter().find(|(k, _)| *k == key) {
            return Ok(form.clone());
        }
        let made = make()?;
        let mut forms = self.forms.lock();
        if !forms.iter().any(|(k, _)| *k == key) {
            forms.push((key, made.clone()));
        }
        Ok(made)
    }

    /// Forgets other wire forms.
    pub fn forget_forms(&self) {
        *self.forms.lock() = Vec::new();
    }
}

impl Labels for Head {
    fn label(&self, key: &str) -> Option<&str> {
        self.labels.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok().map(|idx| self.labels[idx].1.as_str())
    }
}

fn write_u64(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Where `"metadata"` and its first member begin, if `bytes` are of the stored form.
fn cuts(bytes: &[u8]) -> Option<(u32, u32)> {
    let rest = bytes.strip_prefix(b"{\"apiVersion\":\"")?;
    let rest = &rest[plain_string_end(rest)?..];
    let rest = rest.strip_prefix(b"\",\"kind\":\"")?;
    let rest = &rest[plain_string_end(rest)?..];
    let rest = rest.strip_prefix(b"\",")?;
    let body = bytes.len() - rest.len();
    let rest = rest.strip_prefix(b"\"metadata\":{")?;
    let meta = bytes.len() - rest.len();
    Some((u32::try_from(body).ok()?, u32::try_from(meta).ok()?))
}

/// The length of a string's text up to its closing quote, if it has no escapes.
fn plain_string_end(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|&b| b == b'"' || b == b'\\')?;
    (bytes[end] == b'"').then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;
    use pintle_storage::Key;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cuts_serve_every_reader() {
        let object = json!({"data": {"k": "v"}, "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "name": "a", "labels": {"x": "y"}}});
        let bytes = stored_bytes(&object);
        let head = Head::new(bytes, &object, &Fields::NONE);
        let at = Revision::new(42).unwrap();
        assert_eq!(
            text(|out| head.write_object(out, at)),
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"42","name":"a","labels":{"x":"y"}},"data":{"k":"v"}}"#
        );
        assert_eq!(
            text(|out| head.write_item(out, at)),
            r#"{"metadata":{"resourceVersion":"42","name":"a","labels":{"x":"y"}},"data":{"k":"v"}}"#
        );
        assert_eq!(head.label("x"), Some("y"));
    }

    #[test]
    fn foreign_bytes_are_brought_to_the_stored_form() {
        let foreign = br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{},"data":{"k":"v"}}"#;
        let record = Record {
            key: Key::new("/a"),
            revision: Revision::FIRST,
            value: Bytes::from_static(foreign),
            note: Note::default(),
        };
        let head = Head::of(&record, &Fields::NONE);
        assert_eq!(
            text(|out| head.write_object(out, Revision::FIRST)),
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"1"},"data":{"k":"v"}}"#
        );
    }
}
