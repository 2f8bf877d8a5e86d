//! What most strategies do to an object before it is validated: put back what the request may not change, and count
//! generations.

use crate::strategy::{MetadataRounds, RequestInfo, UpdateStrategy};
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::{ErrorList, Value};
use pintle_schema::{builtin, type_named, zero_value};

/// The members of `metadata` that a status update leaves alone for kinds that reset it.
const STATUS_KEEPS: [&str; 6] =
    ["annotations", "deletionTimestamp", "finalizers", "generation", "labels", "ownerReferences"];

/// A new object of a kind that counts generations.
pub fn start_generation(object: &mut Value) {
    set_meta(object, "generation", 1);
}

/// Empties the status. `type_name` is its type, as `core/v1.ServiceStatus`: what is always written stays.
pub fn clear_status(object: &mut Value, type_name: &str) {
    let empty = type_named(type_name).map_or_else(Value::object, |id| zero_value(builtin().root(id)));
    object.set("status", empty);
}

/// Puts a member back to what it was.
pub fn keep(object: &mut Value, old: &Value, member: &str) {
    match old.get(member) {
        Value::Null => {
            object.remove(member);
        }
        kept => {
            if object.get(member) != kept {
                object.set(member, kept.clone());
            }
        }
    }
}

/// Raises the generation if one of `members` (the spec, for most kinds) changed.
pub fn raise_generation(object: &mut Value, old: &Value, members: &[&str]) {
    if members.iter().any(|member| object.get(member) != old.get(member)) {
        set_meta(object, "generation", old.generation() + 1);
    }
}

/// Puts back the metadata that a status update may not change, for kinds that reset it.
pub fn keep_metadata(object: &mut Value, old: &Value) {
    for field in STATUS_KEEPS {
        let kept = &old.metadata()[field];
        if &object.metadata()[field] != kept {
            set_meta(object, field, kept.clone());
        }
    }
}

/// Puts back all metadata but the managers of fields.
pub fn keep_all_metadata(object: &mut Value, old: &Value) {
    let managed_fields = object["metadata"]["managedFields"].take();
    keep(object, old, "metadata");
    set_meta(object, "managedFields", managed_fields);
}

/// What becomes of the metadata in a status update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    /// It may change.
    Changes,
    /// Labels, annotations, finalizers and owners stay as they were.
    Stays,
    /// All but the managers of fields stays as it was.
    StaysWhole,
}

/// The `status` subresource of kinds where it is just that: the status changes, the spec does not.
#[derive(Debug)]
pub struct StatusSubresource {
    /// What becomes of the metadata.
    pub metadata: StatusMetadata,
    /// How often the metadata is checked again.
    pub rounds: MetadataRounds,
    /// The kind's validation of the change.
    pub validate: fn(RequestInfo<'_>, &Value, &Value) -> ErrorList,
}

impl UpdateStrategy for StatusSubresource {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        match self.metadata {
            StatusMetadata::Changes => {}
            StatusMetadata::Stays => keep_metadata(object, old),
            StatusMetadata::StaysWhole => keep_all_metadata(object, old),
        }
    }

    fn validate_update(&self, request: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        (self.validate)(request, object, old)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        self.rounds
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        match self.metadata {
            StatusMetadata::Changes => &["spec"],
            StatusMetadata::Stays | StatusMetadata::StaysWhole => &["metadata", "spec"],
        }
    }
}

/// For status subresources without rules of their own.
pub fn anything_goes(_: RequestInfo<'_>, _: &Value, _: &Value) -> ErrorList {
    ErrorList::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn what_is_kept() {
        let old = json!({"metadata": {"generation": 3, "labels": {"a": "b"}}, "spec": {"x": 1}, "status": {"y": 1}});
        let mut new =
            json!({"metadata": {"generation": 3, "managedFields": [{}]}, "spec": {"x": 2}, "status": {"y": 2}});
        keep(&mut new, &old, "status");
        raise_generation(&mut new, &old, &["spec"]);
        assert_eq!(
            new.to_json_string(),
            r#"{"metadata":{"generation":4,"managedFields":[{}]},"spec":{"x":2},"status":{"y":1}}"#
        );
        keep_metadata(&mut new, &old);
        assert_eq!(new["metadata"], json!({"generation": 3, "labels": {"a": "b"}, "managedFields": [{}]}));
        new.set("metadata", json!({"name": "x", "managedFields": [{}]}));
        keep_all_metadata(&mut new, &old);
        assert_eq!(new["metadata"], json!({"generation": 3, "labels": {"a": "b"}, "managedFields": [{}]}));
        keep(&mut new, &json!({}), "status");
        assert!(!new.has("status"));
    }
}
