//! Keys of the objects of a document, and which of them were given twice.

use crate::Str;

/// A key, borrowed from the document unless it has escapes.
pub(super) enum Key<'a> {
    Plain(&'a str),
    Owned(Str),
}

impl Key<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Key::Plain(s) => s,
            Key::Owned(s) => s,
        }
    }

    pub(super) fn into_str(self) -> Str {
        match self {
            Key::Plain(s) => Str::new(s),
            Key::Owned(s) => s,
        }
    }
}

/// The keys of one object so far: a list while it is short, a set beyond.
#[derive(Default)]
pub(super) struct Seen<'a> {
    few: Vec<&'a str>,
    many: std::collections::BTreeSet<Str>,
    /// Whether the key inserted last was there already.
    pub(super) is_duplicate: bool,
}

impl<'a> Seen<'a> {
    /// Adds a key; whether it was there already.
    pub(super) fn insert(&mut self, key: &Key<'a>) -> bool {
        const FEW_MAX: usize = 24;
        self.is_duplicate = match key {
            Key::Plain(s) if self.few.len() < FEW_MAX => {
                let is_there = self.few.contains(s) || self.many.contains(*s);
                if !is_there {
                    self.few.push(s);
                }
                is_there
            }
            Key::Plain(_) | Key::Owned(_) => {
                self.few.contains(&key.as_str()) || !self.many.insert(Str::new(key.as_str()))
            }
        };
        self.is_duplicate
    }
}
