//! Paths of JSON patch operations: how Go's json-patch v4 reads them, and the places they name in a document.
//!
//! Differs from RFC 6901 as that library does: what stands before the first slash is ignored, an index may carry a
//! sign or leading zeros, and negative indices count from the end.

use super::Fault;
use pintle_apimachinery::{Object, Value};
use std::borrow::Cow;

/// A path in two parts: the members to pass, and the last one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer<'a> {
    /// The members between the first and the last slash; `None` when there are none.
    parents: Option<&'a str>,
    last: &'a str,
}

impl<'a> Pointer<'a> {
    /// Reads a path. One without a slash names no place.
    pub(super) fn parse(path: &'a str) -> Result<Pointer<'a>, Fault> {
        let (_, rest) = path.split_once('/').ok_or(Fault)?;
        Ok(match rest.rsplit_once('/') {
            Some((parents, last)) => Pointer { parents: Some(parents), last },
            None => Pointer { parents: None, last: rest },
        })
    }

    fn parents(self) -> impl Iterator<Item = Cow<'a, str>> {
        self.parents.into_iter().flat_map(|p| p.split('/')).map(unescaped)
    }

    /// The name of the member or the index in the container.
    pub(super) fn key(self) -> Cow<'a, str> {
        unescaped(self.last)
    }

    /// The object or list that holds the last part.
    pub(super) fn container(self, document: &Value) -> Result<Container<&Object, &Vec<Value>>, Fault> {
        let mut at = document;
        for part in self.parents() {
            at = match at {
                Value::Object(object) => object.get(&part).ok_or(Fault)?,
                Value::Array(items) => &items[index_of(&part, items.len())?],
                Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => return Err(Fault),
            };
        }
        match at {
            Value::Object(object) => Ok(Container::Object(object)),
            Value::Array(items) => Ok(Container::Array(items)),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => Err(Fault),
        }
    }

    /// The object or list that holds the last part, for change.
    pub(super) fn container_mut(self, document: &mut Value) -> Result<Container<&mut Object, &mut Vec<Value>>, Fault> {
        let mut at = document;
        for part in self.parents() {
            at = match at {
                Value::Object(object) => object.get_mut(&part).ok_or(Fault)?,
                Value::Array(items) => {
                    let idx = index_of(&part, items.len())?;
                    &mut items[idx]
                }
                Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => return Err(Fault),
            };
        }
        match at {
            Value::Object(object) => Ok(Container::Object(object)),
            Value::Array(items) => Ok(Container::Array(items)),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => Err(Fault),
        }
    }
}

/// What holds members or items.
pub(super) enum Container<O, A> {
    Object(O),
    Array(A),
}

/// `~1` is a slash and `~0` a tilde.
fn unescaped(part: &str) -> Cow<'_, str> {
    if !part.contains('~') {
        return Cow::Borrowed(part);
    }
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('~') {
        out.push_str(before);
        rest = after;
        match after.bytes().next() {
            Some(b'1') => out.push('/'),
            Some(b'0') => out.push('~'),
            _ => {
                out.push('~');
                continue;
            }
        }
        rest = &after[1..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// An index in a list of `len` items; -1 is the last one.
pub(super) fn index_of(part: &str, len: usize) -> Result<usize, Fault> {
    // i64 reads what Go's Atoi reads: an optional sign and digits
    let idx: i64 = part.parse().map_err(|_| Fault)?;
    let len = i64::try_from(len).map_err(|_| Fault)?;
    let idx = if idx < 0 { idx + len } else { idx };
    if (0..len).contains(&idx) { usize::try_from(idx).map_err(|_| Fault) } else { Err(Fault) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        for (part, want) in [("a", "a"), ("a~1b", "a/b"), ("~01", "~1"), ("~", "~"), ("x~2~0", "x~2~"), ("~~1", "~/")] {
            assert_eq!(unescaped(part), want, "{part}");
        }
    }

    #[test]
    fn indices() {
        for (part, want) in [("0", Some(0)), ("+1", Some(1)), ("01", Some(1)), ("-1", Some(2)), ("-3", Some(0))] {
            assert_eq!(index_of(part, 3).ok(), want, "{part}");
        }
        for part in ["3", "-4", "-", "", "a", "1.0", "99999999999999999999"] {
            assert!(index_of(part, 3).is_err(), "{part}");
        }
    }
}
