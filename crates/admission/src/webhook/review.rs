//! AdmissionReview: what webhooks are sent, and what their answers mean.
//!
//! Follows: apiserver/pkg/admission/plugin/webhook/request/admissionreview.go (v0.35).

use crate::attributes::Attributes;
use crate::matching::{Form, Pair, namespace_of};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Status, Value, json};

const GROUP: &str = "admission.k8s.io";

/// The only type of patch that there is.
pub(super) const JSON_PATCH: &str = "JSONPatch";

fn kind_value(kind: &GroupVersionKind) -> Value {
    json!({"group": kind.group.clone(), "version": kind.version.clone(), "kind": kind.kind.clone()})
}

fn resource_value(resource: &GroupVersionResource) -> Value {
    json!({"group": resource.group.clone(), "version": resource.version.clone(), "resource": resource.resource.clone()})
}

/// The request to a webhook that speaks this version of AdmissionReview.
pub(super) fn request(version: &str, uid: &str, attributes: &Attributes<'_>, form: &Form, pair: &Pair) -> Value {
    let mut request = request_of(attributes, &form.resource, &form.kind);
    request.set("uid", uid);
    request.set("object", pair.object.clone().unwrap_or_default());
    request.set("oldObject", pair.old.clone().unwrap_or_default());
    json!({"kind": "AdmissionReview", "apiVersion": format!("{GROUP}/{version}"), "request": request})
}

/// The operation as webhooks and expressions see it, without its objects.
pub(crate) fn request_of(
    attributes: &Attributes<'_>,
    resource: &GroupVersionResource,
    kind: &GroupVersionKind,
) -> Value {
    let mut request = json!({
        "kind": kind_value(kind),
        "resource": resource_value(resource),
        "requestKind": kind_value(attributes.kind),
        "requestResource": resource_value(attributes.resource),
        "operation": attributes.operation.as_str(),
        "userInfo": pintle_auth::user::to_value(attributes.user),
        "dryRun": attributes.dry_run,
        "options": attributes.options.clone(),
    });
    for (field, text) in [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name),
        ("namespace", namespace_of(attributes)),
    ] {
        if !text.is_empty() {
            request.set(field, text);
        }
    }
    request
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub is_allowed: bool,
    pub status: Value,
    pub warnings: Vec<String>,
    pub patch: Option<Vec<u8>>,
    pub patch_type: String,
}

/// Reads the answer to the request with this uid.
pub(super) fn read(version: &str, uid: &str, review: &Value, may_patch: bool) -> Result<Answer, String> {
    let response = &review["response"];
    if response.is_null() {
        return Err("webhook response was absent".to_owned());
    }
    let is_v1 = version == "v1";
    if is_v1 {
        check_identity(uid, review)?;
        check_patch(response, may_patch)?;
    }
    let patch = response["patch"].str_or_empty();
    let patch = match STANDARD.decode(patch) {
        Ok(bytes) => (may_patch && !bytes.is_empty()).then_some(bytes),
        Err(error) => return Err(format!("illegal base64 data in response.patch: {error}")),
    };
    let patch_type = if is_v1 { response["patchType"].str_or_empty() } else { JSON_PATCH };
    Ok(Answer {
        is_allowed: response["allowed"].is_true(),
        status: response["status"].clone(),
        warnings: response["warnings"].items().iter().map(|text| text.str_or_empty().to_owned()).collect(),
        patch,
        patch_type: patch_type.to_owned(),
    })
}

fn check_identity(uid: &str, review: &Value) -> Result<(), String> {
    let got = review["response"]["uid"].str_or_empty();
    if got != uid {
        return Err(format!("expected response.uid={}, got {}", go_quote(uid), go_quote(got)));
    }
    let (wanted, got) = (GroupVersionKind::new(GROUP, "v1", "AdmissionReview"), review.gvk().unwrap_or_default());
    if got != wanted {
        return Err(format!("expected webhook response of {wanted}, got {got}"));
    }
    Ok(())
}

fn check_patch(response: &Value, may_patch: bool) -> Result<(), String> {
    let (has_patch, has_type) = (!response["patch"].is_empty(), !response["patchType"].is_null());
    let why = match (may_patch, has_patch, has_type) {
        (false, true, _) => "validating webhook may not return response.patch",
        (false, false, true) => "validating webhook may not return response.patchType",
        (true, true, false) => "webhook returned response.patch but not response.patchType",
        (true, false, true) => "webhook returned response.patchType but not response.patch",
        (true, true, true) if response["patchType"].is_empty() => {
            r#"webhook returned invalid response.patchType of """#
        }
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// The answer to the client when a webhook refuses.
pub(super) fn refusal(name: &str, status: &Value) -> Status {
    let mut status = Status::from_value(status);
    status.code = status.code.max(400);
    status.is_success = false;
    let denied = format!("admission webhook {} denied the request", go_quote(name));
    status.message = match (status.message.as_str(), status.reason.as_str()) {
        ("", "") => format!("{denied} without explanation"),
        ("", why) | (why, _) => format!("{denied}: {why}"),
    };
    status
}
