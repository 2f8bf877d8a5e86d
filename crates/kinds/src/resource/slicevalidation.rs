//! The rules of ResourceSlices. Those of features that are off are not here: their fields are dropped before.

use super::checks::{validate_node_name, validate_pool_name, validate_qualified_name, validate_set};
use crate::common::checks::{csi_driver_name, dns1123_label, immutable};
use crate::common::selectors::validate_node_selector;
use crate::common::{At, goform};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// More devices in a slice than these are refused.
const DEVICES_MAX: usize = 128;
/// More attributes and capacities of a device than these are refused.
const ATTRIBUTES_MAX: usize = 32;
/// Messages show so many bytes of the key of an attribute.
const KEY_BYTES_SHOWN_MAX: usize = 63 + 1 + 32;
/// The text of an attribute may have this many bytes.
const TEXT_BYTES_MAX: usize = 64;

/// Checks the spec of a slice, against the old one if there is one.
pub(super) fn validate_spec(object: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    csi_driver_name(&spec.child("driver"), errors);
    let pool = spec.child("pool");
    validate_pool_name(&pool.child("name"), errors);
    let (count, generation) = (pool.child("resourceSliceCount"), pool.child("generation"));
    if count.int() <= 0 {
        errors.push(count.invalid_int("must be greater than zero"));
    }
    if generation.int() < 0 {
        errors.push(generation.invalid_int("must be greater than or equal to zero"));
    }
    if let Some(old) = old {
        immutable(&pool.child("name"), &old["pool"]["name"], "", errors);
        immutable(&spec.child("driver"), &old["driver"], "", errors);
        immutable(&spec.child("nodeName"), &old["nodeName"], "", errors);
    }
    validate_nodes(&spec, errors);
    validate_set(&spec.child("devices"), Some(DEVICES_MAX), validate_device, |it| it["name"].str_or_empty(), errors);
}

/// Which nodes the devices are on.
fn validate_nodes(spec: &At<'_>, errors: &mut ErrorList) {
    const ONE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut given = Vec::new();
    let (name, selector, all) = (spec.child("nodeName"), spec.child("nodeSelector"), spec.child("allNodes"));
    if name.is_set() && name.text().is_empty() {
        errors.push(name.invalid("must be either unset or set to a non-empty string"));
    } else if name.is_set() {
        given.push("`nodeName`");
        validate_node_name(&name, errors);
    }
    if selector.is_set() {
        given.push("`nodeSelector`");
        validate_node_selector(&selector, false, errors);
        let terms = selector.child("nodeSelectorTerms");
        if terms.items().len() != 1 {
            let shown = goform::compact(&terms, "[]core/v1.NodeSelectorTerm");
            let error = terms.invalid("must have exactly one node selector term");
            errors.push(FieldError { shown: Some(shown), ..error });
        }
    }
    if all.is_true() {
        given.push("`allNodes`");
    } else if all.is_set() {
        errors.push(all.invalid("must be either unset or set to true"));
    }
    match given.len() {
        0 => errors.push(spec.required(ONE)),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", given.join(", "));
            errors.push(spec.invalid_showing(shown, format!("{ONE}, but multiple fields are set")));
        }
    }
}

fn validate_device(at: &At<'_>, errors: &mut ErrorList) {
    dns1123_label(&at.child("name"), errors);
    let (attributes, capacity) = (at.child("attributes"), at.child("capacity"));
    let n_attributes = attributes.entries().len() + capacity.entries().len();
    if n_attributes > ATTRIBUTES_MAX {
        let rule = format!("the total number of attributes and capacities must not exceed {ATTRIBUTES_MAX}");
        errors.push(at.invalid_showing(n_attributes, rule));
    }
    for (key, attribute) in attributes.entries() {
        let shown = truncated(key);
        let attribute = At::new(attribute, attributes.path().key(&shown));
        validate_qualified_name(&attribute, key, errors);
        validate_attribute(&attribute, errors);
    }
    for (key, amount) in capacity.entries() {
        let shown = truncated(key);
        validate_qualified_name(&At::new(amount, capacity.path().key(&shown)), key, errors);
    }
}

/// The key as messages show it: of a long one, both ends.
fn truncated(key: &str) -> String {
    if key.len() <= KEY_BYTES_SHOWN_MAX {
        return key.to_owned();
    }
    let n_left = KEY_BYTES_SHOWN_MAX - "...".len();
    let (head, tail) = (&key.as_bytes()[..n_left.div_ceil(2)], &key.as_bytes()[key.len() - n_left / 2..]);
    format!("{}...{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
}

fn validate_attribute(at: &At<'_>, errors: &mut ErrorList) {
    const ONE: &str = "exactly one value must be specified";
    let text = at.child("string");
    if text.text().len() > TEXT_BYTES_MAX {
        errors.push(text.too_long(TEXT_BYTES_MAX));
    }
    let version = at.child("version");
    if version.is_set() && !is_semantic_version(version.text()) {
        errors.push(version.invalid("must be a string compatible with semver.org spec 2.0.0"));
    }
    if version.text().len() > TEXT_BYTES_MAX {
        errors.push(version.too_long(TEXT_BYTES_MAX));
    }
    match ["int", "bool", "string", "version"].iter().filter(|field| !at[**field].is_null()).count() {
        0 => errors.push(at.invalid_showing("", ONE)),
        1 => {}
        _ => {
            let shown = goform::compact(at, "resource/v1.DeviceAttribute");
            errors.push(FieldError { shown: Some(shown), ..at.invalid(ONE) });
        }
    }
}

/// `1.2.3-pre.1+build.7`.
fn is_semantic_version(text: &str) -> bool {
    let is_number = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
    };
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b == b'-' || b.is_ascii_alphanumeric());
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    let (core, pre_release) = match text.split_once('-') {
        Some((core, pre_release)) => (core, Some(pre_release)),
        None => (text, None),
    };
    let is_identifier = |part: &str| is_number(part) || (is_word(part) && !part.bytes().all(|b| b.is_ascii_digit()));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre_release.is_none_or(|text| text.split('.').all(is_identifier))
        && build.is_none_or(|text| text.split('.').all(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn versions() {
        for text in ["1.2.3", "0.0.0", "1.2.3-a.0-.x", "1.2.3+01.a", "1.2.3-rc-1+b-c"] {
            assert!(is_semantic_version(text), "{text}");
        }
        for text in ["", "1", "1.2", "01.2.3", "1.2.3.4", "1.2.3-", "1.2.3-01", "1.2.3+", "v1.2.3", "1.2.3-a..b"] {
            assert!(!is_semantic_version(text), "{text}");
        }
    }

    #[test]
    fn slices() {
        const RESOURCE: &str = "resource.k8s.io/v1/resourceslices";
        let base = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}}
        });
        let devices = |devices: Value| json!({"spec": {"devices": devices}});
        let attribute = |key: &str, attribute: Value| devices(json!([{"name": "a", "attributes": {(key): attribute}}]));
        let out = creates(
            RESOURCE,
            &base,
            &[
                json!({}),
                json!({"spec": {"driver": "D_", "pool": {"name": "A/", "resourceSliceCount": 0, "generation": -1}}}),
                json!({"spec": {"nodeName": null}}),
                json!({"spec": {"nodeName": "", "allNodes": false}}),
                json!({"spec": {"nodeName": "N", "allNodes": true, "nodeSelector": {"nodeSelectorTerms": []}}}),
                devices(json!([{"name": "A"}, {"name": "a"}, {"name": "a"}])),
                attribute("a/b/c", json!({})),
                attribute("/", json!({"int": 1, "bool": true})),
                attribute("A_/1", json!({"version": "x"})),
                attribute(&"k".repeat(97), json!({"string": ("s".repeat(65))})),
                devices(json!([{"name": "a", "capacity": {"a b": {"value": "1"}}}])),
            ],
        );
        expect![[r#"
            {}
            {"spec":{"driver":"D_","pool":{"generation":-1,"name":"A/","resourceSliceCount":0}}}
                spec.driver: Invalid value: "D_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.pool.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.pool.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero
                spec.pool.generation: Invalid value: -1: must be greater than or equal to zero
            {"spec":{"nodeName":null}}
                spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required
            {"spec":{"allNodes":false,"nodeName":""}}
                spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string
                spec.allNodes: Invalid value: false: must be either unset or set to true
                spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required
            {"spec":{"allNodes":true,"nodeName":"N","nodeSelector":{"nodeSelectorTerms":[]}}}
                spec.nodeName: Invalid value: "N": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term
                spec.nodeSelector.nodeSelectorTerms: Invalid value: []: must have exactly one node selector term
                spec: Invalid value: "{`nodeName`, `nodeSelector`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set
            {"spec":{"devices":[{"name":"A"},{"name":"a"},{"name":"a"}]}}
                spec.devices[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.devices[2]: Duplicate value: "a"
            {"spec":{"devices":[{"attributes":{"a/b/c":{}},"name":"a"}]}}
                spec.devices[0].attributes[a/b/c]: Invalid value: "": exactly one value must be specified
            {"spec":{"devices":[{"attributes":{"/":{"bool":true,"int":1}},"name":"a"}]}}
                spec.devices[0].attributes[/]: Invalid value: "": the domain must not be empty
                spec.devices[0].attributes[/]: Invalid value: "": the name must not be empty
                spec.devices[0].attributes[/]: Invalid value: {"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null}: exactly one value must be specified
            {"spec":{"devices":[{"attributes":{"A_/1":{"version":"x"}},"name":"a"}]}}
                spec.devices[0].attributes[A_/1]: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.devices[0].attributes[A_/1]: Invalid value: "1": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')
                spec.devices[0].attributes[A_/1].version: Invalid value: "x": must be a string compatible with semver.org spec 2.0.0
            {"spec":{"devices":[{"attributes":{"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk":{"string":"sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss"}},"name":"a"}]}}
                spec.devices[0].attributes[kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk...kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk]: Too long: may not be more than 32 bytes
                spec.devices[0].attributes[kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk...kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk].string: Too long: may not be more than 64 bytes
            {"spec":{"devices":[{"capacity":{"a b":{"value":"1"}},"name":"a"}]}}
                spec.devices[0].capacity[a b]: Invalid value: "a b": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')
        "#]].assert_eq(&out);
        let mut many = Value::object();
        (0..33).for_each(|i| many.set(&format!("k{i}"), json!({"int": i})));
        let out = creates(RESOURCE, &base, &[devices(json!([{"name": "a", "attributes": many}]))]);
        assert!(out.ends_with(
            "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32\n"
        ));
        let change = json!({"spec": {"driver": "e", "nodeName": "m", "pool": {"name": "q"}}});
        expect![[r#"
            {"spec":{"driver":"e","nodeName":"m","pool":{"name":"q"}}}
                spec.pool.name: Invalid value: "q": field is immutable
                spec.driver: Invalid value: "e": field is immutable
                spec.nodeName: Invalid value: "m": field is immutable
        "#]]
        .assert_eq(&updates(RESOURCE, "", &base, &[change]));
    }
}
