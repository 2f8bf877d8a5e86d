//! Webhooks that answer what the tests say.

use super::*;
use crate::expressions::{Conditions, Expressions, Input, NoExpressions, Program};
use crate::matching::Forms;
use crate::plugins::testing::Script;
use async_trait::async_trait;
use expect_test::expect;
use parking_lot::Mutex;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Answers by the webhook's URL: the `response`, without its uid. Without one the call fails.
#[derive(Debug, Default)]
struct Answers {
    by_url: Mutex<BTreeMap<String, VecDeque<Value>>>,
    asked: Mutex<Vec<(String, Value)>>,
}

impl Answers {
    fn answer(&self, url: &str, response: Value) {
        self.by_url.lock().entry(url.to_owned()).or_default().push_back(response);
    }

    /// Who was asked since the last time.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().drain(..).map(|(url, _)| url).collect()
    }
}

#[async_trait]
impl Caller for Answers {
    async fn call(&self, client_config: &Value, body: Value, _timeout: Option<Duration>) -> Result<Value, CallError> {
        let url = client_config["url"].str_or_empty().to_owned();
        let uid = body["request"]["uid"].clone();
        let version = body["apiVersion"].clone();
        self.asked.lock().push((url.clone(), body));
        let answer = self.by_url.lock().get_mut(&url).and_then(VecDeque::pop_front);
        let Some(mut response) = answer else { return Err(CallError::Failed("out of order".to_owned())) };
        if response["uid"].is_null() {
            response.set("uid", uid);
        }
        Ok(json!({"kind": "AdmissionReview", "apiVersion": version, "response": response}))
    }
}

/// Conditions are the words `true`, `false`, and others, which fail.
#[derive(Debug)]
struct Words;

#[derive(Debug)]
struct Sentence(Vec<String>);

impl Expressions for Words {
    fn conditions(&self, expressions: &[&str]) -> Arc<dyn Conditions> {
        Arc::new(Sentence(expressions.iter().map(|word| (*word).to_owned()).collect()))
    }

    fn policy(&self, _spec: &Value) -> Arc<dyn Program> {
        Arc::new(NoExpressions)
    }
}

impl Conditions for Sentence {
    fn evaluate(&self, _input: Input<'_>) -> Result<Vec<Result<bool, String>>, String> {
        Ok(self.0.iter().map(|word| word.parse().map_err(|_| format!("{word} fails"))).collect())
    }
}

/// Deployments are served under two names.
#[derive(Debug)]
struct TwoForms;

#[async_trait]
impl Forms for TwoForms {
    fn equivalents(&self, resource: &GroupVersionResource, _: &str) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        if resource.resource != "deployments" {
            return Vec::new();
        }
        ["apps", "extensions"]
            .map(|group| {
                (
                    GroupVersionResource::new(group, "v1", "deployments"),
                    GroupVersionKind::new(group, "v1", "Deployment"),
                )
            })
            .into()
    }

    fn resource_of(&self, _kind: &GroupVersionKind) -> Option<(GroupVersionResource, bool)> {
        None
    }

    async fn convert(
        &self,
        mut object: Value,
        from: &GroupVersionKind,
        to: &GroupVersionKind,
    ) -> pintle_apimachinery::status::Result<Value> {
        object.set("converted", format!("from {} to {}", from.group, to.group));
        Ok(object)
    }

    fn read(&self, _kind: &GroupVersionKind, object: Value) -> Result<Value, String> {
        Ok(object)
    }
}

fn world(is_mutating: bool) -> (Script, Arc<Answers>) {
    let answers = Arc::new(Answers::default());
    let caller = answers.clone();
    let script = Script::new(|lookup| {
        let webhooks =
            Webhooks { lookup, forms: Arc::new(TwoForms), expressions: Arc::new(Words), caller, env: Env::seeded(7) };
        if is_mutating {
            Arc::new(MutatingAdmissionWebhook::new(webhooks))
        } else {
            Arc::new(ValidatingAdmissionWebhook::new(webhooks))
        }
    });
    script.put("namespaces", json!({"metadata": {"name": "ns", "labels": {"team": "a"}}}));
    (script, answers)
}

/// A webhook for everything, with changes.
fn hook(name: &str, changes: Value) -> Value {
    let mut hook = json!({
        "name": name,
        "clientConfig": {"url": name},
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
        "sideEffects": "None", "timeoutSeconds": 10, "admissionReviewVersions": ["v1"], "reinvocationPolicy": "Never",
    });
    for (key, value) in changes.entries() {
        hook.set(key, value.clone());
    }
    hook
}

fn configure(script: &Script, name: &str, hooks: Value) {
    for resource in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let resource = format!("{resource}.admissionregistration.k8s.io");
        script.put(&resource, json!({"metadata": {"name": name, "uid": name}, "webhooks": hooks.clone()}));
    }
}

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "x"}}})
}

fn patch(operations: Value) -> Value {
    use base64::Engine;
    let patch = base64::engine::general_purpose::STANDARD.encode(operations.to_json());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

fn set_label(key: &str, value: &str) -> Value {
    patch(json!([{"op": "add", "path": format!("/metadata/labels/{key}"), "value": value}]))
}

#[tokio::test]
async fn what_a_webhook_is_sent() {
    let (script, answers) = world(false);
    configure(&script, "c", json!([hook("w", json!({}))]));
    answers.answer("w", json!({"allowed": true, "warnings": ["mind the gap"]}));
    let outcome = script.update("configmaps ns a", config_map(), config_map()).await;
    assert_eq!(outcome.warnings(), ["mind the gap"]);
    let sent = answers.asked.lock().pop().expect("the webhook is asked").1;
    expect![[r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"dryRun":false,"kind":{"group":"","kind":"configmaps","version":"v1"},"name":"a","namespace":"ns","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"app":"x"},"name":"a"}},"oldObject":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"app":"x"},"name":"a"}},"operation":"UPDATE","options":null,"requestKind":{"group":"","kind":"configmaps","version":"v1"},"requestResource":{"group":"","resource":"configmaps","version":"v1"},"resource":{"group":"","resource":"configmaps","version":"v1"},"uid":"63cbe1e4-5932-4dd7-844c-3cd7f43c661c","userInfo":{"username":"jane"}}}"#]]
    .assert_eq(&sent.to_json_string());
}

#[tokio::test]
async fn who_is_asked() {
    let (script, answers) = world(false);
    let only = |resource: &str| json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource]}]);
    let legacy = json!([{"operations": ["*"], "apiGroups": ["extensions"], "apiVersions": ["v1"], "resources": ["deployments"]}]);
    configure(
        &script,
        "b",
        json!([
            hook("everything", json!({})),
            hook("deployments", json!({"rules": only("deployments")})),
            hook("other-team", json!({"namespaceSelector": {"matchLabels": {"team": "b"}}})),
            hook("my-team", json!({"namespaceSelector": {"matchLabels": {"team": "a"}}})),
            hook("other-app", json!({"objectSelector": {"matchLabels": {"app": "y"}}})),
            hook("my-app", json!({"objectSelector": {"matchLabels": {"app": "x"}}})),
            hook("never", json!({"matchConditions": [{"expression": "fail"}, {"expression": "false"}]})),
            hook("always", json!({"matchConditions": [{"expression": "true"}]})),
            hook("ignored", json!({"matchConditions": [{"expression": "fail"}], "failurePolicy": "Ignore"})),
            hook("exact", json!({"rules": legacy.clone(), "matchPolicy": "Exact"})),
            hook("legacy", json!({"rules": legacy})),
        ]),
    );
    configure(&script, "a", json!([hook("first", json!({"rules": only("configmaps")}))]));
    let names = ["everything", "deployments", "my-team", "my-app", "always", "legacy", "first"];
    let allow = || names.iter().for_each(|name| answers.answer(name, json!({"allowed": true})));
    allow();
    script.create("configmaps ns", config_map()).await.ok();
    assert_eq!(answers.asked(), ["first", "everything", "my-team", "my-app", "always"]);
    allow();
    script.create("deployments.apps ns", config_map()).await.ok();
    let sent = answers.asked.lock().last().expect("someone is asked").1.clone();
    assert_eq!(sent["request"]["object"]["converted"].as_str(), Some("from apps to extensions"));
    assert_eq!(sent["request"]["resource"]["group"].as_str(), Some("extensions"));
    assert_eq!(sent["request"]["requestResource"]["group"].as_str(), Some("apps"));
    assert_eq!(answers.asked(), ["everything", "deployments", "my-team", "my-app", "always", "legacy"]);
    allow();
    script.create("namespaces -", json!({"metadata": {"name": "new", "labels": {"team": "a"}}})).await.ok();
    assert_eq!(answers.asked(), ["everything", "my-team", "always"]);
    let exempt = json!({"metadata": {"name": "c"}});
    let outcome = script.create("ValidatingWebhookConfiguration.admissionregistration.k8s.io -", exempt).await;
    outcome.ok();
    assert!(answers.asked().is_empty());
    let nowhere = script.create("configmaps nowhere", config_map()).await;
    nowhere.refused(expect![[r#"404 namespaces "nowhere" not found"#]]);
}

#[tokio::test]
async fn failures_and_refusals() {
    let refused = async |changes: Value, response: Option<Value>, is_dry: bool| {
        let (script, answers) = world(false);
        let script = if is_dry { script.dry() } else { script };
        configure(&script, "c", json!([hook("w", changes)]));
        if let Some(response) = response {
            answers.answer("w", response);
        }
        let outcome = script.create("configmaps ns", config_map()).await;
        let status = outcome.status();
        format!("{} {:?} {}\n", status.code, status.reason, status.message)
    };
    let mut told = String::new();
    told += &refused(json!({}), None, false).await;
    told += &refused(json!({"matchConditions": [{"expression": "x"}, {"expression": "y"}]}), None, false).await;
    told += &refused(json!({"sideEffects": "Some", "failurePolicy": "Ignore"}), None, true).await;
    told += &refused(json!({"admissionReviewVersions": ["v9"]}), None, false).await;
    told += &refused(json!({"namespaceSelector": {"matchExpressions": [{"operator": "x"}]}}), None, false).await;
    for response in [
        json!({"uid": "other", "allowed": true}),
        json!({"allowed": true, "patch": "e30="}),
        json!({"allowed": true, "patchType": "JSONPatch"}),
        json!({"allowed": false}),
        json!({"allowed": false, "status": {"reason": "BadThing"}}),
        json!({"allowed": false, "status": {"message": "no way", "code": 409, "reason": "Conflict", "status": "Success"}}),
        json!({"allowed": false, "status": {"message": "no way", "code": 200}}),
    ] {
        told += &refused(json!({}), Some(response), false).await;
    }
    expect![[r#"
        500 "InternalError" Internal error occurred: failed calling webhook "w": failed to call webhook: out of order
        403 "Forbidden" configmaps "a" is forbidden: [x fails, y fails]
        400 "BadRequest" admission webhook "w" does not support dry run
        500 "InternalError" Internal error occurred: failed calling webhook "w": could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)
        500 "InternalError" Internal error occurred: "x" is not a valid label selector operator
        500 "InternalError" Internal error occurred: failed calling webhook "w": received invalid webhook response: expected response.uid="63cbe1e4-5932-4dd7-844c-3cd7f43c661c", got "other"
        500 "InternalError" Internal error occurred: failed calling webhook "w": received invalid webhook response: validating webhook may not return response.patch
        500 "InternalError" Internal error occurred: failed calling webhook "w": received invalid webhook response: validating webhook may not return response.patchType
        400 "" admission webhook "w" denied the request without explanation
        400 "BadThing" admission webhook "w" denied the request: BadThing
        409 "Conflict" admission webhook "w" denied the request: no way
        400 "" admission webhook "w" denied the request: no way
    "#]]
    .assert_eq(&told);
    let (script, answers) = world(false);
    configure(&script, "c", json!([hook("w", json!({"failurePolicy": "Ignore"}))]));
    script.create("configmaps ns", config_map()).await.ok();
    assert_eq!(answers.asked(), ["w"]);
}

#[tokio::test]
async fn patches_add_up() {
    let (script, answers) = world(true);
    configure(
        &script,
        "c",
        json!([hook("one", json!({})), hook("two", json!({"objectSelector": {"matchLabels": {"a": "1"}}}))]),
    );
    answers.answer("one", set_label("a", "1"));
    answers.answer("two", set_label("b", "2"));
    let outcome = script.create("configmaps ns", config_map()).await;
    outcome.shows("metadata.labels", expect![[r#"{"a":"1","app":"x","b":"2"}"#]]);
    answers.answer("one", patch(json!([])));
    script.delete("configmaps ns a").await.ok();
    answers.answer("one", set_label("a", "1"));
    let refused = script.delete("configmaps ns a").await;
    refused.refused(expect![[r#"500 Internal error occurred: admission webhook "one" attempted to modify the object, which is not supported for this operation"#]]);
    answers.answer("one", json!({"allowed": true, "patch": "e30=", "patchType": "JSONPatch"}));
    let refused = script.create("configmaps ns", config_map()).await;
    refused.refused(expect![[r#"500 Internal error occurred: failed calling webhook "one": received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch"#]]);
    answers.answer("one", json!({"allowed": true, "patch": "e30=", "patchType": "Merge"}));
    let refused = script.create("configmaps ns", config_map()).await;
    refused.refused(expect![[
        r#"500 Internal error occurred: failed calling webhook "one": unsupported patch type "Merge""#
    ]]);
}

#[tokio::test]
async fn who_wants_to_is_asked_again() {
    let (script, answers) = world(true);
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    configure(
        &script,
        "c",
        json!([
            hook("first", again.clone()),
            hook("never", json!({})),
            hook("changes", again.clone()),
            hook("last", again),
        ]),
    );
    let allow = |names: &[&str]| names.iter().for_each(|name| answers.answer(name, json!({"allowed": true})));
    allow(&["first", "never", "last"]);
    answers.answer("changes", set_label("a", "1"));
    allow(&["first"]);
    script.create("configmaps ns", config_map()).await.ok();
    assert_eq!(answers.asked(), ["first", "never", "changes", "last", "first"]);
    allow(&["first", "never", "changes", "last"]);
    script.create("configmaps ns", config_map()).await.ok();
    assert_eq!(answers.asked(), ["first", "never", "changes", "last"]);
}
