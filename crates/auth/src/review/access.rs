//! `SubjectAccessReview`, `SelfSubjectAccessReview` and `LocalSubjectAccessReview`: may somebody do something?
//!
//! Follows: pkg/registry/authorization, pkg/apis/authorization/validation (v1.35).

use super::selectors::{self, ReadSelectors};
use crate::authz::{Attributes, Authorizer, Decision};
use crate::user;
use pintle_apimachinery::field::{ErrorType, go_quote};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::write_value;
use pintle_apimachinery::{ErrorList, FieldError, GroupKind, Path, Status, Value, json};
use pintle_kinds::UserInfo;

/// Which of the three questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessReview {
    /// May this user?
    Subject,
    /// May I?
    SelfSubject,
    /// May this user, in this namespace?
    Local,
}

/// What is wrong with the question. `object` comes with defaults and managed fields; `namespace` is that of the path.
///
/// # Errors
/// 422 with every fault (its kind empty, as upstream's), 400 when the namespaces differ.
pub fn validate(review: AccessReview, object: &Value, namespace: &str) -> Result<()> {
    let spec = &object["spec"];
    let mut errors = attribute_errors(spec);
    if review != AccessReview::SelfSubject && spec["user"].is_empty() && spec["groups"].is_empty() {
        let text = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&Path::new("spec").child("user"), "", text));
    }
    errors.extend(selectors::validate(&spec["resourceAttributes"]));
    errors.extend(metadata_error(review, object));
    if review == AccessReview::Local {
        let asked = &spec["resourceAttributes"];
        if !asked.is_null() && asked["namespace"].str_or_empty() != object.namespace() {
            let path = Path::new("spec.resourceAttributes.namespace");
            errors.push(FieldError::invalid(&path, asked["namespace"].str_or_empty(), "must match metadata.namespace"));
        }
        if !spec["nonResourceAttributes"].is_null() {
            let path = Path::new("spec.nonResourceAttributes");
            errors.push(shown(
                &path,
                printed_path(&spec["nonResourceAttributes"]),
                "disallowed on this kind of request",
            ));
        }
    }
    if !errors.is_empty() {
        return Err(Box::new(Status::invalid(&GroupKind::new("authorization.k8s.io", ""), "", &errors)));
    }
    if review == AccessReview::Local && namespace != object.namespace() {
        let message = format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
        return Err(Box::new(Status::bad_request(message)));
    }
    Ok(())
}

fn shown(path: &Path<'_>, shown: String, detail: &str) -> FieldError {
    FieldError { shown: Some(shown), kind: ErrorType::Invalid, ..FieldError::invalid(path, "", detail) }
}

/// A question about a path as Go prints the type it has inside.
fn printed_path(attributes: &Value) -> String {
    let text = |field: &str| go_quote(attributes[field].str_or_empty());
    format!("{{\"Path\":{},\"Verb\":{}}}", text("path"), text("verb"))
}

fn attribute_errors(spec: &Value) -> ErrorList {
    let path = Path::new("spec");
    match (!spec["resourceAttributes"].is_null(), !spec["nonResourceAttributes"].is_null()) {
        (true, true) => {
            let text = "cannot be specified in combination with resourceAttributes";
            vec![shown(&path.child("nonResourceAttributes"), printed_path(&spec["nonResourceAttributes"]), text)]
        }
        (false, false) => {
            let text = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![FieldError::invalid(&path.child("resourceAttributes"), &Value::NULL, text)]
        }
        (true, false) | (false, true) => ErrorList::new(),
    }
}

/// A question has no metadata but what the server itself has written into it.
fn metadata_error(review: AccessReview, object: &Value) -> Option<FieldError> {
    let is_allowed = |field: &str, value: &Value| {
        field == "managedFields" || value.is_empty() || (field == "namespace" && review == AccessReview::Local)
    };
    if object.metadata().entries().all(|(field, value)| is_allowed(field, value)) {
        return None;
    }
    let text = match review {
        AccessReview::Local => "must be empty except for namespace",
        AccessReview::Subject | AccessReview::SelfSubject => "must be empty",
    };
    Some(shown(&Path::new("metadata"), printed_metadata(object.metadata()), text))
}

/// The members of metadata in the order of upstream's type.
const METADATA_ORDER: [&str; 14] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];
/// The members of an item of managedFields, likewise.
const MANAGED_FIELDS_ORDER: [&str; 7] =
    ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
/// The members of an owner reference, likewise.
const OWNER_ORDER: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// Metadata as Go prints it.
fn printed_metadata(metadata: &Value) -> String {
    let mut out = Vec::from(b"{");
    for field in METADATA_ORDER {
        let value = &metadata[field];
        if value.is_empty() {
            continue;
        }
        write_member(&mut out, field, |out| match field {
            "ownerReferences" => write_ordered_list(out, value, &OWNER_ORDER),
            _ => write_value(out, value),
        });
    }
    if !metadata["managedFields"].is_empty() {
        let value = &metadata["managedFields"];
        write_member(&mut out, "managedFields", |out| write_ordered_list(out, value, &MANAGED_FIELDS_ORDER));
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

fn write_member(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write_value(out, &Value::from(name));
    out.push(b':');
    write(out);
}

fn write_ordered_list(out: &mut Vec<u8>, list: &Value, order: &[&str]) {
    out.push(b'[');
    for (idx, item) in list.items().iter().enumerate() {
        if idx > 0 {
            out.push(b',');
        }
        out.push(b'{');
        for field in order {
            if !item[field].is_empty() || item[field].as_object().is_some() {
                write_member(out, field, |out| write_value(out, &item[field]));
            }
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// Answers the question: sets the object's `status`. `asker` is who asks, whom [`AccessReview::SelfSubject`] is about.
pub fn answer(review: AccessReview, object: &mut Value, asker: &UserInfo, authorizer: &dyn Authorizer) {
    let spec = &object["spec"];
    let told = user::from_spec(spec);
    let user = if review == AccessReview::SelfSubject { asker } else { &told };
    let asked = &spec["resourceAttributes"];
    let selectors = ReadSelectors::new(asked);
    let text = |field: &str| asked[field].str_or_empty();
    let attributes = if asked.is_null() {
        let path = &spec["nonResourceAttributes"];
        Attributes::path(user, path["verb"].str_or_empty(), path["path"].str_or_empty())
    } else {
        Attributes {
            version: if text("version").is_empty() { "*" } else { text("version") },
            subresource: text("subresource"),
            field_selector: selectors.field.as_ref(),
            label_selector: selectors.label.as_ref(),
            ..Attributes::resource(user, text("verb"), text("group"), text("resource"))
                .at(text("namespace"), text("name"))
        }
    };
    let verdict = authorizer.authorize(&attributes);
    let mut status = json!({"allowed": verdict.decision == Decision::Allow});
    if verdict.decision == Decision::Deny {
        status.set("denied", true);
    }
    if !verdict.reason.is_empty() {
        status.set("reason", verdict.reason);
    }
    let errors: Vec<String> =
        std::iter::once(verdict.error).filter(|error| !error.is_empty()).chain(selectors.errors).collect();
    if !errors.is_empty() {
        status.set("evaluationError", errors.join("; "));
    }
    object.set("status", status);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::rbac::Rbac;
    use expect_test::{Expect, expect};

    fn check(review: AccessReview, object: Value, expect: Expect) {
        let text = match validate(review, &object, "ns") {
            Ok(()) => "ok".to_owned(),
            Err(status) => status.message,
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn faults_of_questions() {
        use AccessReview::{Local, SelfSubject, Subject};
        let pods = json!({"verb": "get", "resource": "pods", "namespace": "ns"});
        check(SelfSubject, json!({"spec": {"resourceAttributes": pods.clone()}}), expect!["ok"]);
        check(
            SelfSubject,
            json!({"spec": {}}),
            expect![[
                r#".authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"#
            ]],
        );
        check(
            SelfSubject,
            json!({"spec": {"resourceAttributes": pods.clone(), "nonResourceAttributes": {"path": "/", "verb": "get"}}}),
            expect![[
                r#".authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: cannot be specified in combination with resourceAttributes"#
            ]],
        );
        check(
            Subject,
            json!({"spec": {}}),
            expect![[
                r#".authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must be specified]"#
            ]],
        );
        let metadata = json!({"labels": {"a": "b"}, "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}]});
        check(
            Subject,
            json!({"spec": {"user": "x", "resourceAttributes": pods.clone()}, "metadata": metadata}),
            expect![[
                r#".authorization.k8s.io "" is invalid: metadata: Invalid value: {"labels":{"a":"b"},"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}: must be empty"#
            ]],
        );
        check(
            Local,
            json!({"spec": {"user": "x", "resourceAttributes": pods.clone()}, "metadata": {"namespace": "ns"}}),
            expect!["ok"],
        );
        check(
            Local,
            json!({"spec": {"user": "x", "resourceAttributes": pods}, "metadata": {"namespace": "x"}}),
            expect![[
                r#".authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "ns": must match metadata.namespace"#
            ]],
        );
        check(
            Local,
            json!({"spec": {"user": "x", "nonResourceAttributes": {}}, "metadata": {"namespace": "ns"}}),
            expect![[
                r#".authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"","Verb":""}: disallowed on this kind of request"#
            ]],
        );
    }

    #[test]
    fn answers() {
        let rbac = Rbac::new();
        rbac.put("clusterroles", &json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]}));
        rbac.put("clusterrolebindings", &json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "Group", "name": "dev"}]}));
        let ask = |review, spec: Value| {
            let mut object = json!({"spec": spec});
            answer(review, &mut object, &user::named("me", &["dev"]), &rbac);
            object["status"].to_json_string()
        };
        let pods = || json!({"verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": "a"}});
        expect![[r#"{"allowed":true,"evaluationError":"spec.resourceAttributes.fieldSelector ignored due to parse error","reason":"RBAC: allowed by ClusterRoleBinding \"b\" of ClusterRole \"r\" to Group \"dev\""}"#]]
            .assert_eq(&ask(AccessReview::SelfSubject, json!({"resourceAttributes": pods()})));
        expect![[
            r#"{"allowed":false,"evaluationError":"spec.resourceAttributes.fieldSelector ignored due to parse error"}"#
        ]]
        .assert_eq(&ask(AccessReview::Subject, json!({"user": "jane", "resourceAttributes": pods()})));
        expect![[r#"{"allowed":false}"#]].assert_eq(&ask(
            AccessReview::Subject,
            json!({"groups": ["dev"], "nonResourceAttributes": {"path": "/x", "verb": "get"}}),
        ));
    }
}
