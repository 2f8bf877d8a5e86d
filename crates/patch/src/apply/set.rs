//! [`FieldSet`]: a set of fields, kept in the form that FieldsV1 has on the wire, and its algebra.
//!
//! A node of the tree is an object whose members are path elements. A node without members is in the set; one with
//! members is when it has the member `.`. So reading and writing a set costs nothing, and what a write does not touch
//! is not even looked at.

use super::element::{self, Malformed, SELF};
use pintle_apimachinery::{Object, Str, Value};
use std::cmp::Ordering;

/// A set of fields of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSet {
    /// Canonical: members are canonical path elements, never `.` here, and no node without a field of the set below.
    root: Object,
}

static LEAF: Object = Object::new();

/// A node of a set; what is no object counts as a leaf.
fn node(value: &Value) -> &Object {
    value.as_object().unwrap_or(&LEAF)
}

/// Whether a node is itself in the set.
fn is_member(node: &Object) -> bool {
    node.is_empty() || node.contains_key(SELF)
}

/// Whether something below a node is in the set.
fn has_children(node: &Object) -> bool {
    node.len() > usize::from(node.contains_key(SELF))
}

/// A node from its own membership and its children; `None` when nothing of it is left.
fn made(is_member: bool, mut children: Vec<(Str, Value)>) -> Option<Value> {
    if children.is_empty() {
        return is_member.then(Value::object);
    }
    if is_member {
        // `.` sorts before every element
        children.insert(0, (Str::const_new(SELF), Value::object()));
    }
    Some(Value::Object(Object::from_unsorted(children)))
}

fn children(node: &Object) -> impl Iterator<Item = (&Str, &Object)> {
    node.iter().filter(|(key, _)| *key != SELF).map(|(key, child)| (key, self::node(child)))
}

/// Both nodes' children side by side, in order.
fn zip<'a>(
    left: &'a Object,
    right: &'a Object,
) -> impl Iterator<Item = (&'a Str, Option<&'a Object>, Option<&'a Object>)> {
    let (mut left, mut right) = (children(left).peekable(), children(right).peekable());
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((l, _)), Some((r, _))) => l.cmp(r),
        };
        let l = if order.is_le() { left.next() } else { None };
        let r = if order.is_ge() { right.next() } else { None };
        let key = l.or(r).map(|(key, _)| key)?;
        Some((key, l.map(|(_, node)| node), r.map(|(_, node)| node)))
    })
}

impl FieldSet {
    /// The set without fields.
    pub const fn new() -> FieldSet {
        FieldSet { root: Object::new() }
    }

    /// The set of these fields, each a path of member names.
    pub fn of_paths(paths: &[&[&str]]) -> FieldSet {
        let mut set = FieldSet::new();
        for path in paths {
            let elements: Vec<Str> = path.iter().map(|name| element::field(name)).collect();
            set.insert(&elements);
        }
        set
    }

    /// Reads FieldsV1; elements of unknown types are left out.
    ///
    /// # Errors
    /// [`Malformed`] when it holds what is no path element.
    pub(super) fn parse(fields: &Value) -> Result<FieldSet, Malformed> {
        match fields {
            Value::Null => Ok(FieldSet::new()),
            Value::Object(object) => Ok(FieldSet { root: parsed(object)?.1 }),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) => Err(Malformed),
        }
    }

    /// FieldsV1 that this code (or upstream's) wrote, taken as it is.
    pub(super) fn trusted(fields: Value) -> FieldSet {
        match fields {
            Value::Object(root) => FieldSet { root },
            _ => FieldSet::new(),
        }
    }

    /// The set whose nodes are the members of `root`.
    pub(super) fn from_root(root: Object) -> FieldSet {
        FieldSet { root }
    }

    pub(super) fn root(&self) -> &Object {
        &self.root
    }

    pub(super) fn root_mut(&mut self) -> &mut Object {
        &mut self.root
    }

    /// FieldsV1.
    pub fn into_value(self) -> Value {
        Value::Object(self.root)
    }

    /// Whether no field is in the set.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Adds a field.
    pub(super) fn insert(&mut self, path: &[Str]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut at = &mut self.root;
        for element in parents {
            let is_new = !at.contains_key(element);
            let child = at.entry(element).make_object();
            // a leaf that gets children says of itself that it is in the set
            if !is_new && child.is_empty() {
                child.insert(SELF, Value::object());
            }
            at = child;
        }
        let is_new = !at.contains_key(last);
        let child = at.entry(last).make_object();
        if !is_new && !child.is_empty() {
            child.insert(SELF, Value::object());
        }
    }

    /// Whether a field is in the set.
    pub(super) fn has(&self, path: &[Str]) -> bool {
        let mut at = Some(&self.root);
        for element in path {
            at = at.and_then(|n| n.get(element)).map(node);
        }
        !path.is_empty() && at.is_some_and(is_member)
    }

    /// The fields in either set.
    #[must_use]
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        FieldSet { root: union(&self.root, &other.root) }
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        FieldSet { root: intersection(&self.root, &other.root) }
    }

    /// The fields that are not in `other`; children of what is in `other` stay.
    #[must_use]
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        FieldSet { root: difference(&self.root, &other.root) }
    }

    /// The fields that neither are in `other` nor below one that is.
    #[must_use]
    pub fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        FieldSet { root: recursive_difference(&self.root, &other.root) }
    }

    /// [`FieldSet::recursive_difference`] without a copy when there is nothing to take out.
    #[must_use]
    pub(super) fn without_below(self, other: &FieldSet) -> FieldSet {
        if reaches(&self.root, &other.root) { self.recursive_difference(other) } else { self }
    }

    /// Takes fields out: [`FieldSet::difference`] in place, without a copy of what stays.
    pub(super) fn remove(&mut self, other: &FieldSet) {
        remove(&mut self.root, &other.root);
    }

    /// Whether a field is in both sets.
    pub fn intersects(&self, other: &FieldSet) -> bool {
        intersects(&self.root, &other.root)
    }

    /// Whether every field of `other` is in this set.
    pub fn contains(&self, other: &FieldSet) -> bool {
        contains(&self.root, &other.root)
    }

    /// The paths in the set, in the order in which upstream tells them: the fields of a node before those below its
    /// children.
    pub(super) fn paths(&self) -> Vec<Vec<Str>> {
        let mut paths = Vec::new();
        collect(&self.root, &mut Vec::new(), &mut paths);
        paths
    }
}

fn collect(at: &Object, prefix: &mut Vec<Str>, paths: &mut Vec<Vec<Str>>) {
    let mut sorted: Vec<(&Str, &Object)> = children(at).collect();
    sorted.sort_by(|(a, _), (b, _)| element::compare(a, b));
    for (element, _) in sorted.iter().filter(|(_, child)| is_member(child)) {
        paths.push(prefix.iter().chain([*element]).cloned().collect());
    }
    for (element, child) in sorted.into_iter().filter(|(_, child)| has_children(child)) {
        prefix.push(element.clone());
        collect(child, prefix, paths);
        prefix.pop();
    }
}

/// A node in canonical form: whether it said that it is in the set, and its children.
fn parsed(object: &Object) -> Result<(bool, Object), Malformed> {
    let mut is_self = false;
    let mut members = Vec::with_capacity(object.len());
    for (key, child) in object.iter() {
        if key == SELF {
            is_self = true;
            continue;
        }
        let Some(element) = element::canonical(key)? else { continue };
        let child = match child {
            Value::Null => Value::object(),
            Value::Object(child) => {
                let (is_self, children) = parsed(child)?;
                // a child without children of a known type is a leaf
                let is_member = is_self || children.is_empty();
                made(is_member, children.into_iter().collect()).unwrap_or_else(Value::object)
            }
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) => {
                return Err(Malformed);
            }
        };
        members.push((element, child));
    }
    Ok((is_self, Object::from_unsorted(members)))
}

fn union(left: &Object, right: &Object) -> Object {
    let merged = zip(left, right).filter_map(|(key, l, r)| {
        let child = match (l, r) {
            (Some(l), Some(r)) => {
                let children = union(l, r).into_iter().collect();
                made(is_member(l) || is_member(r), children)
            }
            (Some(only), None) | (None, Some(only)) => Some(Value::Object(only.clone())),
            (None, None) => None,
        };
        child.map(|child| (key.clone(), child))
    });
    Object::from_unsorted(merged.collect())
}

fn intersection(left: &Object, right: &Object) -> Object {
    let common = zip(left, right).filter_map(|(key, l, r)| {
        let (l, r) = (l?, r?);
        let child = made(is_member(l) && is_member(r), intersection(l, r).into_iter().collect())?;
        Some((key.clone(), child))
    });
    Object::from_unsorted(common.collect())
}

fn difference(left: &Object, right: &Object) -> Object {
    let rest = zip(left, right).filter_map(|(key, l, r)| {
        let l = l?;
        let child = match r {
            Some(r) => made(is_member(l) && !is_member(r), difference(l, r).into_iter().collect())?,
            None => Value::Object(l.clone()),
        };
        Some((key.clone(), child))
    });
    Object::from_unsorted(rest.collect())
}

fn remove(from: &mut Object, other: &Object) {
    from.retain(|element, child| {
        let Some(other) = other.get(element).map(node) else { return true };
        let child = child.make_object();
        let was_member = is_member(child);
        if has_children(child) && has_children(other) {
            remove(child, other);
        }
        let is_kept_member = was_member && !is_member(other);
        if !is_kept_member || !has_children(child) {
            // a leaf says nothing of itself
            child.remove(SELF);
        }
        is_kept_member || !child.is_empty()
    });
}

fn recursive_difference(left: &Object, right: &Object) -> Object {
    let rest = zip(left, right).filter_map(|(key, l, r)| {
        let l = l?;
        let child = match r {
            Some(r) if is_member(r) => return None,
            Some(r) => made(is_member(l), recursive_difference(l, r).into_iter().collect())?,
            None => Value::Object(l.clone()),
        };
        Some((key.clone(), child))
    });
    Object::from_unsorted(rest.collect())
}

fn intersects(left: &Object, right: &Object) -> bool {
    let (few, many) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    children(few).any(|(key, child)| {
        many.get(key).map(node).is_some_and(|other| (is_member(child) && is_member(other)) || intersects(child, other))
    })
}

/// Whether something of `left` is in `right` or below what is.
fn reaches(left: &Object, right: &Object) -> bool {
    children(right)
        .any(|(key, other)| left.get(key).map(node).is_some_and(|child| is_member(other) || reaches(child, other)))
}

fn contains(outer: &Object, inner: &Object) -> bool {
    children(inner).all(|(key, child)| {
        let Some(other) = outer.get(key).map(node) else { return false };
        (!is_member(child) || is_member(other)) && contains(other, child)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Model = BTreeSet<Vec<Str>>;

    fn any_model() -> impl Strategy<Value = Model> {
        prop::collection::btree_set(prop::collection::vec("[a-c]".prop_map(|n| element::field(&n)), 1..4), 0..8)
    }

    fn set(model: &Model) -> FieldSet {
        let mut set = FieldSet::new();
        for path in model {
            set.insert(path);
        }
        set
    }

    fn model(set: &FieldSet) -> Model {
        set.paths().into_iter().collect()
    }

    proptest! {
        /// The algebra against sets of paths, and the set as canonical FieldsV1.
        #[test]
        fn algebra(a in any_model(), b in any_model()) {
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(&model(&x), &a);
            prop_assert_eq!(model(&x.union(&y)), a.union(&b).cloned().collect::<Model>());
            prop_assert_eq!(model(&x.intersection(&y)), a.intersection(&b).cloned().collect::<Model>());
            prop_assert_eq!(model(&x.difference(&y)), a.difference(&b).cloned().collect::<Model>());
            let mut less = x.clone();
            less.remove(&y);
            prop_assert_eq!(less, x.difference(&y));
            let outside = |path: &&Vec<Str>| !b.iter().any(|other| path.starts_with(other));
            prop_assert_eq!(model(&x.recursive_difference(&y)), a.iter().filter(outside).cloned().collect::<Model>());
            prop_assert_eq!(x.clone().without_below(&y), x.recursive_difference(&y));
            prop_assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
            prop_assert_eq!(x.contains(&y), a.is_superset(&b));
            for path in a.iter().chain(&b) {
                prop_assert_eq!(x.has(path), a.contains(path));
            }
            for made in [x.union(&y), x.intersection(&y), x.difference(&y), x.recursive_difference(&y)] {
                prop_assert_eq!(made.is_empty(), made.paths().is_empty());
                prop_assert_eq!(FieldSet::parse(&made.clone().into_value()), Ok(made));
            }
        }

        #[test]
        fn parsing_never_panics(value in crate::testing::value(true)) {
            let _ = FieldSet::parse(&value);
        }
    }

    #[test]
    fn reading_is_lenient_where_upstream_is() {
        for (fields, want) in [
            (json!({"f:a": null, "x:b": {"f:c": {}}, ".": {}}), Some(r#"{"f:a":{}}"#)),
            (json!({"f:a": {"x:b": {}}}), Some(r#"{"f:a":{}}"#)),
            (json!({"f:a": {".": {}}}), Some(r#"{"f:a":{}}"#)),
            (
                json!({"f:l": {"k:{\"b\":1, \"a\":2}": {".": 1, "f:b": {}}}}),
                Some(r#"{"f:l":{"k:{\"a\":2,\"b\":1}":{".":{},"f:b":{}}}}"#),
            ),
            (json!(null), Some("{}")),
            (json!("x"), None),
            (json!({"f:a": 1}), None),
            (json!({"odd": {}}), None),
        ] {
            let told = FieldSet::parse(&fields).ok().map(|set| set.into_value().to_json_string());
            assert_eq!(told.as_deref(), want, "{fields}");
        }
    }
}
