//! Validation of job specs, in jobs and in the templates of cron jobs.
//!
//! Follows: pkg/apis/batch/validation/validation.go (v1.35), in its order.

use super::indexes::count;
use crate::common::checks::required;
use crate::common::goform::compact;
use crate::common::{At, nonnegative, one_of, qualified_name};
use crate::core::pod::{PodOptions, validate_template};
use pintle_apimachinery::names::{self, regex_fault};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// Pods that an indexed job may run at once.
const INDEXED_PARALLELISM_MAX: i64 = 100_000;
/// Indexes of a job that may fail.
const FAILED_INDEXES_MAX: i64 = 100_000;
/// Above so many completions, fewer pods may run at once and fewer indexes may fail.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
/// Pods at once, and failed indexes, of a job with very many completions.
const HIGH_COMPLETIONS_MAX: i64 = 10_000;
/// Rules of one pod failure policy, and of one success policy.
const RULES_MAX: usize = 20;
/// Exit codes of one rule.
const EXIT_CODES_MAX: usize = 255;
/// Condition patterns of one rule.
const PATTERNS_MAX: usize = 20;
/// Longest `managedBy`.
const MANAGED_BY_BYTES_MAX: usize = 63;
/// Longest `succeededIndexes`.
const SUCCEEDED_INDEXES_BYTES_MAX: usize = 64 * 1024;

/// A job spec, its selector left out.
pub(super) fn validate_job_spec(spec: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        nonnegative(&spec.child(field), errors);
    }
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        errors.push(spec.child("backoffLimitPerIndex").required("when maxFailedIndexes is specified"));
    }
    validate_managed_by(&spec.child("managedBy"), errors);
    let mode = spec.child("completionMode");
    if mode.is_set() {
        one_of(&mode, &["NonIndexed", "Indexed"], errors);
    }
    if mode.text() == "Indexed" {
        validate_indexed(spec, errors);
    }
    if matches!(mode.as_str(), None | Some("NonIndexed")) {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            let field = spec.child(field);
            if field.is_set() {
                errors.push(field.invalid_int("requires indexed completion mode"));
            }
        }
    }
    validate_failure_policy(spec, errors);
    validate_success_policy(spec, errors);
    let replacement = spec.child("podReplacementPolicy");
    if replacement.is_set() {
        let has_failure_policy = spec.has("podFailurePolicy");
        let supported: &[&str] = if has_failure_policy { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        one_of(&replacement, supported, errors);
    }
    let template = spec.child("template");
    validate_template(&template, options, errors);
    validate_restart_policy(spec, &template.descend("spec.restartPolicy"), errors);
}

fn validate_restart_policy(spec: &Value, policy: &At<'_>, errors: &mut ErrorList) {
    match policy.text() {
        "" | "Always" => errors.push(policy.required(r#"valid values: "OnFailure", "Never""#)),
        "Never" => {}
        "OnFailure" if spec.has("podFailurePolicy") => {
            errors.push(policy.invalid(r#"only "Never" is supported when podFailurePolicy is specified"#));
        }
        "OnFailure" => {}
        _ => errors.push(policy.not_supported(&["OnFailure", "Never"])),
    }
}

/// A path under a domain: `acme.io/foo`.
fn validate_managed_by(at: &At<'_>, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    if required(at, errors) {
        match at.text().split_once('/') {
            Some((host, path)) if !host.is_empty() && !path.is_empty() => {
                errors.extend(names::dns1123_subdomain(host).into_iter().map(|f| at.invalid_showing(host, f)));
                let is_path_byte = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
                if !path.bytes().all(is_path_byte) {
                    let rule = regex_fault("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
                    errors.push(at.invalid_showing(path, rule));
                }
            }
            _ => errors.push(at.invalid(r#"must be a domain-prefixed path (such as "acme.io/foo")"#)),
        }
    }
    if at.text().len() > MANAGED_BY_BYTES_MAX {
        errors.push(at.too_long(MANAGED_BY_BYTES_MAX));
    }
}

fn validate_indexed(spec: &At<'_>, errors: &mut ErrorList) {
    let (completions, parallelism, failed) =
        (spec.child("completions"), spec.child("parallelism"), spec.child("maxFailedIndexes"));
    if !completions.is_set() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    let at_most = |at: &At<'_>, most: i64, when: &str, errors: &mut ErrorList| {
        if at.int() > most {
            errors.push(at.invalid_int(format!("must be less than or equal to {most}{when}")));
        }
    };
    at_most(&parallelism, INDEXED_PARALLELISM_MAX, " when completion mode is Indexed", errors);
    if completions.is_set() && failed.is_set() && failed.int() > completions.int() {
        errors.push(failed.invalid_int("must be less than or equal to completions"));
    }
    at_most(&failed, FAILED_INDEXES_MAX, "", errors);
    if completions.int() > COMPLETIONS_SOFT_MAX && spec.has("backoffLimitPerIndex") {
        if !failed.is_set() {
            let rule = format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
            errors.push(failed.required(rule));
        }
        let when = format!(" when completions are above {COMPLETIONS_SOFT_MAX} and used with backoff limit per index");
        at_most(&parallelism, HIGH_COMPLETIONS_MAX, &when, errors);
        at_most(&failed, HIGH_COMPLETIONS_MAX, &when, errors);
    }
}

fn validate_failure_policy(spec: &At<'_>, errors: &mut ErrorList) {
    let policy = spec.child("podFailurePolicy");
    let rules = policy.child("rules");
    let n_rules = rules.items().len();
    if n_rules > RULES_MAX {
        errors.push(FieldError::too_many(rules.path(), n_rules, RULES_MAX));
    }
    for rule in rules.each() {
        validate_failure_rule(spec, &rule, errors);
    }
}

/// `valid values: ["A" "B"]`, as Go prints lists of quoted strings.
fn valid_values(values: &[&str]) -> String {
    format!("valid values: [\"{}\"]", values.join("\" \""))
}

/// [`one_of`] that tells the values of what is required, too.
fn one_of_told(at: &At<'_>, supported: &[&str], errors: &mut ErrorList) {
    if at.text().is_empty() {
        errors.push(at.required(valid_values(supported)));
    } else {
        one_of(at, supported, errors);
    }
}

fn validate_failure_rule(spec: &Value, rule: &At<'_>, errors: &mut ErrorList) {
    let action = rule.child("action");
    one_of_told(&action, &["Count", "FailIndex", "FailJob", "Ignore"], errors);
    if action.text() == "FailIndex" && !spec.has("backoffLimitPerIndex") {
        errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
    }
    let (codes, conditions) = (rule.child("onExitCodes"), rule.child("onPodConditions"));
    let has_conditions = !conditions.items().is_empty();
    if codes.is_set() {
        validate_exit_codes(&spec["template"]["spec"], &codes, errors);
    }
    validate_conditions(&conditions, errors);
    let fault = match (codes.is_set(), has_conditions) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.push(FieldError::invalid_omit_value(rule.path(), fault));
}

fn validate_conditions(at: &At<'_>, errors: &mut ErrorList) {
    let n_patterns = at.items().len();
    if n_patterns > PATTERNS_MAX {
        errors.push(FieldError::too_many(at.path(), n_patterns, PATTERNS_MAX));
    }
    for pattern in at.each() {
        qualified_name(&pattern.child("type"), errors);
        one_of_told(&pattern.child("status"), &["False", "True", "Unknown"], errors);
    }
}

fn validate_exit_codes(pod_spec: &Value, at: &At<'_>, errors: &mut ErrorList) {
    let operator = at.child("operator");
    one_of_told(&operator, &["In", "NotIn"], errors);
    let container = at.child("containerName");
    let is_named = |list: &str| pod_spec[list].items().iter().any(|c| c["name"].str_or_empty() == container.text());
    if container.is_set() && !is_named("containers") && !is_named("initContainers") {
        let rule = "must be one of the container or initContainer names in the pod template";
        errors.push(container.invalid(rule));
    }
    let values = at.child("values");
    let n_values = values.items().len();
    let showing = |rule: &str| FieldError { shown: Some(compact(values.value(), "[]int")), ..values.invalid(rule) };
    if n_values == 0 {
        errors.push(showing("at least one value is required"));
    } else if n_values > EXIT_CODES_MAX {
        errors.push(FieldError::too_many(values.path(), n_values, EXIT_CODES_MAX));
    }
    for (idx, value) in values.each().enumerate() {
        if operator.text() == "In" && value.int() == 0 {
            errors.push(value.invalid_int("must not be 0 for the In operator"));
        }
        if values.items()[..idx].contains(value.value()) {
            errors.push(FieldError::duplicate(value.path(), value.int()));
        }
    }
    if !values.items().is_sorted_by_key(|value| value.as_i64().unwrap_or_default()) {
        errors.push(showing("must be ordered"));
    }
}

fn validate_success_policy(spec: &At<'_>, errors: &mut ErrorList) {
    let policy = spec.child("successPolicy");
    if !policy.is_set() {
        return;
    }
    if spec["completionMode"].as_str() != Some("Indexed") {
        let shown = compact(policy.value(), "batch/v1.SuccessPolicy");
        errors.push(FieldError { shown: Some(shown), ..policy.invalid("requires indexed completion mode") });
        return;
    }
    let rules = policy.child("rules");
    let n_rules = rules.items().len();
    if n_rules == 0 {
        errors.push(rules.required("at least one rules must be specified when the successPolicy is specified"));
    }
    if n_rules > RULES_MAX {
        errors.push(FieldError::too_many(rules.path(), n_rules, RULES_MAX));
    }
    let completions = spec["completions"].as_i64().unwrap_or_default();
    rules.each().for_each(|rule| validate_success_rule(&rule, completions, errors));
}

fn validate_success_rule(rule: &At<'_>, completions: i64, errors: &mut ErrorList) {
    let (indexes, wanted) = (rule.child("succeededIndexes"), rule.child("succeededCount"));
    if !indexes.is_set() && !wanted.is_set() {
        errors.push(rule.required("at least one of succeededCount or succeededIndexes must be specified"));
    }
    let mut n_indexes = 0;
    if indexes.is_set() {
        if indexes.text().len() > SUCCEEDED_INDEXES_BYTES_MAX {
            errors.push(indexes.too_long(SUCCEEDED_INDEXES_BYTES_MAX));
        }
        match count(indexes.text(), completions) {
            Ok(n) => n_indexes = n,
            Err(fault) => errors.push(indexes.invalid(format!("error parsing succeededIndexes: {fault}"))),
        }
    }
    if wanted.is_set() {
        nonnegative(&wanted, errors);
        if wanted.int() > completions {
            errors.push(wanted.invalid_int(format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            )));
        }
        if indexes.is_set() && wanted.int() > n_indexes {
            errors.push(wanted.invalid_int(format!(
                "must be less than or equal to {n_indexes} (the number of indexes in the specified succeededIndexes field)"
            )));
        }
    }
}
