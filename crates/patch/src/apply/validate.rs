//! Whether an applied configuration conforms to the schema, in the words of structured-merge-diff.

use super::place::{Form, List, Map, Place, Scalar, form_of};
use crate::go;
use pintle_apimachinery::{Object, Str, Value};
use std::collections::BTreeSet;

/// Faults told of one configuration; the rest of it is not looked at.
const FAULTS_MAX: usize = 100;

/// Checks a configuration. `has_duplicates`: items of sets and maps may stand there twice.
///
/// # Errors
/// Every fault with its path, as one text.
pub(super) fn validate(place: Place<'_>, object: &Value, has_duplicates: bool) -> Result<(), String> {
    let mut walk = Walk { faults: Vec::new(), path: String::new(), has_duplicates };
    walk.value(place, object);
    match walk.faults.len() {
        0 => Ok(()),
        1 => Err(walk.faults.remove(0)),
        _ => Err(walk.faults.iter().fold("errors:".to_owned(), |text, fault| format!("{text}\n  {fault}"))),
    }
}

struct Walk {
    faults: Vec<String>,
    /// Of the value that is being looked at.
    path: String,
    has_duplicates: bool,
}

impl Walk {
    fn fault(&mut self, why: impl std::fmt::Display) {
        let text = if self.path.is_empty() { why.to_string() } else { format!("{}: {why}", self.path) };
        self.faults.push(text);
    }

    fn value(&mut self, place: Place<'_>, value: &Value) {
        if self.faults.len() >= FAULTS_MAX {
            return;
        }
        match (form_of(place, value), value) {
            (_, Value::Null) => {}
            (Form::Scalar(scalar), value) => self.scalar(scalar, value),
            (Form::Map(map), Value::Object(object)) => self.members(map, object),
            (Form::List(list), Value::Array(items)) => self.items(list, items),
            (Form::Map(_), value) => self.fault(format_args!("expected map, got &{{{}}}", go::v(value))),
            (Form::List(_), value) => self.fault(format_args!("expected list, got &{{{}}}", go::v(value))),
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        match (scalar, value) {
            (Scalar::Numeric, Value::Int(_) | Value::Float(_))
            | (Scalar::Text, Value::String(_))
            | (Scalar::Boolean, Value::Bool(_))
            | (Scalar::Any, Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Bool(_)) => {}
            (Scalar::Numeric, value) => {
                self.fault(format_args!("expected numeric (int or float), got {}", go::type_name(value)));
            }
            (Scalar::Text, value) => {
                let shown = go::sharp_v(value);
                self.fault(format_args!("expected string, got &value.valueUnstructured{{Value:{shown}}}"));
            }
            (Scalar::Boolean, value) => self.fault(format_args!("expected boolean, got &{{{}}}", go::v(value))),
            (Scalar::Any, value) => self.fault(format_args!("expected any scalar, got &{{{}}}", go::v(value))),
        }
    }

    /// Runs `check` with `step` at the end of the path.
    fn within(&mut self, step: &str, check: impl FnOnce(&mut Walk)) {
        let len = self.path.len();
        self.path.push_str(step);
        check(self);
        self.path.truncate(len);
    }

    fn members(&mut self, map: Map<'_>, object: &Object) {
        for (name, value) in object.iter() {
            let len = self.path.len();
            self.path.push('.');
            self.path.push_str(name);
            let member = map.member(name);
            match member {
                Some(member) => self.value(member.place, value),
                None => self.fault("field not declared in schema"),
            }
            self.path.truncate(len);
            if member.is_none() {
                // as upstream, which looks at no further member then
                return;
            }
        }
    }

    fn items(&mut self, list: List<'_>, items: &[Value]) {
        let mut seen: BTreeSet<Str> = BTreeSet::new();
        for (idx, item) in items.iter().enumerate() {
            if list.is_atomic() {
                self.within(&format!("[{idx}]"), |walk| walk.value(list.item, item));
                continue;
            }
            let element = match list.element(item) {
                Ok(element) => element,
                Err(why) => return self.fault(format_args!("element {idx}: {why}")),
            };
            let shown = super::element::shown(&element);
            if !seen.insert(element) && !self.has_duplicates {
                self.fault(format_args!("duplicate entries for key {shown}"));
            }
            self.within(&shown, |walk| walk.value(list.item, item));
        }
    }
}
