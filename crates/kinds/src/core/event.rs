//! Events, which two groups serve: stored and worked on in the core group's form.

use super::label_not_supported;
use crate::common::{At, equality, goform};
use crate::meta::IMMUTABLE;
use crate::{FieldTable, MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};
use std::borrow::Cow;

/// The reporter's instance, the action and the reason may each have this many bytes.
const WORD_BYTES_MAX: usize = 128;

/// The message may have this many bytes.
const MESSAGE_BYTES_MAX: usize = 1024;

/// The strategy of Events of the core group.
#[derive(Debug)]
pub struct CoreEvent;

/// The strategy of Events of `events.k8s.io`.
#[derive(Debug)]
pub struct GroupEvent;

/// Members that the two forms call differently: by the core group and by `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// From the core group's form to that of `events.k8s.io`.
pub(crate) fn to_group(mut event: Value) -> Value {
    for (core, group) in NAMES {
        rename(&mut event, core, group);
    }
    for field in ["reportingController", "reportingInstance"] {
        if event[field].str_or_empty().is_empty() {
            event.remove(field);
        }
    }
    if !event["series"].is_null() {
        event["series"].set_default("count", 0);
    }
    event.set("apiVersion", "events.k8s.io/v1");
    event
}

/// From the form of `events.k8s.io` to that of the core group.
pub(crate) fn to_core(mut event: Value) -> Value {
    for (core, group) in NAMES {
        rename(&mut event, group, core);
    }
    for field in ["reportingComponent", "reportingInstance"] {
        event.set_default(field, "");
    }
    if event.at("series.count").as_i64() == Some(0) {
        event["series"].remove("count");
    }
    event.set("apiVersion", "v1");
    event
}

fn rename(event: &mut Value, from: &str, to: &str) {
    if event.has(from) {
        let member = event.remove(from);
        event.set(to, member);
    }
}

impl UpdateStrategy for CoreEvent {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        validate_leniently(object, "reportingComponent")
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NONE
    }
}

impl Strategy for CoreEvent {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate_leniently(object, "reportingComponent")
    }

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
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate_leniently(object, "reportingController");
        if object["series"] != old["series"] {
            validate_series(object, &mut errors);
        }
        for (field, called, kind) in FIXED {
            let (new, old) = (object.get(field), old.get(field));
            if !equality::semantic(new, old, kind.trim_start_matches('*')) {
                let shown = goform::compact(new, kind);
                errors
                    .push(FieldError { shown: Some(shown), ..FieldError::invalid(&Path::new(called), "", IMMUTABLE) });
            }
        }
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }
}

impl Strategy for GroupEvent {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = validate_leniently(object, "reportingController");
        validate_series(object, &mut errors);
        validate_new_form(object, &mut errors);
        errors
    }

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

    fn renamed_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("regarding.kind", "involvedObject.kind"),
            ("regarding.namespace", "involvedObject.namespace"),
            ("regarding.name", "involvedObject.name"),
            ("regarding.uid", "involvedObject.uid"),
            ("regarding.apiVersion", "involvedObject.apiVersion"),
            ("regarding.resourceVersion", "involvedObject.resourceVersion"),
            ("regarding.fieldPath", "involvedObject.fieldPath"),
            ("reportingController", "reportingComponent"),
        ]
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

/// What an update through the newer group cannot change, in upstream's order: member, what messages call it, type.
const FIXED: [(&str, &str, &str); 14] = [
    ("involvedObject", "involvedObject", "core/v1.ObjectReference"),
    ("reason", "reason", "string"),
    ("message", "message", "string"),
    ("source", "source", "core/v1.EventSource"),
    ("firstTimestamp", "firstTimestamp", ""),
    ("lastTimestamp", "lastTimestamp", ""),
    ("count", "count", "int"),
    ("reason", "reason", "string"),
    ("type", "type", "string"),
    ("eventTime", "eventTime", ""),
    ("action", "action", "string"),
    ("related", "related", "*core/v1.ObjectReference"),
    ("reportingComponent", "reportingController", "string"),
    ("reportingInstance", "reportingInstance", "string"),
];

/// The rules that all events keep. `reporter` is what messages call the reporting component.
fn validate_leniently(object: &Value, reporter: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let namespace = object.namespace();
    let involved = At::top(object, "involvedObject");
    let involved_namespace = involved.child("namespace");
    let is_new_form = !object["eventTime"].is_null();
    let matches = match involved_namespace.text() {
        "" if is_new_form => matches!(namespace, "default" | "kube-system"),
        "" => matches!(namespace, "" | "default"),
        involved => is_new_form || involved == namespace,
    };
    if !matches {
        errors.push(involved_namespace.invalid("does not match event.namespace"));
    }
    if is_new_form {
        validate_words(object, reporter, &mut errors);
    }
    let faults = names::dns1123_subdomain(namespace);
    errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&Path::new("namespace"), namespace, fault)));
    errors
}

fn validate_words(object: &Value, reporter: &str, errors: &mut ErrorList) {
    let component = At::new(&object["reportingComponent"], Path::new(reporter));
    if component.text().is_empty() {
        errors.push(component.required(""));
    }
    errors.extend(names::qualified_name(component.text()).into_iter().map(|fault| component.invalid(fault)));
    let too_long = |at: &At<'_>, bytes_max: usize| {
        let rule = format!("can have at most {bytes_max} characters");
        (at.text().len() > bytes_max).then(|| at.invalid_showing("", rule))
    };
    for field in ["reportingInstance", "action", "reason"] {
        let at = At::top(object, field);
        if at.text().is_empty() {
            errors.push(at.required(""));
        }
        errors.extend(too_long(&at, WORD_BYTES_MAX));
    }
    errors.extend(too_long(&At::top(object, "message"), MESSAGE_BYTES_MAX));
}

fn validate_series(object: &Value, errors: &mut ErrorList) {
    let series = At::top(object, "series");
    if !series.is_set() {
        return;
    }
    let (count, last) = (series.child("count"), series.child("lastObservedTime"));
    if count.int() < 2 {
        errors.push(count.invalid_showing("", "should be at least 2"));
    }
    if !last.is_set() {
        errors.push(last.required(""));
    }
}

/// What the newer group asks of new events: its own fields, and none of the older ones.
fn validate_new_form(object: &Value, errors: &mut ErrorList) {
    let (time, kind) = (At::top(object, "eventTime"), At::top(object, "type"));
    if !time.is_set() {
        errors.push(time.required(""));
    }
    if !matches!(kind.text(), "Normal" | "Warning") {
        errors.push(kind.invalid_showing("", format!("has invalid value: {}", kind.text())));
    }
    for old in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let at = At::top(object, old);
        if !at.is_empty() {
            errors.push(at.invalid_showing("", "needs to be unset"));
        }
    }
}
