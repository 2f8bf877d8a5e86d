//! The types of a schema's values as expressions know them, and how large the values can be.
//!
//! Follows: apiserver/pkg/cel/common/schemas.go (v0.35).

use crate::structural::{ListType, Structural, Type};
use pintle_cel::decl::{Decl, Keyed, Members, REQUEST_SIZE_MAX, Shape};
use std::sync::Arc;

/// The type of a schema's values; none if expressions cannot see them. `is_root` says that they are whole objects, whose
/// names can be seen without being declared.
#[must_use]
pub fn decl(schema: &Structural, is_root: bool) -> Option<Decl> {
    let checks = schema.checks();
    let given = |max: Option<i64>| max.map(|max| u64::try_from(max).unwrap_or(0));
    let mut decl = if schema.is_int_or_string {
        let elements_max = given(checks.max_length).map_or(REQUEST_SIZE_MAX - 2, |max| max.saturating_mul(4));
        Decl { elements_max, ..Decl::new(Shape::IntOrString) }
    } else {
        match schema.ty {
            Type::Array => {
                let items = schema.items.as_deref()?;
                let of = self::decl(items, items.is_embedded)?;
                let fitting = (REQUEST_SIZE_MAX - 2) / (of.size_min + 1);
                let elements_max = given(checks.max_items).unwrap_or(fitting);
                Decl { elements_max, ..Decl::new(Shape::List(Arc::new(of), keyed(schema))) }
            }
            Type::Object => match schema.additional.schema() {
                Some(values) => {
                    let of = self::decl(values, values.is_embedded)?;
                    let fitting = (REQUEST_SIZE_MAX - 2) / (of.size_min + 6);
                    let elements_max = given(checks.max_properties).unwrap_or(fitting);
                    Decl { elements_max, ..Decl::new(Shape::Map(Arc::new(of))) }
                }
                None => object(schema, is_root),
            },
            Type::String => text(schema),
            Type::Boolean => Decl::new(Shape::Bool),
            Type::Number => Decl::new(Shape::Double),
            Type::Integer => Decl::new(Shape::Int),
            Type::Unset | Type::Other(_) => return None,
        }
    };
    decl.is_nullable = schema.is_nullable;
    Some(decl)
}

fn keyed(schema: &Structural) -> Keyed {
    match schema.list_type {
        ListType::Set => Keyed::Set,
        ListType::Map => Keyed::Map(schema.list_map_keys.iter().map(|key| key.as_str().into()).collect()),
        ListType::Unset | ListType::Atomic => Keyed::Atomic,
    }
}

fn object(schema: &Structural, is_root: bool) -> Decl {
    let mut members = Members::default();
    let mut size_min = 2;
    for (name, property) in &schema.properties {
        let Some(of) = decl(property, property.is_embedded) else {
            members.insert(name, Decl { is_nullable: true, ..Decl::new(Shape::Preserved) });
            continue;
        };
        if schema.checks().required.contains(name) && property.default.is_none() {
            size_min += name.len() as u64 + of.size_min + 4;
        }
        members.insert(name, of);
    }
    if is_root && !has_names(schema) {
        let name = || Decl { elements_max: REQUEST_SIZE_MAX - 2, ..Decl::new(Shape::String) };
        let mut metadata = Members::default();
        metadata.insert("name", name());
        metadata.insert("generateName", name());
        members.insert("kind", name());
        members.insert("apiVersion", name());
        members.insert("metadata", Decl::new(Shape::Object(metadata)));
    }
    Decl { size_min, ..Decl::new(Shape::Object(members)) }
}

/// Whether a schema declares the names that every object has.
fn has_names(schema: &Structural) -> bool {
    let is_text = |schema: Option<&Structural>| schema.is_some_and(|schema| schema.ty == Type::String);
    let metadata = schema.property("metadata");
    is_text(schema.property("kind"))
        && is_text(schema.property("apiVersion"))
        && metadata.is_some_and(|metadata| {
            metadata.ty == Type::Object
                && is_text(metadata.property("name"))
                && is_text(metadata.property("generateName"))
        })
}

/// The longest texts of the formats whose length is known, in JSON (bytes).
const DURATION_SIZE_MAX: u64 = 32;
const DATE_SIZE: u64 = 12;
const DATE_TIME_SIZE_MAX: u64 = 32;

fn text(schema: &Structural) -> Decl {
    let checks = schema.checks();
    let given = checks.max_length.map(|max| u64::try_from(max).unwrap_or(0));
    let (shape, elements_max) = match checks.format.as_str() {
        "byte" => (Shape::Bytes, given.unwrap_or(REQUEST_SIZE_MAX - 2)),
        "duration" => (Shape::Duration, DURATION_SIZE_MAX),
        "date" => (Shape::Date, DATE_SIZE),
        "date-time" => (Shape::DateTime, DATE_TIME_SIZE_MAX),
        _ => {
            let longest = || checks.enumeration.iter().filter_map(|v| v.as_str()).map(str::len).max().unwrap_or(0);
            let elements_max = match given {
                Some(max) => max.saturating_mul(4),
                None if checks.enumeration.is_empty() => REQUEST_SIZE_MAX - 2,
                None => longest() as u64,
            };
            (Shape::String, elements_max)
        }
    };
    Decl { elements_max, ..Decl::new(shape) }
}
