//! What the kinds that make pods from a template share: selectors that must match the template, templates of pods that
//! run for ever, counts in statuses, generations.
//!
//! Follows: pkg/apis/apps/validation/validation.go (v1.35).

use crate::common::checks::NEGATIVE;
use crate::common::equality::semantic;
use crate::common::goform::compact;
use crate::common::selectors::{SelectorOptions, validate_label_selector};
use crate::common::{At, immutable, nonnegative, push_faults};
use crate::core::pod::{PodOptions, validate_template};
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::{ErrorList, FieldError, Value, names};

/// What is said of names that end up in host names.
pub(crate) const POD_NAME_WARNING: &str =
    "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended";

/// Raises the generation if the spec (of this type) changed in meaning.
pub(crate) fn raise_generation(object: &mut Value, old: &Value, type_name: &str) {
    if !semantic(&object["spec"], &old["spec"], type_name) {
        set_meta(object, "generation", old.generation() + 1);
    }
}

/// A required selector that selects something. `kind` is what messages call the kind.
pub(crate) fn validate_selector(at: &At<'_>, kind: &str, errors: &mut ErrorList) {
    if !at.is_set() {
        errors.push(at.required(""));
        return;
    }
    validate_label_selector(at, SelectorOptions::default(), errors);
    validate_not_empty(at, kind, errors);
}

/// A selector, if it is set, that selects something.
pub(crate) fn validate_not_empty(at: &At<'_>, kind: &str, errors: &mut ErrorList) {
    if at.is_set() && at["matchLabels"].entries().len() + at["matchExpressions"].items().len() == 0 {
        errors.push(showing_selector(at, format!("empty selector is invalid for {kind}")));
    }
}

/// An error about a whole selector, shown as upstream shows it.
pub(crate) fn showing_selector(at: &At<'_>, rule: impl Into<String>) -> FieldError {
    FieldError { shown: Some(compact(at.value(), "*meta/v1.LabelSelector")), ..at.invalid(rule) }
}

/// The selector as one; `None` when it is malformed. An absent one selects nothing.
pub(crate) fn parsed_selector(at: &Value) -> Option<Selector> {
    Selector::from_object(at).ok()
}

/// The labels of a template must be selected. An empty selector counts as matching if `is_empty_fine`.
pub(crate) fn validate_template_is_selected(
    selector: &Selector,
    template: &At<'_>,
    is_empty_fine: bool,
    errors: &mut ErrorList,
) {
    let labels = template.descend("metadata.labels");
    if (is_empty_fine && selector.is_everything()) || selector.matches(labels.value()) {
        return;
    }
    errors.push(not_selected(&labels));
}

/// The error of template labels that the selector does not match.
pub(crate) fn not_selected(labels: &At<'_>) -> FieldError {
    let shown = compact(labels.value(), "{}string");
    FieldError { shown: Some(shown), ..labels.invalid("`selector` does not match template `labels`") }
}

/// A template of pods that are always restarted and never end by themselves.
pub(crate) fn validate_endless_template(template: &At<'_>, kind: &str, options: &PodOptions, errors: &mut ErrorList) {
    validate_template(template, options, errors);
    validate_endless(template, kind, errors);
}

/// The part of [`validate_endless_template`] after the template itself.
pub(crate) fn validate_endless(template: &At<'_>, kind: &str, errors: &mut ErrorList) {
    let policy = template.descend("spec.restartPolicy");
    if policy.text() != "Always" {
        errors.push(policy.not_supported(&["Always"]));
    }
    let deadline = template.descend("spec.activeDeadlineSeconds");
    if deadline.is_set() {
        errors.push(deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

/// The selector of an existing object stays.
pub(crate) fn validate_selector_stays(spec: &At<'_>, old: &Value, errors: &mut ErrorList) {
    immutable_pointer(&spec.child("selector"), &old["spec"]["selector"], "meta/v1.LabelSelector", errors);
}

/// [`immutable`] for a pointer: an empty struct is not the same as none.
pub(crate) fn immutable_pointer(at: &At<'_>, old: &Value, type_name: &str, errors: &mut ErrorList) {
    if at.value() == old {
        return;
    }
    if at.value().is_null() != old.is_null() {
        let shown = compact(at.value(), &format!("*{type_name}"));
        errors.push(FieldError { shown: Some(shown), ..at.invalid(crate::meta::IMMUTABLE) });
    } else {
        immutable(at, old, type_name, errors);
    }
}

/// Counts of a status, none of them negative.
pub(crate) fn validate_counts(status: &At<'_>, counts: &[&str], errors: &mut ErrorList) {
    counts.iter().for_each(|count| nonnegative(&status.child(count), errors));
}

/// Counts of a status that cannot be greater than another one; `told` is what messages call that one.
pub(crate) fn validate_at_most(status: &At<'_>, counts: &[&str], most: &str, told: &str, errors: &mut ErrorList) {
    let most = status[most].as_i64().unwrap_or_default();
    for count in counts.iter().map(|count| status.child(count)).filter(|count| count.int() > most) {
        errors.push(count.invalid_int(format!("cannot be greater than {told}")));
    }
}

/// The collision count only grows.
pub(crate) fn validate_collisions(status: &At<'_>, old: &Value, errors: &mut ErrorList) {
    let count = status.child("collisionCount");
    let is_less = match (count.as_i64(), old["status"]["collisionCount"].as_i64()) {
        (None, Some(_)) => true,
        (Some(now), Some(before)) => now < before,
        (_, None) => false,
    };
    if is_less {
        errors.push(count.invalid_int("cannot be decremented"));
    }
}

/// A count, or a share in percent.
pub(crate) fn validate_int_or_percent(at: &At<'_>, errors: &mut ErrorList) {
    match at.as_str() {
        Some(text) => push_faults(at, names::percent(text), errors),
        None if at.int() < 0 => errors.push(at.invalid_int(NEGATIVE)),
        None => {}
    }
}

/// A share of at most everything.
pub(crate) fn validate_at_most_all(at: &At<'_>, errors: &mut ErrorList) {
    let share = at.as_str().and_then(pintle_apimachinery::intstr::percent);
    if share.is_some_and(|share| share > 100) {
        errors.push(at.invalid("must not be greater than 100%"));
    }
}

/// The number of a count or share; 0 for what is neither.
pub(crate) fn int_or_percent(value: &Value) -> i64 {
    match value.as_str() {
        Some(text) => pintle_apimachinery::intstr::percent(text).or_else(|| text.parse().ok()).unwrap_or_default(),
        None => value.as_i64().unwrap_or_default(),
    }
}
