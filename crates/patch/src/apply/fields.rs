//! The fields that an object names, and whether it conforms to the schema: one walk finds both.
//!
//! Faults are told in the words of structured-merge-diff.

use super::element::{self, SELF};
use super::list::is_unique;
use super::place::{Form, List, Map, Place, Scalar, form_of};
use super::set::FieldSet;
use crate::go;
use pintle_apimachinery::{Object, Str, Value};
use std::collections::BTreeMap;

/// Faults told of one configuration; the rest of it is not looked at.
const FAULTS_MAX: usize = 100;

/// The set of all fields in `object`, whether it conforms to the schema or not.
pub(super) fn field_set(place: Place<'_>, object: &Value) -> FieldSet {
    let mut walk = Walk { faults: None, path: Vec::new(), has_duplicates: true };
    FieldSet::from_root(walk.value(place, object, true).1)
}

/// The set of all fields in a configuration. `has_duplicates`: items of sets and maps may stand there twice.
///
/// # Errors
/// Every fault with its path, as one text.
pub(super) fn checked_field_set(place: Place<'_>, object: &Value, has_duplicates: bool) -> Result<FieldSet, String> {
    let mut walk = Walk { faults: Some(Vec::new()), path: Vec::new(), has_duplicates };
    let fields = FieldSet::from_root(walk.value(place, object, true).1);
    let mut faults = walk.faults.unwrap_or_default();
    match faults.len() {
        0 => Ok(fields),
        1 => Err(faults.remove(0)),
        _ => Err(faults.iter().fold("errors:".to_owned(), |text, fault| format!("{text}\n  {fault}"))),
    }
}

/// A step on the way to a value.
enum Step<'v> {
    Member(&'v str),
    /// An item by its path element.
    Item(Str),
    /// An item of a list that is owned as one.
    Index(usize),
}

struct Walk<'v> {
    /// `None` where faults are not looked for.
    faults: Option<Vec<String>>,
    /// To the value that is being looked at, where faults are looked for.
    path: Vec<Step<'v>>,
    has_duplicates: bool,
}

/// Whether a value itself is named, and what is below it.
type Named = (bool, Object);

const LEAF: Named = (true, Object::new());

/// A node of a set, if there is anything in it.
fn node(is_member: bool, mut children: Object) -> Option<Value> {
    if is_member && !children.is_empty() {
        children.insert(SELF, Value::object());
    }
    (is_member || !children.is_empty()).then_some(Value::Object(children))
}

impl<'v> Walk<'v> {
    fn fault(&mut self, why: impl FnOnce() -> String) {
        let Some(faults) = &mut self.faults else { return };
        let path: String = self
            .path
            .iter()
            .map(|step| match step {
                Step::Member(name) => format!(".{name}"),
                Step::Item(element) => element::shown(element),
                Step::Index(idx) => format!("[{idx}]"),
            })
            .collect();
        faults.push(if path.is_empty() { why() } else { format!("{path}: {}", why()) });
    }

    /// Runs `inner` one step further down.
    fn within<T>(&mut self, step: impl FnOnce() -> Step<'v>, inner: impl FnOnce(&mut Walk<'v>) -> T) -> T {
        if self.faults.is_none() {
            return inner(self);
        }
        self.path.push(step());
        let result = inner(self);
        self.path.pop();
        result
    }

    /// `is_wanted`: whether the fields are asked for (they are not below what is owned as one).
    fn value(&mut self, place: Place<'_>, value: &'v Value, is_wanted: bool) -> Named {
        if self.faults.as_ref().is_some_and(|faults| faults.len() >= FAULTS_MAX) {
            return LEAF;
        }
        match (form_of(place, value), value) {
            (Form::Scalar(scalar), value) => {
                self.scalar(scalar, value);
                LEAF
            }
            (Form::Map(map), value) => {
                let is_wanted = is_wanted && !map.is_atomic;
                let children = match value {
                    Value::Object(object) if is_wanted || self.faults.is_some() => self.members(map, object, is_wanted),
                    Value::Object(_) | Value::Null => Object::new(),
                    value => {
                        self.fault(|| format!("expected map, got &{{{}}}", go::v(value)));
                        Object::new()
                    }
                };
                (map.is_atomic, children)
            }
            (Form::List(list), value) => {
                let is_wanted = is_wanted && !list.is_atomic();
                let children = match value {
                    Value::Array(items) if is_wanted || self.faults.is_some() => self.items(list, items, is_wanted),
                    Value::Array(_) | Value::Null => Object::new(),
                    value => {
                        self.fault(|| format!("expected list, got &{{{}}}", go::v(value)));
                        Object::new()
                    }
                };
                (list.is_atomic(), children)
            }
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        match (scalar, value) {
            (_, Value::Null)
            | (Scalar::Numeric | Scalar::Any, Value::Int(_) | Value::Float(_))
            | (Scalar::Text | Scalar::Any, Value::String(_))
            | (Scalar::Boolean | Scalar::Any, Value::Bool(_)) => {}
            (Scalar::Numeric, value) => {
                self.fault(|| format!("expected numeric (int or float), got {}", go::type_name(value)));
            }
            (Scalar::Text, value) => {
                self.fault(|| format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::sharp_v(value)));
            }
            (Scalar::Boolean, value) => self.fault(|| format!("expected boolean, got &{{{}}}", go::v(value))),
            (Scalar::Any, value) => self.fault(|| format!("expected any scalar, got &{{{}}}", go::v(value))),
        }
    }

    fn members(&mut self, map: Map<'_>, object: &'v Object, is_wanted: bool) -> Object {
        let mut known = map.members();
        let mut nodes = Vec::with_capacity(if is_wanted { object.len() } else { 0 });
        for (name, value) in object.iter() {
            let Some(member) = known.next(name) else {
                self.within(|| Step::Member(name), |walk| walk.fault(|| "field not declared in schema".to_owned()));
                if self.faults.is_some() {
                    // as upstream, which looks at no further member then
                    break;
                }
                continue;
            };
            let (is_named, children) =
                self.within(|| Step::Member(name), |walk| walk.value(member.place, value, is_wanted));
            let is_empty = value.is_null() || value.as_object().is_some_and(Object::is_empty);
            if let Some(node) = node(is_named || is_empty || !member.is_declared, children).filter(|_| is_wanted) {
                nodes.push((element::field(name), node));
            }
        }
        Object::from_unsorted(nodes)
    }

    fn items(&mut self, list: List<'_>, items: &'v [Value], is_wanted: bool) -> Object {
        if list.is_atomic() {
            for (idx, item) in items.iter().enumerate() {
                self.within(|| Step::Index(idx), |walk| walk.value(list.item, item, false));
            }
            return Object::new();
        }
        let mut elements = Vec::with_capacity(items.len());
        for (idx, item) in items.iter().enumerate() {
            match list.element(item) {
                Ok(element) => elements.push(element),
                Err(why) if self.faults.is_some() => {
                    self.fault(|| format!("element {idx}: {why}"));
                    break;
                }
                // pruning can leave items without an element, which still are in their list
                Err(_) => elements.push(Str::const_new(element::INVALID)),
            }
        }
        if is_unique(&elements) {
            self.unique_items(list, items, elements, is_wanted)
        } else {
            self.all_items(list, items, elements, is_wanted)
        }
    }

    fn unique_items(&mut self, list: List<'_>, items: &'v [Value], elements: Vec<Str>, is_wanted: bool) -> Object {
        let nodes = elements.into_iter().zip(items).filter_map(|(element, item)| {
            let children = self.within(|| Step::Item(element.clone()), |walk| walk.value(list.item, item, is_wanted)).1;
            Some((element, node(true, children)?))
        });
        Object::from_unsorted(nodes.collect())
    }

    /// Items of which some stand there twice: those are owned as one.
    fn all_items(&mut self, list: List<'_>, items: &'v [Value], elements: Vec<Str>, is_wanted: bool) -> Object {
        let mut nodes: BTreeMap<Str, Object> = BTreeMap::new();
        for (element, item) in elements.into_iter().zip(items) {
            let is_twice = nodes.contains_key(&element);
            if is_twice && !self.has_duplicates {
                self.fault(|| format!("duplicate entries for key {}", element::shown(&element)));
            }
            let children = self.within(|| Step::Item(element.clone()), |walk| walk.value(list.item, item, is_wanted)).1;
            nodes.insert(element, if is_twice { Object::new() } else { children });
        }
        let nodes = nodes.into_iter().filter_map(|(element, children)| Some((element, node(true, children)?)));
        Object::from_unsorted(nodes.collect())
    }
}
