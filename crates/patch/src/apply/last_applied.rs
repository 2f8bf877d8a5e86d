//! Objects that `kubectl apply` kept with an annotation, and that `kubectl apply --server-side` takes over.

use super::Scope;
use super::compare::compare;
use super::fields::checked_field_set;
use super::set::FieldSet;
use pintle_apimachinery::meta::{Meta, well_known::LAST_APPLIED};
use pintle_apimachinery::value::{html_escaped, parse};
use pintle_apimachinery::{Str, Value};

/// The manager that may override what the annotation says it applied, and that keeps the annotation up to date.
pub(super) const KUBECTL: &str = "kubectl";

/// Bytes of all annotations together; an annotation that would go beyond is left out.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The fields of the last applied configuration that the live object still has as they were applied. `None` without
/// the annotation, or with one that is of no use.
pub(super) fn unchanged_fields(scope: &Scope<'_>, live: &Value) -> Option<FieldSet> {
    let place = scope.place();
    let annotation = live.annotation(LAST_APPLIED).filter(|text| !text.is_empty())?;
    let last = parse(annotation.as_bytes()).ok().filter(|last| !last.kind().is_empty())?;
    if last.api_version() != scope.kind.api_version() {
        return None;
    }
    checked_field_set(place, live, false).ok()?;
    let applied = checked_field_set(place, &last, false).ok()?;
    let since = compare(place, &last, live).ok()?;
    Some(applied.difference(&since.changed).difference(&since.removed))
}

/// Brings the annotation up to date with an applied configuration, if the object has it.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if object.annotation(LAST_APPLIED).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.at_mut("metadata.annotations") {
        annotations.remove(LAST_APPLIED);
    }
    let text = html_escaped(&config) + "\n";
    let Some(annotations) = object.at_mut("metadata.annotations") else { return };
    annotations.set(LAST_APPLIED, Str::from(text));
    let n_bytes: usize = annotations.entries().map(|(key, value)| key.len() + value.str_or_empty().len()).sum();
    if n_bytes > ANNOTATIONS_BYTES_MAX {
        annotations.remove(LAST_APPLIED);
    }
}
