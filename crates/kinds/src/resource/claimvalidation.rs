//! The rules of ResourceClaims, of their templates' specs and of their status.

use super::checks::{
    CONFIGS_MAX, Requests, validate_configuration, validate_device_id, validate_list, validate_qualified_name,
    validate_raw, validate_selectors, validate_set,
};
use super::claim::device_id;
use crate::common::checks::{dns1123_label, dns1123_subdomain, required};
use crate::common::conditions::validate_conditions;
use crate::common::ip::interface_address;
use crate::common::selectors::validate_node_selector;
use crate::common::{At, immutable, one_of_required};
use pintle_apimachinery::{ErrorList, FieldError, Value};
use std::collections::BTreeSet;

/// More requests, or results of an allocation, than these are refused.
const REQUESTS_MAX: usize = 32;
/// More alternatives of a request than these are refused.
const ALTERNATIVES_MAX: usize = 8;
/// More constraints than these are refused.
const CONSTRAINTS_MAX: usize = 32;
/// More consumers of a claim than these are refused.
const CONSUMERS_MAX: usize = 256;
/// More conditions of a device than these are refused.
const CONDITIONS_MAX: usize = 8;
/// More addresses of a device than these are refused.
const ADDRESSES_MAX: usize = 16;
/// The name of a network interface may have this many bytes.
const INTERFACE_BYTES_MAX: usize = 256;
/// The hardware address of a network interface may have this many bytes.
const HARDWARE_BYTES_MAX: usize = 128;

fn name_of(value: &Value) -> &str {
    value["name"].str_or_empty()
}

/// The spec of a claim, wherever it stands.
pub(super) fn validate_spec(spec: &At<'_>, errors: &mut ErrorList) {
    let devices = spec.child("devices");
    let list = devices.child("requests");
    let requests = Requests(devices.value()["requests"].items());
    validate_set(&list, Some(REQUESTS_MAX), validate_request, name_of, errors);
    let validate = |constraint: &At<'_>, errors: &mut ErrorList| {
        validate_references(&constraint.child("requests"), &requests, errors);
        let attribute = constraint.child("matchAttribute");
        if attribute.is_set() {
            validate_qualified_name(&attribute, attribute.text(), errors);
            if !attribute.text().contains('/') {
                let rule = "a fully qualified name must be a domain and a name separated by a slash";
                errors.push(attribute.invalid(rule));
            }
        } else {
            errors.push(attribute.required(""));
        }
    };
    validate_list(&devices.child("constraints"), Some(CONSTRAINTS_MAX), validate, errors);
    let validate = |config: &At<'_>, errors: &mut ErrorList| {
        validate_references(&config.child("requests"), &requests, errors);
        validate_configuration(config, false, errors);
    };
    validate_list(&devices.child("config"), Some(CONFIGS_MAX), validate, errors);
}

fn validate_references(list: &At<'_>, requests: &Requests<'_>, errors: &mut ErrorList) {
    let validate = |name: &At<'_>, errors: &mut ErrorList| requests.validate_reference(name, errors);
    validate_set(list, Some(REQUESTS_MAX), validate, Value::str_or_empty, errors);
}

fn validate_request(at: &At<'_>, errors: &mut ErrorList) {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    dns1123_label(&at.child("name"), errors);
    let (exactly, alternatives) = (at.child("exactly"), at.child("firstAvailable"));
    match (exactly.is_set(), !alternatives.items().is_empty()) {
        (false, false) => errors.push(at.required(ONE)),
        (true, true) => {
            errors.push(at.invalid_showing(Value::NULL, format!("{ONE}, but multiple fields are set")));
        }
        (true, false) => validate_devices(&exactly, errors),
        (false, true) => {
            let validate = |alternative: &At<'_>, errors: &mut ErrorList| {
                dns1123_label(&alternative.child("name"), errors);
                validate_devices(alternative, errors);
            };
            validate_set(&alternatives, Some(ALTERNATIVES_MAX), validate, name_of, errors);
        }
    }
}

/// Which devices, and how many.
fn validate_devices(at: &At<'_>, errors: &mut ErrorList) {
    let class = at.child("deviceClassName");
    if required(&class, errors) {
        dns1123_subdomain(&class, errors);
    }
    validate_selectors(&at.child("selectors"), false, errors);
    let (mode, count) = (at.child("allocationMode"), at.child("count"));
    match mode.text() {
        "All" if count.int() != 0 => {
            errors.push(count.invalid("must not be specified when allocationMode is 'All'"));
        }
        "All" => {}
        "ExactCount" if count.int() <= 0 => errors.push(count.invalid_int("must be greater than zero")),
        "ExactCount" => {}
        _ => errors.push(mode.not_supported(&["All", "ExactCount"])),
    }
}

/// A change of a claim's status.
pub(super) fn validate_status(object: &Value, old: &Value, errors: &mut ErrorList) {
    let status = At::top(object, "status");
    let (allocation, old_allocation) = (status.child("allocation"), old.at("status.allocation"));
    let consumers = status.child("reservedFor");
    let validate = |consumer: &At<'_>, errors: &mut ErrorList| {
        for field in ["resource", "name", "uid"] {
            required(&consumer.child(field), errors);
        }
    };
    validate_set(&consumers, Some(CONSUMERS_MAX), validate, |it| it["uid"].str_or_empty(), errors);
    let allocated: BTreeSet<[&str; 4]> =
        object.at("status.allocation.devices.results").items().iter().map(device_id).collect();
    validate_devices_status(&status.child("devices"), &allocated, errors);
    if !consumers.items().is_empty() {
        let old_consumers = old.at("status.reservedFor").items();
        let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
        if !allocation.is_set() {
            errors.push(consumers.forbidden("may not be specified when `allocated` is not set"));
        } else if is_deleted && consumers.items().iter().any(|consumer| !old_consumers.contains(consumer)) {
            errors.push(consumers.forbidden(
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
            ));
        }
    }
    if allocation.is_set() && !old_allocation.is_null() {
        immutable(&allocation, old_allocation, "resource/v1.AllocationResult", errors);
    } else if allocation.is_set() {
        let requests = Requests(object.at("spec.devices.requests").items());
        validate_allocation(&allocation, &requests, errors);
    }
}

fn validate_devices_status(list: &At<'_>, allocated: &BTreeSet<[&str; 4]>, errors: &mut ErrorList) {
    let shown = |id: [&str; 4]| {
        let quoted = id.map(|part| Value::from(part).to_json_string());
        let [driver, pool, device, share] = quoted;
        format!(r#"{{"Driver":{driver},"Pool":{pool},"Device":{device},"ShareID":{share}}}"#)
    };
    for device in list.each() {
        validate_device_id(&device, errors);
        let id = device_id(device.value());
        if !allocated.contains(&id) {
            let error = device.invalid_showing("", "must be an allocated device in the claim");
            errors.push(FieldError { shown: Some(shown(id)), ..error });
        }
        let conditions = device.child("conditions");
        let n_conditions = conditions.items().len();
        if n_conditions > CONDITIONS_MAX {
            errors.push(FieldError::too_many(conditions.path(), n_conditions, CONDITIONS_MAX));
        }
        validate_conditions(&conditions, errors);
        let data = device.child("data");
        if data.is_set() {
            validate_raw(&data, false, errors);
        }
        validate_network_data(&device.child("networkData"), errors);
    }
    let mut seen = BTreeSet::new();
    for device in list.each() {
        let id = device_id(device.value());
        if !seen.insert(id) {
            errors.push(FieldError { shown: Some(shown(id)), ..FieldError::duplicate(device.path(), "") });
        }
    }
}

fn validate_network_data(at: &At<'_>, errors: &mut ErrorList) {
    for (field, bytes_max) in [("interfaceName", INTERFACE_BYTES_MAX), ("hardwareAddress", HARDWARE_BYTES_MAX)] {
        let text = at.child(field);
        if text.text().len() > bytes_max {
            errors.push(text.too_long(bytes_max));
        }
    }
    validate_set(&at.child("ips"), Some(ADDRESSES_MAX), interface_address, Value::str_or_empty, errors);
}

fn validate_allocation(at: &At<'_>, requests: &Requests<'_>, errors: &mut ErrorList) {
    let devices = at.child("devices");
    let validate = |result: &At<'_>, errors: &mut ErrorList| {
        requests.validate_reference(&result.child("request"), errors);
        validate_device_id(result, errors);
    };
    validate_list(&devices.child("results"), Some(REQUESTS_MAX), validate, errors);
    let validate = |config: &At<'_>, errors: &mut ErrorList| {
        one_of_required(&config.child("source"), &["FromClaim", "FromClass"], errors);
        validate_references(&config.child("requests"), requests, errors);
        validate_configuration(config, false, errors);
    };
    // of the class and of the claim
    validate_list(&devices.child("config"), Some(2 * CONFIGS_MAX), validate, errors);
    let selector = at.child("nodeSelector");
    if selector.is_set() {
        validate_node_selector(&selector, false, errors);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::{Value, json};

    const RESOURCE: &str = "resource.k8s.io/v1/resourceclaims";

    fn base() -> Value {
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
        })
    }

    #[test]
    fn creating() {
        let requests = |requests: Value| json!({"spec": {"devices": {"requests": requests}}});
        let exactly = |exactly: Value| json!([{"name": "r", "exactly": exactly}]);
        let out = creates(
            RESOURCE,
            &base(),
            &[
                json!({}),
                requests(json!([{"name": "A"}, {"name": "b", "exactly": {"deviceClassName": "A"},
                    "firstAvailable": [{"name": "x"}]}])),
                requests(json!([{"name": "r", "firstAvailable": [{"name": "A", "deviceClassName": "c"},
                    {"name": "x", "deviceClassName": ""}, {"name": "x", "deviceClassName": "c"}]}])),
                requests(exactly(json!({"deviceClassName": "c", "allocationMode": "All", "count": 1}))),
                requests(exactly(json!({"deviceClassName": "c", "allocationMode": "x", "selectors": [{}]}))),
                requests(exactly(json!({"deviceClassName": "c", "count": -1}))),
                json!({"spec": {"devices": {"constraints": [{}, {"requests": ["x/y/z", "R", "r", "r", "r/x"],
                    "matchAttribute": "a_b"}, {"matchAttribute": "/"}, {"matchAttribute": "a_b/1c"}]}}}),
                json!({"spec": {"devices": {"config": [{"requests": ["x"]}]}}}),
            ],
        );
        expect![[r#"
            {}
            {"spec":{"devices":{"requests":[{"name":"A"},{"exactly":{"deviceClassName":"A"},"firstAvailable":[{"name":"x"}],"name":"b"}]}}}
                spec.devices.requests[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required
                spec.devices.requests[1]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set
            {"spec":{"devices":{"requests":[{"firstAvailable":[{"deviceClassName":"c","name":"A"},{"deviceClassName":"","name":"x"},{"deviceClassName":"c","name":"x"}],"name":"r"}]}}}
                spec.devices.requests[0].firstAvailable[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.devices.requests[0].firstAvailable[1].deviceClassName: Required value
                spec.devices.requests[0].firstAvailable[2]: Duplicate value: "x"
            {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"All","count":1,"deviceClassName":"c"},"name":"r"}]}}}
                spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode is 'All'
            {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"x","deviceClassName":"c","selectors":[{}]},"name":"r"}]}}}
                spec.devices.requests[0].exactly.selectors[0].cel: Required value
                spec.devices.requests[0].exactly.allocationMode: Unsupported value: "x": supported values: "All", "ExactCount"
            {"spec":{"devices":{"requests":[{"exactly":{"count":-1,"deviceClassName":"c"},"name":"r"}]}}}
                spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero
            {"spec":{"devices":{"constraints":[{},{"matchAttribute":"a_b","requests":["x/y/z","R","r","r","r/x"]},{"matchAttribute":"/"},{"matchAttribute":"a_b/1c"}]}}}
                spec.devices.constraints[0].matchAttribute: Required value
                spec.devices.constraints[1].requests[0]: Invalid value: "x/y/z": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
                spec.devices.constraints[1].requests[1]: Invalid value: "R": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.devices.constraints[1].requests[1]: Invalid value: "R": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
                spec.devices.constraints[1].requests[4]: Invalid value: "r/x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
                spec.devices.constraints[1].requests[3]: Duplicate value: "r"
                spec.devices.constraints[1].matchAttribute: Invalid value: "a_b": a fully qualified name must be a domain and a name separated by a slash
                spec.devices.constraints[2].matchAttribute: Invalid value: "": the domain must not be empty
                spec.devices.constraints[2].matchAttribute: Invalid value: "": the name must not be empty
                spec.devices.constraints[3].matchAttribute: Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.devices.constraints[3].matchAttribute: Invalid value: "1c": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')
            {"spec":{"devices":{"config":[{"requests":["x"]}]}}}
                spec.devices.config[0].requests[0]: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
                spec.devices.config[0].opaque: Required value
        "#]].assert_eq(&out);
        let change = json!({"spec": {"devices": {"requests": null}}});
        let out = updates(RESOURCE, "", &base(), std::slice::from_ref(&change));
        expect![[r#"
            {"spec":{"devices":{"requests":null}}}
                spec: Invalid value: {"Devices":{"Requests":null,"Constraints":null,"Config":null}}: field is immutable
        "#]]
        .assert_eq(&out);
        let template = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "spec": {"spec": base()["spec"].clone()}
        });
        let of = "resource.k8s.io/v1/resourceclaimtemplates";
        let named = json!({"spec": {"metadata": {"name": "x"}}});
        let variants = [named, json!({"spec": {"spec": requests(json!([{"name": "A"}]))["spec"].clone()}})];
        expect![[r#"
            {"spec":{"metadata":{"name":"x"}}}
                spec.metadata.name: Forbidden: cannot be set
            {"spec":{"spec":{"devices":{"requests":[{"name":"A"}]}}}}
                spec.spec.devices.requests[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required
        "#]].assert_eq(&creates(of, &template, &variants));
        expect![[r#"
            {"spec":{"spec":{"devices":{"requests":[{"name":"A"}]}}}}
                spec.spec.devices.requests[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required
                spec: Invalid value: {"Spec":{"Devices":{"Requests":[{"Name":"A","Exactly":null,"FirstAvailable":null}],"Constraints":null,"Config":null}}}: field is immutable
        "#]].assert_eq(&updates(of, "", &template, &variants[1..]));
    }

    #[test]
    fn status() {
        let status = |status: Value| json!({"status": status});
        let consumer = json!([{"resource": "pods", "name": "p", "uid": "1"}]);
        let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "x"});
        let allocated = json!({"devices": {"results": [result]}});
        let mut base = base();
        let variants = [
            status(json!({"reservedFor": [{"resource": ""}, {"resource": "a", "name": "b"}]})),
            status(
                json!({"allocation": {"devices": {"results": [{"request": "z", "driver": "", "pool": "A/b", "device": ""}],
                "config": [{"source": ""}, {"source": "x", "requests": ["y"]}]}, "nodeSelector": {}}}),
            ),
            status(
                json!({"devices": [{"driver": "d", "pool": "p", "device": "x", "conditions": [{"type": ""}], "data": [],
                "networkData": {"ips": ["1.2.3.4", "1.2.3.4/8", "1.2.3.4/8"]}},
                {"driver": "d", "pool": "p", "device": "x"}]}),
            ),
            status(json!({"allocation": allocated.clone(), "reservedFor": consumer.clone(),
                "devices": [{"driver": "d", "pool": "p", "device": "x"}]})),
        ];
        expect![[r#"
            {"status":{"reservedFor":[{"resource":""},{"name":"b","resource":"a"}]}}
                status.reservedFor[0].resource: Required value
                status.reservedFor[0].name: Required value
                status.reservedFor[0].uid: Required value
                status.reservedFor[1].uid: Required value
                status.reservedFor[1]: Duplicate value: ""
                status.reservedFor: Forbidden: may not be specified when `allocated` is not set
            {"status":{"allocation":{"devices":{"config":[{"source":""},{"requests":["y"],"source":"x"}],"results":[{"device":"","driver":"","pool":"A/b","request":"z"}]},"nodeSelector":{}}}}
                status.allocation.devices.results[0].request: Invalid value: "z": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
                status.allocation.devices.results[0].driver: Required value
                status.allocation.devices.results[0].pool: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                status.allocation.devices.results[0].device: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                status.allocation.devices.config[0].source: Required value
                status.allocation.devices.config[0].opaque: Required value
                status.allocation.devices.config[1].source: Unsupported value: "x": supported values: "FromClaim", "FromClass"
                status.allocation.devices.config[1].requests[0]: Invalid value: "y": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
                status.allocation.devices.config[1].opaque: Required value
                status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term
            {"status":{"devices":[{"conditions":[{"type":""}],"data":[],"device":"x","driver":"d","networkData":{"ips":["1.2.3.4","1.2.3.4/8","1.2.3.4/8"]},"pool":"p"},{"device":"x","driver":"d","pool":"p"}]}}
                status.devices[0]: Invalid value: {"Driver":"d","Pool":"p","Device":"x","ShareID":""}: must be an allocated device in the claim
                status.devices[0].conditions[0].type: Invalid value: "": name part must be non-empty
                status.devices[0].conditions[0].type: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                status.devices[0].conditions[0].status: Unsupported value: "": supported values: "False", "True", "Unknown"
                status.devices[0].conditions[0].lastTransitionTime: Required value
                status.devices[0].conditions[0].reason: Required value
                status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object
                status.devices[0].networkData.ips[0]: Invalid value: "1.2.3.4": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)
                status.devices[0].networkData.ips[2]: Duplicate value: "1.2.3.4/8"
                status.devices[1]: Invalid value: {"Driver":"d","Pool":"p","Device":"x","ShareID":""}: must be an allocated device in the claim
                status.devices[1]: Duplicate value: {"Driver":"d","Pool":"p","Device":"x","ShareID":""}
            {"status":{"allocation":{"devices":{"results":[{"device":"x","driver":"d","pool":"p","request":"r"}]}},"devices":[{"device":"x","driver":"d","pool":"p"}],"reservedFor":[{"name":"p","resource":"pods","uid":"1"}]}}
        "#]].assert_eq(&updates(RESOURCE, "status", &base, &variants));
        base.set("status", json!({"allocation": allocated}));
        base.make("metadata").set("deletionTimestamp", "2026-01-01T00:00:00Z");
        let variants =
            [status(json!({"reservedFor": consumer})), status(json!({"allocation": {"devices": {"results": null}}}))];
        expect![[r#"
            {"status":{"reservedFor":[{"name":"p","resource":"pods","uid":"1"}]}}
                status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set
            {"status":{"allocation":{"devices":{"results":null}}}}
                status.allocation: Invalid value: {"Devices":{"Results":null,"Config":null},"NodeSelector":null,"AllocationTimestamp":null}: field is immutable
        "#]].assert_eq(&updates(RESOURCE, "status", &base, &variants));
    }
}
