//! IPAddresses.

use crate::common::checks::{dns1123_subdomain, immutable, path_segment, required};
use crate::common::{At, ip};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::names::Faults;
use pintle_apimachinery::{ErrorList, Path, Value};

/// The strategy of IPAddresses.
#[derive(Debug)]
pub struct IpAddress;

impl UpdateStrategy for IpAddress {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let spec = At::top(object, "spec");
        validate(&spec, &mut errors);
        let old_parent = old.at("spec.parentRef");
        immutable(&spec.child("parentRef"), old_parent, "*networking/v1.ParentReference", &mut errors);
        errors
    }
}

impl Strategy for IpAddress {
    fn name_faults(&self, name: &str, _: bool) -> Faults {
        let mut errors = ErrorList::new();
        ip::ip_strict(&At::new(&Value::from(name), Path::ROOT), &mut errors);
        errors.into_iter().map(|error| error.detail).collect()
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(&At::top(object, "spec"), &mut errors);
        errors
    }
}

fn validate(spec: &At<'_>, errors: &mut ErrorList) {
    let parent = spec.child("parentRef");
    if !parent.is_set() {
        errors.push(parent.required(""));
        return;
    }
    let (group, namespace) = (parent.child("group"), parent.child("namespace"));
    if !group.text().is_empty() {
        dns1123_subdomain(&group, errors);
    }
    for field in ["resource", "name"] {
        let field = parent.child(field);
        if required(&field, errors) {
            path_segment(&field, errors);
        }
    }
    if !namespace.text().is_empty() {
        path_segment(&namespace, errors);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating_and_updating() {
        let base = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": "1.2.3.4"},
            "spec": {"parentRef": {"resource": "services", "name": "s", "namespace": "n"}}
        });
        let of = "networking.k8s.io/v1/ipaddresses";
        let out = creates(
            of,
            &base,
            &[
                json!({}),
                json!({"spec": {"parentRef": null}}),
                json!({"spec": {"parentRef": {"group": "A", "resource": "", "name": "a/b", "namespace": "a/b"}}}),
            ],
        );
        expect![[r#"
            {}
            {"spec":{"parentRef":null}}
                spec.parentRef: Required value
            {"spec":{"parentRef":{"group":"A","name":"a/b","namespace":"a/b","resource":""}}}
                spec.parentRef.group: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.parentRef.resource: Required value
                spec.parentRef.name: Invalid value: "a/b": may not contain '/'
                spec.parentRef.namespace: Invalid value: "a/b": may not contain '/'
        "#]].assert_eq(&out);
        let change = json!({"spec": {"parentRef": {"name": "t"}}});
        expect![[r#"
            {"spec":{"parentRef":{"name":"t"}}}
                spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"n","Name":"t"}: field is immutable
        "#]].assert_eq(&updates(of, "", &base, &[change]));
    }
}
