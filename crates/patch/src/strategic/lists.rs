//! Merging lists: of scalars as sets, of objects by their merge key.

use super::directives::{DIRECTIVE, has_directive, without_directives};
use super::lookup::ListMeta;
use super::order::{By, Places, interleave, require_merge_key, require_object};
use super::{Fault, merge_object};
use pintle_apimachinery::Value;

/// The list that `change` makes of `before`; with `is_deletion`, `before` without the scalars in `change`.
pub(super) fn merge(
    before: Vec<Value>,
    change: &[Value],
    meta: &ListMeta<'_>,
    is_deletion: bool,
) -> Result<Vec<Value>, Fault> {
    if before.is_empty() && change.is_empty() {
        return Ok(before);
    }
    if item_type(&before, change)? == ItemType::Object {
        return merge_objects(before, change, meta);
    }
    if is_deletion {
        let deleted = Places::of(change, By::Value);
        return Ok(before.into_iter().filter(|item| deleted.place(item).is_none()).collect());
    }
    if !meta.merge_key.is_empty() {
        // scalars where objects belong
        before.iter().chain(change).try_for_each(require_object)?;
    }
    let (mut patched, mut others) = (Vec::with_capacity(change.len()), Vec::with_capacity(before.len()));
    let in_change = Places::of(change, By::Value);
    let in_before = Places::of(&before, By::Value);
    for (idx, item) in change.iter().enumerate() {
        if in_change.place(item) == Some(idx) {
            patched.push(item.clone());
        }
    }
    for (idx, item) in before.iter().enumerate() {
        if in_change.place(item).is_none() && in_before.place(item) == Some(idx) {
            others.push(item.clone());
        }
    }
    interleave(patched, others, change, &before, By::Value)
}

/// Merges a list that has a `$setElementOrder` beside it and puts it in that order. `None` when neither the object nor
/// the patch has the list.
pub(super) fn merge_in_order(
    before: Option<&Vec<Value>>,
    change: Option<&Vec<Value>>,
    wanted: &[Value],
    meta: &ListMeta<'_>,
) -> Result<Option<Vec<Value>>, Fault> {
    check_order(change.map_or(&[], Vec::as_slice), wanted, meta.merge_key)?;
    let merged = match (before, change) {
        (None, None) => return Ok(None),
        (Some(before), None) => before.clone(),
        (None, Some(change)) => change.iter().filter_map(|item| without_directives(item, false)).collect(),
        (Some(before), Some(change)) if meta.is_merged => merge(before.clone(), change, meta, false)?,
        (Some(_), Some(change)) => change.clone(),
    };
    let before = before.map_or(&[][..], Vec::as_slice);
    let change = change.map_or(&[][..], Vec::as_slice);
    let is_keyed = !meta.merge_key.is_empty();
    let shifted;
    let before = if is_keyed && meta.is_merged && change.iter().any(has_directive) {
        shifted = order_left_behind(before, change, meta.merge_key);
        &shifted
    } else {
        before
    };
    if is_keyed {
        require_merge_key(&merged, meta.merge_key)?;
        require_objects_up_to(&merged, wanted, meta.merge_key)?;
    }
    let is_object = item_type(before, change)? == ItemType::Object;
    if is_object && !is_keyed && merged.is_empty() {
        wanted.iter().try_for_each(require_object)?;
    }
    if is_object && !is_keyed && !(merged.is_empty() && wanted.is_empty()) {
        return Err(Fault::Plain("cannot order a list of objects without merge key".to_owned()));
    }
    let by = if is_object { By::Key(meta.merge_key) } else { By::Value };
    let in_wanted = Places::of(wanted, if is_keyed { By::Key(meta.merge_key) } else { By::Value });
    let (patched, others) = merged.into_iter().partition(|item| in_wanted.place(item).is_some());
    interleave(patched, others, wanted, before, by).map(Some)
}

fn merge_objects(before: Vec<Value>, change: &[Value], meta: &ListMeta<'_>) -> Result<Vec<Value>, Fault> {
    if meta.merge_key.is_empty() {
        return Err(Fault::Plain("cannot merge lists without merge key for struct".to_owned()));
    }
    let (before, change) = obey_directives(before, change, meta.merge_key)?;
    let mut merged = before.clone();
    // items that were there when the list was indexed, then those that the patch adds
    let n_before = merged.len();
    let by = By::Key(meta.merge_key);
    let in_before = Places::of(&before, by);
    for &item in &change {
        let Some(patch) = item.as_object() else { return Err(Fault::wrong_type("map[string]interface {}", item)) };
        let key = patch.get(meta.merge_key).ok_or_else(|| Fault::no_merge_key(item, meta.merge_key))?;
        let place = in_before
            .place_of_key(key)
            .or_else(|| merged[n_before..].iter().position(|m| m.get(meta.merge_key) == key).map(|idx| idx + n_before))
            // a null key is not an absent one
            .filter(|&idx| merged[idx].has(meta.merge_key));
        match place.map(|idx| &mut merged[idx]) {
            Some(Value::Object(current)) => merge_object(current, patch, meta.item)?,
            Some(_) | None => merged.push(item.clone()),
        }
    }
    require_merge_key(&merged, meta.merge_key)?;
    let wanted: Vec<Value> = change.iter().map(|item| key_only(item, meta.merge_key)).collect();
    let in_wanted = Places::of(&wanted, by);
    let (patched, others) = merged.into_iter().partition(|item| in_wanted.place(item).is_some());
    interleave(patched, others, &wanted, &before, by)
}

/// An object with the merge key alone: enough to tell its place. One without the key stays as it is, for errors.
fn key_only(item: &Value, merge_key: &str) -> Value {
    if !item.has(merge_key) {
        return item.clone();
    }
    let mut only = Value::object();
    only.set(merge_key, item.get(merge_key).clone());
    only
}

/// Obeys the items that carry a `$patch`: answers the list without what they delete (or instead of it, when one says
/// `replace`), and the other items of the patch.
fn obey_directives<'c>(
    before: Vec<Value>,
    change: &'c [Value],
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<&'c Value>), Fault> {
    let mut before = before;
    let mut rest = Vec::with_capacity(change.len());
    let mut is_replaced = false;
    for item in change {
        let directive = item.get(DIRECTIVE);
        if !has_directive(item) {
            rest.push(item);
            continue;
        }
        match directive.as_str() {
            Some("delete") => {
                if !item.has(merge_key) {
                    return Err(Fault::no_merge_key(item, merge_key));
                }
                before.retain(|b| !(b.has(merge_key) && b.get(merge_key) == item.get(merge_key)));
            }
            Some("replace") => is_replaced = true,
            Some("merge") => return Err(Fault::Plain("merging lists cannot yet be specified in the patch".to_owned())),
            _ => return Err(Fault::unknown_directive(directive, item)),
        }
    }
    if is_replaced { Ok((rest.into_iter().cloned().collect(), Vec::new())) } else { Ok((before, rest)) }
}

#[derive(Clone, Copy, PartialEq)]
enum ItemType {
    Object,
    Scalar,
}

/// The one type of all items in both lists.
fn item_type(before: &[Value], change: &[Value]) -> Result<ItemType, Fault> {
    let mut first: Option<&Value> = None;
    for item in before.iter().chain(change) {
        match (first, item) {
            (_, Value::Null) => return Err(mixed(before, change)),
            (None, Value::Array(_)) => return Err(Fault::Unprocessable),
            (None, item) => first = Some(item),
            (Some(first), item) if std::mem::discriminant(first) == std::mem::discriminant(item) => {}
            (Some(_), _) => return Err(mixed(before, change)),
        }
    }
    match first {
        None => Err(Fault::Plain("no elements in any of the given slices".to_owned())),
        Some(Value::Object(_)) => Ok(ItemType::Object),
        Some(_) => Ok(ItemType::Scalar),
    }
}

fn mixed(before: &[Value], change: &[Value]) -> Fault {
    let both = Value::Array(vec![Value::Array(before.to_vec()), Value::Array(change.to_vec())]);
    Fault::Plain(format!("list element types are not identical: {}", crate::go::v(&both)))
}

/// The order that upstream takes for the one before the patch: it deletes and appends in place, so that items added in
/// the same patch stand where the deleted ones left room.
fn order_left_behind(before: &[Value], change: &[Value], merge_key: &str) -> Vec<Value> {
    let mut room: Vec<Value> = before.iter().map(|item| key_only(item, merge_key)).collect();
    let mut n_items = room.len();
    for item in change.iter().filter(|item| item.get(DIRECTIVE).as_str() == Some("delete")) {
        while let Some(at) = room[..n_items].iter().position(|old| old.get(merge_key) == item.get(merge_key)) {
            let last = room[n_items - 1].clone();
            room[at..n_items].rotate_left(1);
            n_items -= 1;
            room[n_items] = last;
        }
    }
    if change.iter().any(|item| item.get(DIRECTIVE).as_str() == Some("replace")) {
        return room;
    }
    for item in change.iter().filter(|item| !has_directive(item)) {
        let is_new = room[..n_items].iter().all(|old| old.get(merge_key) != item.get(merge_key));
        if is_new && n_items < room.len() {
            room[n_items] = key_only(item, merge_key);
            n_items += 1;
        }
    }
    room
}

/// Looking for the places of `merged` in `wanted` must not meet anything but objects.
fn require_objects_up_to(merged: &[Value], wanted: &[Value], merge_key: &str) -> Result<(), Fault> {
    let Some(idx) = wanted.iter().position(|item| item.as_object().is_none()) else { return Ok(()) };
    let places = Places::of(wanted, By::Key(merge_key));
    if merged.iter().all(|item| places.place(item).is_some_and(|place| place < idx)) {
        return Ok(());
    }
    Err(Fault::Plain(format!("value for key {idx} is not a map")))
}

/// The items of the patch must be among those of `$setElementOrder` and in the same order.
fn check_order(change: &[Value], wanted: &[Value], merge_key: &str) -> Result<(), Fault> {
    if change.is_empty() || wanted.is_empty() {
        return Ok(());
    }
    let is_keyed = !merge_key.is_empty();
    if is_keyed {
        change.iter().try_for_each(require_object)?;
    }
    let contradiction = || {
        let (change, wanted) = (Value::Array(change.to_vec()), Value::Array(wanted.to_vec()));
        Fault::Plain(format!(
            "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
            crate::go::v(&change),
            crate::go::v(&wanted)
        ))
    };
    let mut wanted_items = wanted.iter();
    for item in change.iter().filter(|item| !(is_keyed && item.get(DIRECTIVE).as_str() == Some("delete"))) {
        if has_directive(item) {
            if wanted_items.len() == 0 {
                return Err(contradiction());
            }
            continue;
        }
        loop {
            let next = wanted_items.next().ok_or_else(contradiction)?;
            if is_keyed {
                require_object(next)?;
                require_merge_key([item, next], merge_key)?;
            }
            let is_same = if is_keyed { item.get(merge_key) == next.get(merge_key) } else { item == next };
            if is_same {
                break;
            }
        }
    }
    Ok(())
}
