//! CronJobs and their status.
//!
//! Follows: pkg/apis/batch/{v1/defaults.go,validation}, pkg/registry/batch/cronjob (v1.35).

use super::cron::{Schedule, time_zone};
use super::job::{set_job_spec_defaults, spec_warnings};
use super::job_validate::validate_job_spec;
use crate::common::checks::{one_of_required, required};
use crate::common::{At, nonnegative};
use crate::core::pod::{PodOptions, drop_disabled_spec_fields, name_warning};
use crate::prepare::{StatusMetadata, StatusSubresource, anything_goes, clear_status, keep, start_generation};
use crate::workload::{POD_NAME_WARNING, raise_generation, showing_selector};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// The strategy of CronJobs.
#[derive(Debug)]
pub struct CronJob;

/// Longest name: what is appended to it must leave a DNS label.
const NAME_BYTES_MAX: usize = 52;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Changes, rounds: MetadataRounds::NONE, validate: anything_goes };

const TEMPLATE_SPEC: &str = "spec.jobTemplate.spec.template.spec";

impl UpdateStrategy for CronJob {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        drop_disabled_spec_fields(object.make(TEMPLATE_SPEC), old.at(TEMPLATE_SPEC));
        raise_generation(object, old, "batch/v1.CronJobSpec");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let options = PodOptions::of_template(old.at("spec.jobTemplate.spec.template"));
        validate_spec(object, Some(&old["spec"]), &options, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        let is_same = object.generation() == old.generation();
        let mut warnings = if is_same { Vec::new() } else { spec_warnings(object, "spec.jobTemplate.spec") };
        if object["spec"]["schedule"].str_or_empty().contains("TZ") {
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        warnings
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for CronJob {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        spec.set_default("concurrencyPolicy", "Allow");
        spec.set_default("suspend", false);
        spec.set_default("successfulJobsHistoryLimit", 3);
        spec.set_default("failedJobsHistoryLimit", 1);
        set_job_spec_defaults(spec.make("jobTemplate.spec"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "batch/v1.CronJobStatus");
        start_generation(object);
        drop_disabled_spec_fields(object.make(TEMPLATE_SPEC), &Value::NULL);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(object, None, &PodOptions::TEMPLATE, &mut errors);
        if object.name().len() > NAME_BYTES_MAX {
            let metadata = At::top(object, "metadata");
            let rule = format!("must be no more than {NAME_BYTES_MAX} characters");
            errors.push(metadata.child("name").invalid(rule));
        }
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        let mut warnings = name_warning(object, POD_NAME_WARNING);
        warnings.extend(spec_warnings(object, "spec.jobTemplate.spec"));
        warnings
    }

    fn subresource(&self, name: &str) -> Option<&dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}

/// `old` is the spec before, `None` on create.
fn validate_spec(object: &Value, old: Option<&Value>, options: &PodOptions, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let schedule = spec.child("schedule");
    if required(&schedule, errors) {
        let was_zoned = old.is_some_and(|old| old["schedule"].str_or_empty().contains("TZ"));
        validate_schedule(&schedule, was_zoned, spec.has("timeZone"), errors);
    }
    nonnegative(&spec.child("startingDeadlineSeconds"), errors);
    let zone = spec.child("timeZone");
    if zone.is_set() && old.is_none_or(|old| old["timeZone"] != *zone.value()) {
        validate_time_zone(&zone, errors);
    }
    one_of_required(&spec.child("concurrencyPolicy"), &["Allow", "Forbid", "Replace"], errors);
    validate_job_template(&spec.descend("jobTemplate.spec"), options, errors);
    nonnegative(&spec.child("successfulJobsHistoryLimit"), errors);
    nonnegative(&spec.child("failedJobsHistoryLimit"), errors);
}

fn validate_schedule(at: &At<'_>, was_zoned: bool, has_zone_field: bool, errors: &mut ErrorList) {
    if let Err(fault) = Schedule::parse(at.text()) {
        errors.push(at.invalid(fault));
    }
    if at.text().contains("TZ") {
        if !was_zoned {
            errors.push(at.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
        } else if has_zone_field {
            errors.push(at.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
        }
    }
}

fn validate_time_zone(at: &At<'_>, errors: &mut ErrorList) {
    let name = at.text();
    let unknown = || at.invalid(format!("unknown time zone {name}"));
    if name.is_empty() {
        errors.push(at.invalid("timeZone must be nil or non-empty string"));
        return;
    }
    let is_part = |part: &str| {
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
    };
    if !name.split('/').all(is_part) {
        errors.push(unknown());
        return;
    }
    if name.eq_ignore_ascii_case("Local") {
        let rule = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(at.invalid(rule));
    }
    if name != "Local" && time_zone(name).is_none() {
        errors.push(unknown());
    }
}

fn validate_job_template(spec: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    validate_job_spec(spec, options, errors);
    let (selector, manual) = (spec.child("selector"), spec.child("manualSelector"));
    if selector.is_set() {
        errors.push(showing_selector(&selector, "`selector` will be auto-generated"));
    }
    if manual.is_true() {
        errors.push(FieldError::not_supported(manual.path(), true, &["nil", "false"]));
    }
}
