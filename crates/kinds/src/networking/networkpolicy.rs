//! NetworkPolicies.

use crate::common::checks::{one_of, port_number, push_faults};
use crate::common::ip::{self, parse_cidr};
use crate::common::selectors::{SelectorOptions, is_invalid, validate_label_selector};
use crate::common::{At, goform};
use crate::prepare::{raise_generation, start_generation};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, FieldError, Value, json, names};

/// The strategy of NetworkPolicies.
#[derive(Debug)]
pub struct NetworkPolicy;

impl UpdateStrategy for NetworkPolicy {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let allow_invalid_values = is_invalid(old.at("spec.podSelector"), SelectorOptions::default());
        let selectors = SelectorOptions { allow_invalid_values, ..SelectorOptions::default() };
        let mut errors = ErrorList::new();
        validate(object, &Options { selectors, old: &Value::NULL }, &mut errors);
        // upstream goes over it twice, and only now knows what was there before
        validate(object, &Options { selectors, old }, &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
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

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let options = Options { selectors: SelectorOptions::default(), old: &Value::NULL };
        validate(object, &options, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }
}

/// The two directions and what their rules call the other side.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

/// What the old policy held may stay.
struct Options<'o> {
    selectors: SelectorOptions,
    /// The old policy, if its blocks may stay.
    old: &'o Value,
}

/// The blocks of a policy: their CIDRs and exceptions.
fn blocks(policy: &Value) -> impl Iterator<Item = &str> {
    let spec = &policy["spec"];
    DIRECTIONS
        .iter()
        .flat_map(|(direction, peers)| spec[*direction].items().iter().flat_map(|rule| rule[*peers].items()))
        .map(|peer| &peer["ipBlock"])
        .flat_map(|block| std::iter::once(&block["cidr"]).chain(block["except"].items()))
        .map(Value::str_or_empty)
}

fn validate(object: &Value, options: &Options<'_>, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    validate_label_selector(&spec.child("podSelector"), options.selectors, errors);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.child(direction).each() {
            rule.child("ports").each().for_each(|port| validate_port(&port, errors));
            rule.child(peers).each().for_each(|peer| validate_peer(&peer, options, errors));
        }
    }
    let types = spec.child("policyTypes");
    if types.items().len() > DIRECTIONS.len() {
        let shown = goform::compact(types.value(), "[]string");
        let error = types.invalid("may not specify more than two policyTypes");
        errors.push(FieldError { shown: Some(shown), ..error });
        return;
    }
    types.each().for_each(|policy_type| one_of(&policy_type, &["Ingress", "Egress"], errors));
}

fn validate_port(at: &At<'_>, errors: &mut ErrorList) {
    let (protocol, port, end) = (at.child("protocol"), at.child("port"), at.child("endPort"));
    if protocol.is_set() {
        one_of(&protocol, &["TCP", "UDP", "SCTP"], errors);
    }
    match (port.is_set(), port.as_str()) {
        (false, _) => {
            if end.is_set() {
                errors.push(end.invalid("may not be specified when `port` is not specified"));
            }
        }
        (true, Some(name)) => {
            if end.is_set() {
                errors.push(end.invalid("may not be specified when `port` is non-numeric"));
            }
            push_faults(&port, names::port_name(name), errors);
        }
        (true, None) => {
            port_number(&port, errors);
            if end.is_set() {
                if end.int() < port.int() {
                    // upstream shows the port here
                    errors.push(end.invalid_showing(port.int(), "must be greater than or equal to `port`"));
                }
                port_number(&end, errors);
            }
        }
    }
}

fn validate_peer(peer: &At<'_>, options: &Options<'_>, errors: &mut ErrorList) {
    let (pods, namespaces, block) = (peer.child("podSelector"), peer.child("namespaceSelector"), peer.child("ipBlock"));
    for selector in [&pods, &namespaces] {
        validate_label_selector(selector, options.selectors, errors);
    }
    if block.is_set() {
        validate_block(&block, options, errors);
    }
    match [&pods, &namespaces, &block].iter().filter(|side| side.is_set()).count() {
        0 => errors.push(peer.required("must specify a peer")),
        1 => {}
        _ if block.is_set() => errors.push(peer.forbidden("may not specify both ipBlock and another peer")),
        _ => {}
    }
}

fn validate_block(block: &At<'_>, options: &Options<'_>, errors: &mut ErrorList) {
    let cidr = block.child("cidr");
    if cidr.text().is_empty() {
        errors.push(cidr.required(""));
        return;
    }
    ip::cidr_legacy(&cidr, blocks(options.old), errors);
    let Some(whole) = parse_cidr(cidr.text()) else { return };
    for except in block.child("except").each() {
        ip::cidr_legacy(&except, blocks(options.old), errors);
        let Some(part) = parse_cidr(except.text()) else { continue };
        if !whole.contains(part.network()) || whole.mask_len() >= part.mask_len() {
            errors.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = At::top(object, "spec");
    for (direction, peers) in DIRECTIONS {
        for rule in spec.child(direction).each() {
            for peer in rule.child(peers).each() {
                let block = peer.child("ipBlock");
                let cidr = block.child("cidr");
                ip::warn_of_cidr(cidr.text(), cidr.path(), &mut warnings);
                for except in block.child("except").each() {
                    ip::warn_of_cidr(except.text(), except.path(), &mut warnings);
                }
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
        let base = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}}});
        let peer = |peer: pintle_apimachinery::Value| json!({"spec": {"ingress": [{"from": [peer]}]}});
        let port = |port: pintle_apimachinery::Value| json!({"spec": {"egress": [{"ports": [port]}]}});
        let out = creates(
            "networking.k8s.io/v1/networkpolicies",
            &base,
            &[
                json!({}),
                json!({"spec": {"podSelector": {"matchLabels": {"a": "!"}}, "policyTypes": ["x"]}}),
                json!({"spec": {"policyTypes": ["Ingress", "Egress", "Ingress"]}}),
                peer(json!({})),
                peer(json!({"podSelector": {}, "ipBlock": {"cidr": "1.2.3.0/24"}})),
                peer(json!({"ipBlock": {"cidr": ""}})),
                peer(json!({"ipBlock": {"cidr": "1.2.3.4/24", "except": ["1.2.4.0/24", "1.2.3.0/24", "x"]}})),
                port(json!({"port": 0})),
                port(json!({"port": "A_"})),
                port(json!({"protocol": "x", "port": 5, "endPort": 4})),
                port(json!({"endPort": 4})),
                port(json!({"port": "http", "endPort": 4})),
            ],
        );
        expect![[r#"
            {}
            {"spec":{"podSelector":{"matchLabels":{"a":"!"}},"policyTypes":["x"]}}
                spec.podSelector.matchLabels: Invalid value: "!": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
                spec.policyTypes[0]: Unsupported value: "x": supported values: "Ingress", "Egress"
            {"spec":{"policyTypes":["Ingress","Egress","Ingress"]}}
                spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes
            {"spec":{"ingress":[{"from":[{}]}]}}
                spec.ingress[0].from[0]: Required value: must specify a peer
            {"spec":{"ingress":[{"from":[{"ipBlock":{"cidr":"1.2.3.0/24"},"podSelector":{}}]}]}}
                spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer
            {"spec":{"ingress":[{"from":[{"ipBlock":{"cidr":""}}]}]}}
                spec.ingress[0].from[0].ipBlock.cidr: Required value
            {"spec":{"ingress":[{"from":[{"ipBlock":{"cidr":"1.2.3.4/24","except":["1.2.4.0/24","1.2.3.0/24","x"]}}]}]}}
                spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "1.2.4.0/24": must be a strict subset of `cidr`
                spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: "1.2.3.0/24": must be a strict subset of `cidr`
                spec.ingress[0].from[0].ipBlock.except[2]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
            {"spec":{"egress":[{"ports":[{"port":0}]}]}}
                spec.egress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive
            {"spec":{"egress":[{"ports":[{"port":"A_"}]}]}}
                spec.egress[0].ports[0].port: Invalid value: "A_": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)
                spec.egress[0].ports[0].port: Invalid value: "A_": must contain at least one letter (a-z)
            {"spec":{"egress":[{"ports":[{"endPort":4,"port":5,"protocol":"x"}]}]}}
                spec.egress[0].ports[0].protocol: Unsupported value: "x": supported values: "TCP", "UDP", "SCTP"
                spec.egress[0].ports[0].endPort: Invalid value: 5: must be greater than or equal to `port`
            {"spec":{"egress":[{"ports":[{"endPort":4}]}]}}
                spec.egress[0].ports[0].endPort: Invalid value: 4: may not be specified when `port` is not specified
            {"spec":{"egress":[{"ports":[{"endPort":4,"port":"http"}]}]}}
                spec.egress[0].ports[0].endPort: Invalid value: 4: may not be specified when `port` is non-numeric
        "#]].assert_eq(&out);
    }
}
