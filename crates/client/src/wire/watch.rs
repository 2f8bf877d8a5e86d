//! Cutting a watch stream into frames and a frame into its type and its object.

use super::scan::{members, text_of};

/// The largest frame accepted; a stream with a larger one is broken off. An object is at most 1.5 MiB in etcd.
pub const FRAME_BYTES_MAX: usize = 64 << 20;

/// Gathers the pieces of a stream into lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    /// The beginning of a line that is not complete yet.
    partial: Vec<u8>,
}

impl LineSplitter {
    /// Takes one line out of `piece`: calls `on_line` with it and says how many bytes of `piece` are used up. All of
    /// them, without a call, when the line goes on.
    pub fn next_line<T>(&mut self, piece: &[u8], on_line: impl FnOnce(&[u8]) -> T) -> (usize, Option<T>) {
        match memchr::memchr(b'\n', piece) {
            None => {
                self.partial.extend_from_slice(piece);
                (piece.len(), None)
            }
            Some(end) if self.partial.is_empty() => (end + 1, Some(on_line(&piece[..end]))),
            Some(end) => {
                self.partial.extend_from_slice(&piece[..end]);
                let result = on_line(&self.partial);
                self.partial.clear();
                (end + 1, Some(result))
            }
        }
    }

    /// The bytes after the last line.
    pub fn rest(&self) -> &[u8] {
        &self.partial
    }

    /// Whether the unfinished line is longer than any frame may be.
    pub fn is_too_long(&self) -> bool {
        self.partial.len() > FRAME_BYTES_MAX
    }
}

/// What a frame of a watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameType {
    /// The object is new to this watch.
    Added,
    /// The object has changed.
    Modified,
    /// The object is gone, or no longer selected.
    Deleted,
    /// Only the version matters.
    Bookmark,
    /// The object is a `Status`.
    Error,
}

impl FrameType {
    fn parse(text: &[u8]) -> Option<FrameType> {
        Some(match text {
            b"ADDED" => FrameType::Added,
            b"MODIFIED" => FrameType::Modified,
            b"DELETED" => FrameType::Deleted,
            b"BOOKMARK" => FrameType::Bookmark,
            b"ERROR" => FrameType::Error,
            _ => return None,
        })
    }
}

/// Cuts `{"type":"ADDED","object":{..}}` into the type and the object's bytes. `None` when it is no such thing. A
/// `WatchEvent` has these two members and no others.
pub fn split_frame(line: &[u8]) -> Option<(FrameType, &[u8])> {
    split_usual(line).or_else(|| split_any(line))
}

/// The frame as servers write it: the object need not be looked at to find its end.
fn split_usual(line: &[u8]) -> Option<(FrameType, &[u8])> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (word, rest) = rest.split_at(memchr::memchr(b'"', rest)?);
    let object = rest.strip_prefix(br#"","object":"#)?.trim_ascii_end().strip_suffix(b"}")?;
    if object.first() != Some(&b'{') || object.last() != Some(&b'}') {
        return None;
    }
    Some((FrameType::parse(word)?, object))
}

fn split_any(line: &[u8]) -> Option<(FrameType, &[u8])> {
    let (mut frame_type, mut object) = (None, None);
    for (key, value) in members(line) {
        match key {
            b"type" => frame_type = FrameType::parse(text_of(value)?.as_bytes()),
            b"object" => object = Some(value),
            _ => {}
        }
    }
    Some((frame_type?, object?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames() {
        let object = br#"{"kind":"Pod"}"#.as_slice();
        for line in
            [r#"{"type":"ADDED","object":{"kind":"Pod"}}"#, r#" { "object" : {"kind":"Pod"} , "type" : "ADDED" } "#]
        {
            assert_eq!(split_frame(line.as_bytes()), Some((FrameType::Added, object)), "{line}");
        }
        for line in ["", "{}", "null", r#"{"type":"OTHER","object":{}}"#, r#"{"type":"ADDED"}"#] {
            assert_eq!(split_frame(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn lines_from_pieces() {
        let mut splitter = LineSplitter::default();
        let mut lines = Vec::new();
        for piece in ["ab", "c\nd", "\n\ne"] {
            let mut bytes = piece.as_bytes();
            while !bytes.is_empty() {
                let (n_used, line) = splitter.next_line(bytes, <[u8]>::to_vec);
                lines.extend(line);
                bytes = &bytes[n_used..];
            }
        }
        assert_eq!(lines, [b"abc".to_vec(), b"d".to_vec(), Vec::new()]);
        assert_eq!(splitter.rest(), b"e");
    }
}
