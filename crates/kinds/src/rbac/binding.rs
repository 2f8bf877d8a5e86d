//! RoleBindings and ClusterRoleBindings.

use crate::common::checks::{dns1123_subdomain, one_of, path_segment, required};
use crate::common::{At, goform};
use crate::{RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// The API group of roles, and of the subjects that are users and groups.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The strategy of RoleBindings and ClusterRoleBindings.
#[derive(Debug)]
pub struct Binding {
    /// Whether these are RoleBindings.
    pub is_namespaced: bool,
}

impl UpdateStrategy for Binding {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object, self.is_namespaced);
        let role = At::top(object, "roleRef");
        if *role.value() != old["roleRef"] {
            let shown = goform::compact(role.value(), "rbac/v1.RoleRef");
            errors.push(FieldError { shown: Some(shown), ..role.invalid("cannot change roleRef") });
        }
        errors
    }
}

impl Strategy for Binding {
    fn set_defaults(&self, object: &mut Value) {
        if object["roleRef"]["apiGroup"].is_empty() {
            object["roleRef"].set("apiGroup", GROUP);
        }
        for subject in object.get_mut("subjects").map_or(&mut [][..], Value::items_mut) {
            if matches!(subject["kind"].str_or_empty(), "User" | "Group") && subject["apiGroup"].is_empty() {
                subject.set("apiGroup", GROUP);
            }
        }
    }

    fn name_faults(&self, name: &str, _: bool) -> Faults {
        names::path_segment(name, false)
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object, self.is_namespaced)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}

fn validate(object: &Value, is_namespaced: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let role = At::top(object, "roleRef");
    let (kind, name) = (role.child("kind"), role.child("name"));
    one_of(&role.child("apiGroup"), &[GROUP], &mut errors);
    one_of(&kind, if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] }, &mut errors);
    if required(&name, &mut errors) {
        path_segment(&name, &mut errors);
    }
    for subject in At::top(object, "subjects").each() {
        validate_subject(&subject, is_namespaced, &mut errors);
    }
    errors
}

fn validate_subject(subject: &At<'_>, is_namespaced: bool, errors: &mut ErrorList) {
    let (kind, name, group) = (subject.child("kind"), subject.child("name"), subject.child("apiGroup"));
    let has_name = required(&name, errors);
    match kind.text() {
        "ServiceAccount" => {
            if has_name {
                dns1123_subdomain(&name, errors);
            }
            one_of(&group, &[""], errors);
            if !is_namespaced {
                required(&subject.child("namespace"), errors);
            }
        }
        "User" | "Group" => one_of(&group, &[GROUP], errors),
        _ => errors.push(kind.not_supported(&["ServiceAccount", "User", "Group"])),
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
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
        });
        let of = "rbac.authorization.k8s.io/v1/rolebindings";
        let out = creates(
            of,
            &base,
            &[
                json!({"roleRef": {"apiGroup": "x", "kind": "y", "name": ""}}),
                json!({"roleRef": {"name": "a/b"}}),
                json!({"subjects": [{"kind": "ServiceAccount", "name": "A"}, {"kind": "ServiceAccount", "name": "a",
                    "apiGroup": "x", "namespace": "n"}, {"kind": "User", "name": "", "apiGroup": "x"},
                    {"kind": "Group", "name": "g", "apiGroup": "x"}, {"kind": "Robot", "name": "r"}]}),
            ],
        );
        expect![[r#"
            {"roleRef":{"apiGroup":"x","kind":"y","name":""}}
                roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"
                roleRef.kind: Unsupported value: "y": supported values: "Role", "ClusterRole"
                roleRef.name: Required value
            {"roleRef":{"name":"a/b"}}
                roleRef.name: Invalid value: "a/b": may not contain '/'
            {"subjects":[{"kind":"ServiceAccount","name":"A"},{"apiGroup":"x","kind":"ServiceAccount","name":"a","namespace":"n"},{"apiGroup":"x","kind":"User","name":""},{"apiGroup":"x","kind":"Group","name":"g"},{"kind":"Robot","name":"r"}]}
                subjects[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                subjects[1].apiGroup: Unsupported value: "x": supported values: ""
                subjects[2].name: Required value
                subjects[2].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"
                subjects[3].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"
                subjects[4].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"
        "#]].assert_eq(&out);
        let change = json!({"roleRef": {"name": "s"}});
        expect![[r#"
            {"roleRef":{"name":"s"}}
                roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"s"}: cannot change roleRef
        "#]].assert_eq(&updates(of, "", &base, &[change]));
    }
}
