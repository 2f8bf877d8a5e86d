use super::*;
use crate::CompiledDefinition;
use pintle_apimachinery::json;
use pintle_kinds::UserInfo;

fn strategy() -> CustomResourceStrategy {
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer", "maximum": 10}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    }});
    let definition = json!({
        "spec": {"group": "example.com", "scope": "Namespaced", "names": (names.clone()), "versions": [{
            "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
        }]},
        "status": {"acceptedNames": names}
    });
    let compiled = CompiledDefinition::compile(&definition).unwrap();
    CustomResourceStrategy::new(Arc::clone(compiled.storage().unwrap()))
}

fn object(spec: i64, status: i64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "a", "namespace": "ns", "generation": 3, "resourceVersion": "1"},
        "spec": {"replicas": spec}, "status": {"replicas": status},
    })
}

fn with_request<T>(run: impl FnOnce(RequestInfo<'_>) -> T) -> T {
    let user = UserInfo::default();
    run(RequestInfo { namespace: "ns", subresource: "", user: &user, now: jiff::Timestamp::UNIX_EPOCH })
}

fn told(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn status_and_generation() {
    let strategy = strategy();
    with_request(|request| {
        let mut created = object(1, 1);
        strategy.prepare_for_create(request, &mut created);
        assert!(!created.has("status") && created.generation() == 1);
        let old = object(1, 1);
        let mut updated = object(2, 9);
        strategy.prepare_for_update(request, &mut updated, &old);
        assert_eq!((updated["status"]["replicas"].as_i64(), updated.generation()), (Some(1), 4));
        let mut unchanged = object(1, 9);
        strategy.prepare_for_update(request, &mut unchanged, &old);
        assert_eq!(unchanged.generation(), 3);
        let mut status = object(7, 9);
        status["metadata"].set("labels", json!({"x": "y"}));
        strategy.subresource("status").unwrap().prepare_for_update(request, &mut status, &old);
        assert_eq!(status, object(1, 9));
        assert!(strategy.subresource("scale").is_none());
    });
}

#[test]
fn errors_of_a_write() {
    let strategy = strategy();
    with_request(|request| {
        assert_eq!(told(&strategy.validate(request, &object(1, 1))), Vec::<String>::new());
        assert_eq!(
            told(&strategy.validate(request, &object(11, -1))),
            [
                "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10",
                ".status.replicas: Invalid value: -1: should be a non-negative integer"
            ]
        );
        let mut other = object(1, 1);
        other.set("kind", "Gadget");
        assert_eq!(told(&strategy.validate(request, &other)), ["kind: Invalid value: \"Gadget\": must be Widget"]);
        // what was wrong before and did not change passes
        assert_eq!(told(&strategy.validate_update(request, &object(11, 1), &object(11, 0))), Vec::<String>::new());
        let mut text = object(1, 1);
        text["status"].set("replicas", "x");
        assert_eq!(
            told(&strategy.subresource("status").unwrap().validate_update(request, &text, &object(1, 1))),
            [
                "status.replicas: Invalid value: \"string\": replicas in body must be of type integer: \"string\"",
                ".status.replicas: Invalid value: 0: .status.replicas accessor error: x is of the type string, expected int64"
            ]
        );
    });
}

#[test]
fn warnings_of_finalizers() {
    let with = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    assert_eq!(
        finalizer_warnings(&with(json!(["foo", "a.b", "x.y/z", "orphan", "old"])), Some(&with(json!(["old"])))),
        [
            "metadata.finalizers: \"a.b\": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers",
            "metadata.finalizers: \"foo\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
        ]
    );
}
