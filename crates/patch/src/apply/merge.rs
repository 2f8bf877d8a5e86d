//! Merging an applied configuration into the live object: what the configuration says counts, everything else stays.
//!
//! Lists whose items are owned one by one keep the order of the live object where the configuration agrees with it,
//! and take the configuration's where it does not.

use super::list::is_unique;
use super::place::{Form, List, Map, Place, forms_of};
use pintle_apimachinery::{Object, Str, Value};
use std::collections::BTreeMap;

/// The result of merging at one place.
#[derive(Debug, PartialEq)]
enum Merged {
    /// Nothing stands there.
    Nothing,
    /// The live value.
    Same,
    /// This.
    Made(Value),
}

impl Merged {
    fn made(value: &Value) -> Merged {
        Merged::Made(value.clone())
    }
}

/// The live object with the configuration merged into it; `None` when that is the live object itself.
///
/// # Errors
/// Why one of them does not conform to the schema.
pub(super) fn merge(place: Place<'_>, live: &Value, config: &Value) -> Result<Option<Value>, String> {
    Ok(match walk(place, Some(live), Some(config))? {
        Merged::Nothing => Some(Value::Null),
        Merged::Same => None,
        Merged::Made(value) => Some(value),
    })
}

fn walk(place: Place<'_>, live: Option<&Value>, config: Option<&Value>) -> Result<Merged, String> {
    let Some(config_value) = config else { return Ok(Merged::Same) };
    let Some(live_value) = live else { return Ok(Merged::made(config_value)) };
    if let (Value::String(live), Value::String(config)) = (live_value, config_value)
        && live == config
    {
        return Ok(Merged::Same);
    }
    // where the type changes only the configuration's form counts
    let (_, form) = forms_of(place, live, config);
    match form {
        Form::Scalar(_) => Ok(leaf(live_value, config_value)),
        Form::Map(map) => {
            let (live, config) = (live_value.as_object(), config_value.as_object());
            let is_empty = live.is_none_or(Object::is_empty) && config.is_none_or(Object::is_empty);
            if map.is_atomic || is_empty {
                return Ok(leaf(live_value, config_value));
            }
            members(map, live, config)
        }
        Form::List(list) => {
            let (live, config) = (live_value.items(), config_value.items());
            if list.is_atomic() || (live.is_empty() && config.is_empty()) {
                return Ok(leaf(live_value, config_value));
            }
            items(list, live, config)
        }
    }
}

/// A value that is owned as one.
fn leaf(live: &Value, config: &Value) -> Merged {
    if live == config { Merged::Same } else { Merged::made(config) }
}

fn members(map: Map<'_>, live: Option<&Object>, config: Option<&Object>) -> Result<Merged, String> {
    static NONE: Object = Object::new();
    let Some(config) = config else {
        return Ok(Merged::Same);
    };
    let before = live.unwrap_or(&NONE);
    let mut changes: Vec<(&Str, Option<Value>)> = Vec::new();
    let mut known = map.members();
    for (name, value) in config.iter() {
        let old = before.get(name);
        if old == Some(value) {
            continue;
        }
        let member = known.next(name).ok_or_else(|| format!(".{name}: field not declared in schema"))?;
        match walk(member.place, old, Some(value)).map_err(|why| format!(".{name}{why}"))? {
            Merged::Same => {}
            Merged::Made(value) => changes.push((name, Some(value))),
            Merged::Nothing => changes.push((name, None)),
        }
    }
    if changes.is_empty() && live.is_some() {
        return Ok(Merged::Same);
    }
    let merged = changed(before, changes);
    Ok(if merged.is_empty() { Merged::Nothing } else { Merged::Made(Value::Object(merged)) })
}

/// The object with changed members, which stand in order; what does not change is copied once.
fn changed(before: &Object, changes: Vec<(&Str, Option<Value>)>) -> Object {
    let mut members = Vec::with_capacity(before.len() + changes.len());
    let mut changes = changes.into_iter().peekable();
    for (name, value) in before.iter() {
        while let Some((new, value)) = changes.next_if(|(changed, _)| *changed < name) {
            members.extend(value.map(|value| (new.clone(), value)));
        }
        match changes.next_if(|(changed, _)| *changed == name) {
            Some((_, value)) => members.extend(value.map(|value| (name.clone(), value))),
            None => members.push((name.clone(), value.clone())),
        }
    }
    members.extend(changes.filter_map(|(new, value)| Some((new.clone(), value?))));
    Object::from_unsorted(members)
}

/// Items of a list by their elements: where the first of each stands, and whether it stands there twice.
struct Index<'a> {
    elements: &'a [Str],
    by_element: BTreeMap<&'a Str, (usize, bool)>,
}

impl<'a> Index<'a> {
    fn of(elements: &'a [Str]) -> Index<'a> {
        let mut by_element: BTreeMap<&Str, (usize, bool)> = BTreeMap::new();
        for (idx, element) in elements.iter().enumerate() {
            by_element.entry(element).and_modify(|(_, is_twice)| *is_twice = true).or_insert((idx, false));
        }
        Index { elements, by_element }
    }

    fn has(&self, element: &Str) -> bool {
        self.by_element.contains_key(element)
    }

    fn place(&self, element: &Str) -> Option<usize> {
        self.by_element.get(element).map(|(idx, _)| *idx)
    }

    /// The item of an element; `null` for one that stands there twice.
    fn item<'v>(&self, items: &'v [Value], element: &Str) -> Option<&'v Value> {
        static NULL: Value = Value::Null;
        let (idx, is_twice) = self.by_element.get(element)?;
        Some(if *is_twice { &NULL } else { &items[*idx] })
    }
}

fn items(list: List<'_>, live: &[Value], config: &[Value]) -> Result<Merged, String> {
    let live_elements = list.elements(live).map_err(|why| format!(": {why}"))?;
    let config_elements = list.elements(config).map_err(|why| format!(": {why}"))?;
    if let Some(merged) = in_place(list, live, config, &live_elements, &config_elements) {
        return Ok(merged);
    }
    let (left, right) = (Index::of(&live_elements), Index::of(&config_elements));
    if right.by_element.len() < config_elements.len() {
        return Err(": duplicate entries".to_owned());
    }
    let merged: Vec<Value> = ordered(&left, &right)
        .into_iter()
        .filter_map(|pick| match pick {
            Pick::Live(idx) => Some(live[idx].clone()),
            Pick::Config(idx) => {
                let element = &config_elements[idx];
                let before = left.item(live, element);
                // upstream passes over faults within items
                match walk(list.item, before, Some(&config[idx])).unwrap_or(Merged::Nothing) {
                    Merged::Nothing => None,
                    Merged::Same => before.cloned(),
                    Merged::Made(value) => Some(value),
                }
            }
        })
        .collect();
    Ok(if merged.is_empty() { Merged::Nothing } else { Merged::Made(Value::Array(merged)) })
}

/// The usual case: the configuration's items all stand in the live list, once each, in the same order.
fn in_place(
    list: List<'_>,
    live: &[Value],
    config: &[Value],
    live_elements: &[Str],
    config_elements: &[Str],
) -> Option<Merged> {
    if !is_unique(live_elements) || !is_unique(config_elements) {
        return None;
    }
    let mut changes: Vec<(usize, Value)> = Vec::new();
    let mut place = 0;
    for (element, item) in config_elements.iter().zip(config) {
        place += live_elements[place..].iter().position(|other| other == element)?;
        match walk(list.item, Some(&live[place]), Some(item)).unwrap_or(Merged::Nothing) {
            Merged::Same => {}
            Merged::Made(value) => changes.push((place, value)),
            Merged::Nothing => return None,
        }
        place += 1;
    }
    if changes.is_empty() {
        return Some(Merged::Same);
    }
    let mut changes = changes.into_iter().peekable();
    let item = |(idx, item): (usize, &Value)| match changes.next_if(|(changed, _)| *changed == idx) {
        Some((_, value)) => value,
        None => item.clone(),
    };
    Some(Merged::Made(live.iter().enumerate().map(item).collect()))
}

/// Where the next item of a merged list comes from.
#[derive(Clone, Copy)]
enum Pick {
    /// An item that the configuration does not have.
    Live(usize),
    /// An item of the configuration, merged with the live one where there is one.
    Config(usize),
}

/// The order of the merged list. Items that both lists have follow the configuration; those that only the live list
/// has stay before the shared item that they stood before.
fn ordered(left: &Index<'_>, right: &Index<'_>) -> Vec<Pick> {
    let mut picks = Vec::with_capacity(left.elements.len().max(right.elements.len()));
    let mut shared = right.elements.iter().filter(|element| left.has(element));
    let mut next_shared = shared.next();
    let (mut l, mut r) = (0, 0);
    while l < left.elements.len() || r < right.elements.len() {
        if let (Some(live), Some(config)) = (left.elements.get(l), right.elements.get(r)) {
            if live == config {
                picks.push(Pick::Config(r));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.next();
                continue;
            }
            if right.has(live) && next_shared.is_some_and(|next| next != live) {
                // shared, but the configuration wants another one first
                l += 1;
                continue;
            }
        }
        if let Some(live) = left.elements.get(l) {
            match right.place(live) {
                None => {
                    picks.push(Pick::Live(l));
                    l += 1;
                    continue;
                }
                // merged already
                Some(place) if place < r => l += 1,
                Some(_) => {}
            }
        }
        if let Some(config) = right.elements.get(r) {
            picks.push(Pick::Config(r));
            r += 1;
            if next_shared == Some(config) {
                next_shared = shared.next();
            }
        }
    }
    picks
}
