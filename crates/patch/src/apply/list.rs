//! What tells the items of a list apart: their values, or the values of their key fields.

use super::element;
use super::place::{List, Place};
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::value::parse;
use pintle_apimachinery::{Str, Value};
use pintle_schema::{Keys, ListKind};
use std::borrow::Cow;

impl List<'_> {
    pub(super) fn is_atomic(self) -> bool {
        matches!(self.kind, ListKind::Atomic)
    }

    /// The path element of an item.
    ///
    /// # Errors
    /// Upstream's words for an item that has none.
    pub(super) fn element(self, item: &Value) -> Result<Str, String> {
        match self.kind {
            ListKind::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            ListKind::Set => set_element(item),
            ListKind::Map(keys) => keyed_element(keys, self.item, item),
        }
    }

    /// The path elements of all items, in order.
    ///
    /// # Errors
    /// As [`List::element`], with the number of the first item at fault.
    pub(super) fn elements(self, items: &[Value]) -> Result<Vec<Str>, String> {
        let element = |(idx, item)| self.element(item).map_err(|why| format!("element {idx}: {why}"));
        items.iter().enumerate().map(element).collect()
    }
}

fn set_element(item: &Value) -> Result<Str, String> {
    let why = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => return Ok(element::value(item)),
    };
    Err(why.to_owned())
}

fn keyed_element(keys: &Keys, place: Place<'_>, item: &Value) -> Result<Str, String> {
    let object = match item {
        Value::Object(object) => object,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) => {
            return Err("associative list with keys may not have non-map elements".to_owned());
        }
    };
    let mut found: Vec<(&str, Cow<'_, Value>)> = keys
        .iter()
        .filter_map(|name| match object.get(name) {
            Some(value) => Some((name, Cow::Borrowed(value))),
            None => default_of(place, name).map(|value| (name, Cow::Owned(value))),
        })
        .collect();
    if found.is_empty() && keys.iter().next().is_some() {
        let names: Vec<String> = keys.iter().map(go_quote).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    found.sort_unstable_by_key(|(name, _)| *name);
    Ok(element::keys(found.iter().map(|(name, value)| (*name, value.as_ref()))))
}

/// The default of a key field.
fn default_of(place: Place<'_>, name: &str) -> Option<Value> {
    let text = place.field(name)?.default.as_str();
    // nearly all defaults are plain strings
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(plain) if !plain.contains(['\\', '"']) => Some(Value::from(plain)),
        _ if text.is_empty() => None,
        _ => parse(text.as_bytes()).ok(),
    }
}

/// Whether no element stands there twice.
pub(super) fn is_unique(elements: &[Str]) -> bool {
    /// Lists up to this many items are compared pair by pair.
    const PAIRED_ITEMS_MAX: usize = 16;
    if elements.len() <= PAIRED_ITEMS_MAX {
        return elements.iter().enumerate().all(|(idx, element)| !elements[..idx].contains(element));
    }
    let mut sorted: Vec<&Str> = elements.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}
