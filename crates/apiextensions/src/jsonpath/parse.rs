//! The reader of paths.

use super::{JsonPath, Slice, Step};
use pintle_apimachinery::{Str, Value};

/// Steps within filters and unions may nest this deep; deeper paths are refused.
const NESTING_DEPTH_MAX: usize = 16;

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
    steps: Vec<Step>,
}

pub(super) fn parse(text: &str) -> Result<JsonPath, String> {
    parse_at(text, 0)
}

fn parse_at(text: &str, depth: usize) -> Result<JsonPath, String> {
    if depth > NESTING_DEPTH_MAX {
        return Err("path nests too deeply".to_owned());
    }
    let mut parser = Parser { text, rest: text, depth, steps: Vec::new() };
    while !parser.rest.is_empty() {
        parser.step()?;
    }
    Ok(JsonPath { steps: parser.steps })
}

/// Whether `c` ends a name.
fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

impl<'t> Parser<'t> {
    fn nested(&self, text: &str) -> Result<JsonPath, String> {
        parse_at(text, self.depth + 1)
    }

    fn step(&mut self) -> Result<(), String> {
        if let Some(rest) = self.rest.strip_prefix("[?(") {
            return self.filter(rest);
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            if self.steps.last() == Some(&Step::Recursive) {
                return Err("invalid multiple recursive descent".to_owned());
            }
            self.steps.push(Step::Recursive);
            self.rest = rest;
            if rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
                self.field(rest);
            }
            return Ok(());
        }
        let Some(c) = self.rest.chars().next() else { return Ok(()) };
        match c {
            '\r' | '\n' => return Err("unclosed action".to_owned()),
            ' ' | '@' | '$' => self.rest = &self.rest[1..],
            '[' => return self.array(),
            '"' | '\'' => return self.quoted(c),
            '.' => {
                let rest = &self.rest[1..];
                self.field(rest);
            }
            // the end of the action, with text behind it
            '}' => self.rest = "",
            '+' | '-' | '0'..='9' => return self.number(),
            c if c == '_' || c.is_alphanumeric() => {
                let len = self.rest.find(is_terminator).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at(len);
                self.steps.push(match word {
                    "true" | "false" => Step::Literal(Value::Bool(word == "true")),
                    _ => Step::Identifier(Str::new(word)),
                });
                self.rest = rest;
            }
            c => return Err(format!("unrecognized character in action: U+{:04X} '{c}'", u32::from(c))),
        }
        Ok(())
    }

    /// A name up to the next terminator that no backslash escapes; `rest` begins behind the dot.
    fn field(&mut self, rest: &'t str) {
        let mut is_escaped = false;
        let end = rest.find(|c: char| {
            if is_escaped {
                is_escaped = false;
                return false;
            }
            is_escaped = c == '\\';
            !is_escaped && is_terminator(c)
        });
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        self.steps.push(if name == "*" { Step::Wildcard } else { Step::Field(Str::from(name.replace('\\', ""))) });
    }

    fn number(&mut self) -> Result<(), String> {
        let signed = usize::from(self.rest.starts_with(['+', '-']));
        let len = signed + self.rest[signed..].bytes().take_while(|b| *b == b'.' || b.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(len);
        self.rest = rest;
        let literal = match (number.parse::<i64>(), number.parse::<f64>()) {
            (Ok(i), _) => Value::Int(i),
            (_, Ok(f)) => Value::Float(f),
            _ => return Err(format!("cannot parse number {number}")),
        };
        self.steps.push(Step::Literal(literal));
        Ok(())
    }

    /// What stands between brackets: an index, a slice, a union or a quoted name.
    fn array(&mut self) -> Result<(), String> {
        let Some(end) = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']')) else {
            return Err("unterminated array".to_owned());
        };
        let inner = &self.rest[1..end];
        self.rest = &self.rest[end + 1..];
        if inner == "*" {
            self.steps.push(Step::Slice(Slice::default()));
            return Ok(());
        }
        if inner.contains(',') {
            let paths = inner.split(',').map(|part| self.nested(&format!("[{}]", part.trim_matches(' '))));
            let union = Step::Union(paths.collect::<Result<_, _>>()?);
            self.steps.push(union);
            return Ok(());
        }
        let quoted =
            inner.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).filter(|name| !name.contains('\''));
        if let Some(name) = quoted {
            let nested = self.nested(&format!(".{name}"))?;
            self.steps.extend(nested.steps);
            return Ok(());
        }
        self.steps.push(Step::Slice(slice(inner)?));
        Ok(())
    }

    fn filter(&mut self, rest: &'t str) -> Result<(), String> {
        let (mut has_begun, mut has_ended, mut quote, mut previous) = (false, false, ' ', ' ');
        let mut end = None;
        for (idx, c) in rest.char_indices() {
            match c {
                '\n' => break,
                '"' | '\'' if !has_begun => (has_begun, quote) = (true, c),
                '"' | '\'' => has_ended |= previous != '\\' && c == quote,
                ')' if has_begun == has_ended => {
                    end = Some(idx);
                    break;
                }
                _ => {}
            }
            previous = c;
        }
        let Some(end) = end else { return Err("unterminated filter".to_owned()) };
        let Some(after) = rest[end + 1..].strip_prefix(']') else { return Err("unclosed array expect ]".to_owned()) };
        let condition = &rest[..end];
        self.rest = after;
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let compared = condition.find(is_operator).filter(|at| *at > 0).and_then(|at| {
            let len = condition[at..].find(|c| !is_operator(c))?;
            Some((&condition[..at], &condition[at..at + len], &condition[at + len..]))
        });
        let step = match compared {
            None => {
                let right = JsonPath { steps: Vec::new() };
                Step::Filter { left: self.nested(condition)?, operator: Str::const_new("exists"), right }
            }
            Some((left, operator, right)) => {
                Step::Filter { left: self.nested(left)?, operator: Str::new(operator), right: self.nested(right)? }
            }
        };
        self.steps.push(step);
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), String> {
        let mut previous = quote;
        let mut end = None;
        for (idx, c) in self.rest.char_indices().skip(1) {
            if c == '\n' {
                break;
            }
            if c == quote && previous != '\\' {
                end = Some(idx);
                break;
            }
            previous = c;
        }
        let Some(end) = end else { return Err("unterminated quoted string".to_owned()) };
        let text = self.rest[1..end].replace("\\\\", "\u{0}").replace('\\', "").replace('\u{0}', "\\");
        self.rest = &self.rest[end + 1..];
        self.steps.push(Step::Literal(Value::from(text)));
        debug_assert!(self.rest.len() <= self.text.len());
        Ok(())
    }
}

/// `1`, `1:2`, `:`, `1:5:2`.
fn slice(text: &str) -> Result<Slice, String> {
    let is_number = |part: &str| part.strip_prefix('-').unwrap_or(part).bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 || !parts.iter().all(|part| is_number(part)) {
        return Err(format!("invalid array index {text}"));
    }
    let number = |idx: usize| -> Result<Option<i64>, String> {
        match parts.get(idx).copied().unwrap_or_default() {
            "" => Ok(None),
            part => part.parse().map(Some).map_err(|_| format!("array index {part} is not a number")),
        }
    };
    let start = number(0)?;
    if parts.len() == 1 {
        let end = start.unwrap_or(0) + 1;
        return Ok(Slice { start, end: Some(end), is_end_derived: true, step: None });
    }
    Ok(Slice { start, end: number(1)?, is_end_derived: false, step: number(2)? })
}
