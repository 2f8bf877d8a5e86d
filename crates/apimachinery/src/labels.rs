//! Label selectors: their text form, the `LabelSelector` object, and matching.
//!
//! Follows: apimachinery/pkg/labels/selector.go (v0.35), error texts included.

use crate::field::{FieldError, Path, aggregate};
use crate::{ErrorList, Str, Value, names};
use std::collections::BTreeSet;
use std::fmt;

/// The labels of an object, however it keeps them.
pub trait Labels {
    /// The value of the label `key`.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for Value {
    /// `self` is the object under `metadata.labels`; values that are no strings count as `""`.
    fn label(&self, key: &str) -> Option<&str> {
        self.as_object().and_then(|object| object.get(key)).map(Value::str_or_empty)
    }
}

impl Labels for std::collections::BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    fn label(&self, key: &str) -> Option<&str> {
        self.iter().find(|(k, _)| k.as_ref() == key).map(|(_, v)| v.as_ref())
    }
}

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// The value is one of the set.
    In,
    /// The label is absent or its value is none of the set.
    NotIn,
    /// `=` or `==`.
    Equals,
    /// The label is absent or has another value.
    NotEquals,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The value is an integer greater than the bound.
    GreaterThan,
    /// The value is an integer less than the bound.
    LessThan,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The label's key.
    pub key: Str,
    /// How to compare.
    pub operator: Operator,
    /// What to compare with, sorted; its size is what the operator needs.
    pub values: Vec<Str>,
}

impl Requirement {
    /// A condition, checked as upstream checks it.
    ///
    /// # Errors
    /// Every rule that key, operator and values break.
    pub fn new(key: &str, operator: Operator, values: BTreeSet<Str>) -> Result<Requirement, ErrorList> {
        let mut errors = ErrorList::new();
        if let Some(error) = key_error(&Path::new("key"), key) {
            errors.push(error);
        }
        let path = Path::new("values");
        let shown: Value = values.iter().cloned().map(Value::String).collect();
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                errors.push(FieldError::invalid(
                    &path,
                    &shown,
                    "for 'in', 'notin' operators, values set can't be empty",
                ));
            }
            Operator::Equals | Operator::NotEquals if values.len() != 1 => {
                errors.push(FieldError::invalid(&path, &shown, "exact-match compatibility requires one single value"));
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                errors.push(FieldError::invalid(
                    &path,
                    &shown,
                    "values set must be empty for exists and does not exist",
                ));
            }
            Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
                errors.push(FieldError::invalid(
                    &path,
                    &shown,
                    "for 'Gt', 'Lt' operators, exactly one value is required",
                ));
            }
            Operator::GreaterThan | Operator::LessThan => {
                for (idx, value) in values.iter().enumerate().filter(|(_, v)| v.parse::<i64>().is_err()) {
                    let rule = "for 'Gt', 'Lt' operators, the value must be an integer";
                    errors.push(FieldError::invalid(&path.index(idx), value, rule));
                }
            }
            Operator::In
            | Operator::NotIn
            | Operator::Equals
            | Operator::NotEquals
            | Operator::Exists
            | Operator::DoesNotExist => {}
        }
        for (idx, value) in values.iter().enumerate() {
            let faults = names::label_value(value);
            if !faults.is_empty() {
                errors.push(FieldError::invalid(&path.index(idx).key(key), value, faults.join("; ")));
            }
        }
        if errors.is_empty() {
            Ok(Requirement { key: Str::new(key), operator, values: values.into_iter().collect() })
        } else {
            Err(errors)
        }
    }

    /// Whether an object with these labels meets the condition.
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let value = labels.label(&self.key);
        let is_in = |value: &str| self.values.iter().any(|v| v == value);
        match self.operator {
            Operator::In | Operator::Equals => value.is_some_and(is_in),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(is_in),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let bound = self.values.first().and_then(|v| v.parse::<i64>().ok());
                match (value.and_then(|v| v.parse::<i64>().ok()), bound) {
                    (Some(value), Some(bound)) if self.operator == Operator::GreaterThan => value > bound,
                    (Some(value), Some(bound)) => value < bound,
                    _ => false,
                }
            }
        }
    }
}

fn key_error(path: &Path<'_>, key: &str) -> Option<FieldError> {
    let faults = names::qualified_name(key);
    if faults.is_empty() { None } else { Some(FieldError::invalid(path, key, faults.join("; "))) }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = || self.values.iter().map(Str::as_str).collect::<Vec<_>>().join(",");
        match self.operator {
            Operator::In => write!(f, "{} in ({})", self.key, joined()),
            Operator::NotIn => write!(f, "{} notin ({})", self.key, joined()),
            Operator::Equals => write!(f, "{}={}", self.key, joined()),
            Operator::NotEquals => write!(f, "{}!={}", self.key, joined()),
            Operator::Exists => write!(f, "{}", self.key),
            Operator::DoesNotExist => write!(f, "!{}", self.key),
            Operator::GreaterThan => write!(f, "{}>{}", self.key, joined()),
            Operator::LessThan => write!(f, "{}<{}", self.key, joined()),
        }
    }
}

/// A label selector: conditions that must all hold. Without conditions it matches everything; [`Selector::nothing`]
/// matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The conditions, sorted by key.
    pub requirements: Vec<Requirement>,
    is_nothing: bool,
}

impl Selector {
    /// Matches everything.
    pub fn everything() -> Selector {
        Selector::default()
    }

    /// Matches nothing.
    pub fn nothing() -> Selector {
        Selector { requirements: Vec::new(), is_nothing: true }
    }

    /// Whether it matches everything.
    pub fn is_everything(&self) -> bool {
        !self.is_nothing && self.requirements.is_empty()
    }

    /// Whether it matches nothing by construction.
    pub fn is_nothing(&self) -> bool {
        self.is_nothing
    }

    /// The selector of these conditions.
    pub fn of(mut requirements: Vec<Requirement>) -> Selector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Selector { requirements, is_nothing: false }
    }

    /// The selector that asks for exactly these labels; values are taken as they are.
    pub fn of_set(labels: &Value) -> Selector {
        let requirements = labels
            .entries()
            .map(|(key, value)| Requirement {
                key: key.clone(),
                operator: Operator::Equals,
                values: vec![Str::new(value.str_or_empty())],
            })
            .collect();
        Selector::of(requirements)
    }

    /// Reads the text form: `a=b,c!=d,e in (f,g),h,!i,j>1`.
    ///
    /// # Errors
    /// Upstream's text for the first fault.
    pub fn parse(text: &str) -> Result<Selector, String> {
        let tokens = tokenize(text);
        let requirements = Parser { tokens: &tokens, pos: 0 }.parse()?;
        Ok(Selector::of(requirements))
    }

    /// Reads a `LabelSelector` object (`matchLabels`, `matchExpressions`). `null` matches nothing, `{}` everything.
    ///
    /// # Errors
    /// The fault, as upstream's `LabelSelectorAsSelector` tells it.
    pub fn from_object(object: &Value) -> Result<Selector, String> {
        if object.is_null() {
            return Ok(Selector::nothing());
        }
        let mut requirements = Vec::new();
        let mut add = |key: &str, operator, values| match Requirement::new(key, operator, values) {
            Ok(requirement) => {
                requirements.push(requirement);
                Ok(())
            }
            Err(errors) => Err(aggregate(&errors)),
        };
        for (key, value) in object["matchLabels"].entries() {
            add(key, Operator::Equals, BTreeSet::from([Str::new(value.str_or_empty())]))?;
        }
        for expression in object["matchExpressions"].items() {
            let operator = match expression["operator"].str_or_empty() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return Err(format!("{} is not a valid label selector operator", crate::field::go_quote(other)));
                }
            };
            let values = expression["values"].items().iter().map(|v| Str::new(v.str_or_empty())).collect();
            add(expression["key"].str_or_empty(), operator, values)?;
        }
        Ok(Selector::of(requirements))
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        !self.is_nothing && self.requirements.iter().all(|r| r.matches(labels))
    }
}

impl fmt::Display for Selector {
    /// The text form that [`Selector::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, requirement) in self.requirements.iter().enumerate() {
            if idx > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Word,
    Open,
    Close,
    Comma,
    Bang,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    End,
}

fn tokenize(text: &str) -> Vec<(Token, &str)> {
    let is_special = |b: u8| matches!(b, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<');
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut pos = 0;
    while let Some(&byte) = bytes.get(pos) {
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            pos += 1;
            continue;
        }
        let start = pos;
        let token = if is_special(byte) {
            let is_then_equals = bytes.get(pos + 1) == Some(&b'=');
            let (token, len) = match byte {
                b'(' => (Token::Open, 1),
                b')' => (Token::Close, 1),
                b',' => (Token::Comma, 1),
                b'>' => (Token::Greater, 1),
                b'<' => (Token::Less, 1),
                b'!' if is_then_equals => (Token::NotEquals, 2),
                b'!' => (Token::Bang, 1),
                _ if is_then_equals => (Token::DoubleEquals, 2),
                _ => (Token::Equals, 1),
            };
            pos += len;
            token
        } else {
            while bytes.get(pos).is_some_and(|&b| !is_special(b) && !matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
                pos += 1;
            }
            Token::Word
        };
        tokens.push((token, &text[start..pos]));
    }
    tokens
}

struct Parser<'t> {
    tokens: &'t [(Token, &'t str)],
    pos: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> (Token, &'t str) {
        self.tokens.get(self.pos).copied().unwrap_or((Token::End, ""))
    }

    fn next(&mut self) -> (Token, &'t str) {
        let token = self.peek();
        self.pos += 1;
        token
    }

    fn parse(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                (Token::Word | Token::Bang, _) => {
                    let requirement =
                        self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
                    requirements.push(requirement);
                    match self.next() {
                        (Token::End, _) => return Ok(requirements),
                        (Token::Comma, _) => match self.peek() {
                            (Token::Word | Token::Bang, _) => {}
                            (_, text) => return Err(format!("found '{text}', expected: identifier after ','")),
                        },
                        (_, text) => return Err(format!("found '{text}', expected: ',' or 'end of string'")),
                    }
                }
                (Token::End, _) => return Ok(requirements),
                (_, text) => return Err(format!("found '{text}', expected: !, identifier, or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut is_negated = false;
        let (mut token, mut key) = self.next();
        if token == Token::Bang {
            is_negated = true;
            (token, key) = self.next();
        }
        if token != Token::Word {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let faults = names::qualified_name(key);
        if !faults.is_empty() {
            return Err(format!("<nil>: Invalid value: {}: {}", crate::field::go_quote(key), faults.join("; ")));
        }
        let new = |operator, values| Requirement::new(key, operator, values).map_err(|errors| aggregate(&errors));
        if is_negated {
            return new(Operator::DoesNotExist, BTreeSet::new());
        }
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return new(Operator::Exists, BTreeSet::new());
        }
        let (operator, is_set) = match self.next() {
            (Token::Word, "in") => (Operator::In, true),
            (Token::Word, "notin") => (Operator::NotIn, true),
            (Token::Equals | Token::DoubleEquals, _) => (Operator::Equals, false),
            (Token::NotEquals, _) => (Operator::NotEquals, false),
            (Token::Greater, _) => (Operator::GreaterThan, false),
            (Token::Less, _) => (Operator::LessThan, false),
            (_, text) => return Err(format!("found '{text}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let values = if is_set { self.value_set()? } else { self.one_value()? };
        new(operator, values)
    }

    fn one_value(&mut self) -> Result<BTreeSet<Str>, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok(BTreeSet::from([Str::default()]));
        }
        match self.next() {
            (Token::Word, text) => Ok(BTreeSet::from([Str::new(text)])),
            (_, text) => Err(format!("found '{text}', expected: identifier")),
        }
    }

    fn value_set(&mut self) -> Result<BTreeSet<Str>, String> {
        match self.next() {
            (Token::Open, _) => {}
            (_, text) => return Err(format!("found '{text}' expected: '('")),
        }
        match self.peek() {
            (Token::Word | Token::Comma, _) => {
                let values = self.values()?;
                match self.next() {
                    (Token::Close, _) => Ok(values),
                    (_, text) => Err(format!("found '{text}', expected: ')'")),
                }
            }
            (Token::Close, _) => {
                self.next();
                Ok(BTreeSet::from([Str::default()]))
            }
            (_, text) => Err(format!("found '{text}', expected: ',', ')' or identifier")),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<Str>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                (Token::Word, text) => {
                    values.insert(Str::new(text));
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(values),
                        (_, text) => return Err(format!("found '{text}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.insert(Str::default());
                    }
                    match self.peek() {
                        (Token::Close, _) => {
                            values.insert(Str::default());
                            return Ok(values);
                        }
                        (Token::Comma, _) => {
                            self.next();
                            values.insert(Str::default());
                        }
                        _ => {}
                    }
                }
                (_, text) => return Err(format!("found '{text}', expected: ',', or identifier")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn selects(selector: &str, labels: &Value) -> bool {
        Selector::parse(selector).unwrap().matches(labels)
    }

    #[test]
    fn matching() {
        let labels = json!({"a": "b", "n": "5"});
        for yes in ["", "a=b", "a==b", "a", "!c", "a in (x,b)", "c notin (b)", "c!=b", "n>4", "n<6", "a=b,n"] {
            assert!(selects(yes, &labels), "{yes}");
        }
        for no in ["a=c", "a!=b", "!a", "a notin (b)", "c in (b)", "a>1", "n>5", "a=b,c"] {
            assert!(!selects(no, &labels), "{no}");
        }
    }

    #[test]
    fn faults_in_upstreams_words() {
        for (text, want) in [
            ("a in", "unable to parse requirement: found '' expected: '('"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("=b", "found '=', expected: !, identifier, or 'end of string'"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            (
                "x>a",
                "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
            ("x===", "unable to parse requirement: found '=', expected: identifier"),
        ] {
            assert_eq!(Selector::parse(text).unwrap_err(), want, "{text}");
        }
    }

    #[test]
    fn text_form_round_trips() {
        let text = "a=b,c!=d,e in (f,g),h,!i,j>1,k notin (l)";
        assert_eq!(Selector::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn selector_objects() {
        let object = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d", "e"]}]});
        assert_eq!(Selector::from_object(&object).unwrap().to_string(), "a=b,c in (d,e)");
        assert!(Selector::from_object(&Value::Null).unwrap().is_nothing());
        assert!(Selector::from_object(&json!({})).unwrap().is_everything());
    }
}
