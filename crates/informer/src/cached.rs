//! [`Cached`]: an object as a cache keeps it. Its JSON bytes and where the names stand in them; the typed object is
//! decoded when somebody touches it.
//!
//! A pod of 5.6 KB takes 29 KB as Rust structs and 5.9 KB here. Most readers of a cache want a name, a label or an
//! owner, and those are found in the bytes.

use crate::ObjectName;
use crate::head::Head;
use parking_lot::Mutex;
use pintle_apimachinery::GroupVersionKind;
use pintle_apimachinery::labels::Labels;
use pintle_client::Object;
use pintle_client::wire::{members, text_of, value_at};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

/// An object in a cache. Cheap to clone; it never changes.
///
/// The name, labels and owners are at hand without decoding; [`object`](Cached::object) decodes the rest. While
/// anybody holds the decoded object, everybody gets the same one.
pub struct Cached<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    raw: Box<[u8]>,
    head: Head,
    decoded: Mutex<Decoded<K>>,
    _kind: PhantomData<fn() -> K>,
}

enum Decoded<K> {
    /// Whoever asked last may still hold it.
    Shared(Weak<K>),
    /// Kept from the first time it is asked for.
    Keep(Option<Arc<K>>),
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Cached<K> {
        Cached { inner: Arc::clone(&self.inner) }
    }
}

impl<K> std::fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.object_name(), self.resource_version())
    }
}

/// Why a cached object is not what its Rust type says, or is no object at all.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{object} does not fit its type")]
pub struct DecodeError {
    /// The object.
    pub object: String,
    /// What does not fit.
    #[source]
    pub source: Arc<serde_json::Error>,
}

impl From<DecodeError> for pintle_client::Error {
    fn from(error: DecodeError) -> pintle_client::Error {
        pintle_client::Error::Decode { what: error.object.clone(), source: Box::new(error) }
    }
}

/// The bytes are no object with a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object has no metadata with a name")]
pub struct NotAnObject;

impl<K> Cached<K> {
    /// Takes the JSON of an object.
    ///
    /// # Errors
    /// [`NotAnObject`] when it has no `metadata.name`. The rest is looked at when it is asked for.
    pub fn from_json(raw: impl Into<Box<[u8]>>) -> Result<Cached<K>, NotAnObject> {
        let raw = raw.into();
        let head = Head::read(&raw).ok_or(NotAnObject)?;
        let decoded = Mutex::new(Decoded::Shared(Weak::new()));
        Ok(Cached { inner: Arc::new(Inner { raw, head, decoded, _kind: PhantomData }) })
    }

    /// As [`Cached::from_json`], for an object of a list, whose type stands with the list alone.
    ///
    /// # Errors
    /// As [`Cached::from_json`].
    pub fn from_list_item(raw: &[u8], gvk: &GroupVersionKind) -> Result<Cached<K>, NotAnObject> {
        if members(raw).take(2).any(|(key, _)| key == b"kind") {
            return Cached::from_json(raw);
        }
        let rest = raw.strip_prefix(b"{").ok_or(NotAnObject)?;
        let (api_version, kind) = (gvk.api_version(), &gvk.kind);
        let types = format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","#);
        let mut whole = Vec::with_capacity(types.len() + rest.len());
        whole.extend_from_slice(types.as_bytes());
        whole.extend_from_slice(rest);
        Cached::from_json(whole)
    }

    /// The JSON.
    pub fn raw(&self) -> &[u8] {
        &self.inner.raw
    }

    /// Namespace and name.
    pub fn object_name(&self) -> ObjectName {
        ObjectName::new(self.namespace(), self.name())
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.inner.head.name(&self.inner.raw)
    }

    /// `metadata.namespace`, or `""`.
    pub fn namespace(&self) -> &str {
        self.inner.head.namespace(&self.inner.raw)
    }

    /// `metadata.uid`, or `""`.
    pub fn uid(&self) -> &str {
        self.inner.head.uid(&self.inner.raw)
    }

    /// `metadata.resourceVersion`, or `""`.
    pub fn resource_version(&self) -> &str {
        self.inner.head.resource_version(&self.inner.raw)
    }

    /// Whether deletion has begun.
    pub fn is_terminating(&self) -> bool {
        self.inner.head.is_terminating
    }

    /// The labels.
    pub fn labels(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        text_members(self.inner.head.labels(&self.inner.raw))
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        self.labels().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The annotations.
    pub fn annotations(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        text_members(self.inner.head.annotations(&self.inner.raw))
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<Cow<'_, str>> {
        self.annotations().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The owner that controls the object (`controller: true`).
    pub fn controller_ref(&self) -> Option<OwnerRef<'_>> {
        self.owner_refs().find(|owner| owner.is_controller)
    }

    /// The owners.
    pub fn owner_refs(&self) -> impl Iterator<Item = OwnerRef<'_>> {
        items(self.inner.head.owner_references(&self.inner.raw)).filter_map(OwnerRef::read)
    }

    /// The raw JSON at a path of member names, found without decoding: `pod.value_at(&["spec", "replicas"])`.
    pub fn value_at(&self, path: &[&str]) -> Option<&[u8]> {
        value_at(&self.inner.raw, path)
    }

    /// The text at a path of member names, found without decoding: `pod.text_at(&["spec", "nodeName"])`.
    pub fn text_at(&self, path: &[&str]) -> Option<Cow<'_, str>> {
        self.value_at(path).and_then(text_of)
    }

    /// Whether both are the same object in the cache.
    pub fn ptr_eq(&self, other: &Cached<K>) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl<K: Object> Cached<K> {
    /// The object itself.
    ///
    /// # Errors
    /// [`DecodeError`] when the JSON does not fit `K`, which another version of the kind can bring about.
    pub fn object(&self) -> Result<Arc<K>, DecodeError> {
        let mut decoded = self.inner.decoded.lock();
        let held = match &*decoded {
            Decoded::Shared(shared) => shared.upgrade(),
            Decoded::Keep(kept) => kept.clone(),
        };
        if let Some(object) = held {
            return Ok(object);
        }
        let object: K = serde_json::from_slice(&self.inner.raw)
            .map_err(|source| DecodeError { object: self.object_name().to_string(), source: Arc::new(source) })?;
        let object = Arc::new(object);
        match &mut *decoded {
            Decoded::Shared(shared) => *shared = Arc::downgrade(&object),
            Decoded::Keep(kept) => *kept = Some(Arc::clone(&object)),
        }
        Ok(object)
    }

    /// A copy of the object to change. What a cache gives out is shared and must not be changed in place.
    ///
    /// # Errors
    /// As [`Cached::object`].
    pub fn to_owned_object(&self) -> Result<K, DecodeError> {
        Ok(Arc::unwrap_or_clone(self.object()?))
    }

    /// The cached form of an object.
    ///
    /// # Errors
    /// [`pintle_client::Error`] when it has no JSON form or no name.
    pub fn of(object: &K) -> pintle_client::Result<Cached<K>> {
        let raw =
            serde_json::to_vec(object).map_err(|source| pintle_client::Error::Encode { what: "object", source })?;
        Cached::from_json(raw)
            .map_err(|source| pintle_client::Error::Decode { what: "object".to_owned(), source: Box::new(source) })
    }

    /// Keeps the decoded object from the first time that it is asked for: for caches whose objects are read over and
    /// over, at the price of memory.
    pub fn keep_decoded(&self) {
        let mut decoded = self.inner.decoded.lock();
        if let Decoded::Shared(shared) = &*decoded {
            *decoded = Decoded::Keep(shared.upgrade());
        }
    }
}

/// Label selectors match cached objects directly.
impl<K> Labels for Cached<K> {
    fn label(&self, key: &str) -> Option<&str> {
        // keys and values of labels have no characters that JSON escapes
        let mut labels = members(self.inner.head.labels(&self.inner.raw));
        let (_, value) = labels.find(|(name, _)| *name == key.as_bytes())?;
        match text_of(value)? {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }
}

/// An owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRef<'a> {
    /// `apiVersion`.
    pub api_version: Cow<'a, str>,
    /// `kind`.
    pub kind: Cow<'a, str>,
    /// `name`.
    pub name: Cow<'a, str>,
    /// `uid`.
    pub uid: Cow<'a, str>,
    /// `controller`.
    pub is_controller: bool,
}

impl<'a> OwnerRef<'a> {
    fn read(raw: &'a [u8]) -> Option<OwnerRef<'a>> {
        let mut owner = OwnerRef {
            api_version: Cow::default(),
            kind: Cow::default(),
            name: Cow::default(),
            uid: Cow::default(),
            is_controller: false,
        };
        for (key, value) in members(raw) {
            match key {
                b"apiVersion" => owner.api_version = text_of(value)?,
                b"kind" => owner.kind = text_of(value)?,
                b"name" => owner.name = text_of(value)?,
                b"uid" => owner.uid = text_of(value)?,
                b"controller" => owner.is_controller = value == b"true",
                _ => {}
            }
        }
        Some(owner)
    }
}

fn text_members(raw: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    members(raw).filter_map(|(key, value)| Some((Cow::Borrowed(std::str::from_utf8(key).ok()?), text_of(value)?)))
}

/// The raw items of a raw list.
fn items(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = raw.strip_prefix(b"[").unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        if rest.first() != Some(&b'{') {
            return None;
        }
        let end = pintle_client::wire::ValueScanner::default().feed(rest)?;
        let (item, after) = rest.split_at(end);
        rest = after;
        Some(item)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use pintle_apimachinery::labels::Selector;
    use pintle_client::DynamicObject;

    const POD: &str = r#"{"metadata":{"name":"web-0","namespace":"prod","uid":"u1","resourceVersion":"42",
        "deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"web","tier":"front"},
        "annotations":{"note":"a \"quoted\" one"},
        "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u8"},
                           {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u9","controller":true}]},
        "spec":{"nodeName":"node-7","containers":[]}}"#;

    fn pod() -> Cached<Pod> {
        Cached::from_json(POD.as_bytes()).unwrap()
    }

    #[test]
    fn the_head_is_read_without_decoding() {
        let pod = pod();
        assert_eq!(format!("{pod:?}"), "prod/web-0@42");
        assert_eq!((pod.uid(), pod.is_terminating()), ("u1", true));
        assert_eq!(pod.label("tier").as_deref(), Some("front"));
        assert_eq!(pod.annotation("note").as_deref(), Some(r#"a "quoted" one"#));
        assert_eq!(pod.owner_refs().count(), 2);
        assert_eq!(pod.controller_ref().unwrap().uid, "u9");
        assert_eq!(pod.text_at(&["spec", "nodeName"]).as_deref(), Some("node-7"));
        assert!(Selector::parse("app=web,tier in (front,back)").unwrap().matches(&pod));
        assert!(!Selector::parse("app!=web").unwrap().matches(&pod));
    }

    #[test]
    fn the_decoded_object_is_shared_while_held_and_kept_on_request() {
        let pod = pod();
        let first = pod.object().unwrap();
        let other = pod.clone();
        assert!(Arc::ptr_eq(&first, &other.object().unwrap()) && pod.ptr_eq(&other));
        let weak = Arc::downgrade(&first);
        drop(first);
        assert!(weak.upgrade().is_none(), "nobody holds it: it is gone");
        pod.keep_decoded();
        let weak = Arc::downgrade(&pod.object().unwrap());
        assert!(weak.upgrade().is_some());
    }

    #[test]
    fn objects_that_do_not_fit_are_errors_when_touched() {
        let broken: Cached<Pod> = Cached::from_json(br#"{"metadata":{"name":"x"},"spec":7}"#.as_slice()).unwrap();
        assert_eq!(broken.object().unwrap_err().to_string(), "x does not fit its type");
        assert!(Cached::<Pod>::from_json(br#"{"metadata":{}}"#.as_slice()).is_err());
    }

    /// Custom resources, and objects that a client sent in another order, have them anywhere.
    #[test]
    fn managed_fields_need_not_be_last() {
        let raw = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1","managedFields":[{"manager":"m"}],
            "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u8","controller":true}]}}"#;
        let pod: Cached<Pod> = Cached::from_json(raw.as_bytes()).unwrap();
        assert_eq!(pod.controller_ref().unwrap().uid, "u8");
    }

    #[test]
    fn list_items_learn_their_type() {
        let gvk = GroupVersionKind::new("apps", "v1", "Deployment");
        let item: Cached<DynamicObject> = Cached::from_list_item(br#"{"metadata":{"name":"x"}}"#, &gvk).unwrap();
        let object = item.object().unwrap();
        assert_eq!((object.api_version.as_str(), object.kind.as_str()), ("apps/v1", "Deployment"));
    }
}
