//! Field sets that were written when the schema was another one: what has become one value is owned as one.

use super::place::{Map, Place};
use super::set::FieldSet;
use pintle_apimachinery::{Object, Value};

/// Makes leaves of the nodes in `set` that stand at atomic lists and objects now. Going from atomic to granular needs
/// nothing.
pub(super) fn reconcile(place: Place<'_>, set: &mut FieldSet) {
    if let Some(map) = place.atom().map.filter(|map| !map.is_deduced()) {
        members(map, set.root_mut());
    }
}

fn node(place: Place<'_>, child: &mut Value) {
    let Value::Object(children) = child else { return };
    if children.is_empty() {
        return;
    }
    let atom = place.atom();
    match (atom.map, atom.scalar, atom.list) {
        (Some(map), _, _) if map.is_deduced() => {}
        (Some(map), _, _) if map.is_atomic => children.clear(),
        (Some(map), _, _) => members(map, children),
        (None, None, Some(list)) if list.is_atomic() => children.clear(),
        (None, None, Some(list)) => children.iter_mut().for_each(|(_, child)| node(list.item, child)),
        (None, _, _) => {}
    }
}

fn members(map: Map<'_>, children: &mut Object) {
    for (element, child) in children.iter_mut() {
        // an element of another type would be an item's, whose place is that of undeclared members
        let name = element.strip_prefix("f:").unwrap_or_default();
        if let Some(member) = map.member(name) {
            node(member.place, child);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;
    use pintle_schema::{builtin, kind};

    #[test]
    fn what_has_become_atomic() {
        let place = Place::root(builtin().root(kind("", "v1", "Pod").unwrap().id));
        let mut set = FieldSet::parse(&json!({
            "f:spec": {
                "f:nodeSelector": {".": {}, "f:a": {}},
                "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:command": {"v:\"x\"": {}}}},
                "f:unknown": {"f:x": {}}
            }
        }))
        .unwrap();
        reconcile(place, &mut set);
        assert_eq!(
            set.into_value().to_json_string(),
            r#"{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:command":{}}},"f:nodeSelector":{},"f:unknown":{"f:x":{}}}}"#
        );
    }
}
