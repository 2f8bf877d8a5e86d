//! Go's regular expressions on the `regex` crate: Go's syntax is checked with Go's error texts and rewritten into the
//! crate's syntax (ASCII `\d`, `\w`, `\s` and `\b`; no set operators in classes).
//!
//! Follows: regexp/syntax of Go 1.24 with Perl flags. Not here: `\C`, which matches half a character.

mod class;

use class::{Class, parse_class, perl_class};
use pintle_apimachinery::Str;
use std::fmt;

/// Groups may nest this deep, as in Go; a deeper expression is refused.
const NESTING_DEPTH_MAX: usize = 1000;

/// A count in braces may be this large, as in Go; a larger one is refused.
const REPEAT_COUNT_MAX: u32 = 1000;

/// A compiled regular expression of Go's syntax.
#[derive(Clone, Debug)]
pub struct Regexp(regex::Regex);

/// Why an expression is none, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexpError {
    /// What is wrong, such as `missing closing )`.
    pub code: &'static str,
    /// The part of the expression it is about.
    pub part: Str,
}

impl fmt::Display for RegexpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error parsing regexp: {}: `{}`", self.code, self.part)
    }
}

impl std::error::Error for RegexpError {}

impl Regexp {
    /// Compiles an expression.
    ///
    /// # Errors
    /// [`RegexpError`] when Go would not compile it.
    pub fn new(pattern: &str) -> Result<Regexp, RegexpError> {
        let translated = translate(pattern)?;
        match regex::Regex::new(&translated) {
            Ok(compiled) => Ok(Regexp(compiled)),
            Err(_) => Err(error("expression too large", pattern)),
        }
    }

    /// Whether `text` contains a match.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The first match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|m| m.as_str())
    }

    /// The matches, none overlapping another.
    pub fn find_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.0.find_iter(text).map(|m| m.as_str())
    }
}

fn error(code: &'static str, part: &str) -> RegexpError {
    RegexpError { code, part: Str::new(part) }
}

/// What stands last in an output branch: what a repetition would repeat.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// Nothing: at the start, after `(` or `|`.
    Nothing,
    /// Something that can be repeated.
    Item,
}

struct Parser<'p> {
    pattern: &'p str,
    rest: &'p str,
    out: String,
    /// What each open group's branch ended with before the group.
    open: Vec<Last>,
    last: Last,
    /// The text from the previous repetition operator on, if the last thing read was one.
    last_repeat: Option<&'p str>,
}

/// The expression in the syntax of the `regex` crate.
fn translate(pattern: &str) -> Result<String, RegexpError> {
    let mut parser = Parser {
        pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        open: Vec::new(),
        last: Last::Nothing,
        last_repeat: None,
    };
    while let Some(c) = parser.rest.chars().next() {
        parser.step(c)?;
    }
    if !parser.open.is_empty() {
        return Err(error("missing closing )", pattern));
    }
    Ok(parser.out)
}

impl<'p> Parser<'p> {
    fn advance(&mut self, n_bytes: usize) {
        self.rest = &self.rest[n_bytes..];
    }

    /// Reads what begins with `c`.
    fn step(&mut self, c: char) -> Result<(), RegexpError> {
        let mut repeat = None;
        match c {
            '(' => self.group()?,
            ')' => {
                self.last = Last::Item;
                if self.open.pop().is_none() {
                    return Err(error("unexpected )", self.pattern));
                }
                self.out.push(')');
                self.advance(1);
            }
            '|' => {
                self.last = Last::Nothing;
                self.out.push('|');
                self.advance(1);
            }
            '^' | '$' | '.' => {
                self.last = Last::Item;
                self.out.push(c);
                self.advance(1);
            }
            '[' => {
                let (class, after) = parse_class(self.rest)?;
                class.write(&mut self.out);
                self.rest = after;
                self.last = Last::Item;
            }
            '*' | '+' | '?' => repeat = Some(self.repeat(1)?),
            '{' => match counts(self.rest) {
                None => self.literal('{'),
                Some((min, max, len)) => {
                    let is_too_large =
                        min > REPEAT_COUNT_MAX || max.is_some_and(|max| max > REPEAT_COUNT_MAX || max < min);
                    if is_too_large {
                        return Err(error("invalid repeat count", &self.rest[..len]));
                    }
                    repeat = Some(self.repeat(len)?);
                }
            },
            '\\' => self.escape()?,
            c => self.literal(c),
        }
        self.last_repeat = repeat;
        Ok(())
    }

    fn literal(&mut self, c: char) {
        write_literal(&mut self.out, c);
        self.last = Last::Item;
        self.advance(c.len_utf8());
    }

    /// A repetition operator of `len` bytes, and the `?` behind it. Answers the text from the operator on.
    fn repeat(&mut self, len: usize) -> Result<&'p str, RegexpError> {
        let before = self.rest;
        let len = if before[len..].starts_with('?') { len + 1 } else { len };
        if let Some(previous) = self.last_repeat {
            let stacked = &previous[..previous.len() - (before.len() - len)];
            return Err(error("invalid nested repetition operator", stacked));
        }
        if self.last == Last::Nothing {
            return Err(error("missing argument to repetition operator", &before[..len]));
        }
        self.out.push_str(&before[..len]);
        self.advance(len);
        Ok(before)
    }

    /// `(` and what may follow it.
    fn group(&mut self) -> Result<(), RegexpError> {
        if self.open.len() >= NESTING_DEPTH_MAX {
            return Err(error("expression nests too deeply", self.pattern));
        }
        let Some(flags) = self.rest.strip_prefix("(?") else {
            self.open.push(self.last);
            self.last = Last::Nothing;
            self.out.push('(');
            self.advance(1);
            return Ok(());
        };
        if flags.starts_with("P<") || flags.starts_with('<') {
            return self.named_group();
        }
        self.flags(flags)
    }

    fn named_group(&mut self) -> Result<(), RegexpError> {
        let Some(end) = self.rest.find('>') else { return Err(error("invalid named capture", self.rest)) };
        let head = &self.rest[..=end];
        let name = head.trim_start_matches("(?").trim_start_matches('P').trim_start_matches('<').trim_end_matches('>');
        if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            return Err(error("invalid named capture", head));
        }
        // names mean nothing to a match; the crate wants them to begin with a letter
        self.open.push(self.last);
        self.last = Last::Nothing;
        self.out.push('(');
        self.advance(head.len());
        Ok(())
    }

    /// `(?flags)` or `(?flags:`; `flags` begins behind the question mark.
    fn flags(&mut self, flags: &'p str) -> Result<(), RegexpError> {
        let whole = self.rest;
        let (mut has_minus, mut has_flag) = (false, false);
        for (idx, c) in flags.char_indices() {
            let upto = &whole[..2 + idx + c.len_utf8()];
            match c {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !has_minus => {
                    has_minus = true;
                    has_flag = false;
                }
                ':' | ')' if !has_minus || has_flag => {
                    if c == ':' {
                        self.open.push(self.last);
                        self.last = Last::Nothing;
                    }
                    // the crate takes no empty `(?)`
                    if upto != "(?)" {
                        self.out.push_str(upto);
                    }
                    self.advance(upto.len());
                    return Ok(());
                }
                _ => return Err(error("invalid or unsupported Perl syntax", upto)),
            }
        }
        Err(error("missing closing )", self.pattern))
    }

    /// A backslash outside of classes.
    fn escape(&mut self) -> Result<(), RegexpError> {
        self.last = Last::Item;
        let Some(c) = self.rest[1..].chars().next() else {
            return Err(error("trailing backslash at end of expression", ""));
        };
        let known = match c {
            'A' => Some(r"\A"),
            'z' => Some(r"\z"),
            'b' => Some(r"(?-u:\b)"),
            'B' => Some(r"(?-u:\B)"),
            _ => None,
        };
        if let Some(known) = known {
            self.out.push_str(known);
            self.advance(2);
            return Ok(());
        }
        if c == 'Q' {
            let quoted = &self.rest[2..];
            let (quoted, len) = match quoted.find("\\E") {
                Some(end) => (&quoted[..end], 2 + end + 2),
                None => (quoted, self.rest.len()),
            };
            for c in quoted.chars() {
                write_literal(&mut self.out, c);
            }
            self.advance(len);
            return Ok(());
        }
        if let Some((class, after)) = perl_class(self.rest)? {
            let mut whole = Class::default();
            whole.push_named(class);
            whole.write(&mut self.out);
            self.rest = after;
            return Ok(());
        }
        let (c, after) = class::unescape(self.rest)?;
        write_literal(&mut self.out, c);
        self.rest = after;
        Ok(())
    }
}

/// `{n}`, `{n,}` or `{n,m}` at the start of `text`: the counts and the length. `None` where it is none of them, which
/// makes the brace a literal.
fn counts(text: &str) -> Option<(u32, Option<u32>, usize)> {
    let end = text.find('}')?;
    let inner = &text[1..end];
    let number = |digits: &str| {
        // Go reads `01` as two things
        let is_number = !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits.len() == 1 || !digits.starts_with('0'));
        is_number.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (min, max) = match inner.split_once(',') {
        None => (number(inner)?, Some(number(inner)?)),
        Some((min, "")) => (number(min)?, None),
        Some((min, max)) => (number(min)?, Some(number(max)?)),
    };
    Some((min, max, end + 1))
}

/// Appends a character that stands for itself.
fn write_literal(out: &mut String, c: char) {
    if matches!(
        c,
        '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' | '#' | '&' | '-' | '~'
    ) {
        out.push('\\');
    }
    out.push(c);
}

#[cfg(test)]
mod tests;
