//! Endpoints.

use crate::common::ip::{self, validate_endpoint_ip};
use crate::common::{At, checks, one_of_required, push_faults};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, Value, names};

/// The strategy of Endpoints.
#[derive(Debug)]
pub struct Endpoints;

/// The protocols of ports.
pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

impl UpdateStrategy for Endpoints {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        // what an older server let through may stay
        if object["subsets"] == old["subsets"] { ErrorList::new() } else { validate(object) }
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
    }
}

impl Strategy for Endpoints {
    fn set_defaults(&self, object: &mut Value) {
        for subset in object.get_mut("subsets").map_or(&mut [][..], Value::items_mut) {
            for port in subset.get_mut("ports").map_or(&mut [][..], Value::items_mut) {
                port.set_default("protocol", "TCP");
            }
        }
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for subset in At::top(object, "subsets").each() {
        let (ready, unready, ports) =
            (subset.child("addresses"), subset.child("notReadyAddresses"), subset.child("ports"));
        if ready.items().is_empty() && unready.items().is_empty() {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for address in ready.each().chain(unready.each()) {
            validate_address(&address, &mut errors);
        }
        let is_name_required = ports.items().len() > 1;
        for port in ports.each() {
            validate_port(&port, is_name_required, &mut errors);
        }
    }
    errors
}

fn validate_address(address: &At<'_>, errors: &mut ErrorList) {
    let (at, hostname, node) = (address.child("ip"), address.child("hostname"), address.child("nodeName"));
    ip::ip_legacy(&at, None, errors);
    if !hostname.text().is_empty() {
        checks::dns1123_label(&hostname, errors);
    }
    if node.is_set() {
        checks::dns1123_subdomain(&node, errors);
    }
    validate_endpoint_ip(&at, errors);
}

fn validate_port(port: &At<'_>, is_name_required: bool, errors: &mut ErrorList) {
    let (name, protocol) = (port.child("name"), port.child("appProtocol"));
    if !name.text().is_empty() {
        checks::dns1123_label(&name, errors);
    } else if is_name_required {
        errors.push(name.required(""));
    }
    checks::port_number(&port.child("port"), errors);
    one_of_required(&port.child("protocol"), PROTOCOLS, errors);
    if protocol.is_set() {
        push_faults(&protocol, names::qualified_name(protocol.text()), errors);
    }
}

fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    // the controller mends bad addresses itself
    if object.label("endpoints.kubernetes.io/managed-by") == Some("endpoint-controller") {
        return warnings;
    }
    for subset in At::top(object, "subsets").each() {
        for field in ["addresses", "notReadyAddresses"] {
            for address in subset.child(field).each() {
                let at = address.child("ip");
                ip::warn_of_ip(at.text(), at.path(), &mut warnings);
            }
        }
    }
    warnings
}
