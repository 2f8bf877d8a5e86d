//! The rules of CertificateSigningRequests.

use super::x509::{certificate_fault, request_fault};
use crate::common::diff::unified;
use crate::common::signer::validate_signer_name;
use crate::common::{At, Seen, equality, goform, one_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{ErrorList, Value};

/// The usages that there are, sorted.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The signer of requests that named none, before names were required.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// Conditions that say yes or are not there.
const YES_ONLY: [&str; 3] = ["Approved", "Denied", "Failed"];
/// The conditions that decide.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// Certificates live at least this long.
const EXPIRATION_SECONDS_MIN: i64 = 600;

/// Where an update comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    /// The resource itself.
    Whole,
    /// `status`: may issue the certificate.
    Status,
    /// `approval`: may decide.
    Approval,
}

/// Checks a new object.
pub(super) fn validate(object: &Value, errors: &mut ErrorList) {
    validate_against(object, None, errors);
}

/// Checks a change.
pub(super) fn validate_update(object: &Value, old: &Value, entrance: Entrance, errors: &mut ErrorList) {
    validate_against(object, Some(old), errors);
    let conditions = At::top(object, "status");
    let conditions = conditions.child("conditions");
    let (new_conditions, old_conditions) = (conditions.value(), old.at("status.conditions"));
    for kind in YES_ONLY {
        if of_type(new_conditions, kind).count() < of_type(old_conditions, kind).count() {
            errors.push(conditions.forbidden(format!("updates may not remove a condition of type {}", go_quote(kind))));
        }
    }
    for kind in DECISIONS.iter().filter(|_| entrance != Entrance::Approval) {
        let new: Value = of_type(new_conditions, kind).cloned().collect();
        let old: Value = of_type(old_conditions, kind).cloned().collect();
        let (n_new, n_old) = (new.items().len(), old.items().len());
        const TYPE: &str = "[]certificates/v1.CertificateSigningRequestCondition";
        if n_new > n_old {
            errors.push(conditions.forbidden(format!("updates may not add a condition of type {}", go_quote(kind))));
        } else if n_new == n_old && !equality::semantic(&old, &new, TYPE) {
            let changes = unified(&goform::pretty(&old, TYPE), &goform::pretty(&new, TYPE));
            let rule = format!("updates may not modify a condition of type {}\n{changes}", go_quote(kind));
            errors.push(conditions.forbidden(rule));
        }
    }
    let status = At::top(object, "status");
    let certificate = status.child("certificate");
    let old_certificate = old.at("status.certificate").str_or_empty();
    if certificate.text() != old_certificate {
        if entrance != Entrance::Status {
            errors.push(certificate.forbidden("updates may not set certificate content"));
        } else if !old_certificate.is_empty() {
            errors.push(certificate.forbidden("updates may not modify existing certificate content"));
        }
    }
}

fn of_type<'c>(conditions: &'c Value, kind: &str) -> impl Iterator<Item = &'c Value> {
    conditions.items().iter().filter(move |condition| condition["type"].as_str() == Some(kind))
}

/// The bytes that a field of bytes holds.
fn bytes_of(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.str_or_empty()).unwrap_or_default()
}

fn has_duplicates<'v>(texts: impl Iterator<Item = &'v str>) -> bool {
    let mut seen = Seen::new();
    !texts.into_iter().all(|text| seen.insert(text))
}

/// Checks an object; what is wrong in `old` already may stay so.
fn validate_against(object: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let old_spec = old.map_or(const { &Value::NULL }, |old| &old["spec"]);
    let request = spec.child("request");
    if let Some(fault) = request_fault(&bytes_of(&request)) {
        // absent bytes show as null
        errors.push(request.invalid_showing(request.value(), fault));
    }
    validate_usages(&spec.child("usages"), old_spec["usages"].items(), errors);
    let signer = spec.child("signerName");
    let is_kept = old_spec["signerName"].as_str() == Some(LEGACY_SIGNER);
    if signer.text() == LEGACY_SIGNER && !is_kept {
        errors.push(signer.invalid("the legacy signerName is not allowed via this API version"));
    } else {
        validate_signer_name(&signer, errors);
    }
    let seconds = spec.child("expirationSeconds");
    if seconds.is_set() && seconds.int() < EXPIRATION_SECONDS_MIN {
        errors.push(seconds.invalid("may not specify a duration less than 600 seconds (10 minutes)"));
    }
    let status = At::top(object, "status");
    let old_status = old.map_or(const { &Value::NULL }, |old| &old["status"]);
    validate_conditions(&status.child("conditions"), old_status["conditions"].items(), errors);
    let certificate = status.child("certificate");
    let is_kept = || {
        old.is_some()
            && (old_status["certificate"].str_or_empty() == certificate.text()
                || certificate_fault(&bytes_of(&old_status["certificate"])).is_some())
    };
    if let Some(fault) = certificate_fault(&bytes_of(&certificate)).filter(|_| !is_kept()) {
        errors.push(certificate.invalid_showing("<certificate data>", fault));
    }
}

fn validate_usages(usages: &At<'_>, old: &[Value], errors: &mut ErrorList) {
    if usages.items().is_empty() {
        errors.push(usages.required(""));
    }
    if old.iter().all(|usage| USAGES.contains(&usage.str_or_empty())) {
        usages.each().for_each(|usage| one_of(&usage, &USAGES, errors));
    }
    if !has_duplicates(old.iter().map(Value::str_or_empty)) {
        let mut seen = Seen::new();
        errors.extend(usages.each().filter(|usage| !seen.insert(usage.text())).map(|usage| usage.duplicate()));
    }
}

fn validate_conditions(conditions: &At<'_>, old: &[Value], errors: &mut ErrorList) {
    let type_of = |condition: &'_ Value| condition["type"].str_or_empty().to_owned();
    let had = |kind: &str| old.iter().any(|condition| type_of(condition) == kind);
    let may_be_empty = had("");
    let may_be_both = DECISIONS.iter().all(|kind| had(kind));
    let may_repeat = has_duplicates(old.iter().map(|condition| condition["type"].str_or_empty()));
    let mut seen = Seen::new();
    for condition in conditions.each() {
        let kind = condition.child("type");
        let kind_text = condition.value()["type"].str_or_empty();
        if kind_text.is_empty() && !may_be_empty {
            errors.push(kind.required(""));
        }
        let status = condition.child("status");
        let supported: &[&str] = if YES_ONLY.contains(&kind_text) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.text().is_empty() {
            errors.push(status.required(""));
        } else {
            one_of(&status, supported, errors);
        }
        let opposite = match kind_text {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !opposite.is_empty() && !may_be_both && seen.contains(opposite) {
            let rule = "Approved and Denied conditions are mutually exclusive";
            errors.push(conditions.invalid_showing(kind_text, rule));
        }
        if !seen.insert(kind_text) && !may_repeat {
            errors.push(kind.duplicate());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::{Value, json};

    const RESOURCE: &str = "certificates.k8s.io/v1/certificatesigningrequests";

    fn base() -> Value {
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "spec": {"request": "bm9wZQ==", "signerName": "example.com/s", "usages": ["any"]},
            "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "a",
                "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        })
    }

    #[test]
    fn creating() {
        let out = creates(
            RESOURCE,
            &base(),
            &[
                json!({"spec": {"request": null, "signerName": null, "usages": null, "expirationSeconds": 599}}),
                json!({"spec": {"usages": ["any", "x", "any"], "signerName": "kubernetes.io/legacy-unknown"}}),
                json!({"spec": {"signerName": "A/b_c"}}),
            ],
        );
        expect![[r#"
            {"spec":{"expirationSeconds":599,"request":null,"signerName":null,"usages":null}}
                spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST
                spec.usages: Required value
                spec.signerName: Required value
                spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)
            {"spec":{"signerName":"kubernetes.io/legacy-unknown","usages":["any","x","any"]}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
                spec.usages[1]: Unsupported value: "x": supported values: "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping"
                spec.usages[2]: Duplicate value: "any"
                spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version
            {"spec":{"signerName":"A/b_c"}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
                spec.signerName: Invalid value: "A": validating label "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.signerName: Invalid value: "A": should be a domain with at least two segments separated by dots
                spec.signerName: Invalid value: "b_c": validating label "b_c": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        "#]].assert_eq(&out);
    }

    #[test]
    fn deciding_and_issuing() {
        let approved = |reason: &str| json!({"type": "Approved", "status": "True", "reason": reason});
        let conditions = |list: Value| json!({"spec": {"usages": []}, "status": {"conditions": list}});
        let variants = [
            conditions(json!([])),
            conditions(json!([approved("b")])),
            conditions(json!([approved("a"), {"type": "Denied", "status": "True"}])),
            conditions(json!([approved("a"), {"type": "", "status": "No"}, {"type": "Failed", "status": "False"}])),
            json!({"status": {"certificate": "eA=="}}),
        ];
        expect![[r#"
            {"spec":{"usages":[]},"status":{"conditions":[]}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
                status.conditions: Forbidden: updates may not remove a condition of type "Approved"
            {"spec":{"usages":[]},"status":{"conditions":[{"reason":"b","status":"True","type":"Approved"}]}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
            {"spec":{"usages":[]},"status":{"conditions":[{"reason":"a","status":"True","type":"Approved"},{"status":"True","type":"Denied"}]}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
                status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive
            {"spec":{"usages":[]},"status":{"conditions":[{"reason":"a","status":"True","type":"Approved"},{"status":"No","type":""},{"status":"False","type":"Failed"}]}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
                status.conditions[1].type: Required value
                status.conditions[1].status: Unsupported value: "No": supported values: "False", "True", "Unknown"
                status.conditions[2].status: Unsupported value: "False": supported values: "True"
            {"status":{"certificate":"eA=="}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
        "#]].assert_eq(&updates(RESOURCE, "approval", &base(), &variants));
        expect![[r#"
            {"spec":{"usages":[]},"status":{"conditions":[]}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
                status.conditions: Forbidden: updates may not remove a condition of type "Approved"
            {"spec":{"usages":[]},"status":{"conditions":[{"reason":"b","status":"True","type":"Approved"}]}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
            {"spec":{"usages":[]},"status":{"conditions":[{"reason":"a","status":"True","type":"Approved"},{"status":"True","type":"Denied"}]}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
                status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive
                status.conditions: Forbidden: updates may not add a condition of type "Denied"
            {"spec":{"usages":[]},"status":{"conditions":[{"reason":"a","status":"True","type":"Approved"},{"status":"No","type":""},{"status":"False","type":"Failed"}]}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
                status.conditions[1].type: Required value
                status.conditions[1].status: Unsupported value: "No": supported values: "False", "True", "Unknown"
                status.conditions[2].status: Unsupported value: "False": supported values: "True"
            {"status":{"certificate":"eA=="}}
                spec.request: Invalid value: "bm9wZQ==": PEM block type must be CERTIFICATE REQUEST
                status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block
        "#]].assert_eq(&updates(RESOURCE, "status", &base(), &variants));
    }
}
