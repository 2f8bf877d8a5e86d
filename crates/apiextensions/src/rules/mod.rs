//! Rules of `x-kubernetes-validations`: compiled once with the definition, evaluated when its objects are written.
//!
//! Follows: apiextensions-apiserver/pkg/apiserver/schema/cel (v0.35); differs: members are visited in their order in the
//! object.

pub mod compile;
pub mod decl;
mod evaluate;
#[cfg(test)]
mod tests;

use crate::structural::{MapType, Rule, Structural};
use compile::{Compiled, CompiledRule};
pub use evaluate::{OBJECT_COST_MAX, RULE_COST_MAX};
use pintle_apimachinery::{Str, Value};

/// The rules of a schema and of everything below it.
#[derive(Debug)]
pub struct Rules {
    /// The schema of values.
    schema: Structural,
    compiled: Compiled,
    rules: Vec<(Rule, CompiledRule)>,
    items: Option<Box<Rules>>,
    /// Sorted by name.
    properties: Vec<(Str, Rules)>,
    additional: Option<Box<Rules>>,
    all_of: Vec<Rules>,
}

impl Rules {
    /// Compiles the rules of a schema; none if it has none. `is_root` says that it is the schema of whole objects.
    #[must_use]
    pub fn compile(schema: &Structural, is_root: bool) -> Option<Rules> {
        if has_rules(schema) { Rules::at(schema, schema, is_root) } else { None }
    }

    /// The rules that `wanted` has for values of `node`: the same schema, or what an `allOf` of it says.
    fn at(wanted: &Structural, node: &Structural, is_root: bool) -> Option<Rules> {
        let both = |wanted: Option<&Structural>, node: Option<&Structural>| {
            let (wanted, node) = (wanted?, node?);
            Rules::at(wanted, node, node.is_embedded).map(Box::new)
        };
        let items = both(wanted.items.as_deref(), node.items.as_deref());
        let additional = both(wanted.additional.schema(), node.additional.schema());
        let properties: Vec<(Str, Rules)> = wanted
            .properties
            .iter()
            .filter_map(|(name, property)| Some((name.clone(), *both(Some(property), node.property(name))?)))
            .collect();
        let all_of: Vec<Rules> =
            wanted.checks().all_of.iter().filter_map(|branch| Rules::at(branch, node, is_root)).collect();
        let is_empty = wanted.rules.is_empty()
            && items.is_none()
            && additional.is_none()
            && properties.is_empty()
            && all_of.is_empty();
        if is_empty {
            return None;
        }
        // what has no type that expressions know was refused with the definition
        let compiled = Compiled::new(node, &wanted.rules, is_root)?;
        let rules = compiled.rules(node, &wanted.rules);
        let schema = Structural {
            ty: node.ty.clone(),
            list_type: node.list_type,
            list_map_keys: node.list_map_keys.clone(),
            map_type: node.map_type,
            ..Structural::default()
        };
        let rules = wanted.rules.iter().cloned().zip(rules).collect();
        Some(Rules { schema, compiled, rules, items, properties, additional, all_of })
    }

    fn property(&self, name: &str) -> Option<&Rules> {
        let found = self.properties.binary_search_by(|(known, _)| known.as_str().cmp(name));
        found.ok().and_then(|idx| self.properties.get(idx)).map(|(_, rules)| rules)
    }

    /// Whether members of values have old values.
    fn is_correlatable(&self) -> bool {
        matches!(self.schema.map_type, MapType::Unset | MapType::Granular | MapType::Atomic)
    }
}

fn has_rules(schema: &Structural) -> bool {
    !schema.rules.is_empty()
        || schema.items.as_deref().is_some_and(has_rules)
        || schema.additional.schema().is_some_and(has_rules)
        || schema.properties.iter().any(|(_, property)| has_rules(property))
}

/// What a value is compared with.
#[derive(Clone, Copy)]
struct Versions<'v> {
    new: &'v Value,
    /// The old value, if there is one that is not null.
    old: Option<&'v Value>,
}
