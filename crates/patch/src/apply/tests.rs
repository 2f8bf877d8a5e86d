use super::conflict::path_text;
use super::set::FieldSet;
use super::*;
use expect_test::{Expect, expect};
use pintle_apimachinery::json;
use pintle_apimachinery::value::parse;
use pintle_schema::{builtin, decode_value, kind};
use proptest::prelude::*;

/// A store of one object, written through one endpoint.
struct World {
    kind: GroupVersionKind,
    live: Option<Value>,
    seconds: i64,
}

impl World {
    fn new(group: &str, version: &str, name: &str) -> World {
        World { kind: GroupVersionKind::new(group, version, name), live: None, seconds: 0 }
    }

    fn node(&self) -> Node<'static> {
        builtin().root(kind(&self.kind.group, &self.kind.version, &self.kind.kind).unwrap().id)
    }

    fn decoded(&self, value: &Value) -> Value {
        let id = kind(&self.kind.group, &self.kind.version, &self.kind.kind).unwrap().id;
        let decoded = decode_value(value, id).unwrap();
        assert_eq!(decoded.issues.wrong_type, None, "{value}");
        decoded.value
    }

    /// Runs `verb manager[/subresource] json` and tells what came of it.
    fn run(&mut self, line: &str) -> String {
        let mut words = line.splitn(3, ' ');
        let (verb, who, body) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or("{}"));
        let (manager, subresource) = who.split_once('/').unwrap_or((who, ""));
        self.seconds += 1;
        let writer = Writer { manager, now: Timestamp::from_second(1_767_225_600 + self.seconds).unwrap() };
        let mut body = parse(body.as_bytes()).unwrap();
        body.set_default("apiVersion", self.kind.api_version());
        body.set_default("kind", self.kind.kind.as_str());
        let (status, spec) = (FieldSet::of_paths(&[&["status"]]), FieldSet::of_paths(&[&["spec"]]));
        let kind = self.kind.clone();
        let scope = Scope {
            kind: &kind,
            node: self.node(),
            subresource,
            reset_fields: Some(if subresource == "status" { &spec } else { &status }),
            is_custom: false,
            versions: &OneVersion,
        };
        match verb {
            "put" => {
                let mut object = self.decoded(&body);
                update(&scope, self.live.as_ref(), &mut object, &writer);
                self.stored(object)
            }
            "merge" => {
                let live = self.live.clone().unwrap();
                let decoded = crate::decode(crate::PatchType::Merge, &body.to_json(), true).unwrap();
                let mut object = self.decoded(&decoded.patch.apply(&live, self.node()).unwrap());
                update(&scope, Some(&live), &mut object, &writer);
                self.stored(object)
            }
            "apply" | "force" => match apply(&scope, self.live.as_ref(), &body, &writer, verb == "force") {
                Ok(Applied::Nothing) => "nothing to do\n".to_owned(),
                Ok(Applied::Owners(object)) => format!("owners only\n{}", self.stored(object)),
                Ok(Applied::Object(object)) => {
                    let object = self.decoded(&object);
                    self.stored(object)
                }
                Err(status) => format!("{} {}\n", status.code, status.message),
            },
            _ => panic!("no such verb: {verb}"),
        }
    }

    fn stored(&mut self, mut object: Value) -> String {
        object.make("metadata").set("uid", "u");
        if let Some(live) = &self.live {
            keep_times(live, &mut object);
        }
        let mut shown = object.clone();
        for member in ["apiVersion", "kind", "metadata.name", "metadata.uid", "metadata.managedFields"] {
            shown.remove_at(member);
        }
        let owners: String = object["metadata"]["managedFields"].items().iter().map(owner_text).collect();
        self.live = Some(object);
        format!("{shown}\n{owners}")
    }
}

fn owner_text(entry: &Value) -> String {
    let set = FieldSet::parse(&entry["fieldsV1"]).unwrap();
    let paths: Vec<String> = set.paths().iter().map(|path| path_text(path)).collect();
    let text = |name: &str| entry[name].str_or_empty().to_owned();
    let time = text("time");
    format!(
        "  {} {} {} {} {}: {}\n",
        text("operation"),
        text("manager"),
        text("apiVersion"),
        text("subresource"),
        time.rsplit(':').next().unwrap_or_default(),
        paths.join(" ")
    )
}

/// A transcript of writes.
fn check(mut world: World, lines: &[&str], expected: Expect) {
    let told: String = lines.iter().map(|line| format!("> {line}\n{}", world.run(line))).collect();
    expected.assert_eq(&told);
}

#[test]
fn appliers_share_take_and_leave_fields() {
    check(
        World::new("", "v1", "ConfigMap"),
        &[
            r#"apply alpha {"metadata":{"name":"a"},"data":{"k":"v","own":"1"}}"#,
            r#"apply alpha {"metadata":{"name":"a"},"data":{"k":"v","own":"1"}}"#,
            r#"apply beta {"metadata":{"name":"a"},"data":{"k":"v"}}"#,
            r#"apply beta {"metadata":{"name":"a"},"data":{"k":"w"}}"#,
            r#"force beta {"metadata":{"name":"a"},"data":{"k":"w"}}"#,
            r#"apply alpha {"metadata":{"name":"a"}}"#,
            r#"merge zed {"data":{"k":"z","n":"1"}}"#,
            r#"apply beta {"metadata":{"name":"a"},"data":{"k":"w","n":"2"}}"#,
            r#"merge zed {"data":{"n":null}}"#,
            r#"merge zed {"data":null}"#,
        ],
        expect![[r#"
            > apply alpha {"metadata":{"name":"a"},"data":{"k":"v","own":"1"}}
            {"data":{"k":"v","own":"1"},"metadata":{}}
              Apply alpha v1  01Z: .data.k .data.own
            > apply alpha {"metadata":{"name":"a"},"data":{"k":"v","own":"1"}}
            nothing to do
            > apply beta {"metadata":{"name":"a"},"data":{"k":"v"}}
            owners only
            {"data":{"k":"v","own":"1"},"metadata":{}}
              Apply beta v1  : .data.k
              Apply alpha v1  01Z: .data.k .data.own
            > apply beta {"metadata":{"name":"a"},"data":{"k":"w"}}
            409 Apply failed with 1 conflict: conflict with "alpha": .data.k
            > force beta {"metadata":{"name":"a"},"data":{"k":"w"}}
            {"data":{"k":"w","own":"1"},"metadata":{}}
              Apply alpha v1  01Z: .data.own
              Apply beta v1  05Z: .data.k
            > apply alpha {"metadata":{"name":"a"}}
            {"data":{"k":"w"},"metadata":{}}
              Apply beta v1  05Z: .data.k
            > merge zed {"data":{"k":"z","n":"1"}}
            {"data":{"k":"z","n":"1"},"metadata":{}}
              Update zed v1  07Z: .data.k .data.n
            > apply beta {"metadata":{"name":"a"},"data":{"k":"w","n":"2"}}
            409 Apply failed with 2 conflicts: conflicts with "zed" using v1:
            - .data.k
            - .data.n
            > merge zed {"data":{"n":null}}
            {"data":{"k":"z"},"metadata":{}}
              Update zed v1  07Z: .data.k
            > merge zed {"data":null}
            {"metadata":{}}
        "#]],
    );
}

#[test]
fn items_of_lists_have_owners() {
    check(
        World::new("", "v1", "Pod"),
        &[
            r#"apply alpha {"metadata":{"name":"a","finalizers":["x/y"]},"spec":{"nodeSelector":{"a":"1"},"containers":[{"name":"c","image":"1","args":["a"],"ports":[{"containerPort":80}]}]}}"#,
            r#"apply beta {"metadata":{"name":"a"},"spec":{"containers":[{"name":"d","image":"2"},{"name":"c","ports":[{"containerPort":80,"protocol":"UDP"}]}]}}"#,
            r#"apply gamma {"metadata":{"name":"a"},"spec":{"nodeSelector":{"b":"1"},"containers":[{"name":"c","args":["b"]}]}}"#,
            r#"merge zed {"metadata":{"finalizers":["x/y","x/z"]},"spec":{"tolerations":[{"key":"k"}]}}"#,
            r#"apply alpha {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"1"}]}}"#,
            r#"apply beta {"metadata":{"name":"a"}}"#,
            r#"apply alpha {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c"},{"name":"c"}]}}"#,
            r#"apply alpha {"metadata":{"name":"a"},"spec":{"containers":[{"image":"1"}]}}"#,
            r#"apply alpha {"metadata":{"name":"a"},"spec":{"containers":[1]}}"#,
            r#"apply alpha {"metadata":{"name":"a"},"spec":{"foo":1,"zoo":2},"data":1}"#,
            r#"apply alpha {"metadata":{"name":1,"labels":{"a":2},"finalizers":[null]},"spec":{"priority":"x","hostNetwork":"x","nodeSelector":[],"containers":"x"}}"#,
        ],
        expect![[r#"
            > apply alpha {"metadata":{"name":"a","finalizers":["x/y"]},"spec":{"nodeSelector":{"a":"1"},"containers":[{"name":"c","image":"1","args":["a"],"ports":[{"containerPort":80}]}]}}
            {"metadata":{"finalizers":["x/y"]},"spec":{"containers":[{"args":["a"],"image":"1","name":"c","ports":[{"containerPort":80}],"resources":{}}],"nodeSelector":{"a":"1"}},"status":{}}
              Apply alpha v1  01Z: .metadata.finalizers[="x/y"] .spec.nodeSelector .spec.containers[name="c"] .spec.containers[name="c"].args .spec.containers[name="c"].image .spec.containers[name="c"].name .spec.containers[name="c"].ports[containerPort=80,protocol="TCP"] .spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort
            > apply beta {"metadata":{"name":"a"},"spec":{"containers":[{"name":"d","image":"2"},{"name":"c","ports":[{"containerPort":80,"protocol":"UDP"}]}]}}
            {"metadata":{"finalizers":["x/y"]},"spec":{"containers":[{"image":"2","name":"d","resources":{}},{"args":["a"],"image":"1","name":"c","ports":[{"containerPort":80},{"containerPort":80,"protocol":"UDP"}],"resources":{}}],"nodeSelector":{"a":"1"}},"status":{}}
              Apply alpha v1  01Z: .metadata.finalizers[="x/y"] .spec.nodeSelector .spec.containers[name="c"] .spec.containers[name="c"].args .spec.containers[name="c"].image .spec.containers[name="c"].name .spec.containers[name="c"].ports[containerPort=80,protocol="TCP"] .spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort
              Apply beta v1  02Z: .spec.containers[name="c"] .spec.containers[name="d"] .spec.containers[name="c"].name .spec.containers[name="c"].ports[containerPort=80,protocol="UDP"] .spec.containers[name="c"].ports[containerPort=80,protocol="UDP"].containerPort .spec.containers[name="c"].ports[containerPort=80,protocol="UDP"].protocol .spec.containers[name="d"].image .spec.containers[name="d"].name
            > apply gamma {"metadata":{"name":"a"},"spec":{"nodeSelector":{"b":"1"},"containers":[{"name":"c","args":["b"]}]}}
            409 Apply failed with 2 conflicts: conflicts with "alpha":
            - .spec.nodeSelector
            - .spec.containers[name="c"].args
            > merge zed {"metadata":{"finalizers":["x/y","x/z"]},"spec":{"tolerations":[{"key":"k"}]}}
            {"metadata":{"finalizers":["x/y","x/z"]},"spec":{"containers":[{"image":"2","name":"d","resources":{}},{"args":["a"],"image":"1","name":"c","ports":[{"containerPort":80},{"containerPort":80,"protocol":"UDP"}],"resources":{}}],"nodeSelector":{"a":"1"},"tolerations":[{"key":"k"}]},"status":{}}
              Apply alpha v1  01Z: .metadata.finalizers[="x/y"] .spec.nodeSelector .spec.containers[name="c"] .spec.containers[name="c"].args .spec.containers[name="c"].image .spec.containers[name="c"].name .spec.containers[name="c"].ports[containerPort=80,protocol="TCP"] .spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort
              Apply beta v1  02Z: .spec.containers[name="c"] .spec.containers[name="d"] .spec.containers[name="c"].name .spec.containers[name="c"].ports[containerPort=80,protocol="UDP"] .spec.containers[name="c"].ports[containerPort=80,protocol="UDP"].containerPort .spec.containers[name="c"].ports[containerPort=80,protocol="UDP"].protocol .spec.containers[name="d"].image .spec.containers[name="d"].name
              Update zed v1  04Z: .metadata.finalizers[="x/z"] .spec.tolerations
            > apply alpha {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"1"}]}}
            {"metadata":{"finalizers":["x/z"]},"spec":{"containers":[{"image":"2","name":"d","resources":{}},{"image":"1","name":"c","ports":[{"containerPort":80,"protocol":"UDP"}],"resources":{}}],"tolerations":[{"key":"k"}]},"status":{}}
              Apply beta v1  02Z: .spec.containers[name="c"] .spec.containers[name="d"] .spec.containers[name="c"].name .spec.containers[name="c"].ports[containerPort=80,protocol="UDP"] .spec.containers[name="c"].ports[containerPort=80,protocol="UDP"].containerPort .spec.containers[name="c"].ports[containerPort=80,protocol="UDP"].protocol .spec.containers[name="d"].image .spec.containers[name="d"].name
              Apply alpha v1  05Z: .spec.containers[name="c"] .spec.containers[name="c"].image .spec.containers[name="c"].name
              Update zed v1  04Z: .metadata.finalizers[="x/z"] .spec.tolerations
            > apply beta {"metadata":{"name":"a"}}
            {"metadata":{"finalizers":["x/z"]},"spec":{"containers":[{"image":"1","name":"c","resources":{}}],"tolerations":[{"key":"k"}]},"status":{}}
              Apply alpha v1  05Z: .spec.containers[name="c"] .spec.containers[name="c"].image .spec.containers[name="c"].name
              Update zed v1  04Z: .metadata.finalizers[="x/z"] .spec.tolerations
            > apply alpha {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c"},{"name":"c"}]}}
            500 failed to create typed patch object (/a; /v1, Kind=Pod): .spec.containers: duplicate entries for key [name="c"]
            > apply alpha {"metadata":{"name":"a"},"spec":{"containers":[{"image":"1"}]}}
            {"metadata":{"finalizers":["x/z"]},"spec":{"containers":[{"image":"1","name":"","resources":{}}],"tolerations":[{"key":"k"}]},"status":{}}
              Apply alpha v1  08Z: .spec.containers[name=""] .spec.containers[name=""].image
              Update zed v1  04Z: .metadata.finalizers[="x/z"] .spec.tolerations
            > apply alpha {"metadata":{"name":"a"},"spec":{"containers":[1]}}
            500 failed to create typed patch object (/a; /v1, Kind=Pod): .spec.containers: element 0: associative list with keys may not have non-map elements
            > apply alpha {"metadata":{"name":"a"},"spec":{"foo":1,"zoo":2},"data":1}
            500 failed to create typed patch object (/a; /v1, Kind=Pod): .data: field not declared in schema
            > apply alpha {"metadata":{"name":1,"labels":{"a":2},"finalizers":[null]},"spec":{"priority":"x","hostNetwork":"x","nodeSelector":[],"containers":"x"}}
            500 failed to create typed patch object (/; /v1, Kind=Pod): errors:
              .metadata.finalizers: element 0: associative list without keys has an element that's an explicit null
              .metadata.labels.a: expected string, got &value.valueUnstructured{Value:2}
              .metadata.name: expected string, got &value.valueUnstructured{Value:1}
              .spec.containers: expected list, got &{x}
              .spec.hostNetwork: expected boolean, got &{x}
              .spec.nodeSelector: expected map, got &{[]}
              .spec.priority: expected numeric (int or float), got string
        "#]],
    );
}

#[test]
fn owners_before_the_first_apply() {
    check(
        World::new("", "v1", "ConfigMap"),
        &[
            r#"put m1 {"metadata":{"name":"a"},"data":{"k":"v"}}"#,
            r#"put m1 {"metadata":{"name":"a","managedFields":[]},"data":{"k":"v"}}"#,
            r#"put m2 {"metadata":{"name":"a"},"data":{"k":"v","l":"1"}}"#,
            r#"apply alpha {"metadata":{"name":"a"},"data":{"k":"w"}}"#,
            r#"force alpha {"metadata":{"name":"a"},"data":{"k":"w"}}"#,
        ],
        expect![[r#"
            > put m1 {"metadata":{"name":"a"},"data":{"k":"v"}}
            {"data":{"k":"v"},"metadata":{}}
              Update m1 v1  01Z: .data .data.k
            > put m1 {"metadata":{"name":"a","managedFields":[]},"data":{"k":"v"}}
            {"data":{"k":"v"},"metadata":{}}
            > put m2 {"metadata":{"name":"a"},"data":{"k":"v","l":"1"}}
            {"data":{"k":"v","l":"1"},"metadata":{}}
            > apply alpha {"metadata":{"name":"a"},"data":{"k":"w"}}
            409 Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k
            > force alpha {"metadata":{"name":"a"},"data":{"k":"w"}}
            {"data":{"k":"w","l":"1"},"metadata":{}}
              Apply alpha v1  05Z: .data.k
              Update before-first-apply v1  05Z: .data .data.l
        "#]],
    );
}

#[test]
fn managed_fields_written_by_hand() {
    check(
        World::new("", "v1", "ConfigMap"),
        &[
            r#"put m1 {"metadata":{"name":"a"},"data":{"k":"v"}}"#,
            r#"put m2 {"metadata":{"name":"a","managedFields":[{"manager":"hand","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{},"f:zz":{}}},"time":"2020-01-01T00:00:00Z"}]},"data":{"k":"v","l":"1"}}"#,
            r#"put m2 {"metadata":{"name":"a","managedFields":[{"manager":"hand","operation":"Odd"}]},"data":{"k":"w","l":"1"}}"#,
            r#"put m2 {"metadata":{"name":"a","managedFields":[{"manager":"old","operation":"Apply","apiVersion":"v0","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}},{"manager":"now","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:l":{}}}}]},"data":{"k":"w","l":"1"}}"#,
            r#"apply alpha {"metadata":{"name":"a","managedFields":[]}}"#,
            r#"apply alpha {"apiVersion":"v2","metadata":{"name":"a"}}"#,
            r#"apply alpha {"apiVersion":"a/b/c","kind":"","metadata":{"name":"a"}}"#,
        ],
        expect![[r#"
            > put m1 {"metadata":{"name":"a"},"data":{"k":"v"}}
            {"data":{"k":"v"},"metadata":{}}
              Update m1 v1  01Z: .data .data.k
            > put m2 {"metadata":{"name":"a","managedFields":[{"manager":"hand","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{},"f:zz":{}}},"time":"2020-01-01T00:00:00Z"}]},"data":{"k":"v","l":"1"}}
            {"data":{"k":"v","l":"1"},"metadata":{}}
              Apply hand v1  00Z: .data.k .data.zz
              Update m2 v1  02Z: .data.l
            > put m2 {"metadata":{"name":"a","managedFields":[{"manager":"hand","operation":"Odd"}]},"data":{"k":"w","l":"1"}}
            {"data":{"k":"w","l":"1"},"metadata":{}}
              Apply hand v1  00Z: .data.zz
              Update m2 v1  03Z: .data.k .data.l
            > put m2 {"metadata":{"name":"a","managedFields":[{"manager":"old","operation":"Apply","apiVersion":"v0","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}},{"manager":"now","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:l":{}}}}]},"data":{"k":"w","l":"1"}}
            {"data":{"k":"w","l":"1"},"metadata":{}}
              Apply now v1  : .data.l
            > apply alpha {"metadata":{"name":"a","managedFields":[]}}
            400 metadata.managedFields must be nil
            > apply alpha {"apiVersion":"v2","metadata":{"name":"a"}}
            400 invalid object type: /v2, Kind=ConfigMap
            > apply alpha {"apiVersion":"a/b/c","kind":"","metadata":{"name":"a"}}
            400 invalid object type: /, Kind=
        "#]],
    );
}

#[test]
fn subresources_have_entries_of_their_own() {
    check(
        World::new("apps", "v1", "Deployment"),
        &[
            r#"put m1 {"metadata":{"name":"a","labels":{"x":"1"}},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"c"}]}}},"status":{"replicas":7}}"#,
            r#"merge m1/status {"status":{"replicas":1,"conditions":[{"type":"T","status":"True"}]},"spec":{"replicas":9}}"#,
            r#"merge m1/status {"metadata":{"managedFields":[{}]},"status":{"replicas":2}}"#,
            r#"apply alpha/status {"metadata":{"name":"a"},"status":{"replicas":3}}"#,
            r#"apply alpha {"metadata":{"name":"a"},"spec":{"replicas":3},"status":{"replicas":4}}"#,
        ],
        expect![[r#"
            > put m1 {"metadata":{"name":"a","labels":{"x":"1"}},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"c"}]}}},"status":{"replicas":7}}
            {"metadata":{"labels":{"x":"1"}},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"strategy":{},"template":{"metadata":{},"spec":{"containers":[{"name":"c","resources":{}}]}}},"status":{"replicas":7}}
              Update m1 apps/v1  01Z: .metadata.labels .metadata.labels.x .spec.replicas .spec.selector .spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].resources
            > merge m1/status {"status":{"replicas":1,"conditions":[{"type":"T","status":"True"}]},"spec":{"replicas":9}}
            {"metadata":{"labels":{"x":"1"}},"spec":{"replicas":9,"selector":{"matchLabels":{"a":"b"}},"strategy":{},"template":{"metadata":{},"spec":{"containers":[{"name":"c","resources":{}}]}}},"status":{"conditions":[{"lastTransitionTime":null,"lastUpdateTime":null,"status":"True","type":"T"}],"replicas":1}}
              Update m1 apps/v1  01Z: .metadata.labels .metadata.labels.x .spec.replicas .spec.selector .spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].resources
              Update m1 apps/v1 status 02Z: .status.conditions .status.replicas .status.conditions[type="T"] .status.conditions[type="T"].lastTransitionTime .status.conditions[type="T"].lastUpdateTime .status.conditions[type="T"].status .status.conditions[type="T"].type
            > merge m1/status {"metadata":{"managedFields":[{}]},"status":{"replicas":2}}
            {"metadata":{"labels":{"x":"1"}},"spec":{"replicas":9,"selector":{"matchLabels":{"a":"b"}},"strategy":{},"template":{"metadata":{},"spec":{"containers":[{"name":"c","resources":{}}]}}},"status":{"conditions":[{"lastTransitionTime":null,"lastUpdateTime":null,"status":"True","type":"T"}],"replicas":2}}
              Update m1 apps/v1  01Z: .metadata.labels .metadata.labels.x .spec.replicas .spec.selector .spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].resources
              Update m1 apps/v1 status 03Z: .status.conditions .status.replicas .status.conditions[type="T"] .status.conditions[type="T"].lastTransitionTime .status.conditions[type="T"].lastUpdateTime .status.conditions[type="T"].status .status.conditions[type="T"].type
            > apply alpha/status {"metadata":{"name":"a"},"status":{"replicas":3}}
            409 Apply failed with 1 conflict: conflict with "m1" with subresource "status" using apps/v1: .status.replicas
            > apply alpha {"metadata":{"name":"a"},"spec":{"replicas":3},"status":{"replicas":4}}
            409 Apply failed with 1 conflict: conflict with "m1" using apps/v1: .spec.replicas
        "#]],
    );
}

#[test]
fn kubectl_takes_over_what_it_applied_by_annotation() {
    let annotation = |k: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": k}}).to_json_string()
    };
    let object = |k: &str, applied: &str| {
        let key = "kubectl.kubernetes.io/last-applied-configuration";
        json!({"metadata": {"name": "a", "annotations": {(key): annotation(applied)}}, "data": {"k": k}})
    };
    let put = |k: &str, applied: &str| format!("put kubectl-client-side-apply {}", object(k, applied));
    check(
        World::new("", "v1", "ConfigMap"),
        &[
            &put("v", "v"),
            r#"apply other {"metadata":{"name":"a"},"data":{"k":"<w>"}}"#,
            r#"apply kubectl {"metadata":{"name":"a"},"data":{"k":"<w>"}}"#,
            r#"apply kubectl {"metadata":{"name":"a"},"data":{"k":"<w>"}}"#,
        ],
        expect![[r#"
            > put kubectl-client-side-apply {"data":{"k":"v"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"k\":\"v\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}"},"name":"a"}}
            {"data":{"k":"v"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"k\":\"v\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}"}}}
              Update kubectl-client-side-apply v1  01Z: .data .data.k .metadata.annotations .metadata.annotations.kubectl.kubernetes.io/last-applied-configuration
            > apply other {"metadata":{"name":"a"},"data":{"k":"<w>"}}
            409 Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.k
            > apply kubectl {"metadata":{"name":"a"},"data":{"k":"<w>"}}
            {"data":{"k":"<w>"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"k\":\"\\u003cw\\u003e\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n"}}}
              Apply kubectl v1  03Z: .data.k
              Update kubectl-client-side-apply v1  01Z: .data .metadata.annotations .metadata.annotations.kubectl.kubernetes.io/last-applied-configuration
            > apply kubectl {"metadata":{"name":"a"},"data":{"k":"<w>"}}
            nothing to do
        "#]],
    );
    check(
        World::new("", "v1", "ConfigMap"),
        &[&put("changed since", "v"), r#"apply kubectl {"metadata":{"name":"a"},"data":{"k":"w"}}"#],
        expect![[r#"
            > put kubectl-client-side-apply {"data":{"k":"changed since"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"k\":\"v\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}"},"name":"a"}}
            {"data":{"k":"changed since"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"data\":{\"k\":\"v\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}"}}}
              Update kubectl-client-side-apply v1  01Z: .data .data.k .metadata.annotations .metadata.annotations.kubectl.kubernetes.io/last-applied-configuration
            > apply kubectl {"metadata":{"name":"a"},"data":{"k":"w"}}
            409 Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.k
        "#]],
    );
}

#[test]
fn an_annotation_in_the_configuration_is_brought_up_to_date() {
    let annotations = r#"{"kubectl.kubernetes.io/last-applied-configuration":"old"}"#;
    let line = format!(r#"apply kubectl {{"metadata":{{"name":"a","annotations":{annotations}}},"data":{{"k":"v"}}}}"#);
    check(
        World::new("", "v1", "ConfigMap"),
        &[&line],
        expect![[r#"
        > apply kubectl {"metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"old"}},"data":{"k":"v"}}
        {"data":{"k":"v"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"old"}}}
          Apply kubectl v1  01Z: .data.k .metadata.annotations.kubectl.kubernetes.io/last-applied-configuration
    "#]],
    );
}

#[test]
fn what_upstream_calls_conflicts_of_several_managers() {
    check(
        World::new("", "v1", "ConfigMap"),
        &[
            r#"apply beta {"metadata":{"name":"a"},"data":{"k":"v"}}"#,
            r#"apply alpha {"metadata":{"name":"a"},"data":{"k":"v","l":"1"}}"#,
            r#"merge "zed" {"data":{"z":"1"}}"#,
            r#"apply gamma {"metadata":{"name":"a"},"data":{"k":"w","l":"2","z":"2"}}"#,
        ],
        expect![[r#"
            > apply beta {"metadata":{"name":"a"},"data":{"k":"v"}}
            {"data":{"k":"v"},"metadata":{}}
              Apply beta v1  01Z: .data.k
            > apply alpha {"metadata":{"name":"a"},"data":{"k":"v","l":"1"}}
            {"data":{"k":"v","l":"1"},"metadata":{}}
              Apply beta v1  01Z: .data.k
              Apply alpha v1  02Z: .data.k .data.l
            > merge "zed" {"data":{"z":"1"}}
            {"data":{"k":"v","l":"1","z":"1"},"metadata":{}}
              Apply beta v1  01Z: .data.k
              Apply alpha v1  02Z: .data.k .data.l
              Update "zed" v1  03Z: .data.z
            > apply gamma {"metadata":{"name":"a"},"data":{"k":"w","l":"2","z":"2"}}
            409 Apply failed with 4 conflicts: conflicts with "\"zed\"" using v1:
            - .data.z
            conflicts with "alpha":
            - .data.k
            - .data.l
            conflicts with "beta":
            - .data.k
        "#]],
    );
}

#[test]
fn times_are_kept_when_nothing_else_changes() {
    let entry = |manager: &str, time: &str| json!({"manager": manager, "time": time, "operation": "Update"});
    let object =
        |k: &str, entries: Vec<Value>| json!({"metadata": {"name": "a", "managedFields": entries}, "data": {"k": k}});
    let live = object("v", vec![entry("a", "1"), entry("b", "1")]);
    for (new, is_kept) in [
        (object("v", vec![entry("a", "1"), entry("b", "2")]), true),
        (object("w", vec![entry("a", "1"), entry("b", "2")]), false),
        (object("v", vec![entry("a", "1"), entry("c", "2")]), false),
        (object("v", vec![entry("a", "2")]), false),
    ] {
        let mut kept = new.clone();
        keep_times(&live, &mut kept);
        assert_eq!(kept, if is_kept { live.clone() } else { new });
    }
}

#[test]
fn replicas_between_a_resource_and_its_scale() {
    let paths: &ReplicasPaths<'_> = &[("apps/v1", Some(&["spec", "replicas"]))];
    let entry = |manager: &str, operation: &str, version: &str, fields: Value| json!({"manager": manager, "operation": operation, "apiVersion": version, "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields});
    let object = |owners: Value| json!({"metadata": {"managedFields": owners}});
    let parent = object(Value::Array(vec![
        entry("applier", "Apply", "apps/v1", json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})),
        entry("updater", "Update", "apps/v1", json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})),
        entry("other", "Update", "apps/v1", json!({"f:spec": {"f:paused": {}}})),
        entry("old", "Update", "apps/v0", json!({"f:spec": {"f:replicas": {}}})),
    ]));
    let told = |list: &Value| format!("owners\n{}", list.items().iter().map(owner_text).collect::<String>());
    let scale = to_scale(&parent, paths).unwrap();
    expect![[r#"
        owners
          Apply applier autoscaling/v1  00Z: .spec.replicas
          Update updater autoscaling/v1  00Z: .spec.replicas
    "#]]
    .assert_eq(&told(&scale));
    let mut taken = entry("scaler", "Update", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}));
    taken.set("subresource", "scale");
    expect![[r#"
        owners
          Apply applier apps/v1  00Z: .spec.paused
          Update scaler apps/v1 scale : .spec.replicas
          Update other apps/v1  00Z: .spec.paused
          Update updater apps/v1  00Z: .spec.paused
    "#]]
    .assert_eq(&told(&to_parent(&parent, &object(Value::Array(vec![taken])), "apps/v1", paths).unwrap()));
    expect![[r#"
        owners
          Apply applier apps/v1  00Z: .spec.paused .spec.replicas
          Update updater apps/v1  : .spec.replicas
          Update other apps/v1  00Z: .spec.paused
          Update updater apps/v1  00Z: .spec.paused
    "#]]
    .assert_eq(&told(&to_parent(&parent, &object(scale), "apps/v1", paths).unwrap()));
}

/// A pod's configuration of few names.
fn any_config() -> impl Strategy<Value = Value> {
    let port = (80i64..82, prop::option::of(prop_oneof!["TCP", "UDP"])).prop_map(|(port, protocol)| {
        let mut value = json!({"containerPort": port});
        if let Some(protocol) = protocol {
            value.set("protocol", protocol);
        }
        value
    });
    let distinct = |items: Vec<Value>, key: fn(&Value) -> String| {
        let mut seen = std::collections::BTreeSet::new();
        items.into_iter().filter(|item| seen.insert(key(item))).collect::<Value>()
    };
    let container = ("[a-c]", prop::option::of("[1-2]"), prop::option::of(prop::collection::vec(port, 0..3))).prop_map(
        move |(name, image, ports)| {
            let mut value = json!({"name": name});
            if let Some(image) = image {
                value.set("image", image);
            }
            if let Some(ports) = ports {
                let key = |p: &Value| format!("{} {}", p["containerPort"], p["protocol"].as_str().unwrap_or("TCP"));
                value.set("ports", distinct(ports, key));
            }
            value
        },
    );
    let labels = prop::option::of(prop::collection::btree_map("[a-c]", "[1-2]", 0..3));
    let finalizers = prop::option::of(prop::collection::btree_set("[a-c]", 0..3));
    (labels, finalizers, prop::option::of(prop::collection::vec(container, 0..4))).prop_map(
        move |(labels, finalizers, containers)| {
            let mut config = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
            if let Some(labels) = labels {
                config["metadata"].set("labels", labels.into_iter().collect::<pintle_apimachinery::Object>());
            }
            if let Some(finalizers) = finalizers {
                config["metadata"].set("finalizers", finalizers.into_iter().collect::<Vec<_>>());
            }
            if let Some(containers) = containers {
                config.make("spec").set("containers", distinct(containers, |c| c["name"].to_string()));
            }
            config
        },
    )
}

fn any_write() -> impl Strategy<Value = String> {
    let verb = prop_oneof![Just("apply"), Just("force"), Just("put"), Just("merge")];
    (verb, "[a-b]", any_config()).prop_map(|(verb, who, config)| format!("{verb} {who} {config}"))
}

proptest! {
    /// After any history: applying twice does nothing the second time, what was applied is there, and owned.
    #[test]
    fn applying_again_is_no_change(history in prop::collection::vec(any_write(), 0..6), config in any_config()) {
        let mut world = World::new("", "v1", "Pod");
        world.run(r#"put z {"metadata":{"name":"a"}}"#);
        for line in &history {
            world.run(line);
        }
        let line = format!("force x {config}");
        world.run(&line);
        let live = world.live.clone().unwrap();
        // with no owner at all the next apply would invent one
        prop_assume!(!live["metadata"]["managedFields"].is_empty());
        world.run(&line);
        prop_assert_eq!(world.live.as_ref(), Some(&live));
        // sets know no order, and the list keeps the live one
        let applied = world.decoded(&config);
        for container in applied["spec"]["containers"].items() {
            let kept = live["spec"]["containers"].items().iter().find(|c| c["name"] == container["name"]).unwrap();
            prop_assert!(container["image"].is_null() || container["image"] == kept["image"]);
            prop_assert!(container["ports"].items().len() <= kept["ports"].items().len());
        }
        for (key, value) in applied["metadata"]["labels"].entries() {
            prop_assert_eq!(&live["metadata"]["labels"][key], value);
        }
    }

    /// Every owned field is a field of the object, and no two entries have one owner.
    #[test]
    fn owners_own_what_is_there(history in prop::collection::vec(any_write(), 1..8)) {
        let mut world = World::new("", "v1", "Pod");
        world.run(r#"put z {"metadata":{"name":"a"}}"#);
        for line in &history {
            world.run(line);
            let live = world.live.clone().unwrap();
            let place = Place::root(world.node());
            let everything = super::fields::field_set(place, &live);
            let mut entries = super::managed::decode(live["metadata"]["managedFields"].clone(), super::managed::Trust::FromClient).unwrap();
            prop_assert_eq!(entries.len(), live["metadata"]["managedFields"].items().len());
            for entry in &mut entries {
                for path in entry.fields.paths().iter().filter(|path| path.len() > 2) {
                    let is_map = path_text(path) == ".metadata.labels" || path_text(path).ends_with(".ports");
                    prop_assert!(everything.has(path) || is_map, "{} of {} in {live}", path_text(path), entry.manager);
                }
            }
        }
    }

    #[test]
    fn odd_configurations_never_panic(live in crate::testing::object(true), config in crate::testing::object(true)) {
        let mut world = World::new("", "v1", "Pod");
        let mut config = config;
        config.set("apiVersion", "v1");
        config.set("kind", "Pod");
        let kind = world.kind.clone();
        let scope = Scope { kind: &kind, node: world.node(), subresource: "", reset_fields: None, is_custom: false, versions: &OneVersion };
        let writer = Writer { manager: "m", now: Timestamp::UNIX_EPOCH };
        let _ = apply(&scope, Some(&live), &config, &writer, true);
        let mut object = config.clone();
        update(&scope, Some(&live), &mut object, &writer);
        world.live = Some(live);
    }
}
