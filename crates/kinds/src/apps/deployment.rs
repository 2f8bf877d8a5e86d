//! Deployments and their status.
//!
//! Follows: pkg/apis/apps/{v1/defaults.go,validation}, pkg/registry/apps/deployment (v1.35).

use crate::common::equality::semantic;
use crate::common::goform::compact;
use crate::common::{At, nonnegative};
use crate::core::pod::defaults::set_template_defaults;
use crate::core::pod::{PodOptions, drop_disabled_spec_fields, name_warning, template_warnings};
use crate::prepare::{clear_status, keep, start_generation};
use crate::workload::{
    POD_NAME_WARNING, int_or_percent, parsed_selector, raise_generation, showing_selector, validate_at_most,
    validate_at_most_all, validate_collisions, validate_counts, validate_endless_template, validate_int_or_percent,
    validate_selector, validate_selector_stays, validate_template_is_selected,
};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// The strategy of Deployments.
#[derive(Debug)]
pub struct Deployment;

impl UpdateStrategy for Deployment {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        drop_disabled_spec_fields(object.make("spec.template.spec"), old.at("spec.template.spec"));
        raise_generation(object, old, "apps/v1.DeploymentSpec");
        // annotations are copied to the replica sets
        if !semantic(&object.metadata()["annotations"], &old.metadata()["annotations"], "") {
            set_meta(object, "generation", old.generation() + 1);
        }
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(object, &PodOptions::of_template(old.at("spec.template")), &mut errors);
        validate_selector_stays(&At::top(object, "spec"), old, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        if object.generation() == old.generation() { Vec::new() } else { template_warnings(object, "spec.template") }
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for Deployment {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        spec.set_default("replicas", 1);
        let strategy = spec.make("strategy");
        strategy.set_default("type", "RollingUpdate");
        if strategy["type"].as_str() == Some("RollingUpdate") {
            let rolling = strategy.make("rollingUpdate");
            rolling.set_default("maxUnavailable", "25%");
            rolling.set_default("maxSurge", "25%");
        }
        spec.set_default("revisionHistoryLimit", 10);
        spec.set_default("progressDeadlineSeconds", 600);
        set_template_defaults(spec.make("template"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "apps/v1.DeploymentStatus");
        start_generation(object);
        drop_disabled_spec_fields(object.make("spec.template.spec"), &Value::NULL);
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
        (name == "status").then_some(&DeploymentStatus as _)
    }
}

fn validate_spec(object: &Value, options: &PodOptions, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    nonnegative(&spec.child("replicas"), errors);
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    validate_selector(&selector, "deployment", errors);
    match parsed_selector(&selector) {
        Some(parsed) => {
            validate_template_is_selected(&parsed, &template, true, errors);
            validate_endless_template(&template, "ReplicaSet", options, errors);
        }
        None => errors.push(showing_selector(&selector, "invalid label selector")),
    }
    validate_strategy(&spec.child("strategy"), errors);
    nonnegative(&spec.child("minReadySeconds"), errors);
    nonnegative(&spec.child("revisionHistoryLimit"), errors);
    validate_rollback(object, &spec, errors);
    let deadline = spec.child("progressDeadlineSeconds");
    if deadline.is_set() {
        nonnegative(&deadline, errors);
        if deadline.int() <= spec["minReadySeconds"].as_i64().unwrap_or_default() {
            errors.push(deadline.invalid_int("must be greater than minReadySeconds"));
        }
    }
}

/// The revision to go back to was a field once; upstream still reads it from an annotation.
fn validate_rollback(object: &Value, spec: &At<'_>, errors: &mut ErrorList) {
    let revision = object.annotation("deprecated.deployment.rollback.to").and_then(|text| text.parse::<i64>().ok());
    if let Some(revision) = revision.filter(|revision| *revision < 0) {
        let version = spec.child("rollback");
        errors.push(version.child("version").invalid_showing(revision, crate::common::checks::NEGATIVE));
    }
}

fn validate_strategy(at: &At<'_>, errors: &mut ErrorList) {
    let rolling = at.child("rollingUpdate");
    match at["type"].str_or_empty() {
        "Recreate" => {
            if rolling.is_set() {
                errors.push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
            }
        }
        "RollingUpdate" => {
            if rolling.is_set() {
                validate_rolling_update(&rolling, errors);
            } else {
                errors.push(rolling.required("this should be defaulted and never be nil"));
            }
        }
        _ => {
            let shown = compact(at.value(), "apps/v1.DeploymentStrategy");
            let error = at.not_supported(&["Recreate", "RollingUpdate"]);
            errors.push(FieldError { shown: Some(shown), ..error });
        }
    }
}

fn validate_rolling_update(at: &At<'_>, errors: &mut ErrorList) {
    let (unavailable, surge) = (at.child("maxUnavailable"), at.child("maxSurge"));
    validate_int_or_percent(&unavailable, errors);
    validate_int_or_percent(&surge, errors);
    if int_or_percent(&unavailable) == 0 && int_or_percent(&surge) == 0 {
        errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
    validate_at_most_all(&unavailable, errors);
}

/// `deployments/status`.
#[derive(Debug)]
struct DeploymentStatus;

impl UpdateStrategy for DeploymentStatus {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        set_meta(object, "labels", old.metadata()["labels"].clone());
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let status = At::top(object, "status");
        const COUNTS: &[&str] = &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ];
        validate_counts(&status, COUNTS, &mut errors);
        let bounded = &["updatedReplicas", "readyReplicas", "availableReplicas"];
        validate_at_most(&status, bounded, "replicas", "status.replicas", &mut errors);
        validate_at_most(&status, &["availableReplicas"], "readyReplicas", "readyReplicas", &mut errors);
        validate_collisions(&status, old, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata.labels", "spec"]
    }
}
