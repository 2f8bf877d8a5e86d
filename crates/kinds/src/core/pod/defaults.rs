//! Defaults of pods and pod templates, and what a pod's fields come back as after upstream's trip through its internal
//! form.
//!
//! Follows: pkg/apis/core/v1/{defaults,conversion}.go (v1.35).

use super::image::default_pull_policy;
use super::resources::aggregate;
use crate::common::claim::set_claim_spec_defaults;
use crate::common::resources::{is_huge_pages, is_native, is_supported_for_pods};
use crate::core::quantities::round_up_to_millis;
use pintle_apimachinery::{Object, Str, Value};

/// Annotations of long ago that are dropped wherever they appear.
const DROPPED_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

/// The defaults of a pod.
pub fn set_pod_defaults(pod: &mut Value) {
    drop_old_annotations(pod);
    let spec = pod.make("spec");
    for list in ["containers", "initContainers"] {
        items(spec, list).iter_mut().for_each(default_requests_to_limits);
    }
    set_pod_level_limits(spec);
    set_pod_level_requests(spec);
    spec.set_default("enableServiceLinks", true);
    if spec["hostNetwork"].is_true() {
        for list in ["containers", "initContainers"] {
            items(spec, list).iter_mut().for_each(default_host_ports);
        }
    }
    set_spec_defaults(spec);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec.set("terminationGracePeriodSeconds", 1);
    }
    set_status_defaults(pod);
}

/// The defaults of a pod template: a `metadata` with a `spec`.
pub fn set_template_defaults(template: &mut Value) {
    drop_old_annotations(template);
    set_spec_defaults(template.make("spec"));
}

fn drop_old_annotations(object: &mut Value) {
    let Some(annotations) = object.at_mut("metadata.annotations").and_then(Value::as_object_mut) else { return };
    let n_before = annotations.len();
    annotations.retain(|key, _| !DROPPED_ANNOTATIONS.contains(&key.as_str()));
    if annotations.is_empty() && n_before > 0 {
        object.remove_at("metadata.annotations");
    }
}

fn items<'v>(owner: &'v mut Value, list: &str) -> &'v mut [Value] {
    owner.get_mut(list).map(Value::items_mut).unwrap_or_default()
}

fn set_spec_defaults(spec: &mut Value) {
    spec.set_default("dnsPolicy", "ClusterFirst");
    spec.set_default("restartPolicy", "Always");
    spec.set_default("securityContext", Value::object());
    spec.set_default("terminationGracePeriodSeconds", 30);
    spec.set_default("schedulerName", "default-scheduler");
    mirror_service_account(spec);
    items(spec, "volumes").iter_mut().for_each(set_volume_defaults);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items(spec, list).iter_mut().for_each(set_container_defaults);
    }
    round_up_to_millis(spec.get_mut("overhead"));
    round_requirements(spec, "resources");
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always written.
fn mirror_service_account(spec: &mut Value) {
    let name = match spec["serviceAccountName"].str_or_empty() {
        "" => spec["serviceAccount"].str_or_empty(),
        name => name,
    };
    if !name.is_empty() {
        let name = Str::new(name);
        spec.set("serviceAccount", &name);
        spec.set("serviceAccountName", name);
    }
}

fn set_container_defaults(container: &mut Value) {
    if container["imagePullPolicy"].is_null() {
        let policy = default_pull_policy(container["image"].str_or_empty());
        container.set("imagePullPolicy", policy);
    }
    container.set_default("terminationMessagePath", "/dev/termination-log");
    container.set_default("terminationMessagePolicy", "File");
    for port in items(container, "ports") {
        port.set_default("protocol", "TCP");
    }
    for source in items(container, "env").iter_mut().filter_map(|var| var.get_mut("valueFrom")) {
        default_api_version(source);
        if let Some(file) = source.get_mut("fileKeyRef") {
            file.set_default("optional", false);
        }
    }
    round_requirements(container, "resources");
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        container.get_mut(probe).into_iter().for_each(set_probe_defaults);
    }
    for hook in ["postStart", "preStop"] {
        container.get_mut("lifecycle").and_then(|l| l.get_mut(hook)).into_iter().for_each(set_http_get_defaults);
    }
}

fn default_api_version(owner: &mut Value) {
    if let Some(reference) = owner.get_mut("fieldRef") {
        reference.set_default("apiVersion", "v1");
    }
}

fn set_probe_defaults(probe: &mut Value) {
    probe.set_default("timeoutSeconds", 1);
    probe.set_default("periodSeconds", 10);
    probe.set_default("successThreshold", 1);
    probe.set_default("failureThreshold", 3);
    set_http_get_defaults(probe);
    if let Some(grpc) = probe.get_mut("grpc") {
        grpc.set_default("service", "");
    }
}

fn set_http_get_defaults(handler: &mut Value) {
    if let Some(http) = handler.get_mut("httpGet") {
        http.set_default("path", "/");
        http.set_default("scheme", "HTTP");
    }
}

/// Defaults that are constants: the volume source, its field, the value.
const SOURCE_DEFAULTS: &[(&str, &str, &str)] = &[
    ("iscsi", "iscsiInterface", "default"),
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("azureDisk", "cachingMode", "ReadWrite"),
    ("azureDisk", "fsType", "ext4"),
    ("azureDisk", "kind", "Shared"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
    ("hostPath", "type", ""),
];

/// Sources whose files have this mode unless they say another.
const FILE_MODE: i32 = 0o644;

fn set_volume_defaults(volume: &mut Value) {
    if volume.entries().all(|(key, _)| key == "name") {
        volume.set("emptyDir", Value::object());
        return;
    }
    for (source, field, value) in SOURCE_DEFAULTS {
        if let Some(source) = volume.get_mut(source) {
            source.set_default(field, *value);
        }
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            source.set_default("defaultMode", FILE_MODE);
        }
    }
    if let Some(disk) = volume.get_mut("azureDisk") {
        disk.set_default("readOnly", false);
    }
    if let Some(source) = volume.get_mut("downwardAPI") {
        items(source, "items").iter_mut().for_each(default_api_version);
    }
    for source in volume.get_mut("projected").map(|p| items(p, "sources")).unwrap_or_default() {
        if let Some(downward) = source.get_mut("downwardAPI") {
            items(downward, "items").iter_mut().for_each(default_api_version);
        }
        if let Some(token) = source.get_mut("serviceAccountToken") {
            token.set_default("expirationSeconds", 3600);
        }
    }
    if let Some(template) = volume.at_mut("ephemeral.volumeClaimTemplate") {
        let spec = template.make("spec");
        set_claim_spec_defaults(spec);
        round_requirements(spec, "resources");
    }
    if let Some(image) = volume.get_mut("image").filter(|image| image["pullPolicy"].is_null()) {
        let policy = default_pull_policy(image["reference"].str_or_empty());
        image.set("pullPolicy", policy);
    }
}

/// Rounds `limits` and `requests` of a member.
pub fn round_requirements(owner: &mut Value, member: &str) {
    if let Some(resources) = owner.get_mut(member) {
        round_up_to_millis(resources.get_mut("limits"));
        round_up_to_millis(resources.get_mut("requests"));
    }
}

fn default_requests_to_limits(container: &mut Value) {
    let Some(resources) = container.get_mut("resources") else { return };
    let Some(limits) = resources["limits"].as_object() else { return };
    let missing: Vec<(Str, Value)> = limits
        .iter()
        .filter(|(name, _)| !resources["requests"].has(name))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    if !missing.is_empty() {
        let requests = resources.make("requests").make_object();
        for (name, amount) in missing {
            requests.insert(name, amount);
        }
    }
}

fn default_host_ports(container: &mut Value) {
    for port in items(container, "ports") {
        let number = port["containerPort"].clone();
        if port["hostPort"].as_i64().unwrap_or_default() == 0 && !number.is_empty() {
            port.set("hostPort", number);
        }
    }
}

fn insert_missing(resources: &mut Value, list: &str, missing: Vec<(Str, Value)>) {
    if !missing.is_empty() {
        let amounts = resources.make(list).make_object();
        for (name, amount) in missing {
            amounts.insert(name, amount);
        }
    }
}

/// A pod that says something of its resources as a whole gets the huge pages limits of its containers.
fn set_pod_level_limits(spec: &mut Value) {
    let resources = &spec["resources"];
    if resources["limits"].is_empty() && resources["requests"].is_empty() {
        return;
    }
    let missing = aggregate(spec, "limits")
        .into_iter()
        .filter(|(name, _)| is_huge_pages(name) && !resources["requests"].has(name) && !resources["limits"].has(name))
        .map(|(name, amount)| (Str::new(name), Value::String(amount.canonical())))
        .collect();
    insert_missing(&mut spec["resources"], "limits", missing);
}

/// A pod with limits of its own requests what its containers do, or else what its limits are.
fn set_pod_level_requests(spec: &mut Value) {
    let resources = &spec["resources"];
    if resources["limits"].is_empty() {
        return;
    }
    let mut missing: Object = Object::new();
    for (name, amount) in aggregate(spec, "requests") {
        let is_overcommit_allowed = is_native(name) && !is_huge_pages(name);
        if is_supported_for_pods(name) && is_overcommit_allowed && !resources["requests"].has(name) {
            missing.insert(name, Value::String(amount.canonical()));
        }
    }
    for (name, amount) in resources["limits"].entries() {
        if is_supported_for_pods(name) && !resources["requests"].has(name) && !missing.contains_key(name) {
            missing.insert(name, amount.clone());
        }
    }
    insert_missing(&mut spec["resources"], "requests", missing.into_iter().collect());
}

/// `podIP` is the first of `podIPs` and wins over them; amounts in statuses are rounded like all others.
fn set_status_defaults(pod: &mut Value) {
    let Some(status) = pod.get_mut("status") else { return };
    if status.is_empty() {
        return;
    }
    let (ip, first) =
        (status["podIP"].str_or_empty(), status["podIPs"].items().first().map_or("", |i| i["ip"].str_or_empty()));
    if !ip.is_empty() && ip != first {
        let only = Object::from_iter([("ip", Str::new(ip))]);
        status.set("podIPs", Value::Array(vec![Value::Object(only)]));
    } else if ip.is_empty() && !first.is_empty() {
        let first = Str::new(first);
        status.set("podIP", first);
    }
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        for container in items(status, list) {
            round_up_to_millis(container.get_mut("allocatedResources"));
            round_requirements(container, "resources");
        }
    }
    round_up_to_millis(status.get_mut("allocatedResources"));
    round_requirements(status, "resources");
}
