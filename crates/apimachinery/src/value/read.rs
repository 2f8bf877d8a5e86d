//! JSON in: a recursive-descent reader with the error texts of Go's `encoding/json`, which clients see and match on.
//!
//! A [`Guide`] steers it with a schema in the same pass: fields that no schema declares and keys given twice are
//! collected in document order as [`Issue`]s, wrong types as the first one only (as Go reports them), and zero values
//! are dropped or added by the schema's rules. Without a guide the document is read as it is.

mod keys;

use self::keys::{Key, Seen};
use super::{Object, Value};
use crate::Str;

/// Objects and lists may nest this deep; deeper documents are refused. Go stops at 10,000; every reader and writer
/// here is recursive, so the limit keeps the worst document within a small stack.
pub const NESTING_DEPTH_MAX: usize = 256;

/// Unknown and duplicate fields reported per document; as upstream, further ones are counted as seen and not told.
const ISSUES_MAX: usize = 100;

/// Why a document is no JSON, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// The text that Go's `encoding/json` gives for the same fault.
    pub message: String,
    /// Byte offset of the fault.
    pub offset: usize,
}

/// What kind of strictness fault an [`Issue`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueKind {
    /// The schema declares no such field.
    UnknownField,
    /// The key stands twice in one object.
    DuplicateField,
}

/// A field that strict validation refuses and that is otherwise dropped (unknown) or overwritten (duplicate).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Which fault.
    pub kind: IssueKind,
    /// Where, as `spec.containers[0].imag`.
    pub path: String,
}

impl std::fmt::Display for Issue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            IssueKind::UnknownField => "unknown",
            IssueKind::DuplicateField => "duplicate",
        };
        write!(f, "{kind} field \"{}\"", self.path)
    }
}

/// What was found while reading a document that is syntactically sound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issues {
    /// Unknown and duplicate fields in document order, at most 100.
    pub strict: Vec<Issue>,
    /// The first value of a wrong type, with Go's text (`json: cannot unmarshal ...`). The document has no meaning
    /// then.
    pub wrong_type: Option<String>,
}

/// A document and what was found in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The document; meaningless when `issues.wrong_type` is set.
    pub value: Value,
    /// What was found.
    pub issues: Issues,
}

/// What a guide says of an object's member.
#[derive(Clone, Copy, Debug)]
pub enum FieldGuide<G> {
    /// A declared member.
    Known {
        /// Guides the member's value.
        guide: G,
        /// The declared name where it lives for ever: spares an allocation.
        name: Option<&'static str>,
        /// Leave the member out when its value is empty (Go's `omitempty` on what is no pointer).
        omit_empty: bool,
        /// Whether this is a field of a struct (its name shows in type errors) or an entry of a map.
        is_field: bool,
    },
    /// No schema declares it: it is reported and dropped.
    Unknown,
}

/// A wrong type or a text that its type refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Go's UnmarshalTypeError: `json: cannot unmarshal VALUE into Go struct field S.a.b of type TYPE`.
    Type {
        /// `string`, `number 1.5`, `object` ...
        value: String,
        /// The Go type that was wanted.
        go_type: String,
    },
    /// An error of the type's own, told as it is.
    Text(String),
}

/// A scalar as it stands in the document.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// `true` or `false`.
    Bool(bool),
    /// A number, with its literal text.
    Number(&'a str),
    /// A string.
    String(Str),
}

/// Steers the reader through a document by a schema.
pub trait Guide: Copy {
    /// What `key` is in an object at this place.
    fn member(self, key: &str) -> FieldGuide<Self>;
    /// Guides the items of a list at this place.
    fn item(self) -> Self;
    /// Whether an object may stand here.
    ///
    /// # Errors
    /// The mismatch, when it may not.
    fn enter_object(self) -> Result<(), Mismatch>;
    /// Whether a list may stand here.
    ///
    /// # Errors
    /// The mismatch, when it may not.
    fn enter_array(self) -> Result<(), Mismatch>;
    /// Turns a scalar into the value to keep.
    ///
    /// # Errors
    /// The mismatch, when no such scalar may stand here.
    fn scalar(self, scalar: Scalar<'_>) -> Result<Value, Mismatch>;
    /// What an explicit `null` means here as an item or map entry.
    fn null(self) -> Value;
    /// Whether `null` members of objects at this place are dropped (a struct's) or kept by [`Guide::null`] (a map's).
    fn drops_null_members(self) -> bool;
    /// The name of the Go struct at this place, for type errors; empty where there is none.
    fn struct_name(self) -> &'static str;
    /// Called when an object at this place is read: adds what is always written.
    fn finish_object(self, members: &mut Vec<(Str, Value)>);
    /// Called when an object here is complete: may turn it into another value (raw JSON kept as it is, say).
    ///
    /// # Errors
    /// The mismatch, when the object may not stand here after all.
    fn finish(self, value: Value) -> Result<Value, Mismatch> {
        Ok(value)
    }
}

/// The guide that lets everything pass.
#[derive(Clone, Copy, Debug)]
struct Free;

impl Guide for Free {
    fn member(self, _key: &str) -> FieldGuide<Self> {
        FieldGuide::Known { guide: Free, name: None, omit_empty: false, is_field: false }
    }
    fn item(self) -> Self {
        Free
    }
    fn enter_object(self) -> Result<(), Mismatch> {
        Ok(())
    }
    fn enter_array(self) -> Result<(), Mismatch> {
        Ok(())
    }
    fn scalar(self, scalar: Scalar<'_>) -> Result<Value, Mismatch> {
        Ok(match scalar {
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Number(literal) => free_number(literal),
            Scalar::String(s) => Value::String(s),
        })
    }
    fn null(self) -> Value {
        Value::Null
    }
    fn drops_null_members(self) -> bool {
        false
    }
    fn struct_name(self) -> &'static str {
        ""
    }
    fn finish_object(self, _members: &mut Vec<(Str, Value)>) {}
}

/// The value of a number literal where no schema says its type.
pub(crate) fn free_number(literal: &str) -> Value {
    match literal.parse::<i64>() {
        Ok(i) => Value::Int(i),
        Err(_) => literal.parse::<f64>().ok().filter(|f| f.is_finite()).map_or(Value::Null, Value::Float),
    }
}

/// Reads a document as it is; of equal keys the last one counts.
///
/// # Errors
/// [`ParseError`] with Go's words when `input` is no JSON document.
pub fn parse(input: &[u8]) -> Result<Value, ParseError> {
    Ok(parse_guided(input, Free)?.value)
}

/// [`parse`], with the duplicate keys told.
///
/// # Errors
/// As [`parse`].
pub fn parse_free(input: &[u8]) -> Result<Parsed, ParseError> {
    parse_guided(input, Free)
}

/// Reads a document along a schema. Duplicate keys are reported also where the schema lets everything pass.
///
/// # Errors
/// [`ParseError`] with Go's words when `input` is no JSON document. Wrong types are no error of this function: see
/// [`Issues::wrong_type`].
pub fn parse_guided<G: Guide>(input: &[u8], guide: G) -> Result<Parsed, ParseError> {
    let lossy;
    let text = match std::str::from_utf8(input) {
        Ok(text) => text,
        // Go reads invalid UTF-8 as U+FFFD.
        Err(_) => {
            lossy = String::from_utf8_lossy(input);
            &lossy
        }
    };
    let mut reader = Reader { text, bytes: text.as_bytes(), pos: 0, depth: 0, issues: Issues::default(), fault: None };
    reader.skip_space();
    let value = reader.value(guide)?;
    reader.skip_space();
    if let Some(&byte) = reader.bytes.get(reader.pos) {
        return Err(reader.unexpected(byte, "after top-level value"));
    }
    let Reader { mut issues, fault, .. } = reader;
    issues.wrong_type = fault.map(Fault::text);
    for issue in &mut issues.strict {
        // paths were built from the inside out
        issue.path = issue.path.strip_prefix('.').unwrap_or(&issue.path).to_owned();
    }
    Ok(Parsed { value, issues })
}

/// The first type error, its path still being built while the reader returns from the depth.
struct Fault {
    mismatch: Mismatch,
    /// The innermost struct around the fault.
    struct_name: &'static str,
    /// Names of struct fields from the innermost outwards.
    fields: Vec<String>,
}

impl Fault {
    fn text(self) -> String {
        let (value, go_type) = match self.mismatch {
            Mismatch::Text(text) => return text,
            Mismatch::Type { value, go_type } => (value, go_type),
        };
        if self.fields.is_empty() {
            return format!("json: cannot unmarshal {value} into Go value of type {go_type}");
        }
        let path: Vec<&str> = self.fields.iter().rev().map(String::as_str).collect();
        format!(
            "json: cannot unmarshal {value} into Go struct field {}.{} of type {go_type}",
            self.struct_name,
            path.join(".")
        )
    }
}

struct Reader<'a> {
    text: &'a str,
    /// `text` as bytes.
    bytes: &'a [u8],
    pos: usize,
    depth: usize,
    issues: Issues,
    fault: Option<Fault>,
}

impl<'a> Reader<'a> {
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.bytes.get(self.pos) {
            self.pos += 1;
        }
    }

    fn error(&self, message: String) -> ParseError {
        ParseError { message, offset: self.pos }
    }

    fn unexpected(&self, byte: u8, context: &str) -> ParseError {
        let shown = match byte {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            b'\\' => r"'\\'".to_owned(),
            0x07 => r"'\a'".to_owned(),
            0x08 => r"'\b'".to_owned(),
            0x0b => r"'\v'".to_owned(),
            0x0c => r"'\f'".to_owned(),
            b'\n' => r"'\n'".to_owned(),
            b'\r' => r"'\r'".to_owned(),
            b'\t' => r"'\t'".to_owned(),
            0x20..=0x7e => format!("'{}'", char::from(byte)),
            0x00..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
            // Go prints the byte as the rune of that number
            0x80..=0x9f => format!("'\\u{:04x}'", u32::from(byte)),
            0xa0 | 0xad => format!("'\\u{:04x}'", u32::from(byte)),
            0xa1..=0xff => format!("'{}'", char::from(byte)),
        };
        self.error(format!("invalid character {shown} {context}"))
    }

    fn end(&self) -> ParseError {
        self.error("unexpected end of JSON input".to_owned())
    }

    fn fail(&mut self, mismatch: Mismatch) {
        if self.fault.is_none() {
            self.fault = Some(Fault { mismatch, struct_name: "", fields: Vec::new() });
        }
    }

    fn value<G: Guide>(&mut self, guide: G) -> Result<Value, ParseError> {
        match self.bytes.get(self.pos) {
            None => Err(self.end()),
            Some(b'{') => self.object(guide),
            Some(b'[') => self.array(guide),
            Some(b'"') => {
                let s = self.string()?;
                self.scalar(guide, Scalar::String(s))
            }
            Some(b't') => {
                self.literal("true")?;
                self.scalar(guide, Scalar::Bool(true))
            }
            Some(b'f') => {
                self.literal("false")?;
                self.scalar(guide, Scalar::Bool(false))
            }
            Some(b'n') => {
                self.literal("null")?;
                Ok(guide.null())
            }
            Some(b'-' | b'0'..=b'9') => {
                let literal = self.number()?;
                self.scalar(guide, Scalar::Number(literal))
            }
            Some(&byte) => Err(self.unexpected(byte, "looking for beginning of value")),
        }
    }

    fn scalar<G: Guide>(&mut self, guide: G, scalar: Scalar<'_>) -> Result<Value, ParseError> {
        match guide.scalar(scalar) {
            Ok(value) => Ok(value),
            Err(mismatch) => {
                self.fail(mismatch);
                Ok(Value::Null)
            }
        }
    }

    fn deeper(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > NESTING_DEPTH_MAX {
            return Err(self.error(format!("exceeded max depth: objects and lists may nest {NESTING_DEPTH_MAX} deep")));
        }
        Ok(())
    }

    fn array<G: Guide>(&mut self, guide: G) -> Result<Value, ParseError> {
        self.deeper()?;
        self.pos += 1;
        let refused = guide.enter_array().err();
        let is_refused = refused.is_some();
        if let Some(mismatch) = refused {
            self.fail(mismatch);
        }
        let mut items = Vec::new();
        self.skip_space();
        if self.bytes.get(self.pos) == Some(&b']') {
            self.pos += 1;
        } else {
            loop {
                self.skip_space();
                let before = self.issues.strict.len();
                let item = if is_refused { self.value(Free).map(|_| Value::Null)? } else { self.value(guide.item())? };
                if self.issues.strict.len() > before {
                    let idx = items.len();
                    self.prefix(before, |path| format!("[{idx}]{path}"));
                }
                items.push(item);
                self.skip_space();
                match self.bytes.get(self.pos) {
                    Some(b',') => self.pos += 1,
                    Some(b']') => {
                        self.pos += 1;
                        break;
                    }
                    Some(&byte) => return Err(self.unexpected(byte, "after array element")),
                    None => return Err(self.end()),
                }
            }
        }
        self.depth -= 1;
        Ok(if is_refused { Value::Null } else { Value::Array(items) })
    }

    fn prefix(&mut self, from: usize, with: impl Fn(&str) -> String) {
        for issue in &mut self.issues.strict[from..] {
            issue.path = with(&issue.path);
        }
    }

    fn object<G: Guide>(&mut self, guide: G) -> Result<Value, ParseError> {
        self.deeper()?;
        self.pos += 1;
        let refused = guide.enter_object().err();
        if let Some(mismatch) = refused {
            self.fail(mismatch);
            self.members(Free)?;
            self.depth -= 1;
            return Ok(Value::Null);
        }
        let mut members = self.members(guide)?;
        guide.finish_object(&mut members);
        self.depth -= 1;
        match guide.finish(Value::Object(Object::from_unsorted(members))) {
            Ok(value) => Ok(value),
            Err(mismatch) => {
                self.fail(mismatch);
                Ok(Value::Null)
            }
        }
    }

    fn members<G: Guide>(&mut self, guide: G) -> Result<Vec<(Str, Value)>, ParseError> {
        let mut members: Vec<(Str, Value)> = Vec::new();
        // Keys in the document, the dropped ones too: a duplicate is one even if it was null.
        let mut seen = Seen::default();
        self.skip_space();
        if self.bytes.get(self.pos) == Some(&b'}') {
            self.pos += 1;
            return Ok(members);
        }
        loop {
            self.skip_space();
            match self.bytes.get(self.pos) {
                Some(b'"') => {}
                Some(&byte) => return Err(self.unexpected(byte, "looking for beginning of object key string")),
                None => return Err(self.end()),
            }
            let key = self.key()?;
            self.skip_space();
            match self.bytes.get(self.pos) {
                Some(b':') => self.pos += 1,
                Some(&byte) => return Err(self.unexpected(byte, "after object key")),
                None => return Err(self.end()),
            }
            self.skip_space();
            self.member(guide, key, &mut members, &mut seen)?;
            self.skip_space();
            match self.bytes.get(self.pos) {
                Some(b',') => self.pos += 1,
                Some(b'}') => {
                    self.pos += 1;
                    return Ok(members);
                }
                Some(&byte) => return Err(self.unexpected(byte, "after object key:value pair")),
                None => return Err(self.end()),
            }
        }
    }

    fn member<G: Guide>(
        &mut self,
        guide: G,
        key: Key<'a>,
        members: &mut Vec<(Str, Value)>,
        seen: &mut Seen<'a>,
    ) -> Result<(), ParseError> {
        let key_text = key.as_str();
        let before = self.issues.strict.len();
        let (child, name, omit_empty, is_field) = match guide.member(key_text) {
            FieldGuide::Unknown => {
                self.issue(IssueKind::UnknownField, key_text);
                self.value(Free)?;
                self.issues.strict.truncate((before + 1).min(ISSUES_MAX));
                return Ok(());
            }
            FieldGuide::Known { guide, name, omit_empty, is_field } => (guide, name, omit_empty, is_field),
        };
        if seen.insert(&key) {
            self.issue(IssueKind::DuplicateField, key_text);
        }
        let nested = self.issues.strict.len();
        let had_fault = self.fault.is_some();
        let is_null = self.bytes.get(self.pos) == Some(&b'n');
        let value = self.value(child)?;
        if self.issues.strict.len() > nested {
            self.prefix(nested, |path| format!(".{key_text}{path}"));
        }
        // a fault that was not there before lies inside this member
        if let Some(fault) = self.fault.as_mut().filter(|_| is_field && !had_fault) {
            if fault.fields.is_empty() {
                fault.struct_name = guide.struct_name();
            }
            fault.fields.push(key_text.to_owned());
        }
        let is_dropped = (is_null && guide.drops_null_members()) || (omit_empty && value.is_empty());
        if is_dropped {
            // an earlier duplicate does not survive a later empty one
            if seen.is_duplicate {
                members.retain(|(k, _)| k != key_text);
            }
            return Ok(());
        }
        members.push((name.map_or_else(|| key.into_str(), Str::const_new), value));
        Ok(())
    }

    fn issue(&mut self, kind: IssueKind, key: &str) {
        if self.issues.strict.len() < ISSUES_MAX {
            self.issues.strict.push(Issue { kind, path: format!(".{key}") });
        }
    }

    fn literal(&mut self, word: &'static str) -> Result<(), ParseError> {
        for expected in word.bytes() {
            match self.bytes.get(self.pos) {
                Some(&byte) if byte == expected => self.pos += 1,
                Some(&byte) => {
                    let context = format!("in literal {word} (expecting '{}')", char::from(expected));
                    return Err(self.unexpected(byte, &context));
                }
                None => return Err(self.end()),
            }
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Result<(), ParseError> {
        match self.bytes.get(self.pos) {
            Some(b'0'..=b'9') => {}
            Some(&byte) => return Err(self.unexpected(byte, context)),
            None => return Err(self.end()),
        }
        while let Some(b'0'..=b'9') = self.bytes.get(self.pos) {
            self.pos += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<&'a str, ParseError> {
        let start = self.pos;
        if self.bytes.get(self.pos) == Some(&b'-') {
            self.pos += 1;
        }
        if self.bytes.get(self.pos) == Some(&b'0') {
            self.pos += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.bytes.get(self.pos) == Some(&b'.') {
            self.pos += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.pos) {
            self.pos += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.pos) {
                self.pos += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(&self.text[start..self.pos])
    }

    /// The end of the plain run that starts at the current position, and the byte there.
    fn plain_run(&self) -> (usize, Option<u8>) {
        let mut end = self.pos;
        while let Some(&byte) = self.bytes.get(end) {
            if byte == b'"' || byte == b'\\' || byte < 0x20 {
                return (end, Some(byte));
            }
            end += 1;
        }
        (end, None)
    }

    fn key(&mut self) -> Result<Key<'a>, ParseError> {
        let start = self.pos + 1;
        self.pos = start;
        let (end, stop) = self.plain_run();
        if stop == Some(b'"') {
            self.pos = end + 1;
            return Ok(Key::Plain(&self.text[start..end]));
        }
        self.pos = start - 1;
        Ok(Key::Owned(self.string()?))
    }

    fn string(&mut self) -> Result<Str, ParseError> {
        self.pos += 1;
        let (end, stop) = self.plain_run();
        if stop == Some(b'"') {
            let s = Str::new(&self.text[self.pos..end]);
            self.pos = end + 1;
            return Ok(s);
        }
        let mut out = String::new();
        loop {
            let (end, stop) = self.plain_run();
            out.push_str(&self.text[self.pos..end]);
            self.pos = end;
            match stop {
                None => return Err(self.end()),
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(Str::from(out));
                }
                Some(b'\\') => {
                    self.pos += 1;
                    self.escape(&mut out)?;
                }
                Some(byte) => return Err(self.unexpected(byte, "in string literal")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), ParseError> {
        let Some(&byte) = self.bytes.get(self.pos) else { return Err(self.end()) };
        let plain = match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.pos += 1;
                let c = self.unicode_escape()?;
                out.push(c);
                return Ok(());
            }
            other => return Err(self.unexpected(other, "in string escape code")),
        };
        self.pos += 1;
        out.push(plain);
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32, ParseError> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(&byte) = self.bytes.get(self.pos) else { return Err(self.end()) };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(self.unexpected(byte, r"in \u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.pos += 1;
        }
        Ok(code)
    }

    fn unicode_escape(&mut self) -> Result<char, ParseError> {
        let first = self.hex4()?;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        // a high surrogate counts only together with the low one behind it
        if self.bytes[self.pos..].starts_with(b"\\u") {
            let back = self.pos;
            self.pos += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.pos = back;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }
}

#[cfg(test)]
mod tests;
