//! JSONPath as kubectl templates have it: the paths of printer columns and selectable fields.
//!
//! Follows: client-go/util/jsonpath (v0.35); differs: no text around paths and no `range`, which columns cannot use;
//! members are visited in the order of their names.

mod parse;

use pintle_apimachinery::value::{go_g, html_escaped};
use pintle_apimachinery::{Str, Value};
use std::cmp::Ordering;

/// A path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name`
    Field(Str),
    /// `.*` and `[*]` on objects.
    Wildcard,
    /// `..`
    Recursive,
    /// `[1]`, `[1:5:2]`
    Slice(Slice),
    /// `[0,2]`
    Union(Vec<JsonPath>),
    /// `[?(@.a == 1)]`
    Filter { left: JsonPath, operator: Str, right: JsonPath },
    /// A text or number, as stands in filters.
    Literal(Value),
    /// A word that means nothing here.
    Identifier(Str),
}

/// The bounds of a slice as written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// Whether the end was not written and follows from the start.
    is_end_derived: bool,
    step: Option<i64>,
}

impl JsonPath {
    /// Reads a path such as `.spec.ports[*].name`.
    ///
    /// # Errors
    /// The reader's text for the first fault.
    pub fn parse(text: &str) -> Result<JsonPath, String> {
        parse::parse(text)
    }

    /// What the path leads to, members that are absent left out.
    ///
    /// # Errors
    /// When a step does not fit the value, such as an index of an object.
    pub fn find<'v>(&'v self, value: &'v Value) -> Result<Vec<&'v Value>, String> {
        self.eval(vec![value])
    }

    fn eval<'v>(&'v self, values: Vec<&'v Value>) -> Result<Vec<&'v Value>, String> {
        self.steps.iter().try_fold(values, |values, step| step.eval(values))
    }
}

impl Step {
    fn eval<'v>(&'v self, values: Vec<&'v Value>) -> Result<Vec<&'v Value>, String> {
        match self {
            Step::Field(name) => Ok(values.into_iter().filter_map(|v| v.as_object()?.get(name)).collect()),
            Step::Wildcard => Ok(values.into_iter().flat_map(children).collect()),
            Step::Recursive => {
                let mut found = Vec::new();
                values.into_iter().for_each(|value| descend(value, &mut found));
                Ok(found)
            }
            Step::Slice(slice) => {
                let mut found = Vec::new();
                for value in values.into_iter().filter(|v| !v.is_null()) {
                    slice.eval(value, &mut found)?;
                }
                Ok(found)
            }
            Step::Union(paths) => {
                let mut found = Vec::new();
                for path in paths {
                    found.extend(path.eval(values.clone())?);
                }
                Ok(found)
            }
            Step::Filter { left, operator, right } => filter(values, left, operator, right),
            Step::Literal(literal) => Ok(values.iter().map(|_| literal).collect()),
            Step::Identifier(name) => Err(format!("unrecognized identifier {name}")),
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(object) => object.values().collect(),
        Value::Array(items) => items.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => Vec::new(),
    }
}

/// Everything below that has something below it, each before what is in it.
fn descend<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    let below = children(value);
    if !below.is_empty() {
        found.push(value);
        below.into_iter().for_each(|child| descend(child, found));
    }
}

impl Slice {
    fn eval<'v>(&self, value: &'v Value, found: &mut Vec<&'v Value>) -> Result<(), String> {
        let Some(items) = value.as_array() else {
            return Err(format!("{} is not array or slice", crate::structural::objectmeta::go_type(value)));
        };
        let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let mut start = self.start.unwrap_or(0);
        if start < 0 {
            start += len;
        }
        let mut end = self.end.unwrap_or(len);
        if end < 0 || (end == 0 && self.is_end_derived) {
            end += len;
        }
        if start == end {
            return Ok(());
        }
        if start >= len || start < 0 {
            return Err(format!("array index out of bounds: index {start}, length {len}"));
        }
        if end > len || end < 0 {
            return Err(format!("array index out of bounds: index {}, length {len}", end - 1));
        }
        if start > end {
            return Err(format!("starting index {start} is greater than ending index {end}"));
        }
        let step = self.step.unwrap_or(1);
        if step <= 0 {
            return Err("step must be > 0".to_owned());
        }
        let as_index = |i: i64| usize::try_from(i).unwrap_or(usize::MAX);
        found.extend(items[as_index(start)..as_index(end)].iter().step_by(as_index(step)));
        Ok(())
    }
}

fn filter<'v>(
    values: Vec<&'v Value>,
    left: &'v JsonPath,
    operator: &str,
    right: &'v JsonPath,
) -> Result<Vec<&'v Value>, String> {
    let mut found = Vec::new();
    for value in values {
        let Some(items) = value.as_array() else {
            return Err(format!("{} is not array or slice and cannot be filtered", text_of(value)));
        };
        for item in items {
            let lefts = left.eval(vec![item]);
            if operator == "exists" {
                if lefts.is_ok_and(|lefts| !lefts.is_empty()) {
                    found.push(item);
                }
                continue;
            }
            let (lefts, rights) = (lefts?, right.eval(vec![item])?);
            let (left, right) = match (&lefts[..], &rights[..]) {
                ([], _) | (_, []) => continue,
                ([left], [right]) => (left, right),
                _ => return Err("can only compare one element at a time".to_owned()),
            };
            if compare(left, operator, right)? {
                found.push(item);
            }
        }
    }
    Ok(found)
}

fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let ordering = match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) if matches!(operator, "==" | "!=") => Some(a.cmp(b)),
        (Value::Bool(_), Value::Bool(_)) => return Err("invalid type for comparison".to_owned()),
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    Ok(match operator {
        "<" => ordering == Some(Ordering::Less),
        ">" => ordering == Some(Ordering::Greater),
        "==" => ordering == Some(Ordering::Equal),
        "!=" => ordering != Some(Ordering::Equal),
        "<=" => ordering.is_some_and(Ordering::is_le),
        ">=" => ordering.is_some_and(Ordering::is_ge),
        other => return Err(format!("unrecognized filter operator {other}")),
    })
}

/// A value as a template prints it: strings as they are, lists and objects as JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(s) => s.to_string(),
        Value::Float(f) => go_g(*f),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Array(_) | Value::Object(_) => html_escaped(value),
    }
}

#[cfg(test)]
mod tests;
