//! The fields of a resource that field selectors may name, besides name and namespace.

use pintle_apimachinery::fieldselector::FieldSelector;
use pintle_apimachinery::{Str, Value};
use pintle_kinds::FieldTable;
use std::borrow::Cow;
use std::sync::Arc;

/// Selectable fields, in an order that heads of records follow.
#[derive(Clone, Debug)]
pub enum Fields {
    /// Of a built-in kind.
    Table(FieldTable),
    /// Of a custom resource: dotted paths without the leading dot.
    Paths(Arc<[Str]>),
}

impl Fields {
    /// No fields.
    pub const NONE: Fields = Fields::Table(&[]);

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Fields::Table(table) => table.len(),
            Fields::Paths(paths) => paths.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position of a field.
    pub fn position(&self, name: &str) -> Option<usize> {
        match self {
            Fields::Table(table) => table.iter().position(|(field, _)| *field == name),
            Fields::Paths(paths) => paths.iter().position(|field| field == name),
        }
    }

    /// The values that an object has, in order.
    pub fn values(&self, object: &Value) -> Box<[Str]> {
        match self {
            Fields::Table(table) => table.iter().map(|(_, value_of)| Str::new(value_of(object))).collect(),
            Fields::Paths(paths) => paths.iter().map(|path| Str::new(scalar(object.at(path)))).collect(),
        }
    }

    /// The first field that `selector` names and that is not selectable.
    pub fn unknown<'s>(&self, selector: &'s FieldSelector) -> Option<&'s str> {
        let is_known =
            |field: &str| matches!(field, "metadata.name" | "metadata.namespace") || self.position(field).is_some();
        selector.terms.iter().map(|t| t.field.as_str()).find(|field| !is_known(field))
    }
}

/// A scalar's text as selectors compare it.
fn scalar(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(s) => Cow::Borrowed(s),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_json_string()),
    }
}
