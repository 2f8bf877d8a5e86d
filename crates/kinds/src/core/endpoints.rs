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

#[cfg(test)]
mod tests {
    use crate::testing::creates;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating() {
        let base = json!({"apiVersion": "v1", "kind": "Endpoints"});
        let subset = |subset: pintle_apimachinery::Value| json!({"subsets": [subset]});
        let out = creates(
            "v1/endpoints",
            &base,
            &[
                subset(json!({})),
                subset(
                    json!({"addresses": [{"ip": ""}, {"ip": "127.0.0.1"}, {"ip": "169.254.1.1"}, {"ip": "224.0.0.1"},
                    {"ip": "0.0.0.0"}, {"ip": "1.2.3.04"}, {"ip": "1.2.3.4", "hostname": "A", "nodeName": "N_"}]}),
                ),
                subset(json!({"notReadyAddresses": [{"ip": "::1"}], "ports": [{"port": 0}, {"name": "A", "port": 1,
                    "protocol": "x", "appProtocol": "a b"}]})),
            ],
        );
        expect![[r#"
            {"subsets":[{}]}
                subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`
            {"subsets":[{"addresses":[{"ip":""},{"ip":"127.0.0.1"},{"ip":"169.254.1.1"},{"ip":"224.0.0.1"},{"ip":"0.0.0.0"},{"ip":"1.2.3.04"},{"hostname":"A","ip":"1.2.3.4","nodeName":"N_"}]}]}
                subsets[0].addresses[0].ip: Invalid value: "": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
                subsets[0].addresses[0].ip: Invalid value: "": must be a valid IP address
                subsets[0].addresses[1].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)
                subsets[0].addresses[2].ip: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)
                subsets[0].addresses[3].ip: Invalid value: "224.0.0.1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)
                subsets[0].addresses[4].ip: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)
                subsets[0].addresses[6].hostname: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                subsets[0].addresses[6].nodeName: Invalid value: "N_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            {"subsets":[{"notReadyAddresses":[{"ip":"::1"}],"ports":[{"port":0},{"appProtocol":"a b","name":"A","port":1,"protocol":"x"}]}]}
                subsets[0].notReadyAddresses[0].ip: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)
                subsets[0].ports[0].name: Required value
                subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive
                subsets[0].ports[1].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                subsets[0].ports[1].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"
                subsets[0].ports[1].appProtocol: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        "#]].assert_eq(&out);
    }
}
