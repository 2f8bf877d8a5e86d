//! The fields of a resource that field selectors may name, besides name and namespace.

use pintle_apiextensions::version::SelectableField;
use pintle_apimachinery::{Str, Value};
use pintle_kinds::FieldTable;
use std::sync::Arc;

/// Selectable fields, in an order that heads of records follow.
#[derive(Clone, Debug)]
pub enum Fields {
    /// Of a built-in kind.
    Table(FieldTable),
    /// Of a custom resource.
    Custom(Arc<[SelectableField]>),
}

impl Fields {
    /// No fields.
    pub const NONE: Fields = Fields::Table(&[]);

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Fields::Table(table) => table.len(),
            Fields::Custom(fields) => fields.len(),
        }
    }

    /// Whether these are the same fields.
    pub fn is_same(&self, other: &Fields) -> bool {
        match (self, other) {
            (Fields::Table(a), Fields::Table(b)) => a.iter().map(|f| f.0).eq(b.iter().map(|f| f.0)),
            (Fields::Custom(a), Fields::Custom(b)) => a == b,
            (Fields::Table(_), Fields::Custom(_)) | (Fields::Custom(_), Fields::Table(_)) => false,
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
            Fields::Custom(fields) => fields.iter().position(|field| field.name == name),
        }
    }

    /// The values that an object has, in order.
    pub fn values(&self, object: &Value) -> Box<[Str]> {
        match self {
            Fields::Table(table) => table.iter().map(|(_, value_of)| Str::new(value_of(object))).collect(),
            Fields::Custom(fields) => fields.iter().map(|field| field.value_of(object)).collect(),
        }
    }
}
