//! Events, which two groups serve: stored and worked on in the core group's form.

use super::label_not_supported;
use crate::{FieldTable, MetadataRounds, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;
use pintle_apimachinery::names::{self, Faults};
use std::borrow::Cow;

/// The strategy of Events of the core group.
#[derive(Debug)]
pub struct CoreEvent;

/// The strategy of Events of `events.k8s.io`.
#[derive(Debug)]
pub struct GroupEvent;

impl UpdateStrategy for CoreEvent {
    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NONE
    }
}

impl Strategy for CoreEvent {
    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        names::path_segment(name, is_prefix)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> FieldTable {
        const TABLE: FieldTable = &[
            ("involvedObject.kind", |e| text(e, "involvedObject.kind")),
            ("involvedObject.namespace", |e| text(e, "involvedObject.namespace")),
            ("involvedObject.name", |e| text(e, "involvedObject.name")),
            ("involvedObject.uid", |e| text(e, "involvedObject.uid")),
            ("involvedObject.apiVersion", |e| text(e, "involvedObject.apiVersion")),
            ("involvedObject.resourceVersion", |e| text(e, "involvedObject.resourceVersion")),
            ("involvedObject.fieldPath", |e| text(e, "involvedObject.fieldPath")),
            ("reason", |e| text(e, "reason")),
            ("reportingComponent", |e| text(e, "reportingComponent")),
            ("source", source),
            ("type", |e| text(e, "type")),
        ];
        TABLE
    }

    fn unknown_field_message(&self, field: &str) -> String {
        label_not_supported(field)
    }

    fn is_garbage_collected(&self) -> bool {
        false
    }
}

impl UpdateStrategy for GroupEvent {
    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }
}

impl Strategy for GroupEvent {
    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> FieldTable {
        const TABLE: FieldTable = &[
            ("regarding.kind", |e| text(e, "involvedObject.kind")),
            ("regarding.namespace", |e| text(e, "involvedObject.namespace")),
            ("regarding.name", |e| text(e, "involvedObject.name")),
            ("regarding.uid", |e| text(e, "involvedObject.uid")),
            ("regarding.apiVersion", |e| text(e, "involvedObject.apiVersion")),
            ("regarding.resourceVersion", |e| text(e, "involvedObject.resourceVersion")),
            ("regarding.fieldPath", |e| text(e, "involvedObject.fieldPath")),
            ("reason", |e| text(e, "reason")),
            ("reportingController", |e| text(e, "reportingComponent")),
            ("type", |e| text(e, "type")),
        ];
        TABLE
    }

    fn unknown_field_message(&self, field: &str) -> String {
        label_not_supported(field)
    }

    fn is_garbage_collected(&self) -> bool {
        false
    }
}

fn text<'v>(event: &'v Value, path: &str) -> Cow<'v, str> {
    Cow::Borrowed(event.at(path).str_or_empty())
}

/// Who reports it, by the old field or, where that is empty, the new one.
fn source(event: &Value) -> Cow<'_, str> {
    match event.at("source.component").str_or_empty() {
        "" => text(event, "reportingComponent"),
        component => Cow::Borrowed(component),
    }
}
