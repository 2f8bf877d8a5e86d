//! ReplicationControllers and their status.
//!
//! Follows: pkg/apis/core/{v1/defaults.go,validation}, pkg/registry/core/replicationcontroller (v1.35).

use super::pod::defaults::set_template_defaults;
use super::pod::{PodOptions, drop_disabled_spec_fields, name_warning, template_warnings};
use crate::apps::replicaset::validate_replica_counts;
use crate::common::equality::semantic;
use crate::common::goform::compact;
use crate::common::{At, nonnegative};
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep, start_generation};
use crate::workload::{POD_NAME_WARNING, not_selected, raise_generation, validate_endless_template};
use crate::{FieldTable, MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::field::{ErrorType, go_quote};
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Value};
use std::borrow::Cow;

/// The strategy of ReplicationControllers.
#[derive(Debug)]
pub struct ReplicationController;

/// Annotations under this prefix name fields that an older version could not express.
const NON_CONVERTIBLE: &str = "non-convertible.kubernetes.io";

static STATUS: StatusSubresource = StatusSubresource {
    metadata: StatusMetadata::Changes,
    rounds: MetadataRounds::UPDATE,
    validate: |_, object, _| {
        let mut errors = ErrorList::new();
        validate_replica_counts(&At::top(object, "status"), &[], &mut errors);
        errors
    },
};

impl UpdateStrategy for ReplicationController {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        if let Some(spec) = object.at_mut("spec.template.spec") {
            drop_disabled_spec_fields(spec, old.at("spec.template.spec"));
        }
        raise_generation(object, old, "core/v1.ReplicationControllerSpec");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(object, &PodOptions::of_template(old.at("spec.template")), &mut errors);
        validate_non_convertible(object, old, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        // upstream hands over the templates the wrong way round
        if object.generation() == old.generation() { Vec::new() } else { template_warnings(old, "spec.template") }
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for ReplicationController {
    fn set_defaults(&self, object: &mut Value) {
        let labels = object.at("spec.template.metadata.labels").clone();
        if !labels.is_empty() {
            if object["metadata"]["labels"].is_empty() {
                set_meta(object, "labels", labels.clone());
            }
            if object["spec"]["selector"].is_empty() {
                object.make("spec").set("selector", labels);
            }
        }
        let spec = object.make("spec");
        spec.set_default("replicas", 1);
        spec.get_mut("template").into_iter().for_each(set_template_defaults);
    }

    /// Upstream checks this one name by rules it generates from the type, which count bytes.
    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        if is_prefix {
            return names::dns1123_subdomain(&names::mask_trailing_dash(name));
        }
        let mut faults = names::dns1123_subdomain(name);
        faults.iter_mut().for_each(|fault| *fault = fault.replace("253 characters", "253 bytes"));
        faults
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "core/v1.ReplicationControllerStatus");
        start_generation(object);
        if let Some(spec) = object.at_mut("spec.template.spec") {
            drop_disabled_spec_fields(spec, &Value::NULL);
        }
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(object, &PodOptions::TEMPLATE, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        let mut warnings = name_warning(object, POD_NAME_WARNING);
        warnings.extend(template_warnings(object, "spec.template"));
        warnings
    }

    fn subresource(&self, name: &str) -> Option<&dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }

    fn selectable_fields(&self) -> FieldTable {
        &[("status.replicas", |rc| Cow::Owned(rc["status"]["replicas"].as_i64().unwrap_or_default().to_string()))]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        super::label_not_supported(field)
    }

    fn orphans_by_default(&self) -> bool {
        true
    }
}

fn validate_spec(object: &Value, options: &PodOptions, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    nonnegative(&spec.child("minReadySeconds"), errors);
    let (selector, replicas, template) = (spec.child("selector"), spec.child("replicas"), spec.child("template"));
    if selector.entries().len() == 0 {
        errors.push(selector.required(""));
    }
    if replicas.is_set() {
        nonnegative(&replicas, errors);
    } else {
        errors.push(replicas.required(""));
    }
    if !template.is_set() {
        errors.push(template.required(""));
        return;
    }
    let labels = template.descend("metadata.labels");
    if !selector.entries().all(|(key, value)| labels[key.as_str()] == *value) {
        errors.push(not_selected(&labels));
    }
    validate_endless_template(&template, "ReplicationController", options, errors);
}

fn validate_non_convertible(object: &Value, old: &Value, errors: &mut ErrorList) {
    for (key, value) in old.metadata()["annotations"].entries().filter(|(key, _)| key.starts_with(NON_CONVERTIBLE)) {
        let Some((_, field)) = key.split_once('/').filter(|(_, field)| !field.contains('/')) else { continue };
        if !field.contains("selector") {
            errors.push(FieldError {
                kind: ErrorType::NotFound,
                field: field.to_owned(),
                shown: Some(go_quote(value.str_or_empty())),
                detail: "unknown non-convertible field".to_owned(),
            });
        } else if !semantic(object.at("spec.selector"), old.at("spec.selector"), "") {
            let spec = At::top(object, "spec");
            let selector = spec.child("selector");
            let shown = compact(selector.value(), "{}string");
            let error = selector.invalid("cannot update non-convertible selector");
            errors.push(FieldError { shown: Some(shown), ..error });
        }
    }
}
