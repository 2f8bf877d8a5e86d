//! Keys, revisions, records and events.

use bytes::Bytes;
use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};

/// Position in one store's history. Grows with every committed write. Ordered only within that store; on the wire it is
/// an opaque string. Never 0: on the wire `"0"` means "any version you have", which is [`crate::At::Any`], no revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(NonZeroU64);

impl Revision {
    /// The first revision: that of a store in which nothing was written yet.
    pub const FIRST: Revision = Revision(NonZeroU64::MIN);

    /// The revision of this number; `None` for 0.
    pub const fn new(number: u64) -> Option<Revision> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Revision(number)),
            None => None,
        }
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The revision after this one.
    #[must_use]
    pub const fn next(self) -> Revision {
        Revision(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A key of the store, such as `/registry/pods/default/web`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of this text.
    pub fn new(text: impl AsRef<str>) -> Key {
        Key(Arc::from(text.as_ref()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::ops::Deref for Key {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Key {
        Key::new(text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A place beside a record or event for what is derived from it: made once, shared by all readers. The storage layers
/// carry it and never look inside.
#[derive(Clone, Default)]
pub struct Note(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Note {
    /// A note with this content.
    pub fn of<T: Any + Send + Sync>(content: Arc<T>) -> Note {
        Note(OnceLock::from(content as Arc<dyn Any + Send + Sync>))
    }

    /// The content, made by `make` unless there is one of this type. All users of one kind of record must agree on the
    /// type: content of another type is left alone and `make` answers each time.
    pub fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        if let Some(content) = self.get::<T>() {
            return content;
        }
        let made = make();
        let kept = self.0.get_or_init(|| made.clone());
        Arc::clone(kept).downcast::<T>().unwrap_or(made)
    }

    /// The content, if there is one of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.get().and_then(|content| Arc::clone(content).downcast::<T>().ok())
    }

    /// The content by reference, if there is one of this type.
    pub fn peek<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get().and_then(|content| content.downcast_ref::<T>())
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Note(..)" } else { "Note" })
    }
}

/// One version of one key. Immutable, shared by the caches, watchers and readers that hold it.
#[derive(Debug)]
pub struct Record {
    /// The key.
    pub key: Key,
    /// The revision of the write that made this version.
    pub revision: Revision,
    /// The value as it was written.
    pub value: Bytes,
    /// What readers derived from it.
    pub note: Note,
}

/// One change of one key: a put when `record` is there, else a deletion.
#[derive(Debug)]
pub struct Event {
    /// The key.
    pub key: Key,
    /// The revision of the change.
    pub revision: Revision,
    /// What the key holds since; `None` after a deletion.
    pub record: Option<Arc<Record>>,
    /// What the key held before; `None` if it was not there.
    pub previous: Option<Arc<Record>>,
    /// What readers derived from it.
    pub note: Note,
}

impl Event {
    /// Whether the change created the key.
    pub fn is_create(&self) -> bool {
        self.record.is_some() && self.previous.is_none()
    }

    /// Whether the change deleted the key.
    pub fn is_delete(&self) -> bool {
        self.record.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_made_once() {
        let note = Note::default();
        assert_eq!(*note.get_or_make(|| Arc::new(1u32)), 1);
        assert_eq!(*note.get_or_make(|| Arc::new(2u32)), 1);
        assert_eq!(note.get::<String>(), None);
        assert_eq!(*note.get_or_make(|| Arc::new("x".to_owned())), "x");
        assert_eq!(note.peek::<u32>(), Some(&1));
    }
}
