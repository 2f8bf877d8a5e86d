use super::Cel;
use crate::attributes::{Attributes, Operation, Warnings};
use crate::expressions::{Expressions, Input, POLICY_COST_MAX, Part};
use expect_test::expect;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Value, json};
use pintle_auth::authz::{self, Authorizer, Verdict};
use pintle_auth::user;
use std::fmt::Write;
use std::sync::Arc;

/// Allows to get, and service accounts of `ns`.
#[derive(Debug)]
struct Getters;

impl Authorizer for Getters {
    fn authorize(&self, attributes: &authz::Attributes<'_>) -> Verdict {
        let is_allowed = attributes.verb == "get" || attributes.user.name.starts_with("system:serviceaccount:ns:");
        if is_allowed { Verdict::allow("because") } else { Verdict::no_opinion(attributes.denial()) }
    }
}

fn with_input<T>(object: &Value, params: Option<&Value>, then: impl FnOnce(Input<'_>) -> T) -> T {
    let resource = GroupVersionResource::new("", "v1", "configmaps");
    let kind = GroupVersionKind::new("", "v1", "ConfigMap");
    let warnings = parking_lot::Mutex::new(Warnings::default());
    let namespace = json!({"metadata": {"name": "ns", "labels": {"team": "a"}}});
    let attributes = Attributes {
        operation: Operation::Create,
        resource: &resource,
        subresource: "",
        kind: &kind,
        namespace: "ns",
        name: "c",
        old: None,
        options: &json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}),
        dry_run: false,
        user: &user::named("jane", &["system:authenticated"]),
        warnings: &warnings,
    };
    then(Input {
        attributes: &attributes,
        resource: &resource,
        kind: &kind,
        object: Some(object),
        old: None,
        params,
        namespace: Some(&namespace),
    })
}

fn told(part: Part, spec: &Value) -> String {
    let program = Cel::new(Arc::new(Getters)).policy(spec);
    let object = json!({"metadata": {"name": "c"}, "data": {"n": "3"}});
    let params = json!({"max": 2});
    let evaluated = with_input(&object, Some(&params), |input| program.evaluate(part, input, POLICY_COST_MAX));
    match evaluated {
        Ok(evaluated) => {
            let mut out = String::new();
            evaluated.outcomes.iter().for_each(|outcome| writeln!(out, "{outcome:?}").unwrap());
            writeln!(out, "cost {}", POLICY_COST_MAX - evaluated.budget).unwrap();
            out
        }
        Err(why) => why,
    }
}

#[test]
fn what_expressions_see() {
    let expressions = [
        "object.data.n == '3' && oldObject == null && request.operation == 'CREATE' && request.namespace == 'ns'",
        "request.userInfo.username == 'jane' && namespaceObject.metadata.labels['team'] == 'a' && params.max == 2",
        "variables.count == 4 && variables.doubled == 8",
        "authorizer.group('').resource('pods').namespace('x').check('get').allowed()",
        "authorizer.requestResource.check('update').reason() == ''",
        "authorizer.serviceAccount('ns', 'a').path('/x').check('post').allowed()",
        "variables.wrong",
        "variables.broken == 1",
        "object.data.nothing == ''",
        "object.nonsense(",
    ];
    let validations: Vec<Value> = expressions.iter().map(|text| json!({"expression": *text})).collect();
    let variable = |name: &str, text: &str| json!({"name": name, "expression": text});
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [
            variable("count", "int(object.data.n) + 1"),
            variable("doubled", "variables.count * 2"),
            variable("wrong", "object.data.missing == 'x'"),
            variable("broken", "1 +"),
        ],
        "validations": validations,
    });
    expect![[r#"
        Some(Ok(Bool(true)))
        Some(Ok(Bool(true)))
        Some(Ok(Bool(true)))
        Some(Ok(Bool(true)))
        Some(Ok(Bool(false)))
        Some(Ok(Bool(true)))
        Some(Err("expression 'variables.wrong' resulted in error: composited variable \"wrong\" fails to evaluate: no such key: missing"))
        Some(Err("expression 'variables.broken == 1' resulted in error: composited variable \"broken\" fails to compile: compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^"))
        Some(Err("expression 'object.data.nothing == ''' resulted in error: no such key: nothing"))
        Some(Err("compilation error: compilation failed: ERROR: <input>:1:17: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | object.nonsense(\n | ................^"))
        cost 1050061
    "#]].assert_eq(&told(Part::Validations, &spec));
}

#[test]
fn messages_annotations_and_ends() {
    let spec = json!({
        "validations": [{"expression": "false", "messageExpression": "'n is ' + object.data.n"}, {"expression": "false"}],
        "auditAnnotations": [{"key": "a", "valueExpression": " null "}, {"key": "b", "valueExpression": "'b'"}],
        "variables": [{"name": "a", "expression": "1"}, {"name": "a", "expression": "variables.a + 1"}],
        "matchConditions": [{"name": "x", "expression": "variables.a == 1"}],
    });
    let mut out = String::new();
    out += &told(Part::Messages, &spec);
    out += &told(Part::Annotations, &spec);
    out += &told(Part::Conditions, &spec);
    let dear = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, \
                [1,2,3,4,5,6,7,8,9,10].all(d, a + b + c + d > 0))))";
    let many: Vec<Value> = (0..200).map(|_| json!({"expression": dear})).collect();
    out += &told(Part::Validations, &json!({"validations": many}));
    expect![[r#"
        Some(Ok(Text("n is 3")))
        None
        cost 4
        Some(Ok(Null))
        Some(Ok(Text("b")))
        cost 0
        Some(Err("expression 'variables.a == 1' resulted in error: composited variable \"a\" fails to evaluate: composited variable \"a\" fails to evaluate: it refers to itself"))
        cost 6
        validation failed due to running out of cost budget, no further validation rules will be run"#]].assert_eq(&out);
}

#[test]
fn conditions_of_webhooks() {
    let conditions = Cel::new(Arc::new(Getters)).conditions(&["request.name == 'c'", "object.x.y", "params == null"]);
    let answers = with_input(&json!({"x": {}}), None, |input| conditions.evaluate(input));
    expect![[r#"
        Ok(
            [
                Ok(
                    true,
                ),
                Err(
                    "compilation error: must evaluate to bool but got dyn",
                ),
                Err(
                    "compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params == null\n | ^",
                ),
            ],
        )
    "#]].assert_debug_eq(&answers);
}
