//! APIServices and their status.

use crate::common::{At, checks, push_faults};
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, json};

/// Highest priority of a group.
const GROUP_PRIORITY_MAX: i64 = 20_000;

/// Highest priority of a version within its group.
const VERSION_PRIORITY_MAX: i64 = 1_000;

/// The strategy of APIServices.
#[derive(Debug)]
pub struct ApiService;

static STATUS: StatusSubresource = StatusSubresource {
    metadata: StatusMetadata::Stays,
    rounds: MetadataRounds::UPDATE.any_finalizers(),
    validate: validate_status,
};

impl UpdateStrategy for ApiService {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        validate(object)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::BOTH.any_finalizers()
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for ApiService {
    fn set_defaults(&self, object: &mut Value) {
        if let Some(service) = object.at_mut("spec.service").filter(|service| !service.is_null()) {
            service.set_default("port", 443);
        }
    }

    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        names::path_segment(name, is_prefix)
    }

    fn prepare_for_create(&self, request: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "apiregistration/v1.APIServiceStatus");
        if object.at("spec.service").is_null() {
            object["status"].set(
                "conditions",
                json!([{
                    "type": "Available", "status": "True", "lastTransitionTime": time_value(request.now),
                    "reason": "Local", "message": "Local APIServices are always available",
                }]),
            );
        }
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_name(object, &mut errors);
    let spec = At::top(object, "spec");
    let (group, version) = (spec.child("group"), spec.child("version"));
    if group.text().is_empty() && version.text() != "v1" {
        errors.push(group.required("only v1 may have an empty group and it better be legacy kube"));
    }
    if !group.text().is_empty() {
        checks::dns1123_subdomain(&group, &mut errors);
    }
    push_faults(&version, names::dns1035_label(version.text()), &mut errors);
    for (field, max, rule) in [
        ("groupPriorityMinimum", GROUP_PRIORITY_MAX, "must be positive and less than 20000"),
        ("versionPriority", VERSION_PRIORITY_MAX, "must be positive and less than 1000"),
    ] {
        let priority = spec.child(field);
        if priority.int() <= 0 || priority.int() > max {
            errors.push(priority.invalid_int(rule));
        }
    }
    validate_backend(&spec, &mut errors);
    errors
}

fn validate_name(object: &Value, errors: &mut ErrorList) {
    let spec = &object["spec"];
    let required = format!("{}.{}", spec["version"].str_or_empty(), spec["group"].str_or_empty());
    if object.name() != required && names::path_segment(object.name(), false).is_empty() {
        let metadata = Path::new("metadata");
        let rule = format!("must be `spec.version+\".\"+spec.group`: {}", go_quote(&required));
        errors.push(FieldError::invalid(&metadata.child("name"), object.name(), rule));
    }
}

/// Where the version is served: by this server itself, or by a service.
fn validate_backend(spec: &At<'_>, errors: &mut ErrorList) {
    let (service, bundle, insecure) =
        (spec.child("service"), spec.child("caBundle"), spec.child("insecureSkipTLSVerify"));
    let n_bundle_bytes = crate::common::n_bytes(bundle.text());
    if service.is_null() {
        if n_bundle_bytes > 0 {
            let shown = format!("{n_bundle_bytes} bytes");
            errors.push(bundle.invalid_showing(shown, "local APIServices may not have a caBundle"));
        }
        if insecure.is_true() {
            errors.push(insecure.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    checks::required(&service.child("namespace"), errors);
    checks::required(&service.child("name"), errors);
    let port = service.child("port");
    let faults = names::port_number(port.int());
    if !faults.is_empty() {
        errors.push(port.invalid_int(format!("port is not valid: {}", faults.join(", "))));
    }
    if insecure.is_true() && n_bundle_bytes > 0 {
        errors.push(insecure.invalid("may not be true if caBundle is present"));
    }
}

fn validate_status(_: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = At::top(object, "status");
    for condition in status.child("conditions").each() {
        checks::one_of(&condition.child("status"), &["True", "False", "Unknown"], &mut errors);
    }
    errors
}

#[cfg(test)]
mod tests {
    use crate::testing::creates;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating() {
        let base = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.example.com"},
            "spec": {"group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
        });
        let service = json!({"namespace": "n", "name": "s"});
        let out = creates(
            "apiregistration.k8s.io/v1/apiservices",
            &base,
            &[
                json!({}),
                json!({"metadata": {"name": "x"}}),
                json!({"spec": {"group": "", "version": "V1"}}),
                json!({"spec": {"groupPriorityMinimum": 0, "versionPriority": 20001}}),
                json!({"spec": {"service": {"namespace": "", "name": "", "port": 0}, "insecureSkipTLSVerify": true,
                    "caBundle": "eA=="}}),
                json!({"spec": {"service": service, "insecureSkipTLSVerify": true}}),
                json!({"spec": {"insecureSkipTLSVerify": true, "caBundle": "eA=="}}),
            ],
        );
        expect![[r#"
            {}
            {"metadata":{"name":"x"}}
                metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "v1.example.com"
            {"spec":{"group":"","version":"V1"}}
                metadata.name: Invalid value: "v1.example.com": must be `spec.version+"."+spec.group`: "V1."
                spec.group: Required value: only v1 may have an empty group and it better be legacy kube
                spec.version: Invalid value: "V1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
            {"spec":{"groupPriorityMinimum":0,"versionPriority":20001}}
                spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000
                spec.versionPriority: Invalid value: 20001: must be positive and less than 1000
            {"spec":{"caBundle":"eA==","insecureSkipTLSVerify":true,"service":{"name":"","namespace":"","port":0}}}
                spec.service.namespace: Required value
                spec.service.name: Required value
                spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive
                spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present
            {"spec":{"insecureSkipTLSVerify":true,"service":{"name":"s","namespace":"n"}}}
            {"spec":{"caBundle":"eA==","insecureSkipTLSVerify":true}}
                spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle
                spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify
        "#]].assert_eq(&out);
    }
}
