//! Taking fields out of an object.

use super::element;
use super::place::{Form, Place, form_of};
use super::set::FieldSet;
use pintle_apimachinery::{Object, Value};

/// `value` without the items and members in `set`. What becomes empty by that turns `null`, as upstream has it.
pub(super) fn without(place: Place<'_>, value: &Value, set: &FieldSet) -> Value {
    walk(place, value, set.root())
}

fn walk(place: Place<'_>, value: &Value, set: &Object) -> Value {
    match (form_of(place, value), value) {
        (Form::Scalar(_), value) => value.clone(),
        (Form::List(list), Value::Array(items)) if !list.is_atomic() => {
            let kept: Vec<Value> = items
                .iter()
                .filter_map(|item| match list.element(item) {
                    Ok(element) => step(list.item, item, set.get(&element)),
                    Err(_) => Some(item.clone()),
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Form::Map(map), Value::Object(object)) if !map.is_atomic => {
            let mut known = map.members();
            let kept = object.iter().filter_map(|(name, member)| {
                let node = set.get(&element::field(name));
                let place = known.next(name).map_or(Place::Deduced, |m| m.place);
                Some((name.clone(), step(place, member, node)?))
            });
            let kept: Object = kept.collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Form::List(_) | Form::Map(_), _) => Value::Null,
    }
}

/// A member or item by what the set says of it: gone, less, or as it is.
fn step(place: Place<'_>, value: &Value, node: Option<&Value>) -> Option<Value> {
    match node.and_then(Value::as_object) {
        None => Some(value.clone()),
        Some(node) if node.is_empty() || node.contains_key(element::SELF) => None,
        Some(node) => Some(walk(place, value, node)),
    }
}
