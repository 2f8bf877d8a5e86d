//! Pruning: taking out what a schema does not know.

use super::{Additional, Structural, is_meta_field};
use pintle_apimachinery::Value;
use std::fmt::Write as _;

/// Takes every member out that `schema` does not declare, below what preserves unknown fields excepted. `is_root` says
/// that `value` is a whole object, whose type and metadata stay. Answers the paths of what went, sorted.
pub fn prune(value: &mut Value, schema: &Structural, is_root: bool) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), unknown: Vec::new() };
    pruner.prune(value, Some(schema), is_root);
    pruner.unknown.sort();
    pruner.unknown
}

struct Pruner {
    /// Where we are.
    path: String,
    /// The paths of what went.
    unknown: Vec<String>,
}

impl Pruner {
    fn at_member(&mut self, key: &str, then: impl FnOnce(&mut Pruner)) {
        let len = self.path.len();
        if len > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        then(self);
        self.path.truncate(len);
    }

    fn at_item(&mut self, idx: usize, then: impl FnOnce(&mut Pruner)) {
        let len = self.path.len();
        write!(self.path, "[{idx}]").expect("writing to a String cannot fail");
        then(self);
        self.path.truncate(len);
    }

    fn note(&mut self, key: &str) {
        self.at_member(key, |pruner| pruner.unknown.push(pruner.path.clone()));
    }

    fn prune(&mut self, value: &mut Value, schema: Option<&Structural>, is_root: bool) {
        if let Some(schema) = schema.filter(|s| s.preserves_unknown) {
            return self.prune_below(value, schema, is_root);
        }
        match value {
            Value::Object(object) => {
                let Some(schema) = schema else {
                    for key in object.keys() {
                        self.note(key);
                    }
                    object.clear();
                    return;
                };
                let has_meta = schema.is_root_or_embedded(is_root);
                object.retain(|key, member| {
                    if has_meta && is_meta_field(key) {
                        return true;
                    }
                    match (schema.property(key), &schema.additional) {
                        (Some(property), _) => self.at_member(key, |p| p.prune(member, Some(property), false)),
                        (None, Additional::Unset) => {
                            if !is_meta_field(key) || !self.path.is_empty() {
                                self.note(key);
                            }
                            return false;
                        }
                        (None, additional) => {
                            self.at_member(key, |p| p.prune(member, additional.schema(), false));
                        }
                    }
                    true
                });
            }
            Value::Array(items) => {
                let schema = schema.and_then(|s| s.items.as_deref());
                for (idx, item) in items.iter_mut().enumerate() {
                    self.at_item(idx, |p| p.prune(item, schema, false));
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {}
        }
    }

    /// Below a node that preserves unknown fields only what is declared is pruned.
    fn prune_below(&mut self, value: &mut Value, schema: &Structural, is_root: bool) {
        match value {
            Value::Object(object) => {
                let has_meta = schema.is_root_or_embedded(is_root);
                for (key, member) in object.iter_mut() {
                    if has_meta && is_meta_field(key) {
                        continue;
                    }
                    match (schema.property(key), &schema.additional) {
                        (Some(property), _) => self.at_member(key, |p| p.prune(member, Some(property), false)),
                        (None, Additional::Unset) => {}
                        (None, additional) => self.at_member(key, |p| p.prune(member, additional.schema(), false)),
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = schema.items.as_deref() else { return };
                for (idx, item) in items.iter_mut().enumerate() {
                    self.at_item(idx, |p| p.prune_below(item, schema, false));
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {}
        }
    }
}
