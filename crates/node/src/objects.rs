//! The objects that a node writes about itself: Node and Lease.

use crate::identity::Identity;
use crate::profile::{PODS_MAX, Profile};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};
use pintle_apimachinery::time::floor_second;
use std::collections::BTreeMap;

/// The namespace of the nodes' leases.
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";

/// Where the nodes' API answers. It is one server for all of them, on this machine, whatever the nodes' own addresses
/// are: servers look for a node under its `Hostname` address first.
pub(crate) const HOST: &str = "127.0.0.1";

/// Processor architecture in the words of Kubernetes.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A node as it registers. `port` is where its API answers; 0 when it has none.
pub(crate) fn node(identity: Identity, profile: &Profile, port: u16, now: Timestamp) -> Node {
    let name = identity.name(&profile.name_prefix);
    let mut labels = BTreeMap::from([
        ("beta.kubernetes.io/arch".to_owned(), architecture().to_owned()),
        ("beta.kubernetes.io/os".to_owned(), "linux".to_owned()),
        ("kubernetes.io/arch".to_owned(), architecture().to_owned()),
        ("kubernetes.io/hostname".to_owned(), name.clone()),
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
    ]);
    if !profile.zones.is_empty() {
        let zone = &profile.zones[(identity.number() as usize - 1) % profile.zones.len()];
        labels.insert("topology.kubernetes.io/zone".to_owned(), zone.clone());
    }
    labels.extend(profile.labels.clone());
    Node {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some(labels),
            annotations: Some(BTreeMap::from([(
                "volumes.kubernetes.io/controller-managed-attach-detach".to_owned(),
                "true".to_owned(),
            )])),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            pod_cidr: Some(identity.pod_cidr()),
            pod_cidrs: Some(vec![identity.pod_cidr()]),
            provider_id: Some(format!("pintle://{}", identity.name(&profile.name_prefix))),
            ..NodeSpec::default()
        }),
        status: Some(status(identity, profile, port, now)),
    }
}

/// A node's status. The conditions began `now`; see [`keep_transition_times`].
pub(crate) fn status(identity: Identity, profile: &Profile, port: u16, now: Timestamp) -> NodeStatus {
    let mut capacity = BTreeMap::from([
        ("cpu".to_owned(), Quantity(profile.cpu.clone())),
        ("memory".to_owned(), Quantity(profile.memory.clone())),
        ("ephemeral-storage".to_owned(), Quantity(profile.ephemeral_storage.clone())),
        ("hugepages-1Gi".to_owned(), Quantity("0".to_owned())),
        ("hugepages-2Mi".to_owned(), Quantity("0".to_owned())),
        ("pods".to_owned(), Quantity(profile.pods.min(PODS_MAX).to_string())),
    ]);
    capacity.extend(profile.extended_resources.iter().map(|(name, n)| (name.clone(), Quantity(n.clone()))));
    NodeStatus {
        allocatable: Some(capacity.clone()),
        capacity: Some(capacity),
        conditions: Some(conditions(now)),
        addresses: Some(vec![
            NodeAddress { type_: "InternalIP".to_owned(), address: identity.internal_ip().to_string() },
            NodeAddress { type_: "Hostname".to_owned(), address: HOST.to_owned() },
        ]),
        daemon_endpoints: Some(NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint { port: i32::from(port) }),
        }),
        node_info: Some(node_info(identity, profile)),
        ..NodeStatus::default()
    }
}

fn conditions(now: Timestamp) -> Vec<NodeCondition> {
    let time = Time(floor_second(now));
    [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    .into_iter()
    .map(|(type_, status, reason, message)| NodeCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(time.clone()),
        last_transition_time: Some(time.clone()),
    })
    .collect()
}

/// Conditions that were so before keep the time since when.
pub(crate) fn keep_transition_times(status: &mut NodeStatus, before: Option<&NodeStatus>) {
    let before = before.and_then(|status| status.conditions.as_ref());
    for condition in status.conditions.iter_mut().flatten() {
        let same = before.iter().flat_map(|all| all.iter()).find(|old| old.type_ == condition.type_);
        if let Some(same) = same.filter(|old| old.status == condition.status) {
            condition.last_transition_time.clone_from(&same.last_transition_time);
        }
    }
}

/// Identifiers of the machine that there is not: the same for the same node, always.
fn node_info(identity: Identity, profile: &Profile) -> NodeSystemInfo {
    let number = identity.number();
    NodeSystemInfo {
        architecture: architecture().to_owned(),
        boot_id: format!("b0070000-0000-4000-8000-{number:012x}"),
        container_runtime_version: concat!("pintle://", env!("CARGO_PKG_VERSION")).to_owned(),
        kernel_version: "6.12.0-simulated".to_owned(),
        kube_proxy_version: String::new(),
        kubelet_version: profile.kubelet_version.clone(),
        machine_id: format!("{number:032x}"),
        operating_system: "linux".to_owned(),
        os_image: "Simulated by Pintle".to_owned(),
        system_uuid: format!("5151e000-0000-4000-8000-{number:012x}"),
        ..NodeSystemInfo::default()
    }
}

/// A node's lease. It belongs to the node, whose uid must be known.
pub(crate) fn lease(identity: Identity, node_uid: &str, profile: &Profile, now: Timestamp) -> Lease {
    let name = identity.name(&profile.name_prefix);
    let seconds = i32::try_from(profile.lease_duration.as_secs()).unwrap_or(i32::MAX);
    Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(LEASE_NAMESPACE.to_owned()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: name.clone(),
                uid: node_uid.to_owned(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: Some(seconds),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}
