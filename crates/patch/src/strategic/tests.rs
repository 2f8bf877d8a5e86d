use super::*;
use expect_test::{Expect, expect};
use pintle_apimachinery::value::parse;
use pintle_schema::{builtin, kind};
use proptest::prelude::*;

fn node(group: &str, version: &str, name: &str) -> Node<'static> {
    builtin().root(kind(group, version, name).unwrap().id)
}

fn run(node: Node<'_>, document: &str, patch: &str) -> String {
    match decode(patch.as_bytes(), true) {
        Err(status) => format!("{} {}", status.code, status.message),
        Ok((patch, _)) => match patch.apply(&parse(document.as_bytes()).unwrap(), node) {
            Ok(patched) => patched.to_json_string(),
            Err(status) => format!("{} {}", status.code, status.message),
        },
    }
}

/// A transcript: each patch and what it makes of `document`.
fn check(node: Node<'_>, document: &str, patches: &[&str], expected: Expect) {
    let told: Vec<String> =
        patches.iter().map(|patch| format!("{patch}\n  {}\n", run(node, document, patch))).collect();
    expected.assert_eq(&told.concat());
}

#[test]
fn lists_of_objects() {
    check(
        node("", "v1", "Pod"),
        r#"{"spec":{"containers":[{"image":"1","name":"a"},{"image":"1","name":"b","ports":[{"containerPort":53,"protocol":"TCP"}]}]}}"#,
        &[
            r#"{"spec":{"containers":[{"name":"b","image":"2"}]}}"#,
            r#"{"spec":{"containers":[{"name":"c"}]}}"#,
            r#"{"spec":{"containers":[{"name":"b"},{"name":"a","image":null}]}}"#,
            r#"{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}"#,
            r#"{"spec":{"containers":[{"name":"x"},{"$patch":"replace"}]}}"#,
            r#"{"spec":{"containers":[{"name":"b","ports":[{"containerPort":53,"protocol":"UDP"}]}]}}"#,
            r#"{"spec":{"containers":[{"image":"2"}]}}"#,
            r#"{"spec":{"containers":["c"]}}"#,
            r#"{"spec":{"containers":[["c"]]}}"#,
            r#"{"spec":{"containers":[{"name":"a","$patch":"merge"}]}}"#,
            r#"{"spec":{"containers":[{"name":"a","$patch":5}]}}"#,
            r#"{"spec":{"containers":[{"$patch":"delete"}]}}"#,
            r#"{"spec":{"containers":{"name":"c"}}}"#,
            r#"{"spec":{"containers":null}}"#,
            r#"{"spec":{"containers":[]}}"#,
            r#"{"spec":{"tolerations":[{"key":"k","$patch":"delete"},{"key":"l","effect":null}]}}"#,
        ],
        expect![[r#"
            {"spec":{"containers":[{"name":"b","image":"2"}]}}
              {"spec":{"containers":[{"image":"1","name":"a"},{"image":"2","name":"b","ports":[{"containerPort":53,"protocol":"TCP"}]}]}}
            {"spec":{"containers":[{"name":"c"}]}}
              {"spec":{"containers":[{"name":"c"},{"image":"1","name":"a"},{"image":"1","name":"b","ports":[{"containerPort":53,"protocol":"TCP"}]}]}}
            {"spec":{"containers":[{"name":"b"},{"name":"a","image":null}]}}
              {"spec":{"containers":[{"image":"1","name":"b","ports":[{"containerPort":53,"protocol":"TCP"}]},{"name":"a"}]}}
            {"spec":{"containers":[{"name":"a","$patch":"delete"}]}}
              {"spec":{"containers":[{"image":"1","name":"b","ports":[{"containerPort":53,"protocol":"TCP"}]}]}}
            {"spec":{"containers":[{"name":"x"},{"$patch":"replace"}]}}
              {"spec":{"containers":[{"name":"x"}]}}
            {"spec":{"containers":[{"name":"b","ports":[{"containerPort":53,"protocol":"UDP"}]}]}}
              {"spec":{"containers":[{"image":"1","name":"a"},{"image":"1","name":"b","ports":[{"containerPort":53,"protocol":"UDP"}]}]}}
            {"spec":{"containers":[{"image":"2"}]}}
              500 map: map[image:2] does not contain declared merge key: name
            {"spec":{"containers":["c"]}}
              500 list element types are not identical: [[map[image:1 name:a] map[image:1 name:b ports:[map[containerPort:53 protocol:TCP]]]] [c]]
            {"spec":{"containers":[["c"]]}}
              500 list element types are not identical: [[map[image:1 name:a] map[image:1 name:b ports:[map[containerPort:53 protocol:TCP]]]] [[c]]]
            {"spec":{"containers":[{"name":"a","$patch":"merge"}]}}
              500 merging lists cannot yet be specified in the patch
            {"spec":{"containers":[{"name":"a","$patch":5}]}}
              500 unknown patch type: %!s(int64=5) in map: map[$patch:5 name:a]
            {"spec":{"containers":[{"$patch":"delete"}]}}
              500 map: map[$patch:delete] does not contain declared merge key: name
            {"spec":{"containers":{"name":"c"}}}
              {"spec":{"containers":{"name":"c"}}}
            {"spec":{"containers":null}}
              {"spec":{}}
            {"spec":{"containers":[]}}
              {"spec":{"containers":[{"image":"1","name":"a"},{"image":"1","name":"b","ports":[{"containerPort":53,"protocol":"TCP"}]}]}}
            {"spec":{"tolerations":[{"key":"k","$patch":"delete"},{"key":"l","effect":null}]}}
              {"spec":{"containers":[{"image":"1","name":"a"},{"image":"1","name":"b","ports":[{"containerPort":53,"protocol":"TCP"}]}],"tolerations":[{"key":"l"}]}}
        "#]],
    );
}

#[test]
fn order_of_lists() {
    check(
        node("", "v1", "Pod"),
        r#"{"metadata":{"finalizers":["a","b","c"]},"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}}"#,
        &[
            r#"{"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"a"}]}}"#,
            r#"{"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"x"},{"name":"a"}],"containers":[{"name":"x"}]}}"#,
            r#"{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"c"}],"containers":[{"name":"a","$patch":"delete"}]}}"#,
            r#"{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"a","image":"x"}]}}"#,
            r#"{"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"name":"b"},{"name":"a"}]}}"#,
            r#"{"spec":{"$setElementOrder/containers":[],"containers":[{"name":"x"},{"name":"y"}]}}"#,
            r#"{"spec":{"$setElementOrder/containers":["a"]}}"#,
            r#"{"spec":{"$setElementOrder/containers":"a"}}"#,
            r#"{"spec":{"$setElementOrder":[]}}"#,
            r#"{"spec":{"$setElementOrder/zz":[]}}"#,
            r#"{"spec":{"$setElementOrder/volumes":[{"name":"w"},{"name":"v"}],"volumes":[{"name":"w","emptyDir":null}]}}"#,
            r#"{"metadata":{"$setElementOrder/finalizers":["c","a"]}}"#,
            r#"{"metadata":{"$setElementOrder/finalizers":["d","b","a"],"finalizers":["d"]}}"#,
        ],
        expect![[r#"
            {"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"a"}]}}
              {"metadata":{"finalizers":["a","b","c"]},"spec":{"containers":[{"name":"b"},{"name":"c"},{"name":"a"}]}}
            {"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"x"},{"name":"a"}],"containers":[{"name":"x"}]}}
              {"metadata":{"finalizers":["a","b","c"]},"spec":{"containers":[{"name":"b"},{"name":"c"},{"name":"x"},{"name":"a"}]}}
            {"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"c"}],"containers":[{"name":"a","$patch":"delete"}]}}
              {"metadata":{"finalizers":["a","b","c"]},"spec":{"containers":[{"name":"b"},{"name":"c"}]}}
            {"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"a","image":"x"}]}}
              500 The order in patch list:
            [map[image:x name:a]]
             doesn't match $setElementOrder list:
            [map[name:c]]

            {"spec":{"$setElementOrder/containers":[{"name":"a"},{"name":"b"}],"containers":[{"name":"b"},{"name":"a"}]}}
              500 The order in patch list:
            [map[name:b] map[name:a]]
             doesn't match $setElementOrder list:
            [map[name:a] map[name:b]]

            {"spec":{"$setElementOrder/containers":[],"containers":[{"name":"x"},{"name":"y"}]}}
              {"metadata":{"finalizers":["a","b","c"]},"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"y"},{"name":"x"}]}}
            {"spec":{"$setElementOrder/containers":["a"]}}
              500 value for key 0 is not a map
            {"spec":{"$setElementOrder/containers":"a"}}
              500 expected a []interface {}, but received a string
            {"spec":{"$setElementOrder":[]}}
              400 invalid patch format of setElementOrder list
            {"spec":{"$setElementOrder/zz":[]}}
              500 unable to find api field in struct PodSpec for the json field "zz"
            {"spec":{"$setElementOrder/volumes":[{"name":"w"},{"name":"v"}],"volumes":[{"name":"w","emptyDir":null}]}}
              {"metadata":{"finalizers":["a","b","c"]},"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}],"volumes":[{"emptyDir":null,"name":"w"}]}}
            {"metadata":{"$setElementOrder/finalizers":["c","a"]}}
              {"metadata":{"finalizers":["b","c","a"]},"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}}
            {"metadata":{"$setElementOrder/finalizers":["d","b","a"],"finalizers":["d"]}}
              {"metadata":{"finalizers":["d","b","a","c"]},"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}}
        "#]],
    );
}

#[test]
fn lists_of_scalars() {
    check(
        node("", "v1", "ConfigMap"),
        r#"{"metadata":{"finalizers":["a","b"],"ownerReferences":[{"name":"n","uid":"1"}]}}"#,
        &[
            r#"{"metadata":{"finalizers":["c"]}}"#,
            r#"{"metadata":{"finalizers":["b"]}}"#,
            r#"{"metadata":{"finalizers":["c","c","a"]}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a","zz"]}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"finalizers":["c"]}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/absent":["a"]}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList":["a"]}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":[1]}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":"a"}}"#,
            r#"{"metadata":{"finalizers":[null]}}"#,
            r#"{"metadata":{"ownerReferences":[{"uid":"1","name":"m"},{"uid":"2"}]}}"#,
        ],
        expect![[r#"
            {"metadata":{"finalizers":["c"]}}
              {"metadata":{"finalizers":["c","a","b"],"ownerReferences":[{"name":"n","uid":"1"}]}}
            {"metadata":{"finalizers":["b"]}}
              {"metadata":{"finalizers":["a","b"],"ownerReferences":[{"name":"n","uid":"1"}]}}
            {"metadata":{"finalizers":["c","c","a"]}}
              {"metadata":{"finalizers":["c","a","b"],"ownerReferences":[{"name":"n","uid":"1"}]}}
            {"metadata":{"$deleteFromPrimitiveList/finalizers":["a","zz"]}}
              {"metadata":{"finalizers":["b"],"ownerReferences":[{"name":"n","uid":"1"}]}}
            {"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"finalizers":["c"]}}
              {"metadata":{"finalizers":["c","b"],"ownerReferences":[{"name":"n","uid":"1"}]}}
            {"metadata":{"$deleteFromPrimitiveList/absent":["a"]}}
              {"metadata":{"finalizers":["a","b"],"ownerReferences":[{"name":"n","uid":"1"}]}}
            {"metadata":{"$deleteFromPrimitiveList":["a"]}}
              400 invalid patch format of primitive list
            {"metadata":{"$deleteFromPrimitiveList/finalizers":[1]}}
              500 list element types are not identical: [[a b] [1]]
            {"metadata":{"$deleteFromPrimitiveList/finalizers":"a"}}
              {"metadata":{"finalizers":["a","b"],"ownerReferences":[{"name":"n","uid":"1"}]}}
            {"metadata":{"finalizers":[null]}}
              500 list element types are not identical: [[a b] [<nil>]]
            {"metadata":{"ownerReferences":[{"uid":"1","name":"m"},{"uid":"2"}]}}
              {"metadata":{"finalizers":["a","b"],"ownerReferences":[{"name":"m","uid":"1"},{"uid":"2"}]}}
        "#]],
    );
}

#[test]
fn directives_in_objects() {
    check(
        node("apps", "v1", "Deployment"),
        r#"{"metadata":{"labels":{"a":"1"}},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1},"type":"RollingUpdate"}}}"#,
        &[
            r#"{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}"#,
            r#"{"spec":{"strategy":{"$retainKeys":["type"],"rollingUpdate":{}}}}"#,
            r#"{"spec":{"strategy":{"$retainKeys":["type"],"rollingUpdate":null}}}"#,
            r#"{"spec":{"strategy":{"$retainKeys":"type"}}}"#,
            r#"{"metadata":{"labels":{"$patch":"replace","b":"2","n":null}}}"#,
            r#"{"metadata":{"labels":{"$patch":"delete"}}}"#,
            r#"{"metadata":{"labels":{"$patch":"merge","b":"2"}}}"#,
            r#"{"metadata":{"annotations":{"$patch":"delete"}}}"#,
            r#"{"metadata":{"annotations":{"x":null,"y":"1"}}}"#,
            r#"{"$patch":"delete"}"#,
            r#"{"metadata":{"labels":["x"]}}"#,
            r#"{"metadata":null}"#,
            r#"{"spec":{"unknown":{"a":[null,{"b":null}]}}}"#,
            r#"null"#,
        ],
        expect![[r#"
            {"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}
              {"metadata":{"labels":{"a":"1"}},"spec":{"strategy":{"type":"Recreate"}}}
            {"spec":{"strategy":{"$retainKeys":["type"],"rollingUpdate":{}}}}
              400 invalid patch format of retainKeys
            {"spec":{"strategy":{"$retainKeys":["type"],"rollingUpdate":null}}}
              {"metadata":{"labels":{"a":"1"}},"spec":{"strategy":{"type":"RollingUpdate"}}}
            {"spec":{"strategy":{"$retainKeys":"type"}}}
              400 invalid patch format of retainKeys
            {"metadata":{"labels":{"$patch":"replace","b":"2","n":null}}}
              {"metadata":{"labels":{"b":"2","n":null}},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1},"type":"RollingUpdate"}}}
            {"metadata":{"labels":{"$patch":"delete"}}}
              {"metadata":{"labels":{}},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1},"type":"RollingUpdate"}}}
            {"metadata":{"labels":{"$patch":"merge","b":"2"}}}
              500 unknown patch type: merge in map: map[$patch:merge b:2]
            {"metadata":{"annotations":{"$patch":"delete"}}}
              {"metadata":{"labels":{"a":"1"}},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1},"type":"RollingUpdate"}}}
            {"metadata":{"annotations":{"x":null,"y":"1"}}}
              {"metadata":{"annotations":{"y":"1"},"labels":{"a":"1"}},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1},"type":"RollingUpdate"}}}
            {"$patch":"delete"}
              {}
            {"metadata":{"labels":["x"]}}
              {"metadata":{"labels":["x"]},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1},"type":"RollingUpdate"}}}
            {"metadata":null}
              {"spec":{"strategy":{"rollingUpdate":{"maxSurge":1},"type":"RollingUpdate"}}}
            {"spec":{"unknown":{"a":[null,{"b":null}]}}}
              {"metadata":{"labels":{"a":"1"}},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1},"type":"RollingUpdate"},"unknown":{"a":[null,{}]}}}
            null
              {"metadata":{"labels":{"a":"1"}},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1},"type":"RollingUpdate"}}}
        "#]],
    );
}

#[test]
fn members_the_schema_does_not_describe() {
    check(
        node("apps", "v1", "ControllerRevision"),
        r#"{"data":{"a":{"b":1},"l":[1],"s":1}}"#,
        &[r#"{"data":{"s":2,"a":3}}"#, r#"{"data":{"a":{"b":2}}}"#, r#"{"data":{"l":[2]}}"#],
        expect![[r#"
            {"data":{"s":2,"a":3}}
              {"data":{"a":3,"l":[1],"s":2}}
            {"data":{"a":{"b":2}}}
              500 unable to find api field in struct RawExtension for the json field "a"
            {"data":{"l":[2]}}
              500 unable to find api field in struct RawExtension for the json field "l"
        "#]],
    );
}

#[test]
fn what_is_no_strategic_patch() {
    for (body, want) in [
        ("[]", "400 json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("\"x\"", "400 json: cannot unmarshal string into Go value of type map[string]interface {}"),
        ("{\"a\"", "400 unexpected end of JSON input"),
        ("", "400 unexpected end of JSON input"),
    ] {
        assert_eq!(run(node("", "v1", "Pod"), "{}", body), want, "{body}");
    }
    let (_, strict) = decode(br#"{"spec":{"replicas":4,"replicas":5}}"#, true).unwrap();
    assert_eq!(strict, ["duplicate field \"spec.replicas\""]);
}

/// A pod of few names, with or without directives.
fn any_pod(has_directives: bool) -> impl Strategy<Value = Value> {
    let item = (
        prop::option::of("[a-c]"),
        prop::option::of("[x-z]"),
        prop::option::of(prop_oneof!["delete", "replace", "odd"]),
    );
    let items = prop::collection::vec(item, 0..5).prop_map(move |items| {
        let items = items.into_iter().map(|(name, image, directive)| {
            let mut item = Value::object();
            if let Some(name) = name.or_else(|| (!has_directives).then(|| "a".to_owned())) {
                item.set("name", name);
            }
            if let Some(image) = image {
                item.set("image", image);
            }
            if let Some(directive) = directive.filter(|_| has_directives) {
                item.set("$patch", directive);
            }
            item
        });
        Value::Array(items.collect())
    });
    let scalars = prop::collection::vec("[a-d]", 0..5).prop_map(Value::from);
    let order = prop::option::of(items.clone());
    (items, scalars.clone(), prop::option::of(scalars), order).prop_map(move |(items, finalizers, gone, order)| {
        let mut pod =
            pintle_apimachinery::json!({"metadata": {"finalizers": finalizers}, "spec": {"containers": items}});
        if has_directives {
            if let Some(gone) = gone {
                pod["metadata"].set("$deleteFromPrimitiveList/finalizers", gone);
            }
            if let Some(order) = order {
                pod["spec"].set("$setElementOrder/containers", order);
            }
        }
        pod
    })
}

proptest! {
    #[test]
    fn never_panics(document in any_pod(false), patch in any_pod(true)) {
        let _ = run(node("", "v1", "Pod"), &document.to_json_string(), &patch.to_json_string());
    }

    #[test]
    fn never_panics_on_odd_documents(document in crate::testing::object(true), patch in crate::testing::object(true)) {
        let _ = run(node("", "v1", "Pod"), &document.to_json_string(), &patch.to_json_string());
    }

    /// A merged list has every key once and every item of the patch.
    #[test]
    fn merged_lists_are_sets(document in any_pod(false), patch in any_pod(false)) {
        let (document, _) = decode(&document.to_json(), true).unwrap();
        let document = document.apply(&Value::object(), node("", "v1", "Pod")).unwrap();
        let (parsed, _) = decode(&patch.to_json(), true).unwrap();
        let merged = parsed.apply(&document, node("", "v1", "Pod")).unwrap();
        for finalizer in patch["metadata"]["finalizers"].items() {
            prop_assert_eq!(merged["metadata"]["finalizers"].items().iter().filter(|f| *f == finalizer).count(), 1);
        }
        for item in patch["spec"]["containers"].items() {
            prop_assert!(merged["spec"]["containers"].items().iter().any(|m| m["name"] == item["name"]));
        }
    }
}
