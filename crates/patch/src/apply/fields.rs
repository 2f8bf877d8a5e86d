//! The fields that an applied configuration names, and so owns.

use super::element::{self, SELF};
use super::place::{Form, List, Map, Place, form_of};
use super::set::FieldSet;
use pintle_apimachinery::{Object, Str, Value};
use std::collections::BTreeMap;

/// The set of all fields in `object`; the object conforms to the schema.
pub(super) fn field_set(place: Place<'_>, object: &Value) -> FieldSet {
    FieldSet::from_root(walk(place, object).1)
}

/// Whether the value itself is named, and what is below it.
fn walk(place: Place<'_>, value: &Value) -> (bool, Object) {
    match form_of(place, value) {
        Form::Scalar(_) => (true, Object::new()),
        Form::Map(map) if map.is_atomic => (true, Object::new()),
        Form::Map(map) => (false, value.as_object().map(|object| members(map, object)).unwrap_or_default()),
        Form::List(list) if list.is_atomic() => (true, Object::new()),
        Form::List(list) => (false, items(list, value.items())),
    }
}

/// A node of the set, if there is anything in it.
fn node(is_member: bool, mut children: Object) -> Option<Value> {
    if is_member && !children.is_empty() {
        children.insert(SELF, Value::object());
    }
    (is_member || !children.is_empty()).then_some(Value::Object(children))
}

fn members(map: Map<'_>, object: &Object) -> Object {
    let nodes = object.iter().filter_map(|(name, value)| {
        let member = map.member(name)?;
        let (is_named, children) = walk(member.place, value);
        let is_empty = value.is_null() || value.as_object().is_some_and(Object::is_empty);
        Some((element::field(name), node(is_named || is_empty || !member.is_declared, children)?))
    });
    Object::from_unsorted(nodes.collect())
}

fn items(list: List<'_>, items: &[Value]) -> Object {
    let mut by_element: BTreeMap<Str, (usize, &Value)> = BTreeMap::new();
    for item in items {
        if let Ok(element) = list.element(item) {
            by_element.entry(element).or_insert((0, item)).0 += 1;
        }
    }
    let nodes = by_element.into_iter().filter_map(|(element, (n_items, item))| {
        // what stands there twice is owned as one
        let children = if n_items > 1 { Object::new() } else { walk(list.item, item).1 };
        Some((element, node(true, children)?))
    });
    Object::from_unsorted(nodes.collect())
}
