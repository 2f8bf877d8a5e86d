//! PersistentVolumeClaims and their status.

use super::quantities::round_up_to_millis;
use crate::common::checks::{immutable, push_faults};
use crate::common::claim::{ClaimOptions, validate_claim_spec};
use crate::common::resources::{is_native, quantity, validate_resource_quantity};
use crate::common::selectors::{SelectorOptions, is_invalid};
use crate::common::{At, diff, equality, goform};
use crate::meta::IMMUTABLE;
use crate::prepare::{StatusMetadata, StatusSubresource, keep};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, json, names};

/// The annotation that named the class before `spec.storageClassName`.
pub(super) const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// What upstream says of that annotation.
pub(super) const CLASS_ANNOTATION_DEPRECATED: &str =
    "deprecated since v1.8; use \"storageClassName\" attribute instead";

const SPEC: &str = "core/v1.PersistentVolumeClaimSpec";

/// The strategy of PersistentVolumeClaims.
#[derive(Debug)]
pub struct PersistentVolumeClaim;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Changes, rounds: MetadataRounds::UPDATE, validate: validate_status };

impl UpdateStrategy for PersistentVolumeClaim {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        prepare_data_sources(object, Some(old));
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let is_grouped = |source: &str| !old["spec"][source]["apiGroup"].is_null();
        let options = ClaimOptions {
            allow_invalid_values_in_selector: is_invalid(old.at("spec.selector"), SelectorOptions::default()),
            allow_invalid_api_group: is_grouped("dataSource") || is_grouped("dataSourceRef"),
        };
        validate_claim_spec(&At::top(object, "spec"), options, &mut errors);
        validate_update(object, old, &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for PersistentVolumeClaim {
    fn set_defaults(&self, object: &mut Value) {
        object["status"].set_default("phase", "Pending");
        object["spec"].set_default("volumeMode", "Filesystem");
        for amounts in
            ["spec.resources.limits", "spec.resources.requests", "status.capacity", "status.allocatedResources"]
        {
            round_up_to_millis(object.at_mut(amounts));
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        object.set("status", json!({"phase": "Pending"}));
        prepare_data_sources(object, None);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_claim_spec(&At::top(object, "spec"), ClaimOptions::default(), &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn prepare_data_sources(object: &mut Value, old: Option<&Value>) {
    let old_spec = old.map_or(&Value::NULL, |old| &old["spec"]);
    let spec = object.make("spec");
    let is_across_namespaces = !spec.at("dataSourceRef.namespace").is_empty();
    if is_across_namespaces && old_spec["dataSourceRef"].is_null() {
        spec.remove("dataSourceRef");
    }
    drop_unknown_data_source(spec, old_spec);
    normalize_data_sources(spec);
}

/// Without `dataSourceRef`, a new `dataSource` other than a claim or a snapshot is dropped.
fn drop_unknown_data_source(spec: &mut Value, old_spec: &Value) {
    let is_in_use = !old_spec["dataSource"].is_null() || !old_spec["dataSourceRef"].is_null();
    if is_in_use || !spec["dataSourceRef"].is_null() {
        return;
    }
    let source = &spec["dataSource"];
    let is_known = match (source["apiGroup"].str_or_empty(), source["kind"].str_or_empty()) {
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot") => true,
        _ => source.is_null(),
    };
    if !is_known {
        spec.remove("dataSource");
    }
}

/// Of `dataSource` and `dataSourceRef` each follows from the other.
pub fn normalize_data_sources(spec: &mut Value) {
    let (source, reference) = (&spec["dataSource"], &spec["dataSourceRef"]);
    let (absent, given) = match (source.is_null(), reference.is_null()) {
        (false, true) => ("dataSourceRef", source),
        (true, false) if reference["namespace"].is_empty() => ("dataSource", reference),
        _ => return,
    };
    let mut copy = given.clone();
    copy.remove("namespace");
    spec.set(absent, copy);
}

fn validate_update(object: &Value, old: &Value, errors: &mut ErrorList) {
    let (spec, old_spec) = (At::top(object, "spec"), &old["spec"]);
    let annotation = |claim: &Value| claim.annotation(CLASS_ANNOTATION).map(str::to_owned);
    let (was, is) = (annotation(old), annotation(object));
    let moved = moved_class(spec.value(), old_spec, was.as_deref(), is.as_deref());
    if moved != Some(MovedClass::FromAnnotation) && was.as_deref().unwrap_or("") != is.as_deref().unwrap_or("") {
        let metadata = Path::new("metadata");
        let path = metadata.child("annotations");
        errors.push(FieldError::invalid(&path.child(CLASS_ANNOTATION), is.as_deref().unwrap_or(""), IMMUTABLE));
    }
    if *spec.value() != *old_spec {
        let is_bound = object.at("status.phase").as_str() == Some("Bound");
        validate_spec_unchanged(&spec, old_spec, moved, is_bound, errors);
    }
    let size = |claim: &Value| quantity(claim.at("spec.resources.requests.storage"));
    if size(object) < size(old) && size(object) <= quantity(old.at("status.capacity.storage")) {
        let path = spec.path().child("resources.requests.storage");
        errors.push(FieldError::forbidden(&path, "field can not be less than status.capacity"));
    }
    let mode = At::new(&spec["volumeMode"], Path::new("volumeMode"));
    immutable(&mode, &old_spec["volumeMode"], "", errors);
    let class = spec.child("volumeAttributesClassName");
    if *class.value() != old_spec["volumeAttributesClassName"]
        && !old.at("status.currentVolumeAttributesClassName").is_null()
        && class.text().is_empty()
    {
        let to = if class.is_set() { "empty string" } else { "nil" };
        let rule = format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
        errors.push(class.forbidden(rule));
    }
}

/// Where a class that the old spec did not name came from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MovedClass {
    /// The annotation named it.
    FromAnnotation,
    /// Nothing named one, or the annotation the same.
    FromNothing,
}

fn moved_class(spec: &Value, old_spec: &Value, was: Option<&str>, is: Option<&str>) -> Option<MovedClass> {
    let class = spec["storageClassName"].as_str()?;
    if !old_spec["storageClassName"].is_null() {
        return None;
    }
    match was {
        Some(was) if was == class && is.is_none_or(|is| is == was) => Some(MovedClass::FromAnnotation),
        Some(was) if was != class => None,
        _ => Some(MovedClass::FromNothing),
    }
}

/// The spec stays as it was, but for what may change: the volume's name once, the class where it was not named, and in
/// bound claims the size and the class of attributes.
fn validate_spec_unchanged(
    spec: &At<'_>,
    old_spec: &Value,
    moved: Option<MovedClass>,
    is_bound: bool,
    errors: &mut ErrorList,
) {
    let (mut new, mut old) = (spec.value().clone(), old_spec.clone());
    let put = |to: &mut Value, field: &str, from: &Value| match from.get(field) {
        Value::Null => {
            to.remove(field);
        }
        value => to.set(field, value.clone()),
    };
    normalize_data_sources(&mut old);
    if old["volumeName"].is_empty() {
        put(&mut old, "volumeName", spec.value());
    }
    match moved {
        Some(MovedClass::FromAnnotation) => {
            new.remove("storageClassName");
        }
        Some(MovedClass::FromNothing) => put(&mut new, "storageClassName", old_spec),
        None => {}
    }
    if is_bound {
        if let Some(requests) = new.at_mut("resources.requests").filter(|requests| !requests.is_null()) {
            put(requests, "storage", old_spec.at("resources.requests"));
        }
        put(&mut new, "volumeAttributesClassName", old_spec);
    }
    if !equality::semantic(&new, &old, SPEC) {
        let changes = diff::unified(&goform::pretty(&old, SPEC), &goform::pretty(&new, SPEC));
        errors.push(spec.forbidden(format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{changes}"
        )));
    }
}

/// An amount that is not below nothing, counted in whole units.
pub(super) fn validate_basic_amount(amount: &At<'_>, errors: &mut ErrorList) -> bool {
    let units = quantity(amount.value()).value();
    if units < 0 {
        errors.push(amount.invalid_showing(units, "must be a valid resource quantity"));
    }
    units >= 0
}

fn validate_status(_: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
    const STATUSES: &[&str] = &[
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let mut errors = ErrorList::new();
    if object.at("spec.accessModes").items().is_empty() {
        // upstream spells the field so
        errors.push(FieldError::required(&Path::new("Spec").child("accessModes"), ""));
    }
    let status = At::top(object, "status");
    for (_, amount) in status.child("capacity").each_entry() {
        validate_basic_amount(&amount, &mut errors);
    }
    let statuses = status.child("allocatedResourceStatuses");
    for (name, resize) in statuses.entries() {
        validate_resource_key(name, &statuses, &mut errors);
        if !STATUSES.contains(&resize.str_or_empty()) {
            errors.push(FieldError::not_supported(statuses.path(), name, STATUSES));
        }
    }
    let allocated = status.child("allocatedResources");
    for (name, amount) in allocated.each_entry() {
        if validate_resource_key(name, &allocated, &mut errors) && validate_basic_amount(&amount, &mut errors) {
            validate_resource_quantity("storage", &amount, &mut errors);
        }
    }
    errors
}

/// Of Kubernetes' own resources a claim has storage alone.
fn validate_resource_key(name: &str, at: &At<'_>, errors: &mut ErrorList) -> bool {
    let n_before = errors.len();
    push_faults(&At::new(&Value::from(name), *at.path()), names::qualified_name(name), errors);
    if errors.len() == n_before && is_native(name) && name != "storage" {
        errors.push(FieldError::not_supported(at.path(), name, &["storage"]));
    }
    errors.len() == n_before
}

fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if object.annotation(CLASS_ANNOTATION).is_some() {
        warnings.push(format!("metadata.annotations[{CLASS_ANNOTATION}]: {CLASS_ANNOTATION_DEPRECATED}"));
    }
    let spec = At::top(object, "spec");
    let resources = spec.child("resources");
    for list in ["requests", "limits"] {
        let list = resources.child(list);
        let storage = list.key("storage");
        if quantity(storage.value()).milli_value() % 1000 != 0 {
            let shown = pintle_apimachinery::field::go_quote(storage.text());
            warnings.push(format!("{}: fractional byte value {shown} is invalid, must be an integer", storage.path()));
        }
    }
    warnings
}
