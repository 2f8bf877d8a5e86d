//! A JSON text as a list of its tokens: what reading a stored object takes when no value is wanted. One allocation, and
//! strings stay where they are.
//!
//! The text is a stored object, written by this project; the tape checks its structure and no more.

use super::document::Document;
use pintle_apimachinery::value::{self, NESTING_DEPTH_MAX};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    False,
    True,
    Number,
    Text,
    /// A string with escapes in it.
    EscapedText,
    Array,
    Object,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: Kind,
    /// The token's bytes in the text; of a collection, all of it.
    start: u32,
    end: u32,
    /// The index behind the token and all that is within it.
    next: u32,
}

/// The tokens of a text. In an object keys and values take turns.
#[derive(Debug)]
pub(super) struct Tape<'t> {
    text: &'t str,
    tokens: Vec<Token>,
}

impl<'t> Tape<'t> {
    /// Reads a document; `None` when it is no JSON.
    pub(super) fn read(json: &'t [u8]) -> Option<Tape<'t>> {
        let text = std::str::from_utf8(json).ok()?;
        u32::try_from(text.len()).ok()?;
        // a token takes a dozen bytes of a usual object
        let tokens = Vec::with_capacity(text.len() / 12 + 8);
        let mut reader = Reader { bytes: json, pos: 0, tokens, depth: 0 };
        reader.value()?;
        reader.skip_space();
        (reader.pos == json.len()).then_some(Tape { text, tokens: reader.tokens })
    }

    /// The document's beginning.
    pub(super) fn root(&self) -> Place<'_> {
        Place { tape: Some(self), token: 0 }
    }
}

struct Reader<'t> {
    bytes: &'t [u8],
    pos: usize,
    tokens: Vec<Token>,
    depth: usize,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the text is shorter than u32::MAX, and has at most one token a byte"
)]
impl Reader<'_> {
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.bytes.get(self.pos) {
            self.pos += 1;
        }
    }

    fn value(&mut self) -> Option<()> {
        self.skip_space();
        let at = self.tokens.len();
        let start = self.pos;
        let kind = match self.bytes.get(self.pos)? {
            b'"' => return self.text(),
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b't' => Kind::True,
            b'f' => Kind::False,
            b'n' => Kind::Null,
            b'-' | b'0'..=b'9' => Kind::Number,
            _ => return None,
        };
        self.tokens.push(Token { kind, start: start as u32, end: 0, next: 0 });
        match kind {
            Kind::Object => self.collection(b'}', true)?,
            Kind::Array => self.collection(b']', false)?,
            Kind::True => self.word(b"true")?,
            Kind::False => self.word(b"false")?,
            Kind::Null => self.word(b"null")?,
            Kind::Number | Kind::Text | Kind::EscapedText => {
                while let Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') = self.bytes.get(self.pos) {
                    self.pos += 1;
                }
            }
        }
        let next = self.tokens.len() as u32;
        let token = &mut self.tokens[at];
        token.end = self.pos as u32;
        token.next = next;
        Some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes.get(self.pos..)?.starts_with(word).then(|| self.pos += word.len())
    }

    fn collection(&mut self, close: u8, has_keys: bool) -> Option<()> {
        self.depth += 1;
        if self.depth > NESTING_DEPTH_MAX {
            return None;
        }
        self.pos += 1;
        self.skip_space();
        if self.bytes.get(self.pos) == Some(&close) {
            self.pos += 1;
            self.depth -= 1;
            return Some(());
        }
        loop {
            self.skip_space();
            if has_keys {
                if self.bytes.get(self.pos) != Some(&b'"') {
                    return None;
                }
                self.text()?;
                self.skip_space();
                if self.bytes.get(self.pos) != Some(&b':') {
                    return None;
                }
                self.pos += 1;
            }
            self.value()?;
            self.skip_space();
            let byte = *self.bytes.get(self.pos)?;
            self.pos += 1;
            match byte {
                b',' => {}
                byte if byte == close => {
                    self.depth -= 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// A string; the token is what stands between the quotes.
    fn text(&mut self) -> Option<()> {
        self.pos += 1;
        let start = self.pos;
        let mut kind = Kind::Text;
        loop {
            let rest = self.bytes.get(self.pos..)?;
            let len = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            self.pos += len;
            if rest[len] == b'"' {
                break;
            }
            kind = Kind::EscapedText;
            self.pos += 2;
        }
        let (end, next) = (self.pos as u32, self.tokens.len() as u32 + 1);
        self.tokens.push(Token { kind, start: start as u32, end, next });
        self.pos += 1;
        Some(())
    }
}

/// A place in a tape; without a tape, where nothing stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'d> {
    tape: Option<&'d Tape<'d>>,
    token: u32,
}

impl<'d> Place<'d> {
    fn token(self) -> Option<(&'d Tape<'d>, Token)> {
        let tape = self.tape?;
        tape.tokens.get(self.token as usize).map(|token| (tape, *token))
    }

    fn of(self, kind: Kind) -> Option<(&'d Tape<'d>, Token)> {
        self.token().filter(|(_, token)| token.kind == kind)
    }

    fn bytes((tape, token): (&'d Tape<'d>, Token)) -> &'d str {
        &tape.text[token.start as usize..token.end as usize]
    }

    /// The string of a token between quotes.
    fn unquoted(tape: &'d Tape<'d>, token: Token) -> Cow<'d, str> {
        let text = Place::bytes((tape, token));
        if token.kind == Kind::Text {
            return Cow::Borrowed(text);
        }
        let quoted = &tape.text.as_bytes()[token.start as usize - 1..token.end as usize + 1];
        let read = value::parse(quoted).ok().and_then(|value| value.as_str().map(str::to_owned));
        Cow::Owned(read.unwrap_or_default())
    }
}

/// The tokens directly within a collection.
#[derive(Clone, Copy, Debug)]
struct Children<'d> {
    tape: &'d Tape<'d>,
    at: u32,
    end: u32,
}

impl<'d> Iterator for Children<'d> {
    type Item = (Place<'d>, Token);

    fn next(&mut self) -> Option<(Place<'d>, Token)> {
        if self.at >= self.end {
            return None;
        }
        let place = Place { tape: Some(self.tape), token: self.at };
        let token = self.tape.tokens[self.at as usize];
        self.at = token.next;
        Some((place, token))
    }
}

impl<'d> Document<'d> for Place<'d> {
    const NULL: Place<'d> = Place { tape: None, token: 0 };

    fn is_null(self) -> bool {
        self.token().is_none_or(|(_, token)| token.kind == Kind::Null)
    }

    fn as_bool(self) -> Option<bool> {
        match self.token()?.1.kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            Kind::Null | Kind::Number | Kind::Text | Kind::EscapedText | Kind::Array | Kind::Object => None,
        }
    }

    fn as_i64(self) -> Option<i64> {
        let text = Place::bytes(self.of(Kind::Number)?);
        text.parse().ok().or_else(|| value::parse(text.as_bytes()).ok()?.as_i64())
    }

    fn as_f64(self) -> Option<f64> {
        Place::bytes(self.of(Kind::Number)?).parse().ok()
    }

    fn as_text(self) -> Option<Cow<'d, str>> {
        let (tape, token) = self.token()?;
        matches!(token.kind, Kind::Text | Kind::EscapedText).then(|| Place::unquoted(tape, token))
    }

    fn as_items(self) -> Option<impl Iterator<Item = Place<'d>>> {
        let (tape, token) = self.of(Kind::Array)?;
        Some(Children { tape, at: self.token + 1, end: token.next }.map(|(place, _)| place))
    }

    fn as_members(self) -> Option<impl Iterator<Item = (Cow<'d, str>, Place<'d>)>> {
        let (tape, token) = self.of(Kind::Object)?;
        let mut children = Children { tape, at: self.token + 1, end: token.next };
        Some(std::iter::from_fn(move || {
            let (_, key) = children.next()?;
            let (member, _) = children.next()?;
            Some((Place::unquoted(tape, key), member))
        }))
    }

    fn json(self) -> Cow<'d, [u8]> {
        self.token().map_or(Cow::Borrowed(b"null"), |found| match found.1.kind {
            // the token does not have the quotes
            Kind::Text | Kind::EscapedText => {
                let (tape, token) = found;
                Cow::Borrowed(&tape.text.as_bytes()[token.start as usize - 1..token.end as usize + 1])
            }
            Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::Array | Kind::Object => {
                Cow::Borrowed(Place::bytes(found).as_bytes())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::Value;

    /// The value that a place stands for.
    fn value_at(place: Place<'_>) -> Value {
        if let Some(members) = place.as_members() {
            return Value::Object(members.map(|(key, member)| (key.into_owned(), value_at(member))).collect());
        }
        if let Some(items) = place.as_items() {
            return items.map(value_at).collect();
        }
        let text = place.as_text().map(|text| Value::from(text.as_ref()));
        let int = || place.as_i64().map(Value::Int);
        let float = || place.as_f64().map(Value::Float);
        let flag = || place.as_bool().map(Value::Bool);
        text.or_else(flag).or_else(int).or_else(float).unwrap_or_default()
    }

    #[test]
    fn places_stand_for_the_same_values() {
        for text in [
            r#"{"a":[1,-2,2.5,"x",null,true,false,[],{}],"b":{"c":{"d":"e"}},"\u00e9\n":"\"\\\ud83d\ude00"}"#,
            " [ 1 , { \"a\" : \"b\" } ] ",
            r#""text""#,
            "null",
        ] {
            let tape = Tape::read(text.as_bytes()).unwrap();
            assert_eq!(value_at(tape.root()), value::parse(text.as_bytes()).unwrap(), "{text}");
            assert_eq!(tape.root().json(), text.trim().as_bytes());
        }
    }

    #[test]
    fn what_is_no_json() {
        let deep = "[".repeat(NESTING_DEPTH_MAX + 1);
        for text in ["", "{", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "tru", "\"a", "\"\\", "1 2", "[1}", deep.as_str()]
        {
            assert!(Tape::read(text.as_bytes()).is_none(), "{text}");
        }
    }
}
