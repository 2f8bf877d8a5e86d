//! What the objects of a resource use: pods, services, claims and device claims by their content, all else by number.

use super::lists::pieces;
use super::scopes::{Scope, is_terminating, scopes_of};
use crate::attributes::{Attributes, Operation};
use crate::plugins::is_extended_resource;
use crate::pod::{Counting, ResourceList, Side, add, has_pod_level_resources, pod_resources, quantity};
use jiff::Timestamp;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::quantity::Quantity;
use pintle_apimachinery::{GroupResource, Str, Value};
use std::collections::{BTreeMap, BTreeSet};

/// How the objects of one resource are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluator {
    /// The name under which its objects are counted: `count/deployments.apps`.
    count: Str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pods,
    Services,
    Claims,
    DeviceClaims,
    /// By number alone; some have another name of old for it.
    Counted(&'static str),
}

/// Resources that no quota counts.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];

/// Resources of the core group that are counted under their plain name as well.
const ALIASES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

/// How the objects of a resource are measured; `None` for those that no quota counts.
pub fn evaluator_for(resource: &GroupResource) -> Option<Evaluator> {
    if IGNORED.contains(&(&resource.group, &resource.resource)) {
        return None;
    }
    let kind = match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "pods") => Kind::Pods,
        ("", "services") => Kind::Services,
        ("", "persistentvolumeclaims") => Kind::Claims,
        ("resource.k8s.io", "resourceclaims") => Kind::DeviceClaims,
        ("", name) => Kind::Counted(ALIASES.iter().find(|alias| **alias == name).copied().unwrap_or_default()),
        _ => Kind::Counted(""),
    };
    // a group resource prints as `deployments.apps`
    Some(Evaluator { count: compact_str::format_compact!("count/{resource}"), kind })
}

const POD_RESOURCES: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// What every container must ask for where a quota counts it.
const REQUIRED: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Between a storage class and what is counted for it.
const CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";
/// Behind a device class whose devices are counted.
const DEVICE_SUFFIX: &str = ".deviceclass.resource.k8s.io/devices";
/// Devices that a claim for all of a class may get at most.
const DEVICES_PER_CLAIM_MAX: i64 = 32;

fn is_extended_for_quota(name: &str) -> bool {
    let is_foreign = name.contains('/') && !name.contains("kubernetes.io/");
    name.starts_with("requests.") && (is_foreign || name.starts_with("requests.deviceclass.resource.kubernetes.io/"))
}

impl Evaluator {
    /// Whether the operation can change what is used.
    pub(super) fn handles(&self, attributes: &Attributes<'_>, object: &Value) -> bool {
        let (operation, old) = (attributes.operation, attributes.old.unwrap_or(&Value::NULL));
        match (self.kind, attributes.subresource) {
            (Kind::Pods, "") => {
                operation == Operation::Create
                    || (operation == Operation::Update && is_terminating(old) != is_terminating(object))
            }
            (Kind::Pods, "resize") => operation == Operation::Update,
            (Kind::Claims, "status") => {
                let is_changed = |path: &str| old.at(path) != object.at(path);
                operation == Operation::Update
                    && [
                        "status.allocatedResources.storage",
                        "spec.volumeAttributesClassName",
                        "status.currentVolumeAttributesClassName",
                        "status.modifyVolumeStatus.targetVolumeAttributesClassName",
                    ]
                    .into_iter()
                    .any(is_changed)
            }
            (Kind::Services | Kind::Claims | Kind::DeviceClaims, "") => attributes.is_write(),
            (Kind::Counted(_), "") => operation == Operation::Create,
            _ => false,
        }
    }

    /// Whether the name in a quota is about this resource.
    pub(super) fn measures(&self, name: &str) -> bool {
        if name == self.count {
            return true;
        }
        match self.kind {
            Kind::Pods => {
                POD_RESOURCES.contains(&name)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || is_extended_for_quota(name)
            }
            Kind::Services => ["services", "services.nodeports", "services.loadbalancers"].contains(&name),
            Kind::Claims => {
                let plain = ["persistentvolumeclaims", "requests.storage"];
                plain.contains(&name)
                    || name.rsplit_once(CLASS_SUFFIX).is_some_and(|(_, plain_name)| plain.contains(&plain_name))
            }
            Kind::DeviceClaims => name.ends_with(DEVICE_SUFFIX),
            Kind::Counted(alias) => !alias.is_empty() && name == alias,
        }
    }

    /// Whether the object falls under a quota: it is measured in one of `hard`'s names and meets every condition.
    pub(super) fn matches(&self, quota_spec: &Value, hard: &ResourceList, object: &Value) -> bool {
        hard.keys().any(|name| self.measures(name))
            && scopes_of(quota_spec).iter().all(|scope| self.is_in_scope(scope, object))
    }

    fn is_in_scope(&self, scope: &Scope, object: &Value) -> bool {
        match self.kind {
            Kind::Pods => scope.has_pod(object),
            Kind::Claims => scope.has_claim(object),
            Kind::Services | Kind::DeviceClaims | Kind::Counted(_) => false,
        }
    }

    /// What the object lacks to be measured in these names; `None` when it lacks nothing.
    pub(super) fn lacks(&self, names: &[Str], object: &Value) -> Option<String> {
        if self.kind != Kind::Pods || has_pod_level_resources(object) {
            return None;
        }
        let required: Vec<&str> = names.iter().map(Str::as_str).filter(|name| REQUIRED.contains(name)).collect();
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for container in ["containers", "initContainers"].into_iter().flat_map(|f| object["spec"][f].items()) {
            let list = |side: Side| crate::pod::resource_list(&container["resources"][side.field()]);
            let used = compute_usage(&list(Side::Requests), &list(Side::Limits));
            for name in required.iter().filter(|name| !used.contains_key(**name)) {
                missing.entry(name).or_default().insert(container["name"].str_or_empty());
            }
        }
        if missing.is_empty() {
            return None;
        }
        let parts: Vec<String> = missing
            .iter()
            .map(|(name, containers)| {
                format!("{name} for: {}", containers.iter().copied().collect::<Vec<_>>().join(","))
            })
            .collect();
        Some(format!("must specify {}", parts.join("; ")))
    }

    /// What the object uses.
    pub fn usage(&self, object: &Value, now: Timestamp) -> ResourceList {
        let mut usage = ResourceList::from([(self.count.clone(), pieces(1))]);
        match self.kind {
            Kind::Pods => {
                if !is_over(object, now) {
                    let counting = Counting { with_status: true, with_overhead: true, with_pod_level_huge_pages: true };
                    let side = |side: Side| pod_resources(object, side, counting);
                    usage.extend(compute_usage(&side(Side::Requests), &side(Side::Limits)));
                }
            }
            Kind::Services => usage.extend(service_usage(&object["spec"])),
            Kind::Claims => usage.extend(claim_usage(object)),
            Kind::DeviceClaims => device_usage(&object["spec"]["devices"], &mut usage),
            Kind::Counted("") => {}
            Kind::Counted(alias) => drop(usage.insert(Str::const_new(alias), pieces(1))),
        }
        usage
    }
}

/// What a pod, or a container, that asks for this uses.
fn compute_usage(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut usage = ResourceList::from([(Str::const_new("pods"), pieces(1))]);
    for (name, amount) in requests {
        let is_plain = ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str());
        if is_plain || name.starts_with("hugepages-") {
            usage.insert(name.clone(), *amount);
        }
        let is_device = name.starts_with("deviceclass.resource.kubernetes.io/");
        if is_plain || name.starts_with("hugepages-") || is_extended_resource(name) || is_device {
            usage.insert(compact_str::format_compact!("requests.{name}"), *amount);
        }
    }
    for (name, amount) in limits {
        if ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str()) {
            usage.insert(compact_str::format_compact!("limits.{name}"), *amount);
        }
    }
    usage
}

/// Whether the pod has ended, or should have long ago: it uses nothing any more.
fn is_over(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return true;
    }
    let grace_seconds = pod.metadata()["deletionGracePeriodSeconds"].as_i64();
    match (pod.deletion_timestamp(), grace_seconds) {
        (Some(at), Some(grace_seconds)) => now.as_second() > at.as_second() + grace_seconds,
        _ => false,
    }
}

fn service_usage(spec: &Value) -> [(Str, Quantity); 3] {
    let ports = spec["ports"].items();
    let with_node_port = || ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or_default() != 0).count();
    let (node_ports, load_balancers) = match spec["type"].str_or_empty() {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"].as_bool() == Some(false) => (with_node_port(), 1),
        "LoadBalancer" => (ports.len(), 1),
        _ => (0, 0),
    };
    [("services", 1), ("services.nodeports", node_ports), ("services.loadbalancers", load_balancers)]
        .map(|(name, count)| (Str::const_new(name), pieces(count)))
}

fn claim_usage(claim: &Value) -> ResourceList {
    let mut usage = ResourceList::from([(Str::const_new("persistentvolumeclaims"), pieces(1))]);
    let requested = &claim["spec"]["resources"]["requests"]["storage"];
    if !requested.is_null() {
        let allocated = quantity(&claim["status"]["allocatedResources"]["storage"]);
        let storage = quantity(requested).max(allocated);
        // whole bytes are counted
        usage.insert(Str::const_new("requests.storage"), Quantity::from_i64(storage.value(), storage.format()));
    }
    let class = match claim.annotation("volume.beta.kubernetes.io/storage-class") {
        Some(class) => class,
        None => claim["spec"]["storageClassName"].str_or_empty(),
    };
    if !class.is_empty() {
        let of_class: Vec<(Str, Quantity)> = usage
            .iter()
            .map(|(name, amount)| (compact_str::format_compact!("{class}{CLASS_SUFFIX}{name}"), *amount))
            .collect();
        usage.extend(of_class);
    }
    usage
}

fn device_usage(devices: &Value, usage: &mut ResourceList) {
    let count = |request: &Value| match request["allocationMode"].str_or_empty() {
        "ExactCount" => request["count"].as_i64().unwrap_or_default(),
        "All" => DEVICES_PER_CLAIM_MAX,
        _ => 0,
    };
    for request in devices["requests"].items() {
        // of alternatives the one that takes most counts, for each class
        let mut most: BTreeMap<&str, i64> = BTreeMap::new();
        let exactly = std::slice::from_ref(&request["exactly"]);
        let alternatives = request["firstAvailable"].items();
        for alternative in if alternatives.is_empty() { exactly } else { alternatives } {
            let class = alternative["deviceClassName"].str_or_empty();
            if !class.is_empty() {
                let entry = most.entry(class).or_default();
                *entry = count(alternative).max(*entry);
            }
        }
        for (class, count) in most {
            let name = compact_str::format_compact!("{class}{DEVICE_SUFFIX}");
            let count = pieces(usize::try_from(count).unwrap_or_default());
            add(usage, &ResourceList::from([(name, count)]));
        }
    }
}

/// What the objects of a namespace use of what a quota counts: for the controller that counts anew. `objects` gives the
/// objects of a resource.
pub fn usage_of_namespace<'o>(
    quota_spec: &Value,
    hard: &ResourceList,
    resources: &[GroupResource],
    mut objects: impl FnMut(&GroupResource) -> Vec<&'o Value>,
    now: Timestamp,
) -> ResourceList {
    let scopes = scopes_of(quota_spec);
    let mut total = ResourceList::new();
    for resource in resources {
        let Some(evaluator) = evaluator_for(resource) else { continue };
        let names: Vec<&Str> = hard.keys().filter(|name| evaluator.measures(name)).collect();
        if names.is_empty() {
            continue;
        }
        for name in &names {
            total.entry((*name).clone()).or_insert(Quantity::ZERO);
        }
        for object in objects(resource) {
            if scopes.iter().all(|scope| evaluator.is_in_scope(scope, object)) {
                let usage = evaluator.usage(object, now);
                add(&mut total, &super::lists::mask(&usage, |name| hard.contains_key(name)));
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::resource_value;
    use expect_test::{Expect, expect};
    use pintle_apimachinery::json;

    fn check(group: &str, resource: &str, object: Value, expect: Expect) {
        let evaluator = evaluator_for(&GroupResource::new(group, resource)).unwrap();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        expect.assert_eq(&resource_value(&evaluator.usage(&object, now)).to_json_string());
    }

    #[test]
    fn what_objects_use() {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": "100m", "example.com/gpu": "1", "hugepages-2Mi": "2Mi"}, "limits": {"memory": "1Gi"}}});
        check(
            "",
            "pods",
            json!({"spec": {"containers": [container.clone()]}}),
            expect![[
                r#"{"count/pods":"1","cpu":"100m","hugepages-2Mi":"2Mi","limits.memory":"1Gi","pods":"1","requests.cpu":"100m","requests.example.com/gpu":"1","requests.hugepages-2Mi":"2Mi"}"#
            ]],
        );
        check(
            "",
            "pods",
            json!({"spec": {"containers": [container]}, "status": {"phase": "Failed"}}),
            expect![[r#"{"count/pods":"1"}"#]],
        );
        check(
            "",
            "services",
            json!({"spec": {"type": "LoadBalancer", "ports": [{}, {}]}}),
            expect![[r#"{"count/services":"1","services":"1","services.loadbalancers":"1","services.nodeports":"2"}"#]],
        );
        check(
            "",
            "persistentvolumeclaims",
            json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "4Gi"}}}}),
            expect![[
                r#"{"count/persistentvolumeclaims":"1","gold.storageclass.storage.k8s.io/persistentvolumeclaims":"1","gold.storageclass.storage.k8s.io/requests.storage":"4Gi","persistentvolumeclaims":"1","requests.storage":"4Gi"}"#
            ]],
        );
        check("", "configmaps", json!({}), expect![[r#"{"configmaps":"1","count/configmaps":"1"}"#]]);
        check("apps", "deployments", json!({}), expect![[r#"{"count/deployments.apps":"1"}"#]]);
        let devices = json!({"requests": [
            {"exactly": {"deviceClassName": "a", "allocationMode": "ExactCount", "count": 2}},
            {"firstAvailable": [{"deviceClassName": "a", "allocationMode": "ExactCount", "count": 1}, {"deviceClassName": "b", "allocationMode": "All"}]},
        ]});
        check(
            "resource.k8s.io",
            "resourceclaims",
            json!({"spec": {"devices": devices}}),
            expect![[
                r#"{"a.deviceclass.resource.k8s.io/devices":"3","b.deviceclass.resource.k8s.io/devices":"32","count/resourceclaims.resource.k8s.io":"1"}"#
            ]],
        );
        assert_eq!(evaluator_for(&GroupResource::new("", "events")), None);
    }

    #[test]
    fn counting_anew() {
        let pods = [
            json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}),
            json!({"spec": {"containers": []}}),
        ];
        let hard =
            ["requests.cpu", "pods", "services", "count/configmaps"].map(|name| (Str::new(name), pieces(9))).into();
        let resources = [GroupResource::new("", "pods"), GroupResource::new("", "services")];
        let used = |spec: &Value| {
            let objects =
                |resource: &GroupResource| if resource.resource == "pods" { pods.iter().collect() } else { Vec::new() };
            resource_value(&usage_of_namespace(spec, &hard, &resources, objects, Timestamp::default())).to_json_string()
        };
        assert_eq!(used(&json!({})), r#"{"pods":"2","requests.cpu":"1","services":"0"}"#);
        assert_eq!(used(&json!({"scopes": ["BestEffort"]})), r#"{"pods":"1","requests.cpu":"0","services":"0"}"#);
    }
}
