//! Jobs.
//!
//! Follows: pkg/apis/batch/{v1/defaults.go,validation}, pkg/registry/batch/job (v1.35).

use super::job_status::JobStatus;
use super::job_validate::validate_job_spec;
use crate::common::At;
use crate::common::goform::compact;
use crate::common::selectors::{SelectorOptions, has_invalid_value, validate_label_selector};
use crate::core::pod::defaults::set_template_defaults;
use crate::core::pod::{PodOptions, drop_disabled_spec_fields, name_warning, template_warnings};
use crate::prepare::{clear_status, keep, start_generation};
use crate::workload::{
    POD_NAME_WARNING, immutable_pointer, not_selected, parsed_selector, raise_generation, showing_selector,
};
use crate::{FieldTable, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::{ErrorList, FieldError, Value, json, names};
use std::borrow::Cow;

/// The strategy of Jobs.
#[derive(Debug)]
pub struct Job;

pub(super) const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
pub(super) const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const LEGACY_CONTROLLER_UID: &str = "controller-uid";
const LEGACY_JOB_NAME: &str = "job-name";

/// Above so many completions and so many pods at once, indexes may be too many to write down.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const PARALLELISM_SOFT_MAX: i64 = 10_000;

impl UpdateStrategy for Job {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        drop_disabled_spec_fields(object.make("spec.template.spec"), old.at("spec.template.spec"));
        raise_generation(object, old, "batch/v1.JobSpec");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let options = PodOptions::of_template(old.at("spec.template"))
            .with_invalid_values_in_selector(has_invalid_value(old.at("spec.selector")));
        let labels = old.at("spec.template.metadata.labels");
        validate_job(object, &options, labels.has(JOB_NAME) && labels.has(CONTROLLER_UID), &mut errors);
        // upstream validates the spec once more with the change
        let spec = At::top(object, "spec");
        validate_spec(&spec, &options, &mut errors);
        validate_spec_update(&spec, old, &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        if object.generation() == old.generation() { Vec::new() } else { spec_warnings(object, "spec") }
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for Job {
    fn set_defaults(&self, object: &mut Value) {
        default_labels(object);
        let spec = object.make("spec");
        if !spec.has("completions") && !spec.has("parallelism") {
            spec.set("completions", 1);
        }
        spec.set_default("parallelism", 1);
        let limit = if spec.has("backoffLimitPerIndex") { i32::MAX } else { 6 };
        spec.set_default("backoffLimit", limit);
        spec.set_default("completionMode", "NonIndexed");
        spec.set_default("suspend", false);
        let replacement = if spec.has("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
        spec.set_default("podReplacementPolicy", replacement);
        spec.set_default("manualSelector", false);
        set_job_spec_defaults(spec);
    }

    /// The object has its name and uid already.
    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        if !object["spec"]["manualSelector"].is_true() {
            generate_selector(object);
        }
        clear_status(object, "batch/v1.JobStatus");
        start_generation(object);
        drop_disabled_spec_fields(object.make("spec.template.spec"), &Value::NULL);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_job(object, &PodOptions::TEMPLATE, true, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        let mut warnings = name_warning(object, POD_NAME_WARNING);
        warnings.extend(spec_warnings(object, "spec"));
        warnings
    }

    /// Upstream defaults what it reads back from its store, too: a job shows the generated labels as soon as it is
    /// written, and again when an update took them away.
    fn canonicalize(&self, object: &mut Value) {
        default_labels(object);
    }

    fn subresource(&self, name: &str) -> Option<&dyn UpdateStrategy> {
        (name == "status").then_some(&JobStatus as _)
    }

    fn selectable_fields(&self) -> FieldTable {
        &[("status.successful", |job| Cow::Owned(job["status"]["succeeded"].as_i64().unwrap_or_default().to_string()))]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        format!("field label {} not supported for Job", pintle_apimachinery::field::go_quote(field))
    }

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn default_deletion_warning(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
        )
    }
}

/// A job without labels has those of its pods.
fn default_labels(object: &mut Value) {
    let labels = object.at("spec.template.metadata.labels");
    if !labels.is_empty() && object["metadata"]["labels"].is_empty() {
        let labels = labels.clone();
        set_meta(object, "labels", labels);
    }
}

/// The defaults inside a job spec, which the templates of cron jobs have, too.
pub(super) fn set_job_spec_defaults(spec: &mut Value) {
    let rules = spec.at_mut("podFailurePolicy.rules").map(Value::items_mut).unwrap_or_default();
    for pattern in rules.iter_mut().filter_map(|rule| rule.get_mut("onPodConditions")).flat_map(Value::items_mut) {
        if pattern["status"].str_or_empty().is_empty() {
            pattern.set("status", "True");
        }
    }
    set_template_defaults(spec.make("template"));
}

/// Labels that make the pods of this job its own, and a selector of them.
///
/// Labels of the job that came from its template are one map with the template's upstream, so they get the new ones,
/// too. What the client wrote itself is told from that only by being different.
fn generate_selector(object: &mut Value) {
    let job_labels = &object["metadata"]["labels"];
    let is_one_map = !job_labels.is_empty() && job_labels == object.at("spec.template.metadata.labels");
    let (name, uid) = (object.name().to_owned(), object.uid().to_owned());
    let labels = object.make("spec.template.metadata.labels");
    for (label, value) in
        [(LEGACY_JOB_NAME, &name), (JOB_NAME, &name), (LEGACY_CONTROLLER_UID, &uid), (CONTROLLER_UID, &uid)]
    {
        if !labels.has(label) {
            labels.set(label, value);
        }
    }
    let labels = labels.clone();
    let selected = object.make("spec.selector.matchLabels");
    if !selected.has(CONTROLLER_UID) {
        selected.set(CONTROLLER_UID, uid);
    }
    if is_one_map {
        set_meta(object, "labels", labels);
    }
}

/// Warnings about the job spec at `path`.
pub(super) fn spec_warnings(object: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = object.at(path);
    let number = |field: &str| spec[field].as_i64().unwrap_or_default();
    let is_indexed = spec["completionMode"].as_str() == Some("Indexed");
    if is_indexed && number("completions") > COMPLETIONS_SOFT_MAX && number("parallelism") > PARALLELISM_SOFT_MAX {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    warnings.extend(template_warnings(object, &format!("{path}.template")));
    warnings
}

fn validate_job(object: &Value, options: &PodOptions, needs_prefixed_labels: bool, errors: &mut ErrorList) {
    validate_generated_selector(object, needs_prefixed_labels, errors);
    let spec = At::top(object, "spec");
    validate_spec(&spec, options, errors);
    let completions = spec["completions"].as_i64().unwrap_or_default();
    if spec["completionMode"].as_str() == Some("Indexed") && completions > 0 {
        let longest = format!("{}-{}", object.name(), completions - 1);
        if !names::dns1123_label(&longest).is_empty() {
            let metadata = At::top(object, "metadata");
            let rule = format!("will not able to create pod with invalid DNS label: {longest}");
            errors.push(metadata.child("name").invalid(rule));
        }
    }
}

fn validate_generated_selector(object: &Value, needs_prefixed_labels: bool, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let selector = spec.child("selector");
    if spec["manualSelector"].is_true() || !selector.is_set() {
        return;
    }
    let (name, uid) = (object.name(), object.uid());
    if uid.is_empty() {
        errors.push(At::top(object, "metadata").child("uid").required(""));
    }
    let labels = spec.descend("template.metadata.labels");
    let mut expected = json!({});
    let mut expect_label = |label: &str, value: &str| {
        expected.set(label, value);
        let at = labels.key(label);
        let rule = format!("must be '{value}'");
        if !at.is_set() {
            errors.push(at.required(rule));
        } else if at.text() != value {
            let shown = compact(labels.value(), "{}string");
            errors.push(FieldError { shown: Some(shown), ..at.invalid(rule) });
        }
    };
    expect_label(LEGACY_CONTROLLER_UID, uid);
    expect_label(LEGACY_JOB_NAME, name);
    if needs_prefixed_labels {
        expect_label(CONTROLLER_UID, uid);
        expect_label(JOB_NAME, name);
    }
    if parsed_selector(&selector).is_some_and(|parsed| !parsed.matches(&expected)) {
        errors.push(showing_selector(&selector, "`selector` not auto-generated"));
    }
}

fn validate_spec(spec: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    validate_job_spec(spec, options, errors);
    let selector = spec.child("selector");
    if selector.is_set() {
        let allow_invalid_values = options.allows_invalid_values_in_selector();
        validate_label_selector(&selector, SelectorOptions { allow_invalid_values, ..Default::default() }, errors);
    } else {
        errors.push(selector.required(""));
    }
    let labels = spec.descend("template.metadata.labels");
    if parsed_selector(&selector).is_some_and(|parsed| !parsed.matches(labels.value())) {
        errors.push(not_selected(&labels));
    }
}

fn validate_spec_update(spec: &At<'_>, old: &Value, errors: &mut ErrorList) {
    let old_spec = &old["spec"];
    let completions = spec.child("completions");
    if spec["completionMode"].as_str() != Some("Indexed") {
        immutable_pointer(&completions, &old_spec["completions"], "int", errors);
    } else if *completions.value() != old_spec["completions"]
        && completions.is_set()
        && completions.int() != spec["parallelism"].as_i64().unwrap_or_default()
    {
        errors.push(completions.invalid_int("can only be modified in tandem with spec.parallelism"));
    }
    immutable_pointer(&spec.child("selector"), &old_spec["selector"], "meta/v1.LabelSelector", errors);
    let template = spec.child("template");
    let before = with_allowed_changes(&template, old);
    let before = before.as_ref().unwrap_or_else(|| &old_spec["template"]);
    crate::common::immutable(&template, before, "core/v1.PodTemplateSpec", errors);
    for (field, kind) in [
        ("completionMode", "string"),
        ("podFailurePolicy", "batch/v1.PodFailurePolicy"),
        ("backoffLimitPerIndex", "int"),
        ("managedBy", "string"),
        ("successPolicy", "batch/v1.SuccessPolicy"),
    ] {
        immutable_pointer(&spec.child(field), &old_spec[field], kind, errors);
    }
}

/// The old template with the changes that a job may see which is suspended and never ran: where its pods may go.
/// `None` where there are no such changes.
fn with_allowed_changes(template: &Value, old: &Value) -> Option<Value> {
    let is_suspended = old["spec"]["suspend"].is_true();
    if !is_suspended || !old["status"]["startTime"].is_null() {
        return None;
    }
    let mut before = old["spec"]["template"].clone();
    let new_spec = &template["spec"];
    let spec = before.make("spec");
    let (new_affinity, has_old) = (&new_spec["affinity"], spec.has("affinity"));
    match (new_affinity.is_null(), has_old) {
        (true, true) => {
            spec["affinity"].remove("nodeAffinity");
            if spec["affinity"].is_empty() {
                spec.remove("affinity");
            }
        }
        (false, _) => keep(spec.make("affinity"), new_affinity, "nodeAffinity"),
        (true, false) => {}
    }
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        keep(spec, new_spec, field);
    }
    let metadata = before.make("metadata");
    for field in ["annotations", "labels"] {
        keep(metadata, &template["metadata"], field);
    }
    Some(before)
}
