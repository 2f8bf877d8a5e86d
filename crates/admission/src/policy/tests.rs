//! Policies in a language of a few words.

use super::*;
use crate::expressions::{Conditions, Evaluated, NoExpressions, Outcome, Part, Program};
use crate::plugins::testing::Script;
use expect_test::expect;
use pintle_apimachinery::{GroupVersionResource, json};

/// `true`, `false`, `null`, `int`, `'text'`; `params`, `namespace`, `object` and `kind` show what they are called after;
/// `spent` breaks off; everything else fails.
#[derive(Debug)]
struct Words;

#[derive(Debug)]
struct Sentences(Value);

impl Expressions for Words {
    fn conditions(&self, _expressions: &[&str]) -> Arc<dyn Conditions> {
        Arc::new(NoExpressions)
    }

    fn policy(&self, spec: &Value) -> Arc<dyn Program> {
        Arc::new(Sentences(spec.clone()))
    }
}

impl Program for Sentences {
    fn evaluate(&self, part: Part, input: Input<'_>, budget: u64) -> Result<Evaluated, String> {
        let (list, member) = match part {
            Part::Conditions => ("matchConditions", "expression"),
            Part::Validations => ("validations", "expression"),
            Part::Messages => ("validations", "messageExpression"),
            Part::Annotations => ("auditAnnotations", "valueExpression"),
        };
        let mut outcomes = Vec::new();
        for item in self.0[list].items() {
            outcomes.push(match item[member].as_str() {
                None => None,
                Some("spent") => return Err("the budget is spent".to_owned()),
                Some(word) => Some(say(word, input)),
            });
        }
        Ok(Evaluated { outcomes, budget })
    }
}

fn say(word: &str, input: Input<'_>) -> Result<Outcome, String> {
    let show = |value: Option<&Value>| Outcome::Text(value.cloned().unwrap_or_default().to_json_string());
    Ok(match word {
        "true" => Outcome::Bool(true),
        "false" => Outcome::Bool(false),
        "null" => Outcome::Null,
        "int" => Outcome::Other("int".to_owned()),
        "params" => show(input.params),
        "namespace" => show(input.namespace),
        "object" => show(input.object),
        "kind" => Outcome::Text(input.kind.to_string()),
        text if text.starts_with('\'') => Outcome::Text(text.trim_matches('\'').to_owned()),
        other => return Err(format!("expression '{other}' resulted in error: no such word")),
    })
}

/// Rules are of their own kind; deployments have two forms.
#[derive(Debug)]
struct SomeForms;

#[async_trait]
impl Forms for SomeForms {
    fn equivalents(&self, _: &GroupVersionResource, _: &str) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        Vec::new()
    }

    fn resource_of(&self, kind: &GroupVersionKind) -> Option<(GroupVersionResource, bool)> {
        match kind.kind.as_str() {
            "Rule" => Some((GroupVersionResource::new("example.com", "v1", "rules"), true)),
            "ClusterRule" => Some((GroupVersionResource::new("example.com", "v1", "clusterrules"), false)),
            _ => None,
        }
    }

    async fn convert(&self, object: Value, _: &GroupVersionKind, _: &GroupVersionKind) -> Result<Value> {
        Ok(object)
    }

    fn read(&self, _kind: &GroupVersionKind, object: Value) -> Result<Value, String> {
        Ok(object)
    }
}

struct World(Script);

impl World {
    fn new() -> World {
        let script = Script::new(|lookup| {
            Arc::new(ValidatingAdmissionPolicy::new(lookup, Arc::new(SomeForms), Arc::new(Words)))
        });
        let metadata = json!({"name": "ns", "labels": {"team": "a"}, "managedFields": [], "uid": "u"});
        script.put("namespaces", json!({"kind": "Namespace", "metadata": metadata, "status": {"phase": "Active"}}));
        World(script)
    }

    /// A policy for everything with one binding that denies, and changes to both.
    fn policy(self, name: &str, policy: Value, binding: Value) -> World {
        let merged = |mut spec: Value, changes: Value| {
            for (key, value) in changes.entries() {
                spec.set(key, value.clone());
            }
            json!({"metadata": {"name": name}, "spec": spec})
        };
        let constraints = json!({"namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Equivalent"});
        let policy = merged(json!({"matchConstraints": constraints, "failurePolicy": "Fail"}), policy);
        let binding = merged(json!({"policyName": name, "validationActions": ["Deny"]}), binding);
        self.0.put("validatingadmissionpolicies.admissionregistration.k8s.io", policy);
        self.0.put("validatingadmissionpolicybindings.admissionregistration.k8s.io", binding);
        self
    }

    /// What a ConfigMap in `ns` meets with.
    async fn answer(&self) -> String {
        let outcome = self.0.create("configmaps ns", json!({"metadata": {"name": "a"}})).await;
        if outcome.is_ok() {
            return format!("ok {:?}", outcome.warnings());
        }
        let status = outcome.status();
        let message = status.message.strip_prefix("configmaps \"a\" is forbidden: ").unwrap_or(&status.message);
        format!("{} {} {message}", status.code, status.reason)
    }
}

fn validations(list: Value) -> Value {
    json!({"validations": list})
}

#[tokio::test]
async fn what_is_told() {
    let mut told = String::new();
    for spec in [
        validations(json!([{"expression": "true"}])),
        validations(json!([{"expression": " false "}])),
        validations(json!([{"expression": "false", "message": " no ", "reason": "Forbidden"}])),
        validations(json!([{"expression": "false", "message": "no", "messageExpression": "' computed '"}])),
        validations(json!([{"expression": "false", "message": "no", "messageExpression": "' '"}])),
        validations(json!([{"expression": "false", "message": "no", "messageExpression": "'a\nb'"}])),
        validations(json!([{"expression": "false", "message": "no", "messageExpression": "int"}])),
        validations(json!([{"expression": "false", "message": "no", "messageExpression": "oops"}])),
        validations(json!([{"expression": "true", "messageExpression": "spent"}])),
        validations(json!([{"expression": "int", "message": "a", "reason": "RequestEntityTooLarge"}])),
        validations(json!([{"expression": "oops"}, {"expression": "false"}])),
        validations(json!([{"expression": "spent"}])),
        json!({"validations": [{"expression": "false"}, {"expression": "oops"}], "failurePolicy": "Ignore"}),
        json!({"validations": [{"expression": "oops"}], "failurePolicy": "Ignore"}),
        json!({"validations": [{"expression": "false"}], "matchConditions": [{"expression": "false"}, {"expression": "x"}]}),
        json!({"validations": [{"expression": "true"}], "matchConditions": [{"expression": "true"}, {"expression": "x"}]}),
        json!({"auditAnnotations": [{"key": "a", "valueExpression": "'x'"}, {"key": "b", "valueExpression": "null"}]}),
        json!({"auditAnnotations": [{"key": "a", "valueExpression": "int"}], "failurePolicy": "Ignore"}),
        json!({"auditAnnotations": [{"key": "a", "valueExpression": "oops"}]}),
        json!({"matchConstraints": null}),
        json!({"matchConstraints": {"namespaceSelector": {}}}),
        validations(json!([{"expression": "false", "messageExpression": "namespace"}])),
        validations(json!([{"expression": "false", "messageExpression": "object"}])),
    ] {
        told += &format!("{}\n", World::new().policy("p", spec, json!({})).answer().await);
    }
    expect![[r#"
        ok []
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: expression ' false ' resulted in error: no such word
        403 Forbidden ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: computed
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed messageExpression: the budget is spent
        413 RequestEntityTooLarge ValidatingAdmissionPolicy 'p' with binding 'p' denied request: a
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: expression 'oops' resulted in error: no such word
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: the budget is spent
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: false
        ok []
        ok []
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: expression 'x' resulted in error: no such word
        ok []
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: valueExpression 'int' resulted in unsupported return type: int. Return type must be either string or null.
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: expression 'oops' resulted in error: no such word
        422 Invalid ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: policy contained no match constraints, a required field
        422 Invalid ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: a nil object selector was passed, please ensure selectors are initialized properly
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: {"metadata":{"labels":{"team":"a"},"name":"ns","uid":"u"},"status":{"phase":"Active"}}
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: {"metadata":{"name":"a"}}
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn whom_a_policy_is_for() {
    let mut told = String::new();
    let denies =
        |constraints: Value| json!({"matchConstraints": constraints, "validations": [{"expression": "false"}]});
    let rule = |resource: &str| json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["*"], "resources": [resource]}]);
    let everywhere = json!({"namespaceSelector": {}, "objectSelector": {}});
    let with = |key: &str, value: Value| {
        let mut constraints = everywhere.clone();
        constraints.set(key, value);
        constraints
    };
    for constraints in [
        everywhere.clone(),
        with("resourceRules", rule("secrets")),
        with("resourceRules", rule("configmaps")),
        with("excludeResourceRules", rule("configmaps")),
        with("namespaceSelector", json!({"matchLabels": {"team": "b"}})),
        with("objectSelector", json!({"matchLabels": {"app": "b"}})),
    ] {
        told += &format!("{}\n", World::new().policy("p", denies(constraints.clone()), json!({})).answer().await);
        let bound = json!({"matchResources": constraints});
        let all = denies(everywhere.clone());
        told += &format!("  bound: {}\n", World::new().policy("p", all, bound).answer().await);
    }
    expect![[r#"
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: false
          bound: 422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: false
        ok []
          bound: ok []
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: false
          bound: 422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: false
        ok []
          bound: ok []
        ok []
          bound: ok []
        ok []
          bound: ok []
    "#]]
    .assert_eq(&told);
}

#[tokio::test]
async fn actions() {
    let denies = || validations(json!([{"expression": "false", "message": "no"}]));
    let warned = World::new().policy("p", denies(), json!({"validationActions": ["Warn", "Audit"]})).answer().await;
    expect![[r#"ok ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': no"]"#]].assert_eq(&warned);
    let both = World::new().policy("p", denies(), json!({"validationActions": ["Deny", "Warn"]}));
    let outcome = both.0.create("configmaps ns", json!({"metadata": {"name": "a"}})).await;
    assert_eq!(outcome.warnings().len(), 1);
    expect![[r#"{"apiVersion":"v1","code":422,"details":{"causes":[{"message":"ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no"}],"kind":"configmaps","name":"a"},"kind":"Status","message":"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no","metadata":{},"reason":"Invalid","status":"Failure"}"#]].assert_eq(&outcome.status().to_value().to_json_string());
    let reviews = both.0.create("tokenreviews.authentication.k8s.io -", json!({"metadata": {}})).await;
    reviews.ok();
}

#[tokio::test]
async fn parameters() {
    let mut told = String::new();
    let policy = |kind: &str| {
        json!({
            "paramKind": {"apiVersion": "example.com/v1", "kind": kind},
            "validations": [{"expression": "false", "messageExpression": "params"}],
        })
    };
    for (kind, reference) in [
        ("Rule", json!(null)),
        ("Rule", json!({"name": "one", "parameterNotFoundAction": "Deny"})),
        ("Rule", json!({"name": "one", "namespace": "elsewhere", "parameterNotFoundAction": "Deny"})),
        ("Rule", json!({"name": "none", "parameterNotFoundAction": "Allow"})),
        ("Rule", json!({"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"})),
        ("Rule", json!({"selector": {"matchLabels": {"a": "c"}}, "parameterNotFoundAction": "Deny"})),
        ("ClusterRule", json!({"name": "whole", "parameterNotFoundAction": "Deny"})),
        ("ClusterRule", json!({"name": "whole", "namespace": "ns", "parameterNotFoundAction": "Deny"})),
        ("Unknown", json!({"name": "one"})),
    ] {
        let world = World::new().policy("p", policy(kind), json!({"paramRef": reference}));
        for name in ["one", "two"] {
            let labels = json!({"a": "b"});
            let rule = json!({"metadata": {"name": name, "namespace": "ns", "labels": labels}});
            world.0.put("rules.example.com", rule);
        }
        world.0.put("clusterrules.example.com", json!({"metadata": {"name": "whole"}}));
        told += &format!("{}\n", world.answer().await);
    }
    expect![[r#"
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: null
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: {"apiVersion":"example.com/v1","kind":"Rule","metadata":{"labels":{"a":"b"},"name":"one","namespace":"ns"}}
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction
        ok []
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: {"apiVersion":"example.com/v1","kind":"Rule","metadata":{"labels":{"a":"b"},"name":"one","namespace":"ns"}}
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: {"apiVersion":"example.com/v1","kind":"ClusterRule","metadata":{"name":"whole"}}
        422 Invalid ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`
        422 Invalid ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Unknown'
    "#]].assert_eq(&told);
}
