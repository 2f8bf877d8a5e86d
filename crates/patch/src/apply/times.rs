//! The times of entries, where nothing but them would change.

use pintle_apimachinery::Value;
use pintle_apimachinery::meta::Meta;

/// Gives the entries of managedFields their old times back if nothing but times differs from the live object, so that
/// a write that changes nothing is none.
pub fn keep_times(live: &Value, object: &mut Value) {
    let (old, new) = (live.metadata()["managedFields"].items(), object.metadata()["managedFields"].items());
    if old.is_empty() || old.len() != new.len() {
        return;
    }
    let has_new_times = old.iter().zip(new).any(|(old, new)| old["time"] != new["time"]);
    if !has_new_times || !is_same_but_for_times(live, object) {
        return;
    }
    let old = live.metadata()["managedFields"].clone();
    object.make("metadata").set("managedFields", old);
}

fn is_same_but_for_times(live: &Value, object: &Value) -> bool {
    let is_same_entry = |(old, new): (&Value, &Value)| is_same_but(old, new, "time", |_, _| true);
    let is_same_list = |old: &Value, new: &Value| old.items().iter().zip(new.items()).all(is_same_entry);
    is_same_but(live, object, "metadata", |old, new| is_same_but(old, new, "managedFields", is_same_list))
}

/// Whether two objects are equal but for one member, on which `is_same` decides. The member counts as equal where
/// either object lacks it.
fn is_same_but(old: &Value, new: &Value, name: &str, is_same: impl Fn(&Value, &Value) -> bool) -> bool {
    let others = |value: &'_ Value| value.entries().filter(|(key, _)| *key != name).count();
    others(old) == others(new)
        && old
            .entries()
            .filter(|(key, _)| *key != name)
            .all(|(key, value)| new.as_object().and_then(|o| o.get(key)) == Some(value))
        && is_same(old.get(name), new.get(name))
}
