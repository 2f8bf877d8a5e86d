//! What a change of an object changes: the fields it adds or modifies, and those it removes.

use super::element::{self, SELF};
use super::list::is_unique;
use super::place::{Form, List, Map, Place, forms_of, is_same};
use super::set::FieldSet;
use pintle_apimachinery::{Object, Str, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What a change of an object changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Changes {
    /// Fields that are new or have another value.
    pub(super) changed: FieldSet,
    /// Fields that are gone.
    pub(super) removed: FieldSet,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }

    /// Without the fields that an endpoint resets, and all below them.
    pub(super) fn without(self, reset: Option<&FieldSet>) -> Changes {
        match reset {
            Some(reset) if !self.is_empty() => Changes {
                changed: self.changed.recursive_difference(reset),
                removed: self.removed.recursive_difference(reset),
            },
            _ => self,
        }
    }
}

/// Compares two objects at the root of a schema; `metadata.managedFields` is not looked at.
///
/// # Errors
/// Why an object does not conform to the schema.
pub(super) fn compare(place: Place<'_>, before: &Value, after: &Value) -> Result<Changes, String> {
    let mut delta = Delta::default();
    match (place.atom().map, before, after) {
        (Some(map), Value::Object(before), Value::Object(after)) => {
            let is_metadata = |name: &str| if name == "metadata" { "managedFields" } else { "" };
            members(map, Some(before), Some(after), &mut delta, "", &is_metadata)?;
        }
        _ => return Err("expected map".to_owned()),
    }
    let root = |branch: Branch| FieldSet::from_root(branch.children());
    Ok(Changes { changed: root(delta.changed), removed: root(delta.removed) })
}

/// A node of a set that is being made.
#[derive(Default)]
struct Branch {
    is_member: bool,
    children: Vec<(Str, Value)>,
}

impl Branch {
    fn push(&mut self, element: impl FnOnce() -> Str, child: Branch) {
        if child.is_member || !child.children.is_empty() {
            let child = Value::Object(child.node());
            self.children.push((element(), child));
        }
    }

    /// The node with its own membership.
    fn node(mut self) -> Object {
        if self.is_member && !self.children.is_empty() {
            self.children.push((Str::const_new(SELF), Value::object()));
        }
        self.children()
    }

    fn children(self) -> Object {
        Object::from_unsorted(self.children)
    }
}

/// What differs at a place and below it.
#[derive(Default)]
struct Delta {
    changed: Branch,
    removed: Branch,
}

impl Delta {
    fn push(&mut self, element: impl Fn() -> Str, child: Delta) {
        self.changed.push(&element, child.changed);
        self.removed.push(&element, child.removed);
    }
}

type Side<'v> = Option<&'v Value>;

fn walk(place: Place<'_>, before: Side<'_>, after: Side<'_>, ignored: &str) -> Result<Delta, String> {
    let mut delta = Delta::default();
    let (first, last) = forms_of(place, before, after);
    if let Some(first) = first {
        visit(first, before, after, &mut delta, ignored)?;
    }
    visit(last, before, after, &mut delta, ignored)?;
    delta.changed.is_member |= before.is_none();
    delta.removed.is_member |= after.is_none();
    Ok(delta)
}

fn visit(form: Form<'_>, before: Side<'_>, after: Side<'_>, delta: &mut Delta, ignored: &str) -> Result<(), String> {
    match form {
        Form::Scalar(_) => leaf(before, after, delta),
        Form::Map(map) => {
            let (l, r) = (before.and_then(Value::as_object), after.and_then(Value::as_object));
            let is_empty = l.is_none_or(Object::is_empty) && r.is_none_or(Object::is_empty);
            if map.is_atomic || is_empty {
                leaf(before, after, delta);
            } else {
                members(map, l, r, delta, ignored, &|_| "")?;
            }
        }
        Form::List(list) => {
            let (l, r) = (before.map_or(&[][..], Value::items), after.map_or(&[][..], Value::items));
            if list.is_atomic() || (l.is_empty() && r.is_empty()) {
                leaf(before, after, delta);
            } else if l != r {
                items(list, l, r, delta)?;
            }
        }
    }
    Ok(())
}

/// A value that is owned as one.
fn leaf(before: Side<'_>, after: Side<'_>, delta: &mut Delta) {
    if let (Some(before), Some(after)) = (before, after) {
        delta.changed.is_member |= !is_same(before, after);
    }
}

/// The members of two objects. `ignored` is not looked at; `ignored_below` gives the same for a member's members.
fn members(
    map: Map<'_>,
    before: Option<&Object>,
    after: Option<&Object>,
    delta: &mut Delta,
    ignored: &str,
    ignored_below: &dyn Fn(&str) -> &'static str,
) -> Result<(), String> {
    static NONE: Object = Object::new();
    let mut left = before.unwrap_or(&NONE).iter().peekable();
    let mut right = after.unwrap_or(&NONE).iter().peekable();
    let mut known = map.members();
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((l, _)), Some((r, _))) => l.cmp(r),
        };
        let l = if order.is_le() { left.next() } else { None };
        let r = if order.is_ge() { right.next() } else { None };
        let Some((name, _)) = l.or(r) else { return Ok(()) };
        let (l, r) = (l.map(|(_, value)| value), r.map(|(_, value)| value));
        // most of an object is as it was; what is equal needs no schema
        if name == ignored || (l.is_some() && l == r) {
            continue;
        }
        let member = known.next(name).ok_or_else(|| format!(".{name}: field not declared in schema"))?;
        let child = walk(member.place, l, r, ignored_below(name))?;
        delta.push(|| element::field(name), child);
    }
}

/// The items of two lists whose items are owned one by one.
fn items(list: List<'_>, before: &[Value], after: &[Value], delta: &mut Delta) -> Result<(), String> {
    let left = list.elements(before)?;
    let right = list.elements(after)?;
    if left == right && is_unique(&left) {
        for ((element, l), r) in left.into_iter().zip(before).zip(after).filter(|((_, l), r)| l != r) {
            let child = walk(list.item, Some(l), Some(r), "")?;
            delta.push(|| element.clone(), child);
        }
        return Ok(());
    }
    let mut by_element: BTreeMap<Str, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for (element, item) in left.into_iter().zip(before) {
        by_element.entry(element).or_default().0.push(item);
    }
    for (element, item) in right.into_iter().zip(after) {
        by_element.entry(element).or_default().1.push(item);
    }
    for (element, (l, r)) in by_element {
        let child = same_items(list, &l, &r)?;
        delta.push(|| element.clone(), child);
    }
    Ok(())
}

/// The items of one element on both sides: usually one each; duplicates count as one value.
fn same_items(list: List<'_>, before: &[&Value], after: &[&Value]) -> Result<Delta, String> {
    let mut delta = Delta::default();
    match (before, after) {
        (before, after) if before.len() <= 1 && after.len() <= 1 => {
            return walk(list.item, before.first().copied(), after.first().copied(), "");
        }
        (before, after) if before.len() > 1 && after.len() > 1 => {
            let is_equal = before.len() == after.len() && before.iter().zip(after).all(|(l, r)| is_same(l, r));
            delta.changed.is_member = !is_equal;
        }
        (before, after) if before.len() > 1 => {
            if let Some(only) = after.first() {
                delta = walk(list.item, None, Some(only), "")?;
            }
            delta.removed.is_member = true;
        }
        (before, _) => {
            if let Some(only) = before.first() {
                delta = walk(list.item, Some(only), None, "")?;
            }
            delta.changed.is_member = true;
        }
    }
    Ok(delta)
}
