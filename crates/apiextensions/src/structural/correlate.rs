//! Finding the old value of a place in a new object: what ratcheting and transition rules compare with.
//!
//! Members of objects are found by name, items of lists of type map by their keys; items of other lists have no old
//! value.

use super::{ListType, Structural, Type};
use pintle_apimachinery::Value;

/// A new value, the old one at the same place, and the schema that says how to go on.
#[derive(Clone, Copy, Debug)]
pub struct Correlated<'v> {
    /// The old value.
    pub old: &'v Value,
    /// The new value.
    pub new: &'v Value,
    /// The schema of the place.
    pub schema: &'v Structural,
}

impl<'v> Correlated<'v> {
    /// The member `key`; `None` unless both values have it and the schema knows it.
    pub fn key(&self, key: &str) -> Option<Correlated<'v>> {
        let schema = self.schema.member(key)?;
        Some(Correlated { old: self.old.as_object()?.get(key)?, new: self.new.as_object()?.get(key)?, schema })
    }

    /// The item at `idx` of the new list.
    pub fn index(&self, idx: usize) -> Option<Correlated<'v>> {
        let new = self.new.as_array()?.get(idx)?;
        let old = self.old_item(new, idx)?;
        let schema = self.schema.items.as_deref()?;
        (!old.is_null()).then_some(Correlated { old, new, schema })
    }

    fn old_item(&self, new: &Value, idx: usize) -> Option<&'v Value> {
        let old = self.old.as_array()?;
        if self.schema.list_type != ListType::Map || self.schema.ty != Type::Array {
            return None;
        }
        old_item(self.schema, old, new, idx)
    }

    /// Whether nothing changed here. Lists of type map are equal in any order.
    pub fn is_unchanged(&self) -> bool {
        match (self.old, self.new) {
            (Value::Array(old), Value::Array(new)) => {
                if old.len() != new.len() {
                    return false;
                }
                if self.schema.list_type != ListType::Map {
                    return old == new;
                }
                (0..new.len()).all(|idx| self.index(idx).is_some_and(|item| item.is_unchanged()))
            }
            (Value::Object(old), Value::Object(new)) => {
                // what the schema does not know counts as changed, as upstream's does
                old.len() == new.len()
                    && new.keys().all(|key| self.key(key).is_some_and(|member| member.is_unchanged()))
            }
            (old, new) => old == new,
        }
    }
}

/// The first item of a list of type map with the same keys as `item`; `hint` is where it probably is.
pub fn old_item<'v>(schema: &Structural, old: &'v [Value], item: &Value, hint: usize) -> Option<&'v Value> {
    let keys = &schema.list_map_keys;
    if keys.is_empty() || !keys.iter().all(|key| is_scalar(&item[key.as_str()])) {
        return None;
    }
    let has_keys = |candidate: &&Value| keys.iter().all(|key| candidate[key.as_str()] == item[key.as_str()]);
    // keys are unique in stored lists, so an item at the same place is the first one, too
    old.get(hint).filter(has_keys).or_else(|| old.iter().find(has_keys))
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_))
}
