//! Cutting a list into its items while it arrives.

use super::scan::ValueScanner;
use crate::error::{Error, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;

/// Cuts the JSON of a list into its items. Bytes go in with [`push`](ListSplitter::push), each item comes out as a
/// slice; `metadata` may stand before or after the items.
#[derive(Debug)]
pub struct ListSplitter<F> {
    on_item: F,
    state: State,
    scanner: ValueScanner,
    /// The beginning of a key or value that is not complete yet.
    partial: Vec<u8>,
    key: Vec<u8>,
    metadata: ListMeta,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the list's `{`.
    Start,
    /// Before a key or the list's `}`.
    Member,
    Key,
    Colon,
    Value,
    /// Before an item or the `]`.
    Items,
    Item,
    End,
}

impl<F: FnMut(&[u8]) -> Result<()>> ListSplitter<F> {
    /// Hands items to `on_item`.
    pub fn new(on_item: F) -> ListSplitter<F> {
        ListSplitter {
            on_item,
            state: State::Start,
            scanner: ValueScanner::default(),
            partial: Vec::new(),
            key: Vec::new(),
            metadata: ListMeta::default(),
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`Error::Decode`] when this is no list; whatever `on_item` gives.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let n_used = match self.state {
                State::Key | State::Value | State::Item => self.value(bytes)?,
                State::Start | State::Member | State::Colon | State::Items | State::End => self.structure(bytes)?,
            };
            bytes = &bytes[n_used..];
        }
        Ok(())
    }

    /// The list's metadata, once everything is in.
    ///
    /// # Errors
    /// [`Error::Decode`] when the list is not complete.
    pub fn finish(self) -> Result<ListMeta> {
        if self.state == State::End { Ok(self.metadata) } else { Err(fault("the list ends early")) }
    }

    /// One byte of structure, or the space before it.
    fn structure(&mut self, bytes: &[u8]) -> Result<usize> {
        let Some(n_space) = bytes.iter().position(|byte| !byte.is_ascii_whitespace()) else { return Ok(bytes.len()) };
        let byte = bytes[n_space];
        let (state, is_taken) = match (self.state, byte) {
            (State::Start, b'{') => (State::Member, true),
            (State::Member, b',') => (State::Member, true),
            (State::Member, b'"') => (State::Key, false),
            (State::Member, b'}') => (State::End, true),
            (State::Colon, b':') => (State::Value, true),
            (State::Items, b',') => (State::Items, true),
            (State::Items, b']') => (State::Member, true),
            (State::Items, _) => (State::Item, false),
            (State::Start | State::Member | State::Colon | State::End | State::Key | State::Value | State::Item, _) => {
                return Err(fault(&format!("{:?} stands where no list has it", char::from(byte))));
            }
        };
        self.state = state;
        self.scanner = ValueScanner::default();
        Ok(n_space + usize::from(is_taken))
    }

    /// A piece of a key, a value or an item.
    fn value(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.state == State::Value && self.key == b"items" && self.partial.is_empty() {
            let Some(n_space) = bytes.iter().position(|byte| !byte.is_ascii_whitespace()) else {
                return Ok(bytes.len());
            };
            if bytes[n_space] == b'[' {
                self.state = State::Items;
                return Ok(n_space + 1);
            }
        }
        let Some(end) = self.scanner.feed(bytes) else {
            self.partial.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        if self.partial.is_empty() {
            self.take(&bytes[..end])?;
        } else {
            let mut whole = std::mem::take(&mut self.partial);
            whole.extend_from_slice(&bytes[..end]);
            self.take(&whole)?;
            whole.clear();
            self.partial = whole;
        }
        Ok(end)
    }

    fn take(&mut self, value: &[u8]) -> Result<()> {
        let value = value.trim_ascii();
        match self.state {
            State::Key => {
                self.key.clear();
                self.key.extend_from_slice(value.get(1..value.len() - 1).unwrap_or_default());
                self.state = State::Colon;
            }
            State::Item => {
                self.state = State::Items;
                (self.on_item)(value)?;
            }
            State::Value => {
                self.state = State::Member;
                self.member(value)?;
            }
            State::Start | State::Member | State::Colon | State::Items | State::End => {}
        }
        Ok(())
    }

    fn member(&mut self, value: &[u8]) -> Result<()> {
        match self.key.as_slice() {
            b"metadata" if value != b"null" => {
                self.metadata = serde_json::from_slice(value).map_err(|error| Error::decode("ListMeta", error))?;
            }
            b"items" if value != b"null" => return Err(fault("items is no list")),
            _ => {}
        }
        Ok(())
    }
}

fn fault(why: &str) -> Error {
    Error::decode("list", why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"c"},"items":[{"a":"]"}, {"b":[1,2]} ,{}],"z":3}
"#;

    fn split(pieces: &[&[u8]]) -> Result<(Vec<String>, ListMeta)> {
        let mut items = Vec::new();
        let mut splitter = ListSplitter::new(|item: &[u8]| {
            items.push(String::from_utf8(item.to_vec()).unwrap());
            Ok(())
        });
        for piece in pieces {
            splitter.push(piece)?;
        }
        let metadata = splitter.finish()?;
        Ok((items, metadata))
    }

    #[test]
    fn any_two_cuts_give_the_same_items() {
        let bytes = LIST.as_bytes();
        let (items, metadata) = split(&[bytes]).unwrap();
        assert_eq!(items, [r#"{"a":"]"}"#, r#"{"b":[1,2]}"#, "{}"]);
        assert_eq!((metadata.resource_version.as_deref(), metadata.continue_.as_deref()), (Some("7"), Some("c")));
        for first in 0..bytes.len() {
            for second in first..bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(split(&pieces).unwrap().0, items, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn metadata_may_come_last_and_items_may_be_null() {
        let (items, metadata) = split(&[br#"{"items":null,"metadata":{"resourceVersion":"9"}}"#]).unwrap();
        assert!(items.is_empty());
        assert_eq!(metadata.resource_version.as_deref(), Some("9"));
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        for bad in ["[]", "{\"items\":[{}", "", "{\"items\":3}", "{\"items\":[]}}", "{\"a\" 1}"] {
            assert!(split(&[bad.as_bytes()]).is_err(), "{bad}");
        }
    }
}
