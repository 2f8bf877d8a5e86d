//! Field selectors: `metadata.name=x,status.phase!=Running`.
//!
//! Follows: apimachinery/pkg/fields/selector.go (v0.35).

use crate::Str;
use std::fmt;

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// The field's path, as `spec.nodeName`.
    pub field: Str,
    /// The value to compare with.
    pub value: Str,
    /// `!=` instead of `=`.
    pub is_negated: bool,
}

/// A field selector: conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The conditions, sorted by their text.
    pub terms: Vec<Term>,
}

impl FieldSelector {
    /// Matches everything.
    pub fn everything() -> FieldSelector {
        FieldSelector::default()
    }

    /// The condition `field=value`.
    pub fn equal(field: &str, value: &str) -> FieldSelector {
        FieldSelector { terms: vec![Term { field: Str::new(field), value: Str::new(value), is_negated: false }] }
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// Upstream's text for the first fault.
    pub fn parse(text: &str) -> Result<FieldSelector, String> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let Some((field, is_negated, value)) = split_term(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            terms.push(Term { field: Str::new(field), value: unescape(value)?, is_negated });
        }
        terms.sort_by_key(Term::to_string);
        Ok(FieldSelector { terms })
    }

    /// Whether it matches everything.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that `field` must have, if a condition says so.
    pub fn requires_exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|t| !t.is_negated && t.field == field).map(|t| t.value.as_str())
    }

    /// Whether an object whose fields `value_of` tells is selected.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> std::borrow::Cow<'a, str>) -> bool {
        self.terms.iter().all(|t| (value_of(&t.field) == t.value.as_str()) != t.is_negated)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.is_negated { "!=" } else { "=" };
        write!(f, "{}{operator}{}", self.field, escape(&self.value))
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, term) in self.terms.iter().enumerate() {
            if idx > 0 {
                f.write_str(",")?;
            }
            term.fmt(f)?;
        }
        Ok(())
    }
}

/// The parts between commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (idx, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b',' => {
                parts.push(&text[start..idx]);
                start = idx + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn split_term(part: &str) -> Option<(&str, bool, &str)> {
    for (idx, _) in part.char_indices() {
        let rest = &part[idx..];
        for (operator, is_negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&part[..idx], is_negated, value));
            }
        }
    }
    None
}

fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn unescape(text: &str) -> Result<Str, String> {
    if !text.contains(['\\', ',', '=']) {
        return Ok(Str::new(text));
    }
    let mut out = Str::default();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                Some(next) => return Err(format!("invalid field selector: invalid escape sequence: \\{next}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {c}")),
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_match_print() {
        let selector = FieldSelector::parse("status.phase!=Running,metadata.name=a\\,b").unwrap();
        assert_eq!(selector.to_string(), "metadata.name=a\\,b,status.phase!=Running");
        assert_eq!(selector.requires_exact("metadata.name"), Some("a,b"));
        assert!(selector.matches(|field| if field == "metadata.name" { "a,b".into() } else { "Pending".into() }));
        assert!(!selector.matches(|_| "Running".into()));
    }

    #[test]
    fn faults() {
        assert_eq!(FieldSelector::parse("a").unwrap_err(), "invalid selector: 'a'; can't understand 'a'");
        assert_eq!(FieldSelector::parse("a=b\\z").unwrap_err(), "invalid field selector: invalid escape sequence: \\z");
        assert!(FieldSelector::parse("").unwrap().is_everything());
    }
}
