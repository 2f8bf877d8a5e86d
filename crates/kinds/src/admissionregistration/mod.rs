//! The group `admissionregistration.k8s.io`.

pub mod policy;
pub mod policybinding;
mod rules;
pub mod webhook;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "mutatingwebhookconfigurations" => &webhook::WebhookConfiguration { is_mutating: true },
        "validatingadmissionpolicies" => &policy::ValidatingAdmissionPolicy,
        "validatingadmissionpolicybindings" => &policybinding::ValidatingAdmissionPolicyBinding,
        "validatingwebhookconfigurations" => &webhook::WebhookConfiguration { is_mutating: false },
        _ => return None,
    })
}

use pintle_apimachinery::Value;

/// Selectors that select everything, where none are given.
fn set_selector_defaults(value: &mut Value) {
    value.set_default("matchPolicy", "Equivalent");
    value.set_default("namespaceSelector", Value::object());
    value.set_default("objectSelector", Value::object());
}

/// Rules are about all scopes unless they say otherwise.
fn set_rule_defaults(rules: Option<&mut Value>) {
    for rule in rules.map_or(&mut [][..], Value::items_mut) {
        rule.set_default("scope", "*");
    }
}
