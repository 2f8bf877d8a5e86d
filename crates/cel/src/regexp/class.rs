//! Character classes and escapes of Go's regular expressions.

use super::{RegexpError, error, write_literal};

/// Named classes and what they are in the `regex` crate's classes.
const POSIX: &[(&str, &str)] = &[
    ("[:alnum:]", "0-9A-Za-z"),
    ("[:alpha:]", "A-Za-z"),
    ("[:ascii:]", r"\x00-\x7F"),
    ("[:blank:]", r"\t "),
    ("[:cntrl:]", r"\x00-\x1F\x7F"),
    ("[:digit:]", "0-9"),
    ("[:graph:]", "!-~"),
    ("[:lower:]", "a-z"),
    ("[:print:]", " -~"),
    ("[:punct:]", r"!-/:-@\[-`\{-~"),
    ("[:space:]", r"\t\n\x0B\x0C\r "),
    ("[:upper:]", "A-Z"),
    ("[:word:]", "0-9A-Za-z_"),
    ("[:xdigit:]", "0-9A-Fa-f"),
];

/// A class in the crate's syntax, such as `[0-9]` or `\p{Greek}`.
pub(super) type Named = String;

/// A class being read.
#[derive(Debug, Default)]
pub(super) struct Class {
    is_negated: bool,
    /// Its members in the crate's syntax, without the brackets.
    members: String,
}

impl Class {
    pub(super) fn push_named(&mut self, named: Named) {
        self.members.push_str(&named);
    }

    fn push_range(&mut self, lo: char, hi: char) {
        write_literal(&mut self.members, lo);
        if lo != hi {
            self.members.push('-');
            write_literal(&mut self.members, hi);
        }
    }

    pub(super) fn write(&self, out: &mut String) {
        out.push_str(if self.is_negated { "[^" } else { "[" });
        out.push_str(&self.members);
        out.push(']');
    }
}

/// Reads the class at the start of `text`; answers it and what follows.
pub(super) fn parse_class(text: &str) -> Result<(Class, &str), RegexpError> {
    let mut class = Class::default();
    let mut rest = &text[1..];
    if let Some(after) = rest.strip_prefix('^') {
        class.is_negated = true;
        rest = after;
    }
    let mut is_first = true;
    loop {
        match rest.chars().next() {
            None => return Err(error("missing closing ]", text)),
            Some(']') if !is_first => return Ok((class, &rest[1..])),
            Some(_) => {}
        }
        is_first = false;
        if rest.starts_with("[:")
            && let Some(end) = rest.find(":]")
        {
            let name = &rest[..end + 2];
            class.push_named(posix_class(name)?);
            rest = &rest[name.len()..];
            continue;
        }
        if rest.starts_with('\\')
            && let Some((named, after)) = perl_class(rest)?
        {
            class.push_named(named);
            rest = after;
            continue;
        }
        let start = rest;
        let (lo, after) = class_char(rest, text)?;
        rest = after;
        let mut hi = lo;
        let after_dash = rest.strip_prefix('-').filter(|after| !after.is_empty() && !after.starts_with(']'));
        if let Some(after_dash) = after_dash {
            let (end, after) = class_char(after_dash, text)?;
            hi = end;
            rest = after;
        }
        if hi < lo {
            return Err(error("invalid character class range", &start[..start.len() - rest.len()]));
        }
        class.push_range(lo, hi);
    }
}

fn posix_class(name: &str) -> Result<Named, RegexpError> {
    let (plain, is_negated) = match name.strip_prefix("[:^") {
        Some(inner) => (format!("[:{inner}"), true),
        None => (name.to_owned(), false),
    };
    match POSIX.iter().find(|(posix, _)| *posix == plain) {
        Some((_, members)) => Ok(format!("[{}{members}]", if is_negated { "^" } else { "" })),
        None => Err(error("invalid character class range", name)),
    }
}

/// One character of a class; `whole` is the class for the error of one that does not end.
fn class_char<'t>(text: &'t str, whole: &str) -> Result<(char, &'t str), RegexpError> {
    match text.chars().next() {
        None => Err(error("missing closing ]", whole)),
        Some('\\') => unescape(text),
        Some(c) => Ok((c, &text[c.len_utf8()..])),
    }
}

/// `\d`, `\pN`, `\p{Greek}` and the like at the start of `text`, which begins with a backslash.
pub(super) fn perl_class(text: &str) -> Result<Option<(Named, &str)>, RegexpError> {
    let mut chars = text[1..].chars();
    let simple = match chars.next() {
        Some('d') => "[0-9]",
        Some('D') => "[^0-9]",
        Some('s') => r"[\t\n\x0C\r ]",
        Some('S') => r"[^\t\n\x0C\r ]",
        Some('w') => "[0-9A-Za-z_]",
        Some('W') => "[^0-9A-Za-z_]",
        Some('p' | 'P') => return unicode_class(text).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((simple.to_owned(), &text[2..])))
}

fn unicode_class(text: &str) -> Result<(Named, &str), RegexpError> {
    let is_upper = text[1..].starts_with('P');
    let after = &text[2..];
    let (name, len) = match after.chars().next() {
        None => return Err(error("invalid character class range", text)),
        Some('{') => match after.find('}') {
            Some(end) => (&after[1..end], 2 + end + 1),
            None => return Err(error("invalid character class range", text)),
        },
        Some(c) => (&after[..c.len_utf8()], 2 + c.len_utf8()),
    };
    let (name, is_caret) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
    let sign = if is_upper == is_caret { 'p' } else { 'P' };
    let named = if name == "Any" { format!("\\{sign}{{any}}") } else { format!("\\{sign}{{{name}}}") };
    if regex::Regex::new(&named).is_err() {
        return Err(error("invalid character class range", &text[..len]));
    }
    Ok((named, &text[len..]))
}

/// The character that an escape stands for; `text` begins with the backslash.
pub(super) fn unescape(text: &str) -> Result<(char, &str), RegexpError> {
    let Some(c) = text[1..].chars().next() else {
        return Err(error("trailing backslash at end of expression", ""));
    };
    let after = &text[1 + c.len_utf8()..];
    let invalid = |rest: &str| error("invalid escape sequence", &text[..text.len() - rest.len()]);
    let simple = match c {
        'a' => '\u{7}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        // one digit alone would be a back reference
        '1'..='7' if !after.starts_with(|c: char| ('0'..='7').contains(&c)) => return Err(invalid(after)),
        '0'..='7' => {
            let n_more = after.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
            let digits = &text[1..2 + n_more];
            let code = u32::from_str_radix(digits, 8).unwrap_or_default();
            return char::from_u32(code).map(|c| (c, &after[n_more..])).ok_or_else(|| invalid(after));
        }
        'x' => return hex_escape(text, after),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
        _ => return Err(invalid(after)),
    };
    Ok((simple, after))
}

/// `\xFF` or `\x{10FFFF}`; `after` begins behind the `x`.
fn hex_escape<'t>(text: &'t str, after: &'t str) -> Result<(char, &'t str), RegexpError> {
    let (digits, len) = match after.strip_prefix('{') {
        Some(inner) => match inner.find('}') {
            Some(end) => (&inner[..end], end + 2),
            None => return Err(error("invalid escape sequence", text)),
        },
        None => match after.get(..2) {
            Some(two) => (two, 2),
            None => return Err(error("invalid escape sequence", text)),
        },
    };
    let is_hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let code = if is_hex { u32::from_str_radix(digits, 16).ok() } else { None };
    match code.and_then(char::from_u32) {
        Some(c) => Ok((c, &after[len..])),
        None => Err(error("invalid escape sequence", &text[..text.len() - after.len() + len])),
    }
}
