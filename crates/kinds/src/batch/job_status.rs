//! `jobs/status`: what a controller may say of a job, and what it may not take back.
//!
//! Follows: pkg/apis/batch/validation/validation.go and pkg/registry/batch/job (v1.35). Most rules hold only when the
//! fields they are about change, so that a job which broke one already can still be written.

use super::indexes::{count, overlap};
use crate::common::At;
use crate::common::equality::semantic;
use crate::common::goform::compact;
use crate::prepare::keep;
use crate::workload::validate_counts;
use crate::{MetadataRounds, RequestInfo, UpdateStrategy};
use pintle_apimachinery::time::parse_time;
use pintle_apimachinery::{ErrorList, FieldError, Value};

#[derive(Debug)]
pub(super) struct JobStatus;

impl UpdateStrategy for JobStatus {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let (status, before) = (At::top(object, "status"), &old["status"]);
        let check = Check { status: &status, before, spec: &object["spec"] };
        check.counts(&mut errors);
        check.conditions_and_times(&mut errors);
        check.finished(&mut errors);
        check.indexes(&mut errors);
        check.pods(&mut errors);
        check.success(&mut errors);
        check.nothing_taken_back(&mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }
}

/// Whether the status has a condition of this type and status.
fn has_condition(status: &Value, kind: &str, is: &str) -> bool {
    let mut conditions = status["conditions"].items().iter();
    conditions.any(|c| c["type"].as_str() == Some(kind) && c["status"].as_str() == Some(is))
}

fn is_true(status: &Value, kind: &str) -> bool {
    has_condition(status, kind, "True")
}

fn is_finished(status: &Value) -> bool {
    is_true(status, "Complete") || is_true(status, "Failed")
}

/// The status at hand and the one before it.
struct Check<'c> {
    status: &'c At<'c>,
    before: &'c Value,
    spec: &'c Value,
}

impl Check<'_> {
    /// Whether a field of the status changed.
    fn changes(&self, field: &str) -> bool {
        self.status[field] != self.before[field]
    }

    /// Whether a condition appears or vanishes.
    fn turns(&self, kind: &str) -> bool {
        is_true(self.status, kind) != is_true(self.before, kind)
    }

    fn finishes(&self) -> bool {
        is_finished(self.status) != is_finished(self.before)
    }

    fn bad_conditions(&self, rule: &str, errors: &mut ErrorList) {
        errors.push(FieldError::invalid_omit_value(self.status.child("conditions").path(), rule));
    }

    fn int(&self, field: &str) -> i64 {
        self.status[field].as_i64().unwrap_or_default()
    }

    fn counts(&self, errors: &mut ErrorList) {
        validate_counts(self.status, &["active", "succeeded", "failed", "ready", "terminating"], errors);
        let uncounted = self.status.child("uncountedTerminatedPods");
        let mut seen: Vec<&str> = Vec::new();
        for list in ["succeeded", "failed"] {
            for (uid, value) in
                uncounted.child(list).each().zip(self.status.value()["uncountedTerminatedPods"][list].items())
            {
                let text = value.str_or_empty();
                if text.is_empty() {
                    errors.push(uid.invalid("must not be empty"));
                } else if seen.contains(&text) {
                    errors.push(uid.duplicate());
                } else {
                    seen.push(text);
                }
            }
        }
    }

    fn conditions_and_times(&self, errors: &mut ErrorList) {
        let (is_complete, is_failed) = (is_true(self.status, "Complete"), is_true(self.status, "Failed"));
        let completes = self.turns("Complete");
        let (start, end) = (self.status.child("startTime"), self.status.child("completionTime"));
        if (completes || self.turns("Failed")) && is_complete && is_failed {
            self.bad_conditions("cannot set Complete=True and Failed=true conditions", errors);
        }
        let has_failure_target = is_true(self.status, "FailureTarget");
        if (completes || self.turns("FailureTarget")) && is_complete && has_failure_target {
            self.bad_conditions("cannot set Complete=True and FailureTarget=true conditions", errors);
        }
        if completes || self.changes("completionTime") {
            if end.is_set() && !is_complete {
                errors.push(end.invalid("cannot set completionTime when there is no Complete=True condition"));
            }
            if !end.is_set() && is_complete {
                errors.push(end.required("completionTime is required for Complete jobs"));
            }
        }
        let is_before =
            matches!((parse_time(end.text()), parse_time(start.text())), (Some(end), Some(start)) if end < start);
        if (self.changes("startTime") || self.changes("completionTime")) && is_before {
            errors.push(end.invalid("must be equal to or after `startTime`"));
        }
        if (self.turns("Failed") || self.changes("failedIndexes")) && is_failed && !has_failure_target {
            self.bad_conditions("cannot set Failed=True condition without the FailureTarget=true condition", errors);
        }
        let is_met = is_true(self.status, "SuccessCriteriaMet");
        if (completes || self.turns("SuccessCriteriaMet")) && is_complete && !is_met {
            self.bad_conditions(
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
                errors,
            );
        }
    }

    fn finished(&self, errors: &mut ErrorList) {
        if !is_finished(self.status) {
            return;
        }
        let finishes = self.finishes();
        let active = self.status.child("active");
        if (finishes || self.changes("active")) && active.int() > 0 {
            errors.push(active.invalid_int("active>0 is invalid for finished job"));
        }
        let start = self.status.child("startTime");
        let never_runs = self.spec["suspend"].is_true() && self.spec["completions"].as_i64() == Some(0);
        if (finishes || self.changes("startTime")) && !never_runs && !start.is_set() {
            errors.push(start.required("startTime is required for finished job"));
        }
        let uncounted = self.status.child("uncountedTerminatedPods");
        const TYPE: &str = "batch/v1.UncountedTerminatedPods";
        let changes = !semantic(uncounted.value(), &self.before["uncountedTerminatedPods"], TYPE);
        let has_any = !uncounted["failed"].items().is_empty() || !uncounted["succeeded"].items().is_empty();
        if (finishes || changes) && has_any {
            let shown = compact(uncounted.value(), TYPE);
            errors.push(FieldError { shown: Some(shown), ..uncounted.invalid("must be empty for finished job") });
        }
    }

    fn indexes(&self, errors: &mut ErrorList) {
        let (completed, failed) = (self.status.child("completedIndexes"), self.status.child("failedIndexes"));
        let (completes, fails) = (self.changes("completedIndexes"), self.changes("failedIndexes"));
        let completions = self.spec["completions"].as_i64();
        let has_limit = self.spec.has("backoffLimitPerIndex");
        let validate = |at: &At<'_>, name: &str, errors: &mut ErrorList| {
            if let Some(Err(fault)) = completions.map(|completions| count(at.text(), completions)) {
                errors.push(at.invalid(format!("error parsing {name}: {fault}")));
            }
        };
        if completes {
            validate(&completed, "completedIndexes", errors);
        }
        if fails && has_limit && failed.is_set() {
            validate(&failed, "failedIndexes", errors);
        }
        let is_indexed = self.spec["completionMode"].as_str() == Some("Indexed");
        if completes && !completed.text().is_empty() && !is_indexed {
            errors.push(completed.invalid("cannot set non-empty completedIndexes when non-indexed completion mode"));
        }
        if fails && !has_limit && failed.is_set() {
            errors.push(failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null"));
        }
        if (completes || fails) && failed.is_set() {
            let both = completions.and_then(|completions| overlap(completed.text(), failed.text(), completions));
            if let Some(index) = both {
                errors.push(failed.invalid(format!("failedIndexes and completedIndexes overlap at index: {index}")));
            }
        }
    }

    fn pods(&self, errors: &mut ErrorList) {
        let terminating = self.status.child("terminating");
        if (self.finishes() || self.changes("terminating")) && is_finished(self.status) && terminating.int() > 0 {
            errors.push(terminating.invalid_int("terminating>0 is invalid for finished job"));
        }
        let ready = self.status.child("ready");
        let may_differ = self.changes("ready") || self.changes("active");
        if may_differ && ready.is_set() && ready.int() > self.int("active") {
            errors.push(ready.invalid_int("cannot set more ready pods than active"));
        }
    }

    fn success(&self, errors: &mut ErrorList) {
        let is_met = is_true(self.status, "SuccessCriteriaMet");
        if is_met && is_true(self.status, "Failed") {
            self.bad_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions", errors);
        }
        if is_met && is_true(self.status, "FailureTarget") {
            self.bad_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", errors);
        }
        if self.spec.has("successPolicy") && !is_met && is_true(self.status, "Complete") {
            let rule = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            self.bad_conditions(rule, errors);
        }
    }

    fn nothing_taken_back(&self, errors: &mut ErrorList) {
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if is_true(self.before, kind) && !is_true(self.status, kind) {
                self.bad_conditions(&format!("cannot disable the terminal {kind}=True condition"), errors);
            }
        }
        let is_less = |field: &str| self.int(field) < self.before[field].as_i64().unwrap_or_default();
        if is_less("failed") {
            errors.push(self.status.child("failed").invalid_int("cannot decrease the failed counter"));
        }
        let is_indexed = self.spec["completionMode"].as_str() == Some("Indexed");
        let may_shrink = is_indexed && self.spec["completions"] == self.spec["parallelism"];
        if is_less("succeeded") && !may_shrink {
            errors.push(self.status.child("succeeded").invalid_int("cannot decrease the succeeded counter"));
        }
        let end = self.status.child("completionTime");
        if end.is_set() && !self.before["completionTime"].is_null() && self.changes("completionTime") {
            errors.push(end.invalid(crate::meta::IMMUTABLE));
        }
        let is_resuming = is_true(self.before, "Suspended") && has_condition(self.status, "Suspended", "False");
        let had_start = !self.before["startTime"].is_null();
        if had_start && self.changes("startTime") && !is_resuming && !self.spec["suspend"].is_true() {
            let start = self.status.child("startTime");
            errors.push(start.required("startTime cannot be removed for unsuspended job"));
        }
        let (was_met, is_met) =
            (is_true(self.before, "SuccessCriteriaMet"), is_true(self.status, "SuccessCriteriaMet"));
        if was_met && !is_met {
            self.bad_conditions("cannot disable the SuccessCriteriaMet=True condition", errors);
        }
        if is_true(self.before, "Complete") && !was_met && is_met {
            let rule = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            self.bad_conditions(rule, errors);
        }
    }
}
