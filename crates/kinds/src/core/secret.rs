//! Secrets.

use super::label_not_supported;
use crate::{FieldTable, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;
use std::borrow::Cow;

/// The strategy of Secrets.
#[derive(Debug)]
pub struct Secret;

impl UpdateStrategy for Secret {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        object.set_default("type", old["type"].clone());
    }
}

impl Strategy for Secret {
    fn set_defaults(&self, object: &mut Value) {
        object.set_default("type", "Opaque");
    }

    fn selectable_fields(&self) -> FieldTable {
        &[("type", |object| Cow::Borrowed(object["type"].str_or_empty()))]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        label_not_supported(field)
    }
}
