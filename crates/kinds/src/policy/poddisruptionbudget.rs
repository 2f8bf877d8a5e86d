//! PodDisruptionBudgets and their status.

use crate::common::checks::{at_most_100_percent, int_or_percent, nonnegative, one_of};
use crate::common::conditions::validate_conditions;
use crate::common::selectors::{SelectorOptions, is_invalid, validate_label_selector};
use crate::common::{At, goform};
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep, raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// The strategy of PodDisruptionBudgets.
#[derive(Debug)]
pub struct PodDisruptionBudget;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Changes, rounds: MetadataRounds::NONE, validate: validate_status };

impl UpdateStrategy for PodDisruptionBudget {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        raise_generation(object, old, &["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let allow_invalid_values = is_invalid(old.at("spec.selector"), SelectorOptions::default());
        validate(object, SelectorOptions { allow_invalid_values, ..SelectorOptions::default() })
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NONE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for PodDisruptionBudget {
    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        names::path_segment(name, is_prefix)
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "policy/v1.PodDisruptionBudgetStatus");
        start_generation(object);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object, SelectorOptions::default())
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}

fn validate(object: &Value, options: SelectorOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = At::top(object, "spec");
    let (min, max, policy) =
        (spec.child("minAvailable"), spec.child("maxUnavailable"), spec.child("unhealthyPodEvictionPolicy"));
    if min.is_set() && max.is_set() {
        let shown = goform::compact(spec.value(), "policy/v1.PodDisruptionBudgetSpec");
        let error = spec.invalid("minAvailable and maxUnavailable cannot be both set");
        errors.push(FieldError { shown: Some(shown), ..error });
    }
    for count in [&min, &max].into_iter().filter(|count| count.is_set()) {
        int_or_percent(count, &mut errors);
        at_most_100_percent(count, &mut errors);
    }
    validate_label_selector(&spec.child("selector"), options, &mut errors);
    if policy.is_set() {
        one_of(&policy, &["AlwaysAllow", "IfHealthyBudget"], &mut errors);
    }
    errors
}

fn validate_status(_: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = At::top(object, "status");
    validate_conditions(&status.child("conditions"), &mut errors);
    for count in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        nonnegative(&status.child(count), &mut errors);
    }
    errors
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating_and_updating() {
        let base = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": 1}});
        let spec = |spec: pintle_apimachinery::Value| json!({"spec": spec});
        let of = "policy/v1/poddisruptionbudgets";
        let out = creates(
            of,
            &base,
            &[
                spec(json!({"maxUnavailable": 1})),
                spec(json!({"minAvailable": -1})),
                spec(json!({"minAvailable": "101%"})),
                spec(json!({"minAvailable": null, "maxUnavailable": "x"})),
                spec(json!({"selector": {"matchLabels": {"_": ""}}, "unhealthyPodEvictionPolicy": "x"})),
            ],
        );
        expect![[r#"
            {"spec":{"maxUnavailable":1}}
                spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set
            {"spec":{"minAvailable":-1}}
                spec.minAvailable: Invalid value: -1: must be greater than or equal to 0
            {"spec":{"minAvailable":"101%"}}
                spec.minAvailable: Invalid value: "101%": must not be greater than 100%
            {"spec":{"maxUnavailable":"x","minAvailable":null}}
                spec.maxUnavailable: Invalid value: "x": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')
            {"spec":{"selector":{"matchLabels":{"_":""}},"unhealthyPodEvictionPolicy":"x"}}
                spec.selector.matchLabels: Invalid value: "_": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                spec.unhealthyPodEvictionPolicy: Unsupported value: "x": supported values: "AlwaysAllow", "IfHealthyBudget"
        "#]].assert_eq(&out);
        let status = json!({"status": {"disruptionsAllowed": -1, "currentHealthy": -1, "desiredHealthy": -1,
            "expectedPods": -1, "conditions": [{"type": "a", "status": "x"}]}});
        expect![[r#"
            {"status":{"conditions":[{"status":"x","type":"a"}],"currentHealthy":-1,"desiredHealthy":-1,"disruptionsAllowed":-1,"expectedPods":-1}}
                status.conditions[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown"
                status.conditions[0].lastTransitionTime: Required value
                status.conditions[0].reason: Required value
                status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0
                status.currentHealthy: Invalid value: -1: must be greater than or equal to 0
                status.desiredHealthy: Invalid value: -1: must be greater than or equal to 0
                status.expectedPods: Invalid value: -1: must be greater than or equal to 0
        "#]].assert_eq(&updates(of, "status", &base, &[status]));
    }
}
