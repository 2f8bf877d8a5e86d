//! The types and kinds of Kubernetes v1.35, as statics made by the build script.

use crate::resources::{Column, Resource};
use crate::types::{Field, Keys, ListKind, MessageField, Range, Schema, Shape, ShapeId, Slot, Type, TypeId};
use pintle_apimachinery::Str;
use std::borrow::Cow;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

static BUILTIN: Schema = Schema {
    types: Cow::Borrowed(&TYPES),
    fields: Cow::Borrowed(&FIELDS),
    shapes: Cow::Borrowed(&SHAPES),
    message_fields: Cow::Borrowed(&MESSAGE_FIELDS),
    lookup: Cow::Borrowed(&LOOKUP),
};

/// A kind and its type.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Its type.
    pub id: TypeId,
}

/// The schema of everything built in.
pub fn builtin() -> &'static Schema {
    &BUILTIN
}

/// All kinds that have a type, lists and options included; sorted by group, version, kind.
pub fn kinds() -> &'static [Kind] {
    &KINDS
}

/// The kind of this name.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    let found = KINDS.binary_search_by(|k| (k.group, k.version, k.kind).cmp(&(group, version, kind)));
    found.ok().map(|idx| &KINDS[idx])
}

/// The type of this Go name, as `core/v1.PodSpec`.
pub fn type_named(name: &str) -> Option<TypeId> {
    let found = TYPES.binary_search_by(|t| t.name.cmp(name));
    found.ok().and_then(|idx| u32::try_from(idx).ok()).map(TypeId)
}

pub(crate) fn all_resources() -> &'static [Resource] {
    &RESOURCES
}

pub(crate) fn all_columns() -> &'static [Column] {
    &COLUMNS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts of the reference tables: a row that got lost shows here.
    #[test]
    fn the_tables_are_whole() {
        BUILTIN.check();
        assert_eq!((TYPES.len(), KINDS.len(), RESOURCES.len(), COLUMNS.len()), (594, 153, 111, 305));
        let pod = BUILTIN.ty(kind("", "v1", "Pod").unwrap().id);
        assert_eq!(pod.definition, "io.k8s.api.core.v1.Pod");
        let spec = BUILTIN.root(kind("", "v1", "Pod").unwrap().id).child("spec").unwrap();
        let ports = spec.child("containers").unwrap().item().unwrap().child("ports").unwrap();
        assert_eq!(
            *ports.shape(),
            Shape::List {
                item: ports.item().unwrap().shape,
                kind: ListKind::Map(Keys::Static(&["containerPort", "protocol"]))
            }
        );
        // a Volume has the fields of its embedded VolumeSource
        let volume = spec.child("volumes").unwrap().item().unwrap();
        assert!(volume.field("emptyDir").is_some());
    }

    #[test]
    fn fields_are_found_by_name() {
        for ty in &TYPES {
            for field in BUILTIN.fields(ty) {
                let found = BUILTIN.field(ty, &field.name).map(|f| &f.name);
                assert_eq!(found, Some(&field.name), "{}", ty.name);
                assert!(BUILTIN.field(ty, &format!("{}x", field.name)).is_none());
            }
            assert!(BUILTIN.field(ty, "").is_none() && BUILTIN.field(ty, "nobody has a field of this name").is_none());
        }
    }

    #[test]
    fn every_served_kind_has_a_type() {
        for resource in &RESOURCES {
            let found = kind(resource.kind_group, resource.kind_version, resource.kind);
            assert!(found.is_some(), "{}/{} {}", resource.group, resource.plural, resource.kind);
        }
    }
}
