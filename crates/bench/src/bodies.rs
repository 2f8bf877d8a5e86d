//! The objects that the load is made of, as bytes: sized and shaped like those of a real cluster, each following from
//! its number alone.

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};

/// The text in prepared bodies that each request replaces by its own of the same length.
const MARK: &[u8; MARK_LEN] = b"0000-0000000000-00000000000000000000";
/// See [`MARK`].
const MARK_LEN: usize = 36;
/// The member that carries the mark, in whatever object it is.
const MARK_KEY: &[u8] = b"\"bench.pintle.dev/mark\":\"";

/// What an event says of the write that made it: who wrote, which of its writes, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// At most 9,999.
    pub(crate) writer: u32,
    pub(crate) sequence: u64,
    /// Since the run began.
    pub(crate) nanos: u64,
}

impl Mark {
    fn text(self) -> String {
        format!("{:04}-{:010}-{:020}", self.writer, self.sequence, self.nanos)
    }

    /// The mark in an object's JSON, if it has one.
    pub(crate) fn find(finder: &MarkFinder, json: &[u8]) -> Option<Mark> {
        let begin = finder.0.find(json)? + MARK_KEY.len();
        let text = json.get(begin..begin + MARK_LEN)?;
        Some(Mark {
            writer: u32::try_from(number(&text[..4])?).ok()?,
            sequence: number(&text[5..15])?,
            nanos: number(&text[16..])?,
        })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |sum, digit| match digit {
        b'0'..=b'9' => Some(sum * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

/// Finds marks.
#[derive(Clone, Debug)]
pub(crate) struct MarkFinder(memchr::memmem::Finder<'static>);

impl MarkFinder {
    pub(crate) fn new() -> MarkFinder {
        MarkFinder(memchr::memmem::Finder::new(MARK_KEY))
    }
}

/// The name in prepared bodies of objects to be created, replaced by one that follows from the mark.
pub(crate) const NAME: &str = "bench-0000-0000000000";

/// The name of the object that a writer's so manieth request creates.
pub(crate) fn name(writer: u32, sequence: u64) -> String {
    format!("bench-{writer:04}-{sequence:010}")
}

/// A body with places to be filled in for each request: a name, a mark, or neither.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: Bytes,
    names: Vec<usize>,
    mark: Option<usize>,
}

impl Template {
    /// Of an object in JSON.
    pub(crate) fn new(bytes: impl Into<Bytes>) -> Template {
        let bytes = bytes.into();
        let mark = memchr::memmem::find(&bytes, MARK_KEY).map(|at| at + MARK_KEY.len());
        let mark = mark.filter(|at| at + MARK_LEN <= bytes.len());
        let names = memchr::memmem::find_iter(&bytes, NAME.as_bytes()).collect();
        Template { bytes, names, mark }
    }

    /// The body of one request.
    pub(crate) fn with(&self, mark: Mark) -> Bytes {
        if self.mark.is_none() && self.names.is_empty() {
            return self.bytes.clone();
        }
        let mut bytes = BytesMut::from(&self.bytes[..]);
        if let Some(at) = self.mark {
            bytes[at..at + MARK_LEN].copy_from_slice(mark.text().as_bytes());
        }
        for at in &self.names {
            bytes[*at..at + NAME.len()].copy_from_slice(name(mark.writer, mark.sequence).as_bytes());
        }
        bytes.freeze()
    }
}

fn mark() -> Value {
    json!({"bench.pintle.dev/mark": String::from_utf8_lossy(MARK)})
}

/// Labels as workloads have them; `bucket` is one of a hundred, for selectors.
fn labels(idx: usize) -> Value {
    json!({
        "app.kubernetes.io/name": format!("service-{}", idx % 40),
        "app.kubernetes.io/instance": format!("service-{}-prod", idx % 40),
        "app.kubernetes.io/component": "backend",
        "pod-template-hash": format!("{:08x}", (idx % 40) * 2_654_435),
        "bucket": format!("{}", idx % 100),
    })
}

/// A ConfigMap of about 1 KB.
pub(crate) fn config_map(name: &str, idx: usize) -> Bytes {
    let settings: String =
        (0..20).map(|line| format!("setting.{line}.of.{idx} = value-{}\n", line * 7919 + idx)).collect();
    to_bytes(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels(idx), "annotations": mark()},
        "data": {"application.properties": settings, "log.level": "info", "feature": "on"},
    }))
}

/// A Lease as a node's.
pub(crate) fn lease(name: &str) -> Bytes {
    to_bytes(&json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "annotations": mark()},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"},
    }))
}

/// A pod as a Deployment's: two containers with probes, resources, environment and volumes. About 2.5 KB as it is sent,
/// 5 to 6 KB as a server keeps it.
pub(crate) fn pod(name: &str, idx: usize) -> Bytes {
    to_bytes(&json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels(idx), "annotations": mark()},
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [container("app", idx), container("sidecar", idx)],
            "terminationGracePeriodSeconds": 30,
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}],
            "volumes": [
                {"name": "config", "configMap": {"name": format!("service-{}", idx % 40)}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
            ],
        },
    }))
}

fn container(name: &str, idx: usize) -> Value {
    json!({
        "name": name,
        "image": format!("registry.example.com/team-{}/{name}:v1.{}.0", idx % 7, idx % 40),
        "args": ["--port=8080", "--config=/etc/app/application.properties"],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "ports": [{"name": if name == "app" { "http" } else { "admin" }, "containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 20},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app", "readOnly": true},
            {"name": "scratch", "mountPath": "/tmp"},
        ],
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true},
    })
}

/// What a node agent reports of a pod that runs, as a strategic merge patch of its status.
pub(crate) fn pod_status() -> Bytes {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    to_bytes(&json!({
        "status": {
            "phase": "Running",
            "podIP": "10.1.2.3",
            "hostIP": "192.0.2.7",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
        },
    }))
}

/// A merge patch, or a strategic one, that sets the mark.
pub(crate) fn mark_patch() -> Bytes {
    to_bytes(&json!({"metadata": {"annotations": mark()}}))
}

/// A merge patch of a lease: what a node's heartbeat changes.
pub(crate) fn lease_patch() -> Bytes {
    to_bytes(&json!({"metadata": {"annotations": mark()}, "spec": {"renewTime": "2026-01-01T00:00:10.000000Z"}}))
}

/// An object as the server gave it, made into the body of an update: without managedFields, which the server then
/// keeps, and without resourceVersion, so that no update conflicts.
pub(crate) fn update_of(stored: &[u8]) -> serde_json::Result<Bytes> {
    let mut object: Value = serde_json::from_slice(stored)?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
    }
    Ok(to_bytes(&object))
}

fn to_bytes(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_again_in_what_was_sent() {
        let finder = MarkFinder::new();
        let mark = Mark { writer: 17, sequence: 4_000_000_123, nanos: 98_765_432_109 };
        for body in [config_map("a", 1), lease("a"), pod("a", 7), mark_patch(), lease_patch()] {
            let template = Template::new(body.clone());
            let sent = template.with(mark);
            assert_eq!(sent.len(), body.len());
            assert_eq!(Mark::find(&finder, &sent), Some(mark));
            assert!(serde_json::from_slice::<Value>(&sent).is_ok());
        }
        assert_eq!(Mark::find(&finder, b"{\"bench.pintle.dev/mark\":\"short\"}"), None);
        assert_eq!(Template::new(pod_status()).with(mark), pod_status());
        let named = Template::new(lease(NAME)).with(mark);
        let holder = r#""holderIdentity":"bench-0017-4000000123""#;
        assert!(String::from_utf8_lossy(&named).contains(holder), "{named:?}");
    }

    #[test]
    fn an_update_asks_for_no_version() {
        let stored = br#"{"metadata":{"name":"a","resourceVersion":"7","managedFields":[{}]},"data":{}}"#;
        assert_eq!(&update_of(stored).unwrap()[..], br#"{"data":{},"metadata":{"name":"a"}}"#);
        assert!(update_of(b"{").is_err());
    }

    #[test]
    fn bodies_have_the_sizes_that_the_documentation_says() {
        assert!((900..1300).contains(&config_map("config-1", 1).len()), "{}", config_map("config-1", 1).len());
        assert!((2200..2900).contains(&pod("pod-1", 1).len()), "{}", pod("pod-1", 1).len());
    }
}
