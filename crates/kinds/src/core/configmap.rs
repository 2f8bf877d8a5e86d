//! ConfigMaps.

use crate::common::n_bytes;
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, names};

/// What one ConfigMap or Secret may hold.
pub const DATA_BYTES_MAX: usize = 1024 * 1024;

/// What upstream says of changes to objects that say they are immutable.
pub(super) const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// The strategy of ConfigMaps.
#[derive(Debug)]
pub struct ConfigMap;

impl UpdateStrategy for ConfigMap {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_immutable(object, old, &["data", "binaryData"], &mut errors);
        validate(object, &mut errors);
        errors
    }
}

impl Strategy for ConfigMap {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(object, &mut errors);
        errors
    }
}

/// Where the old object says `immutable`, neither that nor `members` may change.
pub(super) fn validate_immutable(object: &Value, old: &Value, members: &[&str], errors: &mut ErrorList) {
    if !old["immutable"].is_true() {
        return;
    }
    if !object["immutable"].is_true() {
        errors.push(FieldError::forbidden(&Path::new("immutable"), IMMUTABLE));
    }
    for member in members {
        if object[*member] != old[*member] {
            errors.push(FieldError::forbidden(&Path::new(member), IMMUTABLE));
        }
    }
}

/// A key of data.
pub(super) fn validate_key(key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let faults = names::config_map_key(key);
    errors.extend(faults.into_iter().map(|fault| FieldError::invalid(&path.key(key), key, fault)));
}

fn validate(object: &Value, errors: &mut ErrorList) {
    let (data, binary_data) = (&object["data"], &object["binaryData"]);
    let (data_path, binary_path) = (Path::new("data"), Path::new("binaryData"));
    let mut n_total = 0;
    for (key, value) in data.entries() {
        validate_key(key, &data_path, errors);
        if binary_data.has(key) {
            let rule = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(&data_path.key(key), key, rule));
        }
        n_total += value.str_or_empty().len();
    }
    for (key, value) in binary_data.entries() {
        validate_key(key, &binary_path, errors);
        n_total += n_bytes(value.str_or_empty());
    }
    if n_total > DATA_BYTES_MAX {
        errors.push(FieldError::too_long(&Path::new("[]"), DATA_BYTES_MAX));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating_and_updating() {
        let base = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}});
        let out = creates(
            "v1/configmaps",
            &base,
            &[
                json!({"data": {"a/b": "", "": "", ".": "", "..": "", "..a": ""}}),
                json!({"binaryData": {"a": "eA==", "b c": "eA=="}}),
                json!({"data": {("k".repeat(254)): ""}}),
            ],
        );
        expect![[r#"
            {"data":{"":"",".":"","..":"","..a":"","a/b":""}}
                data[]: Invalid value: "": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
                data[.]: Invalid value: ".": must not be '.'
                data[..]: Invalid value: "..": must not be '..'
                data[..a]: Invalid value: "..a": must not start with '..'
                data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
            {"binaryData":{"a":"eA==","b c":"eA=="}}
                data[a]: Invalid value: "a": duplicate of key present in binaryData
                binaryData[b c]: Invalid value: "b c": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
            {"data":{"k..":""}}
                data[k..]: Invalid value: "k..": must be no more than 253 characters
        "#]].assert_eq(&out.replace(&"k".repeat(254), "k.."));
        let large = json!({"data": {"a": ("x".repeat(1024 * 1024 + 1))}});
        assert!(
            creates("v1/configmaps", &base, &[large]).ends_with("[]: Too long: may not be more than 1048576 bytes\n")
        );
        let mut fixed = base;
        fixed.set("immutable", true);
        let variants = [
            json!({"immutable": false, "data": {"a": "2"}}),
            json!({"binaryData": {"b": "eA=="}}),
            json!({"metadata": {"labels": {"x": "y"}}}),
        ];
        expect![[r#"
            {"data":{"a":"2"},"immutable":false}
                immutable: Forbidden: field is immutable when `immutable` is set
                data: Forbidden: field is immutable when `immutable` is set
            {"binaryData":{"b":"eA=="}}
                binaryData: Forbidden: field is immutable when `immutable` is set
            {"metadata":{"labels":{"x":"y"}}}
        "#]]
        .assert_eq(&updates("v1/configmaps", "", &fixed, &variants));
    }
}
