//! EndpointSlices.

use crate::common::checks::{
    dns1123_label, dns1123_subdomain, fully_qualified_domain_name, immutable, one_of, one_of_required, push_faults,
    qualified_name,
};
use crate::common::ip::{self, parse_ip, validate_endpoint_ip};
use crate::common::selectors::validate_labels;
use crate::common::{At, Seen};
use crate::core::endpoints::PROTOCOLS;
use crate::prepare::start_generation;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::{ErrorList, FieldError, Value, names};

/// A slice may have this many endpoints.
const ENDPOINTS_MAX: usize = 1000;
/// An endpoint may have this many addresses.
const ADDRESSES_MAX: usize = 100;
/// A slice may have this many ports.
const PORTS_MAX: usize = 20_000;
/// An endpoint may have this many labels of its topology.
const TOPOLOGY_LABELS_MAX: usize = 16;
/// An endpoint may have this many hints of each sort.
const HINTS_MAX: usize = 8;

/// The strategy of EndpointSlices.
#[derive(Debug)]
pub struct EndpointSlice;

impl UpdateStrategy for EndpointSlice {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        // what is stored does not tell an empty list from none
        let is_none = |member: &str| object[member].is_empty() && old[member].is_empty();
        let is_same_member = |member: &str| object[member] == old[member] || is_none(member);
        let has_same_endpoints = is_same_member("endpoints");
        let is_same = has_same_endpoints && is_same_member("addressType") && is_same_member("ports");
        if !is_same || object.metadata()["labels"] != old.metadata()["labels"] {
            set_meta(object, "generation", old.generation() + 1);
        }
        if !has_same_endpoints {
            drop_topology(object, old);
        }
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object, old);
        immutable(&At::top(object, "addressType"), &old["addressType"], "", &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        warn_of_addresses(object, &mut warnings);
        warnings
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW
    }
}

impl Strategy for EndpointSlice {
    fn set_defaults(&self, object: &mut Value) {
        for port in object.get_mut("ports").map_or(&mut [][..], Value::items_mut) {
            port.set_default("name", "");
            port.set_default("protocol", "TCP");
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
        drop_topology(object, &Value::NULL);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object, &Value::NULL)
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        if object["addressType"].as_str() == Some("FQDN") {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        warn_of_addresses(object, &mut warnings);
        warnings
    }
}

const HOSTNAME: &str = "kubernetes.io/hostname";

/// The old topology map cannot be written; a node name that it held before moves to its field.
fn drop_topology(object: &mut Value, old: &Value) {
    for endpoint in object.get_mut("endpoints").map_or(&mut [][..], Value::items_mut) {
        let topology = endpoint.remove("deprecatedTopology");
        let Some(node) = topology[HOSTNAME].as_str() else { continue };
        let had_it = |old: &Value| old["deprecatedTopology"][HOSTNAME].as_str() == Some(node);
        let is_known = !node.is_empty() && old["endpoints"].items().iter().any(had_it);
        if is_known && endpoint["nodeName"].is_null() && names::dns1123_subdomain(node).is_empty() {
            endpoint.set("nodeName", node);
        }
    }
}

fn validate(object: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (address_type, endpoints) = (At::top(object, "addressType"), At::top(object, "endpoints"));
    one_of_required(&address_type, &["FQDN", "IPv4", "IPv6"], &mut errors);
    validate_ports(&At::top(object, "ports"), &mut errors);
    // what an older server let through may stay
    if old.is_null() || *endpoints.value() != old["endpoints"] {
        validate_endpoints(&endpoints, address_type.text(), &mut errors);
    }
    errors
}

fn too_many(at: &At<'_>, n: usize, n_max: usize, errors: &mut ErrorList) -> bool {
    let is_too_many = n > n_max;
    if is_too_many {
        errors.push(FieldError::too_many(at.path(), n, n_max));
    }
    is_too_many
}

fn validate_ports(ports: &At<'_>, errors: &mut ErrorList) {
    if too_many(ports, ports.items().len(), PORTS_MAX, errors) {
        return;
    }
    let mut seen = Seen::default();
    for port in ports.each() {
        let (name, protocol, application) = (port.child("name"), port.child("protocol"), port.child("appProtocol"));
        if !name.text().is_empty() {
            dns1123_label(&name, errors);
        }
        if !seen.insert(port.value()["name"].str_or_empty()) {
            errors.push(name.duplicate());
        }
        if protocol.is_set() {
            one_of(&protocol, PROTOCOLS, errors);
        } else {
            errors.push(protocol.required(""));
        }
        if application.is_set() {
            qualified_name(&application, errors);
        }
    }
}

fn validate_endpoints(endpoints: &At<'_>, address_type: &str, errors: &mut ErrorList) {
    if too_many(endpoints, endpoints.items().len(), ENDPOINTS_MAX, errors) {
        return;
    }
    for endpoint in endpoints.each() {
        validate_addresses(&endpoint.child("addresses"), address_type, errors);
        let (node, topology, hostname) =
            (endpoint.child("nodeName"), endpoint.child("deprecatedTopology"), endpoint.child("hostname"));
        if node.is_set() {
            dns1123_subdomain(&node, errors);
        }
        too_many(&topology, topology.entries().len(), TOPOLOGY_LABELS_MAX, errors);
        validate_labels(&topology, errors);
        if hostname.is_set() {
            dns1123_label(&hostname, errors);
        }
        validate_hints(&endpoint.child("hints"), errors);
    }
}

fn validate_addresses(addresses: &At<'_>, address_type: &str, errors: &mut ErrorList) {
    if addresses.items().is_empty() {
        errors.push(addresses.required("must contain at least 1 address"));
    }
    too_many(addresses, addresses.items().len(), ADDRESSES_MAX, errors);
    for address in addresses.each() {
        let n_before = errors.len();
        match address_type {
            "IPv4" => ip::ip_legacy(&address, None, errors),
            "IPv6" => ip::ip_strict(&address, errors),
            "FQDN" => {
                fully_qualified_domain_name(&address, errors);
                continue;
            }
            _ => continue,
        }
        if errors.len() > n_before {
            continue;
        }
        let is_ipv4 = parse_ip(address.text()).is_some_and(|ip| ip.is_ipv4());
        if is_ipv4 != (address_type == "IPv4") {
            // upstream names the list here
            let rule = format!("must be an {address_type} address");
            errors.push(FieldError::invalid(addresses.path(), address.text(), rule));
        }
        validate_endpoint_ip(&address, errors);
    }
}

fn validate_hints(hints: &At<'_>, errors: &mut ErrorList) {
    for (field, rule) in
        [("forZones", names::label_value as fn(&str) -> names::Faults), ("forNodes", names::dns1123_subdomain)]
    {
        let list = hints.child(field);
        if too_many(&list, list.items().len(), HINTS_MAX, errors) {
            return;
        }
        let mut seen = Seen::default();
        for hint in list.each() {
            let name = hint.child("name");
            if !seen.insert(hint.value()["name"].str_or_empty()) {
                errors.push(name.duplicate());
            }
            push_faults(&name, rule(name.text()), errors);
        }
    }
}

/// The controllers mend bad addresses themselves.
fn warn_of_addresses(object: &Value, warnings: &mut Vec<String>) {
    let manager = object.label("endpointslice.kubernetes.io/managed-by").unwrap_or_default();
    if matches!(manager, "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io") {
        return;
    }
    for endpoint in At::top(object, "endpoints").each() {
        for address in endpoint.child("addresses").each() {
            ip::warn_of_ip(address.text(), address.path(), warnings);
        }
    }
}
