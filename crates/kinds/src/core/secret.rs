//! Secrets.

use super::configmap::{DATA_BYTES_MAX, validate_immutable, validate_key};
use super::{label_not_supported, tls};
use crate::common::At;
use crate::common::checks::immutable;
use crate::common::n_bytes;
use crate::{FieldTable, RequestInfo, Strategy, UpdateStrategy};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, value};
use std::borrow::Cow;

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// The strategy of Secrets.
#[derive(Debug)]
pub struct Secret;

impl UpdateStrategy for Secret {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        object.set_default("type", old["type"].clone());
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        immutable(&At::top(object, "type"), &old["type"], "", &mut errors);
        validate_immutable(object, old, &["data"], &mut errors);
        validate(object, &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
    }
}

impl Strategy for Secret {
    fn set_defaults(&self, object: &mut Value) {
        move_string_data(object);
        object.set_default("type", "Opaque");
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(object, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn selectable_fields(&self) -> FieldTable {
        &[("type", |object| Cow::Borrowed(object["type"].str_or_empty()))]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        label_not_supported(field)
    }
}

/// `stringData` is for writing only: it goes into `data`, over what is there.
fn move_string_data(object: &mut Value) {
    let texts = object.remove("stringData");
    for (key, text) in texts.entries() {
        object["data"].set(key, STANDARD.encode(text.str_or_empty()));
    }
}

fn validate(object: &Value, errors: &mut ErrorList) {
    let (data, path) = (&object["data"], Path::new("data"));
    let mut n_total = 0;
    for (key, value) in data.entries() {
        validate_key(key, &path, errors);
        n_total += n_bytes(value.str_or_empty());
    }
    if n_total > DATA_BYTES_MAX {
        errors.push(FieldError::too_long(&path, DATA_BYTES_MAX));
    }
    let mut require = |key: &str| errors.push(FieldError::required(&path.key(key), ""));
    match object["type"].str_or_empty() {
        "kubernetes.io/service-account-token" if object.annotation(SERVICE_ACCOUNT_NAME).is_none_or(str::is_empty) => {
            let metadata = Path::new("metadata");
            let annotations = metadata.child("annotations");
            errors.push(FieldError::required(&annotations.key(SERVICE_ACCOUNT_NAME), ""));
        }
        "kubernetes.io/dockercfg" => validate_docker_config(data, &path.key(".dockercfg"), ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => {
            validate_docker_config(data, &path.key(".dockerconfigjson"), ".dockerconfigjson", errors);
        }
        "kubernetes.io/basic-auth" if !data.has("username") && !data.has("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" if data["ssh-privatekey"].is_empty() => require("ssh-privatekey"),
        "kubernetes.io/tls" => {
            ["tls.crt", "tls.key"].into_iter().filter(|key| !data.has(key)).for_each(require);
        }
        _ => {}
    }
}

fn validate_docker_config(data: &Value, path: &Path<'_>, key: &str, errors: &mut ErrorList) {
    let Some(config) = data[key].as_str() else {
        errors.push(FieldError::required(path, ""));
        return;
    };
    let fault = match value::parse(&STANDARD.decode(config).unwrap_or_default()) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let found = match other {
                Value::Bool(_) => "bool",
                Value::Int(_) | Value::Float(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) | Value::Null | Value::Object(_) => "array",
            };
            format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
        }
        Err(why) => why.to_string(),
    };
    errors.push(FieldError::invalid(path, "<secret contents redacted>", fault));
}

fn warnings(object: &Value) -> Vec<String> {
    if object["type"].as_str() != Some("kubernetes.io/tls") {
        return Vec::new();
    }
    let bytes = |key: &str| STANDARD.decode(object["data"][key].str_or_empty()).unwrap_or_default();
    tls::key_pair_fault(&bytes("tls.crt"), &bytes("tls.key")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating_and_updating() {
        let base = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA=="}});
        let out = creates(
            "v1/secrets",
            &base,
            &[
                json!({"stringData": {"b c": "x"}, "type": ""}),
                json!({"type": "kubernetes.io/service-account-token"}),
                json!({"type": "kubernetes.io/dockercfg"}),
                json!({"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": "x"}}),
                json!({"type": "kubernetes.io/dockerconfigjson"}),
                json!({"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "{}"}}),
                json!({"type": "kubernetes.io/basic-auth"}),
                json!({"type": "kubernetes.io/ssh-auth"}),
                json!({"type": "kubernetes.io/tls"}),
                json!({"type": "kubernetes.io/tls", "stringData": {"tls.crt": "x", "tls.key": "y"}}),
            ],
        );
        expect![[r#"
            {"stringData":{"b c":"x"},"type":""}
                data[b c]: Invalid value: "b c": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
            {"type":"kubernetes.io/service-account-token"}
                metadata.annotations[kubernetes.io/service-account.name]: Required value
            {"type":"kubernetes.io/dockercfg"}
                data[.dockercfg]: Required value
            {"stringData":{".dockercfg":"x"},"type":"kubernetes.io/dockercfg"}
                data[.dockercfg]: Invalid value: "<secret contents redacted>": invalid character 'x' looking for beginning of value
            {"type":"kubernetes.io/dockerconfigjson"}
                data[.dockerconfigjson]: Required value
            {"stringData":{".dockerconfigjson":"{}"},"type":"kubernetes.io/dockerconfigjson"}
            {"type":"kubernetes.io/basic-auth"}
                data[username]: Required value
                data[password]: Required value
            {"type":"kubernetes.io/ssh-auth"}
                data[ssh-privatekey]: Required value
            {"type":"kubernetes.io/tls"}
                data[tls.crt]: Required value
                data[tls.key]: Required value
            {"stringData":{"tls.crt":"x","tls.key":"y"},"type":"kubernetes.io/tls"}
                warning: tls: failed to find any PEM data in certificate input
        "#]].assert_eq(&out);
        let mut fixed = base;
        fixed.set("immutable", true);
        let variants = [json!({"type": "x"}), json!({"immutable": null}), json!({"stringData": {"a": "z"}})];
        expect![[r#"
            {"type":"x"}
                type: Invalid value: "x": field is immutable
            {"immutable":null}
                immutable: Forbidden: field is immutable when `immutable` is set
            {"stringData":{"a":"z"}}
                data: Forbidden: field is immutable when `immutable` is set
        "#]]
        .assert_eq(&updates("v1/secrets", "", &fixed, &variants));
    }
}
