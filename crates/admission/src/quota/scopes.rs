//! Which objects a quota is about.

use crate::pod::is_best_effort;
use pintle_apimachinery::labels::{Operator, Requirement};
use pintle_apimachinery::{Str, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One condition of a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    name: Str,
    operator: Str,
    values: BTreeSet<Str>,
}

/// The conditions of a quota's spec.
pub(super) fn scopes_of(spec: &Value) -> Vec<Scope> {
    let text = |value: &Value| Str::new(value.str_or_empty());
    let plain = spec["scopes"].items().iter().map(|scope| Scope {
        name: text(scope),
        operator: Str::const_new("Exists"),
        values: BTreeSet::new(),
    });
    let selected = spec["scopeSelector"]["matchExpressions"].items().iter().map(|expression| Scope {
        name: text(&expression["scopeName"]),
        operator: text(&expression["operator"]),
        values: expression["values"].items().iter().map(text).collect(),
    });
    plain.chain(selected).collect()
}

impl Scope {
    /// Whether the pod is meant.
    pub(super) fn has_pod(&self, pod: &Value) -> bool {
        match self.name.as_str() {
            "Terminating" => is_terminating(pod),
            "NotTerminating" => !is_terminating(pod),
            "BestEffort" => is_best_effort(pod),
            "NotBestEffort" => !is_best_effort(pod),
            "PriorityClass" => self.has_any(&[pod["spec"]["priorityClassName"].str_or_empty()]),
            "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
            _ => false,
        }
    }

    /// Whether the claim is meant.
    pub(super) fn has_claim(&self, claim: &Value) -> bool {
        let status = &claim["status"];
        let names = [
            &claim["spec"]["volumeAttributesClassName"],
            &status["currentVolumeAttributesClassName"],
            &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
        ];
        self.name == "VolumeAttributesClass" && self.has_any(&names.map(Value::str_or_empty))
    }

    /// Whether one of the names (empty ones are none) meets the condition.
    fn has_any(&self, names: &[&str]) -> bool {
        let names: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
        let operator = match self.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => return !names.is_empty(),
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return false,
        };
        let Ok(requirement) = Requirement::new(&self.name, operator, self.values.clone()) else { return false };
        if names.is_empty() {
            return requirement.matches(&BTreeMap::<String, String>::new());
        }
        names.iter().any(|name| requirement.matches(&[(self.name.as_str(), *name)][..]))
    }
}

/// Whether the pod ends by itself after a while.
pub(super) fn is_terminating(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

fn reaches_other_namespaces(pod: &Value) -> bool {
    let reaches = |term: &Value| !term["namespaces"].is_empty() || !term["namespaceSelector"].is_null();
    ["podAffinity", "podAntiAffinity"].into_iter().any(|field| {
        let affinity = &pod["spec"]["affinity"][field];
        affinity["requiredDuringSchedulingIgnoredDuringExecution"].items().iter().any(reaches)
            || affinity["preferredDuringSchedulingIgnoredDuringExecution"]
                .items()
                .iter()
                .any(|weighted| reaches(&weighted["podAffinityTerm"]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn priority_classes() {
        let pod = |class: &str| json!({"spec": {"priorityClassName": class}});
        let scope = |operator: &str, values: Value| {
            scopes_of(&json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}})).remove(0)
        };
        for (operator, values, class, want) in [
            ("In", json!(["high"]), "high", true),
            ("In", json!(["high"]), "low", false),
            ("In", json!(["high"]), "", false),
            ("NotIn", json!(["high"]), "", true),
            ("Exists", json!([]), "x", true),
            ("Exists", json!([]), "", false),
            ("DoesNotExist", json!([]), "", true),
        ] {
            assert_eq!(scope(operator, values).has_pod(&pod(class)), want, "{operator} {class}");
        }
    }
}
