//! Pods, and the pod templates inside other kinds.

mod container_parts;
mod containers;
pub mod defaults;
mod drop;
mod ephemeral;
mod handlers;
pub mod image;
mod options;
mod overlaps;
mod prepare;
mod projected;
pub mod resources;
mod scheduling;
mod security;
mod status;
mod update;
mod validate;
pub mod volume_sources;
mod volumes;
pub mod warnings;
mod windows;

pub use drop::drop_disabled_spec_fields;
pub use options::PodOptions;
pub use scheduling::{TAINT_EFFECTS, validate_tolerations};
pub use security::validate_no_backsteps;
pub use validate::{validate_template, validate_template_metadata};

use crate::common::At;
use crate::{FieldTable, MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, Path, Value, names};
use std::borrow::Cow;

/// The lists of containers of a pod spec, in the order in which upstream visits them.
pub const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Visits every container of a pod spec.
fn for_each_container(spec: &At<'_>, mut visit: impl FnMut(&At<'_>)) {
    for list in CONTAINER_LISTS {
        spec.child(list).each().for_each(|container| visit(&container));
    }
}

/// Whether the pod spec has a container of this name.
fn has_container(spec: &Value, name: &str) -> bool {
    let mut containers = CONTAINER_LISTS.iter().flat_map(|list| spec[list].items());
    containers.any(|container| container["name"].str_or_empty() == name)
}

/// The annotation of a container: its name follows the prefix.
fn annotation_key(prefix: &str, container: &Value) -> String {
    format!("{prefix}{}", container["name"].str_or_empty())
}

/// Whether the metadata is of a pod that a node runs by itself and only mirrors here.
fn is_mirror(metadata: &Value) -> bool {
    metadata["annotations"].has("kubernetes.io/config.mirror")
}

/// The strategy of pods.
#[derive(Debug)]
pub struct Pod;

impl UpdateStrategy for Pod {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        prepare::for_update(object, old);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        update::validate_update(object, old, &mut errors);
        errors
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for Pod {
    fn set_defaults(&self, object: &mut Value) {
        defaults::set_pod_defaults(object);
    }

    fn early_warnings(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        prepare::app_armor_warnings(object)
    }

    fn prepare_for_create(&self, request: RequestInfo<'_>, object: &mut Value) {
        prepare::for_create(object, request.now);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate::validate_create(object, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        let mut told = name_warning(
            object,
            "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended",
        );
        told.extend(warnings::of_pod(object));
        told
    }

    fn subresource(&self, name: &str) -> Option<&dyn UpdateStrategy> {
        match name {
            "status" => Some(&PodStatus),
            "ephemeralcontainers" => Some(&EphemeralContainers),
            "resize" => Some(&Resize),
            _ => None,
        }
    }

    fn selectable_fields(&self) -> FieldTable {
        SELECTABLE
    }

    fn unknown_field_message(&self, field: &str) -> String {
        crate::core::label_not_supported(field)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn grace_period_seconds(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        let (spec, phase) = (&object["spec"], object["status"]["phase"].str_or_empty());
        let is_done = spec["nodeName"].str_or_empty().is_empty() || matches!(phase, "Failed" | "Succeeded");
        let wanted = requested.or_else(|| spec["terminationGracePeriodSeconds"].as_i64()).unwrap_or_default();
        Some(match wanted {
            _ if is_done => 0,
            seconds if seconds < 0 => 1,
            seconds => seconds,
        })
    }
}

/// Warns of a name that is no DNS label; `what` says why that matters.
pub(crate) fn name_warning(object: &Value, what: &str) -> Vec<String> {
    let faults = names::dns1123_label(object.name());
    if faults.is_empty() { Vec::new() } else { vec![format!("metadata.name: {what}: [{}]", faults.join(" "))] }
}

/// Warnings about the pod template at `path` of an object, if it has one there.
pub(crate) fn template_warnings(object: &Value, path: &str) -> Vec<String> {
    let template = object.at(path);
    if template.is_null() { Vec::new() } else { warnings::of_template(&At::new(template, Path::new(path))) }
}

static SELECTABLE: FieldTable = &[
    // the name that clients of long ago use
    ("spec.host", |pod| Cow::Borrowed(pod["spec"]["nodeName"].str_or_empty())),
    ("spec.nodeName", |pod| Cow::Borrowed(pod["spec"]["nodeName"].str_or_empty())),
    ("spec.restartPolicy", |pod| Cow::Borrowed(pod["spec"]["restartPolicy"].str_or_empty())),
    ("spec.schedulerName", |pod| Cow::Borrowed(pod["spec"]["schedulerName"].str_or_empty())),
    ("spec.serviceAccountName", |pod| Cow::Borrowed(pod["spec"]["serviceAccountName"].str_or_empty())),
    ("spec.hostNetwork", |pod| Cow::Borrowed(if pod["spec"]["hostNetwork"].is_true() { "true" } else { "false" })),
    ("status.phase", |pod| Cow::Borrowed(pod["status"]["phase"].str_or_empty())),
    ("status.podIP", |pod| {
        Cow::Borrowed(pod["status"]["podIPs"].items().first().map_or("", |ip| ip["ip"].str_or_empty()))
    }),
    // upstream lets it be named, and gives it no value
    ("status.podIPs", |_| Cow::Borrowed("")),
    ("status.nominatedNodeName", |pod| Cow::Borrowed(pod["status"]["nominatedNodeName"].str_or_empty())),
];

/// `pods/status`.
#[derive(Debug)]
struct PodStatus;

impl UpdateStrategy for PodStatus {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        prepare::for_status_update(object, old);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        status::validate_status_update(object, old, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        status::warnings(object)
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata.deletionTimestamp", "metadata.ownerReferences", "spec"]
    }
}

/// `pods/ephemeralcontainers`.
#[derive(Debug)]
struct EphemeralContainers;

impl UpdateStrategy for EphemeralContainers {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        prepare::for_ephemeral_containers_update(object, old);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        ephemeral::validate_ephemeral_update(object, old, &mut errors);
        errors
    }

    fn owned_fields(&self) -> Option<&'static [&'static str]> {
        Some(&["spec.ephemeralContainers"])
    }
}

/// `pods/resize`.
#[derive(Debug)]
struct Resize;

impl UpdateStrategy for Resize {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        prepare::for_resize_update(object, old);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        ephemeral::validate_resize(object, old, &mut errors);
        errors
    }

    fn owned_fields(&self) -> Option<&'static [&'static str]> {
        Some(&[
            "spec.containers.*.resizePolicy",
            "spec.containers.*.resources",
            "spec.initContainers.*.resizePolicy",
            "spec.initContainers.*.resources",
        ])
    }
}
