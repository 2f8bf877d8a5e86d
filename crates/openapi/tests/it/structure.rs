//! Documents have the same structure as the recorded ones; prose is our own.

use crate::custom::with_custom;
use expect_test::expect;
use pintle_apimachinery::{Object, Value, value};
use pintle_openapi::{v2, v3};

/// Documents of kube-apiserver v1.35.4 without their descriptions.
const POLICY_V1: &str = include_str!("../fixtures/policy_v1.json");
/// As above, with the custom resources of `definitions.json`.
const CUSTOM_V1: &str = include_str!("../fixtures/custom_v1.json");
/// As above: some definitions and paths of the v2 document, parameters in their places.
const PARTS_V2: &str = include_str!("../fixtures/parts_v2.json");

/// The document without what may differ: descriptions, the order of unordered lists, and the kinds of `DeleteOptions`
/// (in every group and version that the recorded server's code knows).
fn comparable(document: Value) -> Value {
    match document {
        Value::Object(members) => {
            let keep = |key: &str, member: &Value| {
                let is_prose = key == "description" && member.as_str().is_some();
                let is_long = key == "x-kubernetes-group-version-kind" && member.items().len() > 3;
                !is_prose && !is_long
            };
            let members = members.into_iter().filter(|(key, member)| keep(key, member));
            Value::Object(members.map(|(key, member)| (key, comparable(member))).collect::<Object>())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(comparable).collect();
            items.sort_by_key(|item| item.to_json_string());
            Value::Array(items)
        }
        other => other,
    }
}

/// Where two documents differ; at most a few places.
fn differences(path: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    if ours == theirs || out.len() >= 20 {
        return;
    }
    match (ours, theirs) {
        (Value::Object(_), Value::Object(_)) => {
            let keys: std::collections::BTreeSet<&str> =
                ours.entries().chain(theirs.entries()).map(|(key, _)| key.as_str()).collect();
            keys.into_iter().for_each(|key| differences(&format!("{path} {key}"), &ours[key], &theirs[key], out));
        }
        _ => out.push(format!("{path}\n  ours   {ours}\n  theirs {theirs}")),
    }
}

#[track_caller]
fn assert_same(ours: Value, theirs: Value) {
    let mut out = Vec::new();
    differences("", &comparable(ours), &comparable(theirs), &mut out);
    assert!(out.is_empty(), "{}", out.join("\n"));
}

fn parse(json: impl AsRef<[u8]>) -> Value {
    value::parse(json.as_ref()).unwrap()
}

#[test]
fn v3_of_a_builtin_group() {
    assert_same(parse(v3::document("apis/policy/v1", &[]).unwrap()), parse(POLICY_V1));
}

#[test]
fn v3_of_custom_resources() {
    let ours = with_custom(|custom| v3::document("apis/shop.example.com/v1", custom)).unwrap();
    assert_same(parse(ours), parse(CUSTOM_V1));
}

#[test]
fn v2_with_custom_resources() {
    let mut ours = with_custom(v2::document);
    let params = ours["parameters"].clone();
    put_params_in_place(&mut ours["paths"], &params);
    let theirs = parse(PARTS_V2);
    for part in ["definitions", "paths"] {
        let wanted = theirs[part].entries().map(|(name, _)| (name.clone(), ours[part][name.as_str()].clone()));
        assert_same(Value::Object(wanted.collect()), theirs[part].clone());
    }
    assert_eq!(ours["definitions"].entries().len(), 570 + 6);
}

fn put_params_in_place(document: &mut Value, params: &Value) {
    match document {
        Value::Object(members) => {
            let target = members.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/parameters/"));
            match target.map(str::to_owned) {
                Some(name) => *document = params[name.as_str()].clone(),
                None => members.values_mut().for_each(|member| put_params_in_place(member, params)),
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| put_params_in_place(item, params)),
        _ => {}
    }
}

/// Every operation has a name of its own, and what is referred to exists.
#[test]
fn documents_are_sound() {
    with_custom(|custom| {
        let mut n_operations = 0;
        for entry in v3::entries(custom) {
            let document = parse(v3::document(&entry.path, custom).unwrap());
            let operations =
                document["paths"].entries().flat_map(|(_, item)| item.entries()).map(|(_, o)| &o["operationId"]);
            let ids: Vec<&str> = operations.filter_map(Value::as_str).collect();
            let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
            assert_eq!(unique.len(), ids.len(), "{}", entry.path);
            n_operations += ids.len();
            check_refs(&document, &document.at("components.schemas").clone(), "#/components/schemas/");
        }
        assert_eq!(n_operations, 825, "as many as the recorded server has");
        let document = v2::document(custom);
        check_refs(&document["paths"], &document["definitions"], "#/definitions/");
        check_refs(&document["definitions"], &document["definitions"], "#/definitions/");
    });
}

fn check_refs(document: &Value, definitions: &Value, prefix: &str) {
    if let Some(name) = document["$ref"].as_str().and_then(|r| r.strip_prefix(prefix)) {
        assert!(definitions.has(name), "nothing is called {name}");
    }
    document.entries().for_each(|(_, member)| check_refs(member, definitions, prefix));
    document.items().iter().for_each(|item| check_refs(item, definitions, prefix));
}

#[test]
fn the_index() {
    let paths: Vec<String> = v3::entries(&[]).into_iter().map(|entry| entry.path).collect();
    expect![[r"
        .well-known/openid-configuration api api/v1 apis apis/admissionregistration.k8s.io apis/admissionregistration.k8s.io/v1 apis/apiextensions.k8s.io apis/apiextensions.k8s.io/v1 apis/apiregistration.k8s.io apis/apiregistration.k8s.io/v1 apis/apps apis/apps/v1 apis/authentication.k8s.io apis/authentication.k8s.io/v1 apis/authorization.k8s.io apis/authorization.k8s.io/v1 apis/autoscaling apis/autoscaling/v1 apis/autoscaling/v2 apis/batch apis/batch/v1 apis/certificates.k8s.io apis/certificates.k8s.io/v1 apis/coordination.k8s.io apis/coordination.k8s.io/v1 apis/discovery.k8s.io apis/discovery.k8s.io/v1 apis/events.k8s.io apis/events.k8s.io/v1 apis/flowcontrol.apiserver.k8s.io apis/flowcontrol.apiserver.k8s.io/v1 apis/networking.k8s.io apis/networking.k8s.io/v1 apis/node.k8s.io apis/node.k8s.io/v1 apis/policy apis/policy/v1 apis/rbac.authorization.k8s.io apis/rbac.authorization.k8s.io/v1 apis/resource.k8s.io apis/resource.k8s.io/v1 apis/scheduling.k8s.io apis/scheduling.k8s.io/v1 apis/storage.k8s.io apis/storage.k8s.io/v1 openid/v1/jwks version
    "]].assert_eq(&format!("{}\n", paths.join(" ")));
    with_custom(|custom| {
        let (before, after) = (v3::entries(&[]), v3::entries(custom));
        let new: Vec<&str> = after.iter().filter(|e| !before.contains(e)).map(|e| e.path.as_str()).collect();
        assert_eq!(new, ["apis/shop.example.com/v1", "apis/shop.example.com/v2"]);
        assert_ne!(v2::etag(&[]), v2::etag(custom));
        let index = parse(v3::index(custom));
        let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].str_or_empty();
        assert!(url.starts_with("/openapi/v3/apis/apps/v1?hash="), "{url}");
    });
    assert_eq!(v3::document("apis/nothing/v1", &[]), None);
}

#[test]
fn kinds_explain_themselves() {
    let document = parse(v3::document("api/v1", &[]).unwrap());
    let field = &document.at("components.schemas")["io.k8s.api.core.v1.Container"]["properties"]["image"];
    assert!(field["description"].str_or_empty().starts_with("Container image name."), "{field}");
}
