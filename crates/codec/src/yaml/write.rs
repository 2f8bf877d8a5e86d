//! A [`Value`] as YAML, in the style of Go's writer: block style, keys in natural order, quotes only where the text
//! would be read as something else.

use super::scalar::{Scalar, resolve};
use pintle_apimachinery::value::go_float;
use pintle_apimachinery::{Str, Value};
use std::cmp::Ordering;

/// Beyond this column a scalar goes on in the next line, where a space allows it.
const LINE_CHARS: usize = 80;

/// Keys longer than this are written in the `? key` form.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

/// The YAML document of a value.
pub fn write(value: &Value) -> Vec<u8> {
    let mut writer = Writer { out: String::with_capacity(256) };
    match value {
        Value::Object(members) if !members.is_empty() => writer.mapping(value, 0),
        Value::Array(items) if !items.is_empty() => writer.sequence(items, 0),
        _ => writer.scalar(value, 0, false),
    }
    if !writer.is_at_line_start() {
        writer.out.push('\n');
    }
    writer.out.into_bytes()
}

struct Writer {
    out: String,
}

impl Writer {
    fn is_at_line_start(&self) -> bool {
        self.out.is_empty() || self.out.ends_with('\n')
    }

    /// Goes to column `indent`: stays on a line that holds nothing but what leads to it (`- `), else begins a new one.
    fn go_to(&mut self, indent: usize) {
        let line = self.out.rsplit('\n').next().unwrap_or_default();
        let is_lead = line.len() == indent && line.bytes().all(|b| matches!(b, b' ' | b'-' | b'?' | b':'));
        if is_lead {
            return;
        }
        if !line.is_empty() {
            self.out.push('\n');
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    fn mapping(&mut self, value: &Value, indent: usize) {
        for (key, member) in sorted(value.entries().collect()) {
            self.go_to(indent);
            let is_simple = key.len() <= SIMPLE_KEY_BYTES_MAX && !has_break(key);
            if is_simple {
                self.text(key, indent, true);
                self.out.push(':');
            } else {
                self.out.push_str("? ");
                self.text(key, indent, false);
                self.go_to(indent);
                self.out.push(':');
            }
            self.member(member, indent, is_simple);
        }
    }

    fn member(&mut self, member: &Value, indent: usize, is_simple: bool) {
        match member {
            Value::Object(members) if !members.is_empty() => {
                if !is_simple {
                    self.out.push(' ');
                }
                self.mapping(member, indent + 2);
            }
            // items stand as far left as the key does
            Value::Array(items) if !items.is_empty() && is_simple => self.sequence(items, indent),
            Value::Array(items) if !items.is_empty() => {
                self.out.push(' ');
                self.sequence(items, indent + 2);
            }
            scalar => {
                self.out.push(' ');
                self.scalar(scalar, indent, false);
            }
        }
    }

    fn sequence(&mut self, items: &[Value], indent: usize) {
        for item in items {
            self.go_to(indent);
            self.out.push_str("- ");
            match item {
                Value::Object(members) if !members.is_empty() => self.mapping(item, indent + 2),
                Value::Array(inner) if !inner.is_empty() => self.sequence(inner, indent + 2),
                scalar => self.scalar(scalar, indent, false),
            }
        }
    }

    /// A scalar, or a collection without content.
    fn scalar(&mut self, value: &Value, indent: usize, is_key: bool) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Value::Int(i) => self.out.push_str(&i.to_string()),
            Value::Float(f) => self.out.push_str(&go_float_g(*f)),
            Value::String(text) => self.text(text, indent, is_key),
            Value::Array(_) => self.out.push_str("[]"),
            Value::Object(_) => self.out.push_str("{}"),
        }
    }

    fn text(&mut self, text: &str, indent: usize, is_key: bool) {
        let shape = Shape::of(text);
        if text.contains('\n') {
            if shape.is_block_allowed && !is_key {
                self.literal(text, indent + 2);
            } else {
                self.double_quoted(text, indent + 2, is_key);
            }
        } else if resolve(text) != Scalar::Text || is_base_60(text) {
            self.double_quoted(text, indent + 2, is_key);
        } else if shape.is_plain_allowed && !(is_key && text.is_empty()) {
            self.folded(text, indent + 2, is_key, "");
        } else if shape.is_single_quoted_allowed {
            self.folded(&text.replace('\'', "''"), indent + 2, is_key, "'");
        } else {
            self.double_quoted(text, indent + 2, is_key);
        }
    }

    /// The column, counted in characters.
    fn column(&self) -> usize {
        self.out.rsplit('\n').next().unwrap_or_default().chars().count()
    }

    /// A plain or single-quoted scalar. A single space beyond the line's end becomes a line break, unless it stands at
    /// an end of quoted text; a key stays on its line.
    fn folded(&mut self, text: &str, indent: usize, is_key: bool, quote: &str) {
        self.out.push_str(quote);
        let mut column = self.column();
        let mut is_after_space = false;
        let mut rest = text.char_indices().peekable();
        while let Some((at, c)) = rest.next() {
            let is_inner = quote.is_empty() || (at > 0 && at + 1 < text.len());
            let may_break = c == ' ' && !is_key && !is_after_space && is_inner;
            if may_break && column > LINE_CHARS && rest.peek().is_none_or(|(_, next)| *next != ' ') {
                self.out.push('\n');
                self.out.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            } else {
                self.out.push(c);
                column += 1;
            }
            is_after_space = c == ' ';
        }
        self.out.push_str(quote);
    }

    /// `|` with its lines indented; whether the text ends with no, one or more line breaks stands behind it.
    fn literal(&mut self, text: &str, indent: usize) {
        self.out.push('|');
        if text.starts_with([' ', '\n']) {
            self.out.push('2');
        }
        let trimmed = text.trim_end_matches('\n');
        match text.len() - trimmed.len() {
            0 => self.out.push('-'),
            1 if !trimmed.is_empty() => {}
            _ => self.out.push('+'),
        }
        self.out.push('\n');
        for line in text.split_inclusive('\n') {
            if line != "\n" {
                self.out.extend(std::iter::repeat_n(' ', indent));
            }
            self.out.push_str(line);
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, is_key: bool) {
        self.out.push('"');
        let mut column = self.column();
        let mut is_after_space = false;
        let mut rest = text.char_indices().peekable();
        while let Some((at, c)) = rest.next() {
            let may_break = c == ' ' && !is_key && !is_after_space && at > 0 && at + 1 < text.len();
            let before = self.out.len();
            if may_break && column > LINE_CHARS {
                self.out.push('\n');
                self.out.extend(std::iter::repeat_n(' ', indent));
                column = indent;
                if rest.peek().is_some_and(|(_, next)| *next == ' ') {
                    self.out.push('\\');
                    column += 1;
                }
            } else {
                escape(&mut self.out, c);
                column += self.out[before..].chars().count();
            }
            is_after_space = c == ' ';
        }
        self.out.push('"');
    }
}

/// A character within double quotes.
fn escape(out: &mut String, c: char) {
    use std::fmt::Write as _;
    let letter = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        c if is_printable(c) => return out.push(c),
        c => {
            let code = u32::from(c);
            // writing to a String cannot fail
            let _ = match code {
                0..=0xff => write!(out, "\\x{code:02X}"),
                0x100..=0xffff => write!(out, "\\u{code:04X}"),
                _ => write!(out, "\\U{code:08X}"),
            };
            return;
        }
    };
    out.push('\\');
    out.push(letter);
}

/// In which styles a text may stand.
struct Shape {
    is_plain_allowed: bool,
    is_single_quoted_allowed: bool,
    is_block_allowed: bool,
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn has_break(text: &str) -> bool {
    text.contains(is_break)
}

/// Characters that need no escape. Those beyond the basic plane do, for Go's writer.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

impl Shape {
    fn of(text: &str) -> Shape {
        let is_special = text.chars().any(|c| !is_printable(c));
        let has_space_break = text.chars().zip(text.chars().skip(1)).any(|(a, b)| a == ' ' && is_break(b));
        let has_break_space = text.chars().zip(text.chars().skip(1)).any(|(a, b)| is_break(a) && b == ' ');
        let (leads, trails) = (text.starts_with([' ', '\n']), text.ends_with([' ', '\n']));
        let is_bad = is_special || has_space_break;
        Shape {
            is_plain_allowed: !is_bad
                && !has_break_space
                && !leads
                && !trails
                && !has_break(text)
                && !has_indicator(text),
            is_single_quoted_allowed: !is_bad && !has_break_space && !has_break(text),
            is_block_allowed: !is_bad && !text.ends_with(' '),
        }
    }
}

/// Whether something in the text would be read as punctuation.
fn has_indicator(text: &str) -> bool {
    if text.starts_with("---") || text.starts_with("...") {
        return true;
    }
    let bytes = text.as_bytes();
    let is_blank_or_end = |at: usize| bytes.get(at).is_none_or(|b| matches!(b, b' ' | b'\t' | b'\n'));
    bytes.iter().enumerate().any(|(at, byte)| match (at, byte) {
        (
            0,
            b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"' | b'%' | b'@'
            | b'`',
        ) => true,
        (0, b'?' | b'-') => is_blank_or_end(1),
        (_, b':') => is_blank_or_end(at + 1),
        (_, b'#') => is_blank_or_end(at - 1),
        _ => false,
    })
}

/// Whether other readers would see a number in base 60: `1:30`.
fn is_base_60(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = rest.split(':');
    let first = parts.next().unwrap_or_default();
    let is_first =
        first.starts_with(|c: char| c.is_ascii_digit()) && first.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let mut parts = parts.peekable();
    if !is_first || parts.peek().is_none() {
        return false;
    }
    while let Some(part) = parts.next() {
        let (number, fraction) = match part.split_once('.') {
            Some((number, fraction)) if parts.peek().is_none() => (number, fraction),
            Some(_) => return false,
            None => (part, ""),
        };
        let is_number = match number.as_bytes() {
            [digit] => digit.is_ascii_digit(),
            [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
            _ => false,
        };
        if !is_number || !fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_') {
            return false;
        }
    }
    true
}

/// Members sorted by [`natural`], which is no total order: some triples of keys go in a circle. The standard sort may
/// panic on such; this one merges, and always ends.
fn sorted<'v>(members: Vec<(&'v Str, &'v Value)>) -> Vec<(&'v Str, &'v Value)> {
    if members.len() < 2 {
        return members;
    }
    let mut first = members;
    let second = sorted(first.split_off(first.len() / 2));
    let (mut first, mut second) = (sorted(first).into_iter().peekable(), second.into_iter().peekable());
    let mut merged = Vec::with_capacity(first.len() + second.len());
    while let (Some(a), Some(b)) = (first.peek(), second.peek()) {
        let next = if natural(b.0, a.0) == Ordering::Less { second.next() } else { first.next() };
        merged.extend(next);
    }
    merged.extend(first);
    merged.extend(second);
    merged
}

/// Keys as Go's writer sorts them: letters after everything else, runs of digits by their number.
fn natural(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = (0..a.len().min(b.len())).find(|at| a[*at] != b[*at]) else { return a.len().cmp(&b.len()) };
    let (x, y) = (a[at], b[at]);
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // zeros within a number do not lead it
    let is_within_number =
        (x == '0' || y == '0') && a[..at].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
    let number = |chars: &[char]| {
        let digits = chars[at..].iter().take_while(|c| c.is_ascii_digit());
        digits.fold((u64::from(is_within_number), 0usize), |(n, len), c| {
            (n.wrapping_mul(10).wrapping_add(u64::from(c.to_digit(10).unwrap_or_default())), len + 1)
        })
    };
    let ((n, n_len), (m, m_len)) = (number(&a), number(&b));
    n.cmp(&m).then(n_len.cmp(&m_len)).then(x.cmp(&y))
}

/// A float as Go's `%g` writes it: with an exponent from 1e6 on and below 1e-4.
fn go_float_g(f: f64) -> String {
    if f == 0.0 || !f.is_finite() {
        return go_float(f);
    }
    let scientific = format!("{f:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{f}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
