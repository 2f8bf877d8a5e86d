//! The directives of strategic merge patches that stand in objects.

use super::Fault;
use pintle_apimachinery::{Object, Value};

/// In an object: what to do with the object that the patch meets.
pub(super) const DIRECTIVE: &str = "$patch";
/// In an object: the members that stay.
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
/// Beside a list: the order of its items, by value or merge key.
pub(super) const SET_ELEMENT_ORDER: &str = "$setElementOrder";
/// Beside a list of scalars: items to take out.
pub(super) const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// The list that a directive beside a list is about: `finalizers` of `$setElementOrder/finalizers`.
pub(super) fn list_name<'k>(key: &'k str, directive: &str) -> Option<&'k str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

/// Whether a value is an object with a `$patch`.
pub(super) fn has_directive(value: &Value) -> bool {
    value.has(DIRECTIVE)
}

/// Obeys a `$patch` in an object of the patch.
pub(super) fn apply_to_object(directive: &Value, original: &mut Object, patch: &Object) -> Result<(), Fault> {
    match directive.as_str() {
        Some("replace") => {
            *original = patch.clone();
            original.remove(DIRECTIVE);
            Ok(())
        }
        Some("delete") => {
            original.clear();
            Ok(())
        }
        _ => Err(Fault::unknown_directive(directive, &Value::Object(patch.clone()))),
    }
}

/// Obeys `$retainKeys`: members that it does not name go, and the patch must not set others.
pub(super) fn retain_keys(original: &mut Object, patch: &Object) -> Result<(), Fault> {
    let Some(retained) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let retained = retained.as_array().ok_or(Fault::RETAIN_KEYS)?;
    let is_retained = |key: &str| retained.iter().any(|r| r.as_str() == Some(key));
    for (key, change) in patch.iter() {
        let is_exempt = change.is_null()
            || key == RETAIN_KEYS
            || key.starts_with(DELETE_FROM_LIST)
            || key.starts_with(SET_ELEMENT_ORDER);
        if !is_exempt && !is_retained(key) {
            return Err(Fault::RETAIN_KEYS);
        }
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

/// A value that the patch sets where nothing was: without objects that carry a `$patch`, and (`drops_nulls`) without
/// null members. `None` when the value itself is such an object.
pub(super) fn without_directives(value: &Value, drops_nulls: bool) -> Option<Value> {
    match value {
        Value::Object(_) if has_directive(value) => None,
        Value::Object(object) => Some(Value::Object(
            object
                .iter()
                .filter(|(_, member)| !(drops_nulls && member.is_null()))
                .filter_map(|(key, member)| Some((key.clone(), without_directives(member, drops_nulls)?)))
                .collect::<Object>(),
        )),
        Value::Array(items) => Some(items.iter().filter_map(|item| without_directives(item, drops_nulls)).collect()),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => Some(value.clone()),
    }
}
