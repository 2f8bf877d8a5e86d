//! Whether the defaults of a schema are values of it.
//!
//! Follows: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go (v0.35).

use crate::rules::Rules;
use crate::structural::Structural;
use crate::structural::objectmeta::{self, Misfit};
use crate::structural::openapi::{self, Form};
use crate::structural::prune::prune;
use pintle_apimachinery::field::aggregate;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// How to get from the nearest whole object to a place in it.
#[derive(Clone, Copy)]
enum Step<'s> {
    Object,
    Child(&'s Step<'s>, &'s str),
    Item(&'s Step<'s>),
}

impl Step<'_> {
    /// The object around `value`, which stands here.
    fn surround(self, value: Value) -> Value {
        match self {
            Step::Object => value,
            Step::Child(parent, name) => parent.surround(super::internal::single(name, value)),
            Step::Item(parent) => parent.surround(Value::Array(vec![value])),
        }
    }
}

/// The errors of all defaults below `schema`, the root of a version's schema.
pub(super) fn validate(path: &Path<'_>, schema: &Structural, requires_pruned: bool) -> ErrorList {
    let mut walk = Walk { requires_pruned, errors: ErrorList::new() };
    walk.node(path, schema, schema, true, &Step::Object, false);
    walk.errors
}

struct Walk {
    requires_pruned: bool,
    errors: ErrorList,
}

impl Walk {
    fn node(
        &mut self,
        path: &Path<'_>,
        node: &Structural,
        root: &Structural,
        is_root: bool,
        step: &Step<'_>,
        in_meta: bool,
    ) {
        // an embedded object is a whole one
        let (root, step, in_meta) = if node.is_embedded { (node, &Step::Object, false) } else { (root, step, in_meta) };
        if let Some(default) = &node.default {
            let at = path.child("default");
            let mut found = if in_meta {
                self.inside_metadata(&at, node, root, default, *step)
            } else {
                self.plain(&at, node, default)
            };
            if found.is_empty() {
                found = by_rules(&at, node, is_root || node.is_embedded, default);
            }
            self.errors.extend(found);
        }
        if let Some(items) = node.items.as_deref() {
            self.node(&path.child("items"), items, root, false, &Step::Item(step), in_meta);
        }
        let is_whole = is_root || node.is_embedded;
        for (name, property) in &node.properties {
            let in_meta = in_meta || (is_whole && matches!(name.as_str(), "metadata" | "apiVersion" | "kind"));
            let at = path.child("properties");
            self.node(&at.key(name), property, root, false, &Step::Child(step, name), in_meta);
        }
    }

    fn plain(&self, at: &Path<'_>, node: &Structural, default: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        if self.requires_pruned {
            let mut pruned = default.clone();
            prune(&mut pruned, node, node.is_embedded);
            if pruned != *default {
                errors.push(FieldError::invalid(at, default, "must not have unknown fields"));
            }
        }
        let mut coerced = default.clone();
        if let Err(mut why) = objectmeta::coerce(&mut coerced, node, node.is_embedded, Misfit::Refuse) {
            why.field = format!("{at}.{}", why.field);
            errors.push(why);
            return errors;
        }
        let metadata = objectmeta::validate(at, &coerced, node, node.is_embedded);
        errors.extend(if metadata.is_empty() { self.value(at, node, &coerced) } else { metadata });
        errors
    }

    fn inside_metadata(
        &self,
        at: &Path<'_>,
        node: &Structural,
        root: &Structural,
        default: &Value,
        step: Step<'_>,
    ) -> ErrorList {
        let mut object = step.surround(default.clone());
        object.set_default("kind", "Validation");
        object.set_default("apiVersion", "validation/v1");
        let misfit =
            |why: String| vec![FieldError::invalid(at, default, format!("must result in valid metadata: {why}"))];
        if let Err(why) = objectmeta::coerce(&mut object, root, true, Misfit::Refuse) {
            return misfit(why.to_string());
        }
        let metadata = objectmeta::validate(&Path::ROOT, &object, root, true);
        if metadata.is_empty() { self.value(at, node, default) } else { misfit(aggregate(&metadata)) }
    }

    /// The errors by the schema.
    fn value(&self, at: &Path<'_>, node: &Structural, default: &Value) -> ErrorList {
        openapi::validate(default, node, Form::Structural, &at.to_string())
    }
}

/// The errors by the rules of a schema: of the default as a value that stays, and of one that is new.
fn by_rules(at: &Path<'_>, node: &Structural, is_root: bool, default: &Value) -> ErrorList {
    let Some(rules) = Rules::compile(node, is_root) else { return ErrorList::new() };
    let found = rules.validate(at, default, Some(default), None).errors;
    if found.is_empty() { rules.validate(at, default, None, None).errors } else { found }
}
