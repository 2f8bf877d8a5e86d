//! Labels of nodes that have newer names, and the warnings about selectors that still use them.
//!
//! Follows: pkg/api/node/util.go (v1.35).

use super::At;
use pintle_apimachinery::names;

/// Old labels and what to say of them.
const DEPRECATED: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#),
    ("beta.kubernetes.io/os", r#"deprecated since v1.14; use "kubernetes.io/os" instead"#),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    ("failure-domain.beta.kubernetes.io/zone", r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#),
    ("beta.kubernetes.io/instance-type", r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", r#"use "node-role.kubernetes.io/control-plane" instead"#),
];

/// What to say of a node label that has a newer name.
pub fn deprecation(label: &str) -> Option<&'static str> {
    DEPRECATED.iter().find(|(name, _)| *name == label).map(|(_, message)| *message)
}

/// Warns of the expressions of a node selector term, and of malformed values where validation lets them pass.
pub fn warn_of_node_selector_term(term: &At<'_>, are_values_checked: bool, warnings: &mut Vec<String>) {
    for expression in term.child("matchExpressions").each() {
        warn_of_key(&expression, warnings);
        if are_values_checked {
            for value in expression.child("values").each() {
                for fault in names::label_value(value.text()) {
                    warnings.push(format!("{}: {} is invalid, {fault}", value.path(), value.text()));
                }
            }
        }
    }
}

/// Warns of the labels in a label selector over nodes.
pub fn warn_of_node_label_selector(selector: &At<'_>, warnings: &mut Vec<String>) {
    selector.child("matchExpressions").each().for_each(|expression| warn_of_key(&expression, warnings));
    let labels = selector.child("matchLabels");
    for (label, _) in labels.entries() {
        if let Some(message) = deprecation(label) {
            warnings.push(format!("{}: {message}", labels.path().child(label)));
        }
    }
}

fn warn_of_key(expression: &At<'_>, warnings: &mut Vec<String>) {
    let key = expression.child("key");
    if let Some(message) = deprecation(key.text()) {
        warnings.push(format!("{}: {} is {message}", key.path(), key.text()));
    }
}
