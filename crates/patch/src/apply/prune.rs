//! Taking away what an applier owned before and names no more, unless somebody else owns it too.

use super::Scope;
use super::element::SELF;
use super::fields::field_set;
use super::managed::Entry;
use super::place::Place;
use super::remove::without;
use super::set::FieldSet;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Object, Str, Value};
use std::borrow::Cow;

/// The merged object without the fields of `last` (what the applier owned) that no one in `owners` (the applier with
/// its new fields among them) owns. `None` when nothing goes.
///
/// # Errors
/// Why the object cannot be converted to the version of an owner.
pub(super) fn pruned(
    scope: &Scope<'_>,
    merged: &Value,
    owners: &[Entry],
    last: &Entry,
) -> Result<Option<Value>, String> {
    let Some((place, merged)) = versioned(scope, merged, &last.api_version)? else { return Ok(None) };
    let last_fields = with_named_fields(place, last.fields.clone());
    let all_fields = named_fields(place, &merged);
    let without_last = without(place, &merged, &last_fields);
    let kept = with_owned(scope, &merged, &all_fields, without_last, owners, &last.api_version)?;
    let Some((_, kept)) = versioned(scope, &kept, &last.api_version)? else { return Ok(None) };
    // only what the applier owned itself may go
    let mut gone = all_fields;
    gone.remove(&named_fields(place, &kept));
    let gone = gone.intersection(&last_fields);
    if gone.is_empty() {
        return Ok(None);
    }
    let pruned = without(place, &merged, &gone);
    let own_version = scope.kind.api_version();
    match versioned(scope, &pruned, &own_version)? {
        Some((_, pruned)) => Ok(Some(pruned.into_owned())),
        None => Err(format!("no kind {:?} is registered for version {own_version:?}", scope.kind.kind.as_str())),
    }
}

/// `pruned` with everything that it lost of `merged` and somebody owns: first in the version that both are in, then in
/// the others.
fn with_owned(
    scope: &Scope<'_>,
    merged: &Value,
    all_fields: &FieldSet,
    pruned: Value,
    owners: &[Entry],
    first_version: &str,
) -> Result<Value, String> {
    let mut by_version: Vec<(&Str, FieldSet)> = Vec::new();
    for owner in owners {
        match by_version.iter_mut().find(|(version, _)| **version == owner.api_version) {
            Some((_, fields)) => *fields = fields.union(&owner.fields),
            None => by_version.push((&owner.api_version, owner.fields.clone())),
        }
    }
    by_version.sort_by_key(|(version, _)| *version != first_version);
    let (mut merged, mut pruned) = (Cow::Borrowed(merged), pruned);
    for (version, owned) in by_version {
        if version != merged.api_version() {
            let Some((_, converted)) = versioned(scope, &merged, version)? else { continue };
            merged = Cow::Owned(converted.into_owned());
        }
        let Some((place, less)) = versioned(scope, &pruned, version)? else { continue };
        let mut gone = if version == first_version { all_fields.clone() } else { named_fields(place, &merged) };
        gone.remove(&named_fields(place, &less));
        gone.remove(&with_named_fields(place, owned));
        pruned = without(place, &merged, &gone);
    }
    Ok(pruned)
}

/// An object in another version, with the place of its schema; `None` when there is no such version.
fn versioned<'a>(
    scope: &Scope<'a>,
    object: &'a Value,
    version: &str,
) -> Result<Option<(Place<'a>, Cow<'a, Value>)>, String> {
    let own_version = scope.kind.api_version();
    let place = if version == own_version {
        scope.place()
    } else {
        match scope.versions.node(version) {
            Some(node) => Place::root(node),
            None => return Ok(None),
        }
    };
    if object.api_version() == version {
        return Ok(Some((place, Cow::Borrowed(object))));
    }
    let converted = scope.versions.convert(object, version)?;
    Ok(converted.map(|converted| (place, Cow::Owned(converted))))
}

fn named_fields(place: Place<'_>, object: &Value) -> FieldSet {
    with_named_fields(place, field_set(place, object))
}

/// The set with the declared fields in it that have something below them in the set: `a` of `a.b`.
fn with_named_fields(place: Place<'_>, mut set: FieldSet) -> FieldSet {
    name(Some(place), set.root_mut());
    set
}

fn name(place: Option<Place<'_>>, children: &mut Object) {
    let atom = place.map(Place::atom);
    for (element, child) in children.iter_mut() {
        let Value::Object(below) = child else { continue };
        let has_children = below.len() > usize::from(below.contains_key(SELF));
        if element == SELF || !has_children {
            continue;
        }
        let member = element.strip_prefix("f:").and_then(|name| atom?.map?.member(name));
        let item = element.starts_with("k:").then(|| atom?.list.map(|list| list.item)).flatten();
        name(member.map(|m| m.place).or(item), below);
        if member.is_some_and(|m| m.is_declared) {
            below.insert(SELF, Value::object());
        }
    }
}
