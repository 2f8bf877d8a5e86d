//! Conversion of custom resources between versions: by changing apiVersion only, or by a webhook, whose requests and
//! answers are made and judged here. Calling it is the caller's.
//!
//! Follows: apiextensions-apiserver/pkg/apiserver/conversion (v0.35).

use crate::structural::objectmeta::go_type;
use pintle_apimachinery::field::{aggregate, go_quote};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, GroupVersion, GroupVersionKind, Path, Str, Value, json};
use pintle_kinds::meta as metadata_rules;

/// How a definition's objects are converted.
#[derive(Clone, Debug, PartialEq)]
pub enum Conversion {
    /// Only apiVersion changes.
    None,
    /// A webhook converts.
    Webhook(Webhook),
}

/// A conversion webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// `clientConfig`: `url` or `service`, and `caBundle`.
    pub client_config: Value,
    /// The versions of ConversionReview that it speaks, the preferred one first.
    pub review_versions: Vec<Str>,
}

impl Conversion {
    /// Reads `spec.conversion`.
    pub fn compile(conversion: &Value) -> Conversion {
        if conversion["strategy"].as_str() != Some("Webhook") {
            return Conversion::None;
        }
        let versions = conversion.at("webhook.conversionReviewVersions").items();
        Conversion::Webhook(Webhook {
            client_config: conversion.at("webhook.clientConfig").clone(),
            review_versions: versions.iter().map(|v| Str::new(v.str_or_empty())).collect(),
        })
    }
}

/// Conversion `None`.
pub fn convert_plainly(object: &mut Value, to: &GroupVersion) {
    object.set("apiVersion", to.to_string());
}

/// A request to a webhook, on its way.
#[derive(Clone, Debug)]
pub struct Review {
    /// The body to send.
    pub body: Value,
    uid: Str,
    is_v1: bool,
    to: GroupVersion,
}

impl Webhook {
    /// The request that asks for `objects`, none of which has the version yet, in the version `to`. `uid` is fresh.
    ///
    /// # Errors
    /// When the webhook speaks no version of ConversionReview that is spoken here.
    pub fn review(&self, objects: &[Value], to: &GroupVersion, uid: Str) -> Result<Review, String> {
        let known = self.review_versions.iter().find(|v| *v == "v1" || *v == "v1beta1");
        let version = known.ok_or("no supported conversion review versions")?;
        let body = json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{version}"),
            "request": {"uid": &uid, "desiredAPIVersion": to.to_string(), "objects": objects.to_vec()},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        Ok(Review { body, uid, is_v1: version == "v1", to: to.clone() })
    }
}

impl Review {
    /// The one object that the webhook made of `original`.
    ///
    /// # Errors
    /// Upstream's text when the answer will not do.
    pub fn converted(&self, original: &Value, answer: &Value) -> Result<Value, String> {
        let gvk = original.gvk().unwrap_or_default();
        let objects = self.objects(&gvk, 1, answer)?;
        let failed = |why: String| format!("conversion webhook for {gvk} returned {why}");
        let converted = objects.into_iter().next().unwrap_or_default();
        self.check_type(original, &converted).map_err(|why| failed(format!("invalid object at index 0: {why}")))?;
        check_identity(original, &converted).map_err(|why| failed(format!("invalid object: {why}")))?;
        restore_metadata(original, converted).map_err(|why| failed(format!("invalid metadata: {why}")))
    }

    /// The objects that the webhook made of `originals`, which are of a list of kind `list_kind`.
    ///
    /// # Errors
    /// Upstream's text when the answer will not do.
    pub fn converted_list(
        &self,
        list_kind: &GroupVersionKind,
        originals: &[Value],
        answer: &Value,
    ) -> Result<Vec<Value>, String> {
        let objects = self.objects(list_kind, originals.len(), answer)?;
        let mut done = Vec::with_capacity(objects.len());
        for (idx, (original, converted)) in originals.iter().zip(objects).enumerate() {
            let failed = |what: &str, why: String| {
                format!("conversion webhook for {list_kind} returned {what} at index {idx}: {why}")
            };
            self.check_type(original, &converted).map_err(|why| failed("invalid converted object", why))?;
            check_identity(original, &converted).map_err(|why| failed("invalid converted object", why))?;
            let whole =
                restore_metadata(original, converted).map_err(|why| failed("invalid metadata in object", why))?;
            done.push(whole);
        }
        Ok(done)
    }

    /// The objects of an answer, if it is one and has as many as were asked for.
    fn objects(&self, gvk: &GroupVersionKind, n_wanted: usize, answer: &Value) -> Result<Vec<Value>, String> {
        self.check_answer(answer).map_err(|why| format!("conversion webhook for {gvk} failed: {why}"))?;
        let objects = answer.at("response.convertedObjects").items();
        if objects.len() != n_wanted {
            let n_got = objects.len();
            return Err(format!("conversion webhook for {gvk} returned {n_got} objects, expected {n_wanted}"));
        }
        Ok(objects.to_vec())
    }

    fn check_answer(&self, answer: &Value) -> Result<(), String> {
        let response = &answer["response"];
        if self.is_v1 {
            let wanted = GroupVersionKind::new("apiextensions.k8s.io", "v1", "ConversionReview");
            let got = answer.gvk().unwrap_or_default();
            if got != wanted {
                return Err(format!("expected webhook response of {wanted}, got {got}"));
            }
        }
        if response.is_null() {
            return Err("no response provided".to_owned());
        }
        let uid = response["uid"].str_or_empty();
        if self.is_v1 && uid != self.uid {
            return Err(format!("expected response.uid={}, got {}", go_quote(&self.uid), go_quote(uid)));
        }
        let result = &response["result"];
        match (result["status"].str_or_empty(), result["message"].str_or_empty()) {
            ("Success", _) => Ok(()),
            (status, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
            (_, message) => Err(message.to_owned()),
        }
    }

    fn check_type(&self, original: &Value, converted: &Value) -> Result<(), String> {
        let got = GroupVersion::parse(converted.api_version()).unwrap_or_default();
        if got != self.to {
            return Err(format!("invalid groupVersion (expected {}, received {got})", self.to));
        }
        let (wanted, got) = (original.kind(), converted.kind());
        if wanted != got {
            return Err(format!("invalid kind (expected {wanted}, received {got})"));
        }
        Ok(())
    }
}

fn check_identity(original: &Value, converted: &Value) -> Result<(), String> {
    for (what, before, after) in [
        ("kind", original.kind(), converted.kind()),
        ("name", original.name(), converted.name()),
        ("namespace", original.namespace(), converted.namespace()),
        ("UID", original.uid(), converted.uid()),
    ] {
        if before != after {
            return Err(format!("must have the same {what}: {before} != {after}"));
        }
    }
    Ok(())
}

/// The converted object with the original's metadata, of which a webhook may change labels and annotations only.
fn restore_metadata(original: &Value, mut converted: Value) -> Result<Value, String> {
    if !converted.has("metadata") {
        return Err("missing metadata in converted object".to_owned());
    }
    let answered = converted["metadata"].clone();
    if answered.as_object().is_none() {
        return Err(format!("invalid metadata of type {} in converted object", go_type(&answered)));
    }
    let mut metadata = if original.has("metadata") { original["metadata"].clone() } else { Value::object() };
    if metadata.as_object().is_none() {
        return Err(format!("invalid metadata of type {} in input object", go_type(&metadata)));
    }
    for field in ["labels", "annotations"] {
        let (new, old) = (&answered[field], &metadata[field]);
        if new.is_null() {
            metadata.remove(field);
            continue;
        }
        if new.as_object().is_none() {
            return Err(format!("invalid metadata.{field} of type {} in converted object", go_type(new)));
        }
        if !old.is_null() && old.as_object().is_none() {
            return Err(format!("invalid metadata.{field} of type {} in original object", go_type(old)));
        }
        if let Some((key, value)) = new.entries().find(|(_, value)| value.as_str().is_none()) {
            let ty = go_type(value);
            return Err(format!("metadata.{field}[{key}] must be a string, but is {ty} in converted object"));
        }
        let errors = if new == old { ErrorList::new() } else { text_map_errors(field, new) };
        if !errors.is_empty() {
            return Err(aggregate(&errors));
        }
        let new = new.clone();
        metadata.set(field, new);
    }
    converted.set("metadata", metadata);
    Ok(converted)
}

fn text_map_errors(field: &str, map: &Value) -> Vec<FieldError> {
    let metadata = Path::new("metadata");
    if field == "labels" {
        metadata_rules::validate_labels(map, &metadata.child("labels"))
    } else {
        // upstream names the field so
        metadata_rules::validate_annotations(map, &metadata.child("annotation"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn object(version: &str, metadata: Value) -> Value {
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": metadata})
    }

    fn answer(objects: Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {"uid": "u", "result": {"status": "Success"}, "convertedObjects": objects},
        })
    }

    fn review() -> (Value, Review) {
        let webhook = Webhook { client_config: Value::NULL, review_versions: vec![Str::new("v7"), Str::new("v1")] };
        let original = object("v1", json!({"name": "a", "uid": "x", "labels": {"a": "b"}, "finalizers": ["f"]}));
        let to = GroupVersion::new("example.com", "v2");
        let review = webhook.review(std::slice::from_ref(&original), &to, Str::new("u")).unwrap();
        (original, review)
    }

    #[test]
    fn asked_and_answered() {
        let (original, review) = review();
        expect![[r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"desiredAPIVersion":"example.com/v2","objects":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"finalizers":["f"],"labels":{"a":"b"},"name":"a","uid":"x"}}],"uid":"u"},"response":{"convertedObjects":null,"result":{"metadata":{}},"uid":""}}"#]]
        .assert_eq(&review.body.to_json_string());
        let good = object("v2", json!({"name": "a", "uid": "x", "labels": {"c": "d"}, "generation": 9}));
        expect![[r#"{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"finalizers":["f"],"labels":{"c":"d"},"name":"a","uid":"x"}}"#]]
        .assert_eq(&review.converted(&original, &answer(Value::Array(vec![good]))).unwrap().to_json_string());
    }

    #[test]
    fn answers_that_will_not_do() {
        let (original, review) = review();
        let told = |answer: Value| review.converted(&original, &answer).unwrap_err();
        let of = |object: Value| answer(Value::Array(vec![object]));
        let gvk = "conversion webhook for example.com/v1, Kind=Widget";
        for (answer, want) in [
            (
                json!({"kind": "X"}),
                " failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=X",
            ),
            (answer(json!([])), " returned 0 objects, expected 1"),
            (
                of(object("v1", json!({}))),
                " returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)",
            ),
            (
                of(object("v2", json!({"name": "b", "uid": "x"}))),
                " returned invalid object: must have the same name: a != b",
            ),
            (
                of(object("v2", json!({"name": "a", "uid": "x", "labels": {"a": 1}}))),
                " returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
            ),
        ] {
            assert_eq!(told(answer), format!("{gvk}{want}"));
        }
        let mut failed = answer(json!([]));
        failed["response"].set("result", json!({"status": "Failure", "message": "no"}));
        assert_eq!(told(failed.clone()), format!("{gvk} failed: no"));
        failed["response"].set("uid", "other");
        assert_eq!(told(failed), format!("{gvk} failed: expected response.uid=\"u\", got \"other\""));
    }
}
