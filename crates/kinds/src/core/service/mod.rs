//! Services and their status.
//!
//! Not here: where addresses and node ports come from; the registry has them, and [`alloc`] asks for them.

pub mod alloc;
mod validation;

pub(crate) use validation::{status_warnings, validate_hostname};

use super::label_not_supported;
use crate::prepare::{clear_status, keep};
use crate::{FieldTable, MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, Value, json};
use std::borrow::Cow;

/// Seconds that a client sticks to an endpoint with affinity `ClientIP` and nothing said.
const AFFINITY_TIMEOUT_SECONDS: i64 = 10_800;

/// The strategy of Services.
#[derive(Debug)]
pub struct Service;

impl UpdateStrategy for Service {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        drop_what_the_type_needs_not(object, old);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_update(object, old, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        validation::warnings(object)
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for Service {
    fn set_defaults(&self, object: &mut Value) {
        set_affinity_defaults(object.make("spec"));
        let spec = object.make("spec");
        spec.set_default("type", "ClusterIP");
        for port in spec.get_mut("ports").map_or(&mut [][..], Value::items_mut) {
            port.set_default("protocol", "TCP");
            if port["targetPort"].is_empty() {
                let number = port["port"].clone();
                port.set("targetPort", number);
            }
        }
        if is_externally_accessible(spec) {
            spec.set_default("externalTrafficPolicy", "Cluster");
        }
        let service_type = spec["type"].str_or_empty();
        let is_load_balancer = service_type == "LoadBalancer";
        if matches!(service_type, "ClusterIP" | "NodePort" | "LoadBalancer") {
            spec.set_default("internalTrafficPolicy", "Cluster");
        }
        if is_load_balancer {
            spec.set_default("allocateLoadBalancerNodePorts", true);
            for ingress in object.at_mut("status.loadBalancer.ingress").map_or(&mut [][..], Value::items_mut) {
                if !ingress["ip"].is_empty() {
                    ingress.set_default("ipMode", "VIP");
                }
            }
        }
    }

    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        if is_prefix { names::dns1035_label(&names::mask_trailing_dash(name)) } else { names::dns1035_label(name) }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "core/v1.ServiceStatus");
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate(object, &Value::NULL, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        validation::warnings(object)
    }

    fn canonicalize(&self, object: &mut Value) {
        // filled in by default before the type changed
        if object["spec"]["type"].as_str() == Some("ExternalName") {
            object.remove_at("spec.internalTrafficPolicy");
        }
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&Status as _)
    }

    fn selectable_fields(&self) -> FieldTable {
        &[
            ("spec.clusterIP", |object| Cow::Borrowed(object.at("spec.clusterIP").str_or_empty())),
            ("spec.type", |object| Cow::Borrowed(object.at("spec.type").str_or_empty())),
        ]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        label_not_supported(field)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// `services/x/status`.
#[derive(Debug)]
struct Status;

impl UpdateStrategy for Status {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_status(object, old, &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        status_warnings(object)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }
}

fn set_affinity_defaults(spec: &mut Value) {
    spec.set_default("sessionAffinity", "None");
    match spec["sessionAffinity"].str_or_empty() {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" if spec.at("sessionAffinityConfig.clientIP.timeoutSeconds").is_null() => {
            spec.set("sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": AFFINITY_TIMEOUT_SECONDS}}));
        }
        _ => {}
    }
}

/// Whether traffic from outside the cluster reaches a service of this spec.
pub fn is_externally_accessible(spec: &Value) -> bool {
    match spec["type"].str_or_empty() {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !spec["externalIPs"].items().is_empty(),
        _ => false,
    }
}

/// Whether a service of this spec has addresses of its own (`None` counts as one).
pub fn needs_cluster_ip(spec: &Value) -> bool {
    spec["type"].as_str() != Some("ExternalName")
}

/// Whether the ports of a service of this spec are open on nodes.
pub fn needs_node_port(spec: &Value) -> bool {
    matches!(spec["type"].str_or_empty(), "NodePort" | "LoadBalancer")
}

/// Whether a service of this spec has a node port for health checks.
pub fn needs_health_check_port(spec: &Value) -> bool {
    is_load_balancer(spec) && spec["externalTrafficPolicy"].as_str() == Some("Local")
}

fn is_load_balancer(spec: &Value) -> bool {
    spec["type"].as_str() == Some("LoadBalancer")
}

/// When the type changes to one that does not need a field, and the request did not change that field, it goes: the
/// server may have filled it in. A changed one stays for validation to refuse.
fn drop_what_the_type_needs_not(object: &mut Value, old: &Value) {
    let old_spec = &old["spec"];
    let spec = object.make("spec");
    let is_left = |test: fn(&Value) -> bool, spec: &Value| test(old_spec) && !test(spec);
    let is_same = |spec: &Value, field: &str| spec[field] == old_spec[field];
    if is_left(needs_cluster_ip, spec) {
        if is_same(spec, "clusterIP") && is_same(spec, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if is_same(spec, field) {
                spec.remove(field);
            }
        }
    }
    if is_left(needs_node_port, spec) && has_no_new_node_ports(spec, old_spec) {
        for port in spec.get_mut("ports").map_or(&mut [][..], Value::items_mut) {
            port.remove("nodePort");
        }
    }
    type Test = fn(&Value) -> bool;
    let others: [(Test, &str); 4] = [
        (needs_health_check_port, "healthCheckNodePort"),
        (is_load_balancer, "allocateLoadBalancerNodePorts"),
        (is_load_balancer, "loadBalancerClass"),
        (is_externally_accessible, "externalTrafficPolicy"),
    ];
    for (test, field) in others {
        if is_left(test, spec) && is_same(spec, field) {
            spec.remove(field);
        }
    }
    if !is_load_balancer(spec) {
        object.make("status").set("loadBalancer", Value::object());
    }
}

fn has_no_new_node_ports(spec: &Value, old_spec: &Value) -> bool {
    let old_ports = old_spec["ports"].items();
    let mut node_ports = spec["ports"].items().iter().map(|port| &port["nodePort"]).filter(|port| !port.is_empty());
    node_ports.all(|port| old_ports.iter().any(|old| old["nodePort"] == *port))
}
