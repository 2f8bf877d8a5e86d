//! DeviceClasses.

use super::checks::{CONFIGS_MAX, validate_configuration, validate_list, validate_selectors};
use crate::common::{At, equality};
use crate::prepare::{raise_generation, start_generation};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of DeviceClasses.
#[derive(Debug)]
pub struct DeviceClass;

impl UpdateStrategy for DeviceClass {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        if old.at("spec.extendedResourceName").is_null() {
            object.remove_at("spec.extendedResourceName");
        }
        raise_generation(object, old, &["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        checked(object, &old["spec"])
    }
}

impl Strategy for DeviceClass {
    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
        object.remove_at("spec.extendedResourceName");
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        checked(object, &Value::NULL)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Checks the spec. `old` is the old one, `null` for new objects.
fn checked(object: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = At::top(object, "spec");
    let is_stored = |field: &str| !old.is_null() && equality::semantic(&spec[field], &old[field], "");
    validate_selectors(&spec.child("selectors"), is_stored("selectors"), &mut errors);
    let is_config_stored = is_stored("config");
    let validate = |config: &At<'_>, errors: &mut ErrorList| validate_configuration(config, is_config_stored, errors);
    validate_list(&spec.child("config"), Some(CONFIGS_MAX), validate, &mut errors);
    errors
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::{Value, json};

    const RESOURCE: &str = "resource.k8s.io/v1/deviceclasses";

    #[test]
    fn creating() {
        let base = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": {}});
        let spec = |spec: Value| json!({"spec": spec});
        let config = |parameters: Value| json!({"opaque": {"driver": "d", "parameters": parameters}});
        let long = "x".repeat(10 * 1024 + 1);
        let out = creates(
            RESOURCE,
            &base,
            &[
                spec(json!({"selectors": [{}, {"cel": {"expression": "true"}}]})),
                spec(json!({"config": [{}, {"opaque": {"driver": "d_d"}}, config(json!("text")), config(json!([]))]})),
            ],
        );
        expect![[r#"
            {"spec":{"selectors":[{},{"cel":{"expression":"true"}}]}}
                spec.selectors[0].cel: Required value
            {"spec":{"config":[{},{"opaque":{"driver":"d_d"}},{"opaque":{"driver":"d","parameters":"text"}},{"opaque":{"driver":"d","parameters":[]}}]}}
                spec.config[0].opaque: Required value
                spec.config[1].opaque.driver: Invalid value: "d_d": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.config[1].opaque.parameters: Required value
                spec.config[2].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object
                spec.config[3].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object
        "#]].assert_eq(&out);
        let too_much = [
            spec(json!({"selectors": [{"cel": {"expression": (long.as_str())}}]})),
            spec(json!({"selectors": ((0..33).map(|_| Value::object()).collect::<Value>())})),
            spec(json!({"config": ((0..33).map(|_| Value::object()).collect::<Value>())})),
            spec(json!({"config": [config(json!({"k": (long.as_str())}))]})),
        ];
        let out = creates(RESOURCE, &base, &too_much);
        let told: Vec<&str> = out.lines().filter(|line| line.starts_with(' ')).map(str::trim).collect();
        expect![[r#"
            spec.selectors[0].cel.expression: Too long: may not be more than 10240 bytes
            spec.selectors: Too many: 33: must have at most 32 items
            spec.config: Too many: 33: must have at most 32 items
            spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes"#]]
        .assert_eq(&told.join("\n"));
        let mut stored = base;
        stored["spec"].set("config", json!([config(json!({"k": (long.as_str())}))]));
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(updates(RESOURCE, "", &stored, &[label]).lines().count(), 1, "what is stored may stay");
    }
}
