//! What patches and field ownership cost a write of a Deployment of about 4 KB (with its managedFields).

use jiff::Timestamp;
use pintle_apimachinery::value::parse;
use pintle_apimachinery::{GroupVersionKind, Value, json};
use pintle_patch::apply::{Applied, FieldSet, OneVersion, Scope, Writer, apply, update};
use pintle_patch::{PatchType, decode};
use pintle_schema::{Node, builtin, decode_value, kind};
use std::sync::LazyLock;

fn main() {
    divan::main();
}

static KIND: LazyLock<GroupVersionKind> = LazyLock::new(|| GroupVersionKind::new("apps", "v1", "Deployment"));
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(&[&["status"]]));
static SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(&[&["spec"], &["metadata", "labels"]]));

fn node() -> Node<'static> {
    builtin().root(kind("apps", "v1", "Deployment").expect("a built-in kind").id)
}

fn scope(subresource: &'static str) -> Scope<'static> {
    Scope {
        kind: &KIND,
        node: node(),
        subresource,
        reset_fields: Some(if subresource == "status" { &SPEC } else { &STATUS }),
        is_custom: false,
        versions: &OneVersion,
    }
}

const WRITER: Writer<'static> = Writer { manager: "kubectl", now: Timestamp::UNIX_EPOCH };

fn decoded(value: &Value) -> Value {
    let id = kind("apps", "v1", "Deployment").expect("a built-in kind").id;
    decode_value(value, id).expect("a sound document").value
}

/// What a user writes.
fn config() -> Value {
    let container = |name: &str, port: i64| {
        json!({
            "name": name,
            "image": "registry.example.com/team/web-frontend:1.27.3",
            "args": ["--listen=:8080", "--log-format=json"],
            "ports": [{"name": "http", "containerPort": port}],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                {"name": "LOG_LEVEL", "value": "info"},
                {"name": "UPSTREAM", "value": "http://backend.default.svc:8080"}
            ],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}]
        })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {"app.kubernetes.io/name": "web", "app.kubernetes.io/component": "frontend", "team": "shop"},
            "annotations": {"example.com/owner": "the team that owns the shop", "example.com/revision": "4c8f1a"}
        },
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app.kubernetes.io/name": "web"}},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": "web", "team": "shop"}},
                "spec": {
                    "containers": [container("web", 8080), container("proxy", 9090)],
                    "volumes": [{"name": "config", "configMap": {"name": "web-config"}}]
                }
            }
        }
    })
}

/// The object as it is stored: defaulted, with a status that a controller wrote.
fn stored(is_applied: bool) -> Value {
    let mut object = config();
    let defaults = json!({
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    });
    for (name, value) in defaults.entries() {
        object["spec"].set(name, value.clone());
    }
    let spec = object.make("spec.template.spec");
    for container in spec["containers"].items_mut() {
        for (name, value) in [
            ("imagePullPolicy", "IfNotPresent"),
            ("terminationMessagePath", "/dev/termination-log"),
            ("terminationMessagePolicy", "File"),
        ] {
            container.set(name, value);
        }
        for port in container["ports"].items_mut() {
            port.set("protocol", "TCP");
        }
    }
    spec.set("dnsPolicy", "ClusterFirst");
    spec.set("restartPolicy", "Always");
    spec.set("schedulerName", "default-scheduler");
    spec.set("securityContext", Value::object());
    let mut object = decoded(&object);
    if is_applied {
        let Ok(Applied::Object(applied)) = apply(&scope(""), None, &config(), &WRITER, false) else {
            unreachable!("a new object")
        };
        object["metadata"].set("managedFields", applied["metadata"]["managedFields"].clone());
    } else {
        update(&scope(""), None, &mut object, &WRITER);
    }
    object["metadata"].set("uid", "5f9d7c1e-0d0b-4b0e-9f3b-0c5a4d9a8f11");
    object["metadata"].set("resourceVersion", "1234");
    let before = object.clone();
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability.",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"
        })
    };
    object.set("status", json!({"replicas": 3, "observedGeneration": 1, "conditions": [condition("Available"), condition("Progressing")]}));
    let writer = Writer { manager: "kube-controller-manager", ..WRITER };
    update(&scope("status"), Some(&before), &mut object, &writer);
    object
}

#[divan::bench]
fn size_in_bytes_of_the_object(bencher: divan::Bencher<'_, '_>) {
    let object = stored(true);
    bencher.counter(divan::counter::BytesCount::new(object.to_json().len())).bench(|| object.to_json());
}

#[divan::bench]
fn clone_of_the_object(bencher: divan::Bencher<'_, '_>) {
    let object = stored(true);
    bencher.bench(|| object.clone());
}

#[divan::bench]
fn apply_without_change(bencher: divan::Bencher<'_, '_>) {
    let (live, config) = (stored(true), config());
    assert_eq!(apply(&scope(""), Some(&live), &config, &WRITER, false), Ok(Applied::Nothing));
    bencher.bench(|| apply(&scope(""), Some(&live), &config, &WRITER, false));
}

#[divan::bench]
fn apply_of_a_new_image(bencher: divan::Bencher<'_, '_>) {
    let (live, mut config) = (stored(true), config());
    config.make("spec.template.spec")["containers"].items_mut()[0]
        .set("image", "registry.example.com/team/web-frontend:1.28.0");
    bencher.bench(|| apply(&scope(""), Some(&live), &config, &WRITER, false));
}

#[divan::bench]
fn apply_that_drops_a_field(bencher: divan::Bencher<'_, '_>) {
    let (live, mut config) = (stored(true), config());
    config.make("spec.template.spec")["containers"].items_mut()[0].remove("args");
    bencher.bench(|| apply(&scope(""), Some(&live), &config, &WRITER, false));
}

#[divan::bench]
fn apply_of_a_new_object(bencher: divan::Bencher<'_, '_>) {
    let config = config();
    bencher.bench(|| apply(&scope(""), None, &config, &WRITER, false));
}

#[divan::bench]
fn update_without_change(bencher: divan::Bencher<'_, '_>) {
    let live = stored(false);
    bencher.with_inputs(|| live.clone()).bench_local_refs(|object| update(&scope(""), Some(&live), object, &WRITER));
}

#[divan::bench]
fn update_of_replicas(bencher: divan::Bencher<'_, '_>) {
    let live = stored(false);
    let writer = Writer { manager: "autoscaler", ..WRITER };
    let changed = || {
        let mut object = live.clone();
        object["spec"].set("replicas", 4);
        object
    };
    bencher.with_inputs(changed).bench_local_refs(|object| update(&scope(""), Some(&live), object, &writer));
}

#[divan::bench]
fn update_of_the_status(bencher: divan::Bencher<'_, '_>) {
    let live = stored(false);
    let writer = Writer { manager: "kube-controller-manager", ..WRITER };
    let changed = || {
        let mut object = live.clone();
        object["status"].set("replicas", 4);
        object["status"]["conditions"].items_mut()[0].set("lastUpdateTime", "2026-01-01T00:00:01Z");
        object
    };
    bencher.with_inputs(changed).bench_local_refs(|object| update(&scope("status"), Some(&live), object, &writer));
}

#[divan::bench]
fn create(bencher: divan::Bencher<'_, '_>) {
    let mut new = stored(false);
    new["metadata"].remove("managedFields");
    bencher.with_inputs(|| new.clone()).bench_local_refs(|object| update(&scope(""), None, object, &WRITER));
}

fn patch(patch_type: PatchType, body: &Value) -> pintle_patch::Patch {
    decode(patch_type, &body.to_json(), true).expect("a sound patch").patch
}

#[divan::bench]
fn strategic_patch_of_an_image(bencher: divan::Bencher<'_, '_>) {
    let live = stored(true);
    let order = json!([{"name": "web"}, {"name": "proxy"}]);
    let spec = json!({"$setElementOrder/containers": order, "containers": [{"name": "web", "image": "web:2"}]});
    let patch = patch(PatchType::Strategic, &json!({"spec": {"template": {"spec": spec}}}));
    bencher.bench(|| patch.apply(&live, node()));
}

#[divan::bench]
fn strategic_patch_of_everything(bencher: divan::Bencher<'_, '_>) {
    let live = stored(true);
    let patch = patch(PatchType::Strategic, &config());
    bencher.bench(|| patch.apply(&live, node()));
}

#[divan::bench]
fn merge_patch_of_replicas(bencher: divan::Bencher<'_, '_>) {
    let live = stored(true);
    let patch = patch(PatchType::Merge, &json!({"spec": {"replicas": 4}}));
    bencher.bench(|| patch.apply(&live, node()));
}

#[divan::bench]
fn json_patch_of_replicas(bencher: divan::Bencher<'_, '_>) {
    let live = stored(true);
    let body = parse(
        br#"[{"op":"test","path":"/spec/replicas","value":3},{"op":"replace","path":"/spec/replicas","value":4}]"#,
    );
    let patch = patch(PatchType::Json, &body.expect("a sound document"));
    bencher.bench(|| patch.apply(&live, node()));
}
