//! NetworkPolicies.

use crate::prepare::{raise_generation, start_generation};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{Value, json};

/// The strategy of NetworkPolicies.
#[derive(Debug)]
pub struct NetworkPolicy;

impl UpdateStrategy for NetworkPolicy {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
    }
}

impl Strategy for NetworkPolicy {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        for direction in ["ingress", "egress"] {
            for rule in spec.get_mut(direction).map_or(&mut [][..], Value::items_mut) {
                for port in rule.get_mut("ports").map_or(&mut [][..], Value::items_mut) {
                    port.set_default("protocol", "TCP");
                }
            }
        }
        if spec["policyTypes"].items().is_empty() {
            let has_egress = !spec["egress"].items().is_empty();
            spec.set("policyTypes", if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
    }
}
