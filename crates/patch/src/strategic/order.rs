//! The order of merged lists: what the patch wants first, then where items stood before.

use super::Fault;
use pintle_apimachinery::Value;
use std::collections::BTreeMap;

/// Lists up to this many items are searched; longer ones get an index.
const SEARCHED_ITEMS_MAX: usize = 24;

/// Items in an order that leaves some of them out are sorted as Go's stable sort would (by insertion) up to this many;
/// beyond, those come first.
const INSERTED_ITEMS_MAX: usize = 1_000;

/// What tells items of a list apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum By<'a> {
    /// A member of the objects.
    Key(&'a str),
    /// The scalars themselves.
    Value,
}

impl By<'_> {
    pub(super) fn of<'v>(&self, item: &'v Value) -> &'v Value {
        match self {
            By::Key(key) => item.get(key),
            By::Value => item,
        }
    }
}

/// Where items stand in a list, by what tells them apart.
pub(super) struct Places<'a> {
    list: &'a [Value],
    by: By<'a>,
    index: Option<BTreeMap<(u8, String), usize>>,
}

impl<'a> Places<'a> {
    pub(super) fn of(list: &'a [Value], by: By<'a>) -> Places<'a> {
        let index = (list.len() > SEARCHED_ITEMS_MAX).then(|| {
            let mut index = BTreeMap::new();
            for (idx, item) in list.iter().enumerate() {
                index.entry(index_key(by.of(item))).or_insert(idx);
            }
            index
        });
        Places { list, by, index }
    }

    /// The first place of an item with the same key.
    pub(super) fn place(&self, item: &Value) -> Option<usize> {
        self.place_of_key(self.by.of(item))
    }

    pub(super) fn place_of_key(&self, key: &Value) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(&index_key(key)).copied(),
            None => self.list.iter().position(|item| self.by.of(item) == key),
        }
    }
}

/// Equal for equal values only: numbers of different types print alike but differ.
fn index_key(value: &Value) -> (u8, String) {
    let type_rank = match value {
        Value::Float(_) => 1,
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => 0,
    };
    (type_rank, value.to_json_string())
}

/// The items that `wanted` names and the others, each sorted, merged into one list: patched items follow `wanted`,
/// others `before`, and both keep to `before` among each other where it knows them.
pub(super) fn interleave(
    patched: Vec<Value>,
    others: Vec<Value>,
    wanted: &[Value],
    before: &[Value],
    by: By<'_>,
) -> Result<Vec<Value>, Fault> {
    let patched = sorted(patched, wanted, by)?;
    let others = sorted(others, before, by)?;
    let places = Places::of(before, by);
    let mut merged = Vec::with_capacity(patched.len() + others.len());
    let mut right = patched.into_iter().peekable();
    for left in others {
        while let Some(next) = right.peek() {
            let is_before = matches!((places.place(&left), places.place(next)), (Some(l), Some(r)) if l < r);
            if is_before {
                break;
            }
            merged.extend(right.next());
        }
        merged.push(left);
    }
    merged.extend(right);
    Ok(merged)
}

/// Sorts items by their places in `order`; objects to be deleted go last.
fn sorted(items: Vec<Value>, order: &[Value], by: By<'_>) -> Result<Vec<Value>, Fault> {
    let mut deleted = Vec::new();
    let mut items = items;
    if let By::Key(key) = by {
        require_merge_key(&items, key)?;
        require_merge_key(order, key)?;
        (deleted, items) = items.into_iter().partition(|item| item.get("$patch").as_str() == Some("delete"));
    }
    let places = Places::of(order, by);
    let mut ranked: Vec<(Option<usize>, Value)> = items.into_iter().map(|item| (places.place(&item), item)).collect();
    if ranked.iter().all(|(place, _)| place.is_some()) || ranked.len() > INSERTED_ITEMS_MAX {
        ranked.sort_by_key(|(place, _)| *place);
    } else {
        // an item without a place counts as less than any other: what a sort by insertion makes of that is the order
        for idx in 1..ranked.len() {
            let mut at = idx;
            while at > 0 && is_less(ranked[at].0, ranked[at - 1].0) {
                ranked.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    Ok(ranked.into_iter().map(|(_, item)| item).chain(deleted).collect())
}

fn is_less(left: Option<usize>, right: Option<usize>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => left < right,
        _ => true,
    }
}

/// Every item must be an object that has the merge key.
pub(super) fn require_merge_key<'a>(items: impl IntoIterator<Item = &'a Value>, key: &str) -> Result<(), Fault> {
    for item in items {
        require_object(item)?;
        if !item.has(key) {
            return Err(Fault::no_merge_key(item, key));
        }
    }
    Ok(())
}

pub(super) fn require_object(item: &Value) -> Result<(), Fault> {
    if item.as_object().is_some() { Ok(()) } else { Err(Fault::wrong_type("map[string]interface {}", item)) }
}
