//! ReplicaSets and their status.
//!
//! Follows: pkg/apis/apps/{v1/defaults.go,validation}, pkg/registry/apps/replicaset (v1.35).

use crate::common::{At, nonnegative};
use crate::core::pod::defaults::set_template_defaults;
use crate::core::pod::{PodOptions, drop_disabled_spec_fields, name_warning, template_warnings};
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep, start_generation};
use crate::workload::{
    POD_NAME_WARNING, parsed_selector, raise_generation, showing_selector, validate_at_most, validate_counts,
    validate_endless_template, validate_selector, validate_selector_stays, validate_template_is_selected,
};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of ReplicaSets.
#[derive(Debug)]
pub struct ReplicaSet;

static STATUS: StatusSubresource = StatusSubresource {
    metadata: StatusMetadata::Changes,
    rounds: MetadataRounds::UPDATE,
    validate: |_, object, _| {
        let mut errors = ErrorList::new();
        validate_replica_counts(&At::top(object, "status"), &["terminatingReplicas"], &mut errors);
        errors
    },
};

/// The counts that replica sets and replication controllers have in common, and the `others` after them.
pub(crate) fn validate_replica_counts(status: &At<'_>, others: &[&str], errors: &mut ErrorList) {
    const COUNTS: &[&str] =
        &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    validate_counts(status, COUNTS, errors);
    validate_counts(status, others, errors);
    let bounded = &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    validate_at_most(status, bounded, "replicas", "status.replicas", errors);
    validate_at_most(status, &["availableReplicas"], "readyReplicas", "readyReplicas", errors);
}

impl UpdateStrategy for ReplicaSet {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        drop_disabled_spec_fields(object.make("spec.template.spec"), old.at("spec.template.spec"));
        raise_generation(object, old, "apps/v1.ReplicaSetSpec");
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

impl Strategy for ReplicaSet {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        spec.set_default("replicas", 1);
        set_template_defaults(spec.make("template"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "apps/v1.ReplicaSetStatus");
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
        (name == "status").then_some(&STATUS as _)
    }
}

fn validate_spec(object: &Value, options: &PodOptions, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    nonnegative(&spec.child("replicas"), errors);
    nonnegative(&spec.child("minReadySeconds"), errors);
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    // upstream says "deployment" here, too
    validate_selector(&selector, "deployment", errors);
    match parsed_selector(&selector) {
        Some(parsed) => {
            validate_template_is_selected(&parsed, &template, true, errors);
            validate_endless_template(&template, "ReplicaSet", options, errors);
        }
        None => errors.push(showing_selector(&selector, "invalid label selector")),
    }
}
