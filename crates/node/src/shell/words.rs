//! Words of a command line: quotes, variables, sums, and the few commands that stand in for a value.

use super::parse::ParseError;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Variables by name.
pub type Variables = BTreeMap<String, String>;

/// A piece of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    Operator(&'static str),
}

/// A word before its variables are put in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    parts: Vec<Part>,
    is_quoted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A variable, and what stands in for it if it is not set. Outside quotes its value is split at blanks.
    Variable {
        name: String,
        default: String,
        is_quoted: bool,
    },
    /// `$((..))`
    Sum(String),
    /// `$(date ..)`
    Date(String),
    /// `$(hostname)`
    HostName,
    /// `$(seq a b)`
    Sequence(String),
}

/// Operators, longer ones before those that they begin with.
const OPERATORS: [&str; 13] = ["2>&1", ">&2", "1>&2", "&&", "||", "&>", ">>", "2>", ";", "&", "|", ">", "<"];

/// Numbers that `seq` may give. Beyond, the script is not understood.
const SEQUENCE_MAX: i64 = 100_000;

/// Where a command runs: what its words may refer to.
pub(super) struct Context<'a> {
    pub(super) variables: &'a Variables,
    pub(super) now: Timestamp,
}

/// The time as `date +FORMAT` shows it; an empty format is `date` without any.
pub(super) fn date(now: Timestamp, format: &str) -> String {
    let utc = now.to_zoned(jiff::tz::TimeZone::UTC);
    let format = if format.is_empty() { "%a %b %e %H:%M:%S UTC %Y" } else { format };
    jiff::fmt::strtime::format(format, &utc).unwrap_or_else(|_| format.to_owned())
}

impl Word {
    pub(super) fn literal(text: &str) -> Word {
        Word { parts: vec![Part::Text(text.to_owned())], is_quoted: true }
    }

    /// The text of a word that has nothing special about it.
    pub(super) fn as_keyword(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text(text)] if !self.is_quoted => Some(text),
            _ => None,
        }
    }

    /// The word as `name=value`.
    pub(super) fn as_assignment(&self) -> Option<(String, Word)> {
        let Some(Part::Text(first)) = self.parts.first() else { return None };
        let (name, rest) = first.split_once('=')?;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_name {
            return None;
        }
        let mut parts = vec![Part::Text(rest.to_owned())];
        parts.extend(self.parts.iter().skip(1).cloned());
        Some((name.to_owned(), Word { parts, is_quoted: true }))
    }

    /// The word's text.
    pub(super) fn text(&self, context: &Context<'_>) -> String {
        self.parts.iter().map(|part| part.text(context)).collect()
    }

    /// The word's text, split where unquoted variables have blanks.
    pub(super) fn expand(&self, context: &Context<'_>, out: &mut Vec<String>) {
        let splits = self.parts.iter().any(|part| {
            matches!(part, Part::Sequence(_) | Part::Variable { is_quoted: false, .. }) || matches!(part, Part::Date(_))
        });
        let text = self.text(context);
        if splits && !self.is_quoted {
            out.extend(text.split_whitespace().map(str::to_owned));
        } else {
            out.push(text);
        }
    }
}

impl Part {
    fn text(&self, context: &Context<'_>) -> String {
        match self {
            Part::Text(text) => text.clone(),
            Part::Variable { name, default, .. } => {
                context.variables.get(name).filter(|value| !value.is_empty()).unwrap_or(default).clone()
            }
            Part::Sum(sum) => sum_of(sum, context.variables).to_string(),
            Part::Date(format) => date(context.now, format),
            Part::HostName => context.variables.get("HOSTNAME").cloned().unwrap_or_default(),
            Part::Sequence(words) => sequence(words, context.variables),
        }
    }
}

/// `a + b - c * d` of numbers and variables, from left to right.
fn sum_of(text: &str, variables: &Variables) -> i64 {
    let mut total = 0_i64;
    let mut operator = '+';
    let mut rest = text.trim();
    while !rest.is_empty() {
        let len = rest.find(|c: char| "+-*/%".contains(c)).unwrap_or(rest.len());
        let operand = rest[..len].trim().trim_start_matches('$');
        let value = operand.parse::<i64>().ok();
        let value = value.or_else(|| variables.get(operand)?.trim().parse().ok()).unwrap_or_default();
        total = match operator {
            '-' => total.saturating_sub(value),
            '*' => total.saturating_mul(value),
            '/' => total.checked_div(value).unwrap_or_default(),
            '%' => total.checked_rem(value).unwrap_or_default(),
            _ => total.saturating_add(value),
        };
        let mut after = rest[len..].chars();
        operator = after.next().unwrap_or('+');
        rest = after.as_str().trim_start();
    }
    total
}

fn sequence(words: &str, variables: &Variables) -> String {
    let resolved = |word: &str| match word.strip_prefix('$') {
        Some(name) => variables.get(name.trim_matches(['{', '}'])).cloned().unwrap_or_default(),
        None => word.to_owned(),
    };
    let numbers: Vec<i64> = words.split_whitespace().filter_map(|word| resolved(word).parse().ok()).collect();
    let (first, last) = match numbers.as_slice() {
        [last] => (1, *last),
        [first, last] => (*first, *last),
        [first, _, last] => (*first, *last),
        _ => return String::new(),
    };
    let step = if let [_, step, _] = numbers.as_slice() { (*step).max(1) } else { 1 };
    let mut out = String::new();
    let (mut number, mut n) = (first, 0);
    while number <= last && n < SEQUENCE_MAX {
        out.push_str(&number.to_string());
        out.push('\n');
        number += step;
        n += 1;
    }
    out
}

/// Takes a text apart.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut lexer = Lexer { rest: text, tokens: Vec::new(), word: None };
    while let Some(c) = lexer.rest.chars().next() {
        lexer.next(c)?;
    }
    lexer.end_word();
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    word: Option<Word>,
}

impl<'a> Lexer<'a> {
    fn next(&mut self, c: char) -> Result<(), ParseError> {
        match c {
            '\n' => {
                self.end_word();
                self.tokens.push(Token::Operator(";"));
            }
            ' ' | '\t' | '\r' => self.end_word(),
            '#' if self.word.is_none() => {
                let len = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = &self.rest[len..];
                return Ok(());
            }
            '\'' => {
                let quoted = &self.rest[1..];
                let len = quoted.find('\'').ok_or_else(|| ParseError::new("a quote does not end"))?;
                self.push_text(&quoted[..len], true);
                self.rest = &quoted[len + 1..];
                return Ok(());
            }
            '"' => return self.double_quoted(),
            '\\' => {
                let escaped = self.rest[1..].chars().next();
                self.rest = &self.rest[1..];
                match escaped {
                    Some('\n') => {}
                    Some(c) => self.push_text(c.encode_utf8(&mut [0; 4]), true),
                    None => return Ok(()),
                }
                self.rest = &self.rest[escaped.map_or(0, char::len_utf8)..];
                return Ok(());
            }
            '$' => {
                let part = self.dollar(false)?;
                self.word.get_or_insert_default().parts.push(part);
                return Ok(());
            }
            '`' | '(' | ')' => return Err(ParseError::new(format!("{c:?}"))),
            _ => {
                // `2>` is an operator at the beginning of a word alone
                let is_word = self.word.is_some() || c.is_ascii_digit() && !self.rest[1..].starts_with('>');
                let operator =
                    OPERATORS.iter().find(|o| self.rest.starts_with(**o) && !(is_word && c.is_ascii_digit()));
                if let Some(operator) = operator {
                    self.end_word();
                    if *operator == "|" {
                        return Err(ParseError::new("a pipe"));
                    }
                    let shown = if *operator == "1>&2" { ">&2" } else { operator };
                    self.tokens.push(Token::Operator(shown));
                    self.rest = &self.rest[operator.len()..];
                    return Ok(());
                }
                self.push_text(c.encode_utf8(&mut [0; 4]), false);
            }
        }
        self.rest = &self.rest[c.len_utf8()..];
        Ok(())
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            self.tokens.push(Token::Word(word));
        }
    }

    fn push_text(&mut self, text: &str, is_quoted: bool) {
        let word = self.word.get_or_insert_default();
        word.is_quoted |= is_quoted;
        match word.parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => word.parts.push(Part::Text(text.to_owned())),
        }
    }

    fn double_quoted(&mut self) -> Result<(), ParseError> {
        self.rest = &self.rest[1..];
        self.push_text("", true);
        loop {
            let c = self.rest.chars().next().ok_or_else(|| ParseError::new("a quote does not end"))?;
            match c {
                '"' => {
                    self.rest = &self.rest[1..];
                    return Ok(());
                }
                '\\' if self.rest[1..].starts_with(['"', '\\', '$', '`', '\n']) => {
                    let escaped = &self.rest[1..2];
                    self.push_text(if escaped == "\n" { "" } else { escaped }, true);
                    self.rest = &self.rest[2..];
                }
                '$' => {
                    let part = self.dollar(true)?;
                    self.word.get_or_insert_default().parts.push(part);
                }
                '`' => return Err(ParseError::new("a command in backticks")),
                _ => {
                    self.push_text(c.encode_utf8(&mut [0; 4]), true);
                    self.rest = &self.rest[c.len_utf8()..];
                }
            }
        }
    }

    /// What begins with a dollar sign.
    fn dollar(&mut self, is_quoted: bool) -> Result<Part, ParseError> {
        let variable = |name: &str, default: &str| Part::Variable {
            name: name.to_owned(),
            default: default.to_owned(),
            is_quoted,
        };
        if let Some(rest) = self.rest.strip_prefix("$((") {
            let len = rest.find("))").ok_or_else(|| ParseError::new("a sum does not end"))?;
            self.rest = &rest[len + 2..];
            return Ok(Part::Sum(rest[..len].to_owned()));
        }
        if let Some(rest) = self.rest.strip_prefix("$(") {
            let len = rest.find(')').ok_or_else(|| ParseError::new("a command does not end"))?;
            self.rest = &rest[len + 1..];
            return command_in_word(rest[..len].trim());
        }
        if let Some(rest) = self.rest.strip_prefix("${") {
            let len = rest.find('}').ok_or_else(|| ParseError::new("a variable does not end"))?;
            let (name, default) = rest[..len].split_once(":-").unwrap_or((&rest[..len], ""));
            let part = variable(name, default);
            self.rest = &rest[len + 1..];
            return Ok(part);
        }
        let name = &self.rest[1..];
        let len = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        if len == 0 {
            let special = name.chars().next().filter(|c| "?$@*#!".contains(*c));
            self.rest = &name[special.map_or(0, char::len_utf8)..];
            return Ok(special.map_or_else(|| Part::Text("$".to_owned()), |c| variable(&c.to_string(), "")));
        }
        self.rest = &name[len..];
        Ok(variable(&name[..len], ""))
    }
}

fn command_in_word(command: &str) -> Result<Part, ParseError> {
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    match name {
        "date" => Ok(Part::Date(rest.trim().trim_start_matches('+').trim_matches(['\'', '"']).to_owned())),
        "hostname" => Ok(Part::HostName),
        "seq" => Ok(Part::Sequence(rest.trim().to_owned())),
        "echo" => Ok(Part::Text(rest.trim().trim_matches(['\'', '"']).to_owned())),
        _ => Err(ParseError::new(format!("$({command})"))),
    }
}
