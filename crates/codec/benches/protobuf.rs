//! What a pod of 5 KB costs on the wire. `cargo bench -p pintle-codec`; as a test it runs once.

#![expect(clippy::unwrap_used, reason = "what cannot be measured may end the measurement")]

use divan::Bencher;
use divan::counter::BytesCount;
use pintle_apimachinery::{Value, json};
use pintle_codec::protobuf::{ListMeta, decode, decode_object, encode, encode_json, encode_object, list};
use pintle_schema::kind;

fn main() {
    divan::main();
}

/// A running pod as a controller makes it and a node reports it.
fn pod() -> Value {
    let env = |n: i64| json!({"name": (format!("VARIABLE_{n}")), "value": (format!("value of variable {n}"))});
    let probe = json!({
        "failureThreshold": 3, "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10,
        "successThreshold": 1, "timeoutSeconds": 1,
    });
    let container = |name: &str| {
        json!({
            "name": name, "image": (format!("registry.example.com/team/{name}:v1.2.3")), "imagePullPolicy": "IfNotPresent",
            "args": ["--port=8080", "--verbose", "--log-format=json"],
            "env": ((0..6).map(env).collect::<Value>()),
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "livenessProbe": (probe.clone()), "readinessProbe": (probe.clone()),
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "volumeMounts": [
                {"mountPath": "/etc/config", "name": "config", "readOnly": true},
                {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": true},
            ],
        })
    };
    let condition = |kind: &str| json!({"lastProbeTime": null, "lastTransitionTime": "2026-01-02T03:04:05Z", "status": "True", "type": kind});
    let status = |name: &str| {
        json!({
            "containerID": "containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "image": (format!("registry.example.com/team/{name}:v1.2.3")), "imageID": "sha256:0123456789abcdef", "name": name,
            "ready": true, "restartCount": 0, "started": true, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
            "lastState": {},
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-6d5f8c7b9-x2x7q", "generateName": "web-6d5f8c7b9-", "namespace": "production",
            "uid": "11111111-2222-3333-4444-555555555555", "resourceVersion": "123456",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "web", "pod-template-hash": "6d5f8c7b9", "team": "shop"},
            "annotations": {"example.com/checksum": "0123456789abcdef0123456789abcdef"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "blockOwnerDeletion": true, "controller": true, "kind": "ReplicaSet",
                "name": "web-6d5f8c7b9", "uid": "66666666-7777-8888-9999-000000000000",
            }],
        },
        "spec": {
            "containers": [(container("web")), (container("sidecar"))],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "nodeName": "node-17", "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0, "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {"fsGroup": 1000, "runAsNonRoot": true},
            "serviceAccount": "web", "serviceAccountName": "web", "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300},
                {"effect": "NoExecute", "key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300},
            ],
            "volumes": [
                {"configMap": {"defaultMode": 420, "name": "web"}, "name": "config"},
                {"name": "token", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                ]}},
            ],
        },
        "status": {
            "conditions": ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition).to_vec(),
            "containerStatuses": [(status("sidecar")), (status("web"))],
            "hostIP": "192.168.1.17", "hostIPs": [{"ip": "192.168.1.17"}], "phase": "Running", "podIP": "10.1.2.3",
            "podIPs": [{"ip": "10.1.2.3"}], "qosClass": "Burstable", "startTime": "2026-01-02T03:04:05Z",
        },
    })
}

#[divan::bench]
fn encode_value(bencher: Bencher<'_, '_>) {
    let (pod, id) = (pod(), kind("", "v1", "Pod").unwrap().id);
    bencher.counter(BytesCount::new(pod.to_json().len())).bench_local(|| encode(&pod, id));
}

#[divan::bench]
fn encode_stored_json(bencher: Bencher<'_, '_>) {
    let (stored, id) = (pod().to_json(), kind("", "v1", "Pod").unwrap().id);
    bencher.counter(BytesCount::new(stored.len())).bench_local(|| encode_json(&stored, id));
}

#[divan::bench]
fn decode_value(bencher: Bencher<'_, '_>) {
    let (pod, id) = (pod(), kind("", "v1", "Pod").unwrap().id);
    let message = encode(&pod, id).unwrap();
    assert_eq!(decode_object(&encode_object(&pod).unwrap(), None).unwrap().to_json(), pod.to_json(), "it reads back");
    bencher.counter(BytesCount::new(message.len())).bench_local(|| decode(&message, id));
}

#[divan::bench]
fn decode_json_along_the_schema(bencher: Bencher<'_, '_>) {
    let (stored, id) = (pod().to_json(), kind("", "v1", "Pod").unwrap().id);
    bencher.counter(BytesCount::new(stored.len())).bench_local(|| pintle_schema::decode(&stored, id));
}

#[divan::bench]
fn list_of_10000_encoded_items(bencher: Bencher<'_, '_>) {
    let body = encode(&pod(), kind("", "v1", "Pod").unwrap().id).unwrap();
    let meta = ListMeta { resource_version: "123456", ..ListMeta::default() };
    bencher
        .counter(BytesCount::new(body.len() * 10_000))
        .bench_local(|| list("v1", "PodList", &meta, std::iter::repeat_n(body.as_slice(), 10_000)));
}
