//! Where a pod may run: affinities, tolerations, spreading, readiness and scheduling gates.

use super::options::PodOptions;
use crate::common::checks::{one_of, positive};
use crate::common::selectors::{
    SelectorOptions, validate_label_keys, validate_label_selector, validate_node_selector, validate_node_selector_term,
};
use crate::common::{At, push_faults, qualified_name};
use pintle_apimachinery::{ErrorList, FieldError, names};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// `affinity`, if it is set.
pub(super) fn validate_affinity(at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    let node = at.child("nodeAffinity");
    let required = node.child(REQUIRED);
    if required.is_set() {
        validate_node_selector(&required, options.allow_invalid_values_in_node_affinity, errors);
    }
    for term in node.child(PREFERRED).each() {
        validate_weight(&term, errors);
        // upstream never minds label values here
        validate_node_selector_term(&term.child("preference"), true, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = at.child(kind);
        affinity.child(REQUIRED).each().for_each(|term| validate_pod_affinity_term(&term, options, errors));
        for term in affinity.child(PREFERRED).each() {
            validate_weight(&term, errors);
            validate_pod_affinity_term(&term.child("podAffinityTerm"), options, errors);
        }
    }
}

fn validate_weight(term: &At<'_>, errors: &mut ErrorList) {
    let weight = term.child("weight");
    if !(1..=100).contains(&weight.int()) {
        errors.push(weight.invalid_int("must be in the range 1-100"));
    }
}

fn validate_pod_affinity_term(at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    let selector_options = SelectorOptions {
        allow_invalid_values: options.allow_invalid_values_in_selector,
        ..SelectorOptions::default()
    };
    validate_label_selector(&at.child("labelSelector"), selector_options, errors);
    validate_label_selector(&at.child("namespaceSelector"), selector_options, errors);
    let namespaces = At::new(&at.value()["namespaces"], at.path().child("namespace"));
    for namespace in namespaces.items() {
        let namespace = At::new(namespace, *namespaces.path());
        push_faults(&namespace, names::dns1123_label(namespace.text()), errors);
    }
    validate_label_keys(at, errors);
    let key = at.child("topologyKey");
    if key.text().is_empty() {
        errors.push(key.required("can not be empty"));
    }
    qualified_name(&key, errors);
}

/// `tolerations`.
pub fn validate_tolerations(at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    for toleration in at.each() {
        let (key, operator, effect) =
            (toleration.child("key"), toleration.child("operator"), toleration.child("effect"));
        if !key.text().is_empty() {
            qualified_name(&key, errors);
        } else if operator.text() != "Exists" {
            let rule = r#"operator must be Exists when `key` is empty, which means "match all values and all keys""#;
            errors.push(operator.invalid(rule));
        }
        if toleration.child("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            errors.push(effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set"));
        }
        validate_toleration_value(&toleration, options, errors);
        if !effect.text().is_empty() {
            one_of(&effect, TAINT_EFFECTS, errors);
        }
    }
}

/// The effects of taints, as upstream tells them.
pub const TAINT_EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

fn validate_toleration_value(toleration: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    let (operator, value) = (toleration.child("operator"), toleration.child("value"));
    match operator.text() {
        "" | "Equal" => {
            let faults = names::label_value(value.text());
            if !faults.is_empty() {
                errors.push(operator.invalid_showing(value.text(), faults.join(";")));
            }
        }
        "Exists" => {
            if !value.text().is_empty() {
                errors.push(operator.invalid_showing(value.text(), "value must be empty when `operator` is 'Exists'"));
            }
        }
        "Lt" | "Gt" if options.allow_comparison_operators => validate_compared_value(&value, errors),
        "Lt" | "Gt" => errors.push(operator.not_supported(&["Equal", "Exists", "Lt", "Gt"])),
        _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
    }
}

fn validate_compared_value(at: &At<'_>, errors: &mut ErrorList) {
    let text = at.text();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_decimal =
        text == "0" || (!digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()));
    if !is_decimal {
        errors.push(at.invalid("must be a valid decimal integer in canonical form"));
    }
    if text.parse::<i64>().is_err() {
        let shown = pintle_apimachinery::field::go_quote(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        errors.push(at.invalid(format!("strconv.ParseInt: parsing {shown}: {why}")));
    }
}

/// `readinessGates`.
pub(super) fn validate_readiness_gates(at: &At<'_>, errors: &mut ErrorList) {
    at.each().for_each(|gate| qualified_name(&gate.child("conditionType"), errors));
}

/// `schedulingGates`. Upstream names the item, not its name.
pub(super) fn validate_scheduling_gates(at: &At<'_>, errors: &mut ErrorList) {
    for (idx, gate) in at.each().enumerate() {
        let name = At::new(&gate.value()["name"], *gate.path());
        qualified_name(&name, errors);
        if at.items()[..idx].iter().any(|before| before["name"] == *name.value()) {
            errors.push(name.duplicate());
        }
    }
}

/// `topologySpreadConstraints`.
pub(super) fn validate_spread_constraints(at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    for (idx, constraint) in at.each().enumerate() {
        positive(&constraint.child("maxSkew"), errors);
        let (key, action) = (constraint.child("topologyKey"), constraint.child("whenUnsatisfiable"));
        if key.text().is_empty() {
            errors.push(key.required("can not be empty"));
        }
        one_of(&action, &["DoNotSchedule", "ScheduleAnyway"], errors);
        let is_same = |other: &pintle_apimachinery::Value| {
            other["topologyKey"] == *key.value() && other["whenUnsatisfiable"] == *action.value()
        };
        if at.items()[idx + 1..].iter().any(is_same) {
            let path = constraint.path().child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, format!("{{{}, {}}}", key.text(), action.text())));
        }
        let domains = constraint.child("minDomains");
        if domains.is_set() {
            positive(&domains, errors);
            if action.text() != "DoNotSchedule" {
                let given = action.text();
                let rule = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {given}");
                errors.push(domains.invalid_int(rule));
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            super::security::optional_one_of(&constraint.child(policy), &["Honor", "Ignore"], errors);
        }
        if options.old_has_invalid_label_keys {
            validate_label_keys_as_before(&constraint, errors);
        } else {
            validate_label_keys(&constraint, errors);
        }
        if !options.allow_invalid_spread_selector {
            validate_label_selector(&constraint.child("labelSelector"), SelectorOptions::default(), errors);
        }
    }
}

/// What was asked of `matchLabelKeys` before v1.34; still asked where the old object does not meet the new rule.
fn validate_label_keys_as_before(constraint: &At<'_>, errors: &mut ErrorList) {
    let (keys, selector) = (constraint.child("matchLabelKeys"), constraint.child("labelSelector"));
    if keys.items().is_empty() {
        return;
    }
    if !selector.is_set() {
        errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
    }
    for key in keys.each() {
        qualified_name(&key, errors);
        let is_selected = selector["matchLabels"].has(key.text())
            || selector["matchExpressions"].items().iter().any(|e| e["key"] == *key.value());
        if is_selected {
            errors.push(key.invalid("exists in both matchLabelKeys and labelSelector"));
        }
    }
}
