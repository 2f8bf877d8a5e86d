//! Finding values in JSON bytes without building them.
//!
//! These functions assume sound JSON, as a server sends it: on anything else they give `None` or a wrong slice, never a
//! panic. Whoever decodes the slice finds the fault.

use std::borrow::Cow;

/// Finds the end of one value that arrives in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueScanner {
    /// Open objects and lists.
    depth: u32,
    is_in_string: bool,
    /// The last byte was a backslash inside a string.
    is_escaped: bool,
    /// Some byte of the value was seen.
    is_started: bool,
    /// The value is a number, `true`, `false` or `null`: it ends before the next delimiter.
    is_word: bool,
}

/// What a byte means outside strings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    Quote,
    Open,
    Close,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Plain; 256];
    classes[b'"' as usize] = Class::Quote;
    classes[b'{' as usize] = Class::Open;
    classes[b'[' as usize] = Class::Open;
    classes[b'}' as usize] = Class::Close;
    classes[b']' as usize] = Class::Close;
    classes
};

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

impl ValueScanner {
    /// Looks at the next piece, whose first byte belongs to the value or to the space before it. `Some(n)` when the
    /// value ends before byte `n`; `None` when it goes on.
    pub fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        let mut pos = 0;
        if !self.is_started {
            pos = piece.iter().position(|byte| !is_space(*byte))?;
            self.is_started = true;
            self.is_word = CLASSES[usize::from(piece[pos])] == Class::Plain;
        }
        if self.is_word {
            let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':') || is_space(*byte);
            return piece[pos..].iter().position(is_end).map(|n| pos + n);
        }
        loop {
            if self.is_in_string {
                pos += self.string_end(&piece[pos..])?;
                self.is_in_string = false;
                if self.depth == 0 {
                    return Some(pos);
                }
            }
            pos += piece[pos..].iter().position(|byte| CLASSES[usize::from(*byte)] != Class::Plain)?;
            match CLASSES[usize::from(piece[pos])] {
                Class::Quote => self.is_in_string = true,
                Class::Open => self.depth += 1,
                Class::Close => self.depth = self.depth.saturating_sub(1),
                Class::Plain => {}
            }
            pos += 1;
            if self.depth == 0 && !self.is_in_string {
                return Some(pos);
            }
        }
    }

    /// The byte after the closing quote.
    fn string_end(&mut self, piece: &[u8]) -> Option<usize> {
        let mut pos = 0;
        if self.is_escaped {
            piece.first()?;
            self.is_escaped = false;
            pos = 1;
        }
        loop {
            pos += piece[pos..].iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            if piece[pos] == b'"' {
                return Some(pos + 1);
            }
            if pos + 1 == piece.len() {
                self.is_escaped = true;
                return None;
            }
            pos += 2;
        }
    }
}

/// The end of the value that starts at `start`, space before it allowed.
fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let mut scanner = ValueScanner::default();
    scanner.feed(rest).map(|n| start + n).or_else(|| {
        // a lone word ends with the document
        (scanner.is_word && scanner.is_started).then_some(bytes.len())
    })
}

fn skip_space(bytes: &[u8], pos: usize) -> usize {
    bytes.get(pos..).and_then(|rest| rest.iter().position(|byte| !is_space(*byte))).map_or(bytes.len(), |n| pos + n)
}

/// The members of the object that `bytes` hold: raw key (without quotes, escapes kept) and raw value.
pub fn members(bytes: &[u8]) -> Members<'_> {
    let start = skip_space(bytes, 0);
    let is_object = bytes.get(start) == Some(&b'{');
    Members { bytes, pos: if is_object { start + 1 } else { bytes.len() } }
}

/// See [`members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Members<'a> {
    /// How far into the bytes the reading has come.
    pub fn offset(&self) -> usize {
        self.pos
    }

    /// The next key, with the position of its value.
    pub fn next_key(&mut self) -> Option<(&'a [u8], usize)> {
        let mut pos = skip_space(self.bytes, self.pos);
        if self.bytes.get(pos) == Some(&b',') {
            pos = skip_space(self.bytes, pos + 1);
        }
        if self.bytes.get(pos) != Some(&b'"') {
            self.pos = self.bytes.len();
            return None;
        }
        let key_end = value_end(self.bytes, pos)?;
        let key = self.bytes.get(pos + 1..key_end - 1)?;
        let colon = skip_space(self.bytes, key_end);
        if self.bytes.get(colon) != Some(&b':') {
            return None;
        }
        let start = skip_space(self.bytes, colon + 1);
        Some((key, start))
    }

    /// Steps over the value at `start`, which [`Members::next_key`] gave, and returns it.
    pub fn skip_value(&mut self, start: usize) -> Option<&'a [u8]> {
        let end = value_end(self.bytes, start)?;
        self.pos = end;
        self.bytes.get(start..end)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, start) = self.next_key()?;
        Some((key, self.skip_value(start)?))
    }
}

/// The raw value at a path of member names: `value_at(pod, &["spec", "nodeName"])`.
pub fn value_at<'a>(bytes: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    let mut at = bytes;
    for (depth, name) in path.iter().enumerate() {
        let mut reader = members(at);
        loop {
            let (key, start) = reader.next_key()?;
            if key == name.as_bytes() {
                // the last one's end matters; of the others it is found on the way
                at = if depth + 1 == path.len() { reader.skip_value(start)? } else { at.get(start..)? };
                break;
            }
            reader.skip_value(start)?;
        }
    }
    Some(at)
}

/// The text of a raw value that is a string.
pub fn text_of(raw: &[u8]) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        return serde_json::from_slice::<String>(raw).ok().map(Cow::Owned);
    }
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str =
        r#" {"a" : [1, {"b":"]}\"\\"}], "c":-1.5e3,"d":{"e":{"f":"x\u0041"}}, "g":null, "h":"", "n":17} "#;

    #[test]
    fn values_by_path() {
        let at = |path: &[&str]| value_at(DOCUMENT.as_bytes(), path).map(|raw| std::str::from_utf8(raw).unwrap());
        assert_eq!(at(&["a"]), Some(r#"[1, {"b":"]}\"\\"}]"#));
        assert_eq!(at(&["c"]), Some("-1.5e3"));
        assert_eq!(at(&["d", "e", "f"]), Some(r#""x\u0041""#));
        assert_eq!(at(&["g"]), Some("null"));
        assert_eq!(at(&["n"]), Some("17"));
        assert_eq!(at(&["n", "x"]), None);
        assert_eq!(at(&["z"]), None);
        assert_eq!(text_of(br#""x\u0041""#).unwrap(), "xA");
        assert_eq!(text_of(b"17"), None);
    }

    #[test]
    fn any_cut_finds_the_same_end() {
        let document = DOCUMENT.as_bytes();
        let whole = ValueScanner::default().feed(document).unwrap();
        assert_eq!(whole, document.len() - 1);
        for cut in 0..whole {
            let mut scanner = ValueScanner::default();
            assert_eq!(scanner.feed(&document[..cut]), None, "cut at {cut}");
            assert_eq!(scanner.feed(&document[cut..]), Some(whole - cut), "cut at {cut}");
        }
    }

    #[test]
    fn nonsense_does_not_panic() {
        for text in [
            "",
            "{",
            "{\"",
            "{\"a",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":}",
            "[[[",
            "}}}",
            "\\",
            "{\"a\":1",
            "{,}",
            "{\"a\\\":1}",
        ] {
            let _ = members(text.as_bytes()).count();
            let _ = value_at(text.as_bytes(), &["a", "b"]);
            let _ = ValueScanner::default().feed(text.as_bytes());
        }
    }
}
