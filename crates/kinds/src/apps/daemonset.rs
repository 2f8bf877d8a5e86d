//! DaemonSets and their status. The generation of the template, a field once, lives in an annotation.
//!
//! Follows: pkg/apis/apps/{v1,validation}, pkg/registry/apps/daemonset (v1.35).

use crate::common::equality::semantic;
use crate::common::goform::compact;
use crate::common::selectors::{SelectorOptions, has_invalid_value, validate_label_selector};
use crate::common::{At, nonnegative};
use crate::core::pod::defaults::set_template_defaults;
use crate::core::pod::{PodOptions, drop_disabled_spec_fields, template_warnings};
use crate::prepare::{clear_status, keep, start_generation};
use crate::workload::{
    int_or_percent, parsed_selector, raise_generation, validate_at_most_all, validate_collisions, validate_counts,
    validate_endless_template, validate_int_or_percent, validate_not_empty, validate_selector_stays,
    validate_template_is_selected,
};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::{Meta, set_annotation};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// The strategy of DaemonSets.
#[derive(Debug)]
pub struct DaemonSet;

/// Counts how often the template changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn template_generation(object: &Value) -> i64 {
    object.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse().ok()).unwrap_or_default()
}

impl UpdateStrategy for DaemonSet {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        drop_disabled_spec_fields(object.make("spec.template.spec"), old.at("spec.template.spec"));
        keep(object, old, "status");
        let is_same = semantic(object.at("spec.template"), old.at("spec.template"), "core/v1.PodTemplateSpec");
        let generation = template_generation(old) + i64::from(!is_same);
        set_annotation(object, TEMPLATE_GENERATION, generation.to_string());
        raise_generation(object, old, "apps/v1.DaemonSetSpec");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_selector_stays(&At::top(object, "spec"), old, &mut errors);
        let options = PodOptions::of_template(old.at("spec.template"))
            .with_invalid_values_in_selector(has_invalid_value(old.at("spec.selector")));
        validate_spec(object, &options, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        let is_same = template_generation(object) == template_generation(old);
        if is_same { Vec::new() } else { template_warnings(object, "spec.template") }
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for DaemonSet {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        let strategy = spec.make("updateStrategy");
        strategy.set_default("type", "RollingUpdate");
        if strategy["type"].as_str() == Some("RollingUpdate") {
            strategy.make("rollingUpdate").set_default("maxUnavailable", 1);
        }
        // upstream's own form of a rolling update has these two always
        if let Some(rolling) = strategy.get_mut("rollingUpdate") {
            rolling.set_default("maxUnavailable", 0);
            rolling.set_default("maxSurge", 0);
        }
        spec.set_default("revisionHistoryLimit", 10);
        set_template_defaults(spec.make("template"));
        // a field of upstream's own form, which is an annotation of the served one
        let generation = template_generation(object);
        set_annotation(object, TEMPLATE_GENERATION, generation.to_string());
    }

    fn annotations_of_conversion(&self) -> &'static [&'static str] {
        &[TEMPLATE_GENERATION]
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "apps/v1.DaemonSetStatus");
        start_generation(object);
        let generation = template_generation(object).max(1);
        set_annotation(object, TEMPLATE_GENERATION, generation.to_string());
        drop_disabled_spec_fields(object.make("spec.template.spec"), &Value::NULL);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(object, &PodOptions::TEMPLATE, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        template_warnings(object, "spec.template")
    }

    fn subresource(&self, name: &str) -> Option<&dyn UpdateStrategy> {
        (name == "status").then_some(&DaemonSetStatus as _)
    }
}

fn validate_spec(object: &Value, options: &PodOptions, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    let allow_invalid_values = options.allows_invalid_values_in_selector();
    validate_label_selector(&selector, SelectorOptions { allow_invalid_values, ..Default::default() }, errors);
    if let Some(parsed) = parsed_selector(&selector) {
        validate_template_is_selected(&parsed, &template, false, errors);
    }
    validate_not_empty(&selector, "daemonset", errors);
    validate_endless_template(&template, "DaemonSet", options, errors);
    nonnegative(&spec.child("minReadySeconds"), errors);
    validate_strategy(&spec.child("updateStrategy"), errors);
    nonnegative(&spec.child("revisionHistoryLimit"), errors);
}

fn validate_strategy(at: &At<'_>, errors: &mut ErrorList) {
    let rolling = at.child("rollingUpdate");
    match at["type"].str_or_empty() {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => errors.push(rolling.required("")),
        "RollingUpdate" => validate_rolling_update(&rolling, errors),
        _ => {
            let shown = compact(at.value(), "apps/v1.DaemonSetUpdateStrategy");
            let error = at.not_supported(&["RollingUpdate", "OnDelete"]);
            errors.push(FieldError { shown: Some(shown), ..error });
        }
    }
}

fn validate_rolling_update(at: &At<'_>, errors: &mut ErrorList) {
    let (unavailable, surge) = (at.child("maxUnavailable"), at.child("maxSurge"));
    validate_int_or_percent(&unavailable, errors);
    validate_int_or_percent(&surge, errors);
    validate_at_most_all(&unavailable, errors);
    validate_at_most_all(&surge, errors);
    match (int_or_percent(&unavailable) != 0, int_or_percent(&surge) != 0) {
        (true, true) => errors.push(surge.invalid("may not be set when maxUnavailable is non-zero")),
        (false, false) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
        _ => {}
    }
}

/// `daemonsets/status`.
#[derive(Debug)]
struct DaemonSetStatus;

impl UpdateStrategy for DaemonSetStatus {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        // this annotation belongs to the spec
        set_annotation(object, TEMPLATE_GENERATION, template_generation(old).to_string());
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let status = At::top(object, "status");
        const COUNTS: &[&str] = &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ];
        validate_counts(&status, COUNTS, &mut errors);
        validate_collisions(&status, old, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }
}
