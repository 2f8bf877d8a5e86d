//! Refusals.

use crate::attributes::Attributes;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Status, Value};
use std::fmt;

/// The name that a refusal gives: that of the path, else that of the object, else what its name will begin with.
pub fn object_name<'a>(attributes: &Attributes<'a>, object: Option<&'a Value>) -> &'a str {
    let own = object.map_or("", Meta::name);
    let generated = object.map_or("", |object| object.metadata()["generateName"].str_or_empty());
    [attributes.name, own, generated].into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown")
}

/// 403 about the object of the operation.
pub fn forbidden(attributes: &Attributes<'_>, object: Option<&Value>, why: impl fmt::Display) -> Box<Status> {
    let name = object_name(attributes, object);
    Box::new(Status::forbidden(&attributes.resource.group_resource(), name, why))
}
