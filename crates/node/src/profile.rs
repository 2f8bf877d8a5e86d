//! How simulated nodes behave.

use std::collections::BTreeMap;
use std::time::Duration;

/// What all simulated nodes have in common.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Begin of the nodes' names; the node's number follows, from 1.
    pub name_prefix: String,
    /// CPU of each node, as a quantity.
    pub cpu: String,
    /// Memory of each node, as a quantity.
    pub memory: String,
    /// Local storage of each node, as a quantity.
    pub ephemeral_storage: String,
    /// Pods that each node takes; no more than [`PODS_MAX`].
    pub pods: u32,
    /// Further resources of each node, as quantities.
    pub extended_resources: BTreeMap<String, String>,
    /// Labels of each node besides the usual ones.
    pub labels: BTreeMap<String, String>,
    /// Zones over which the nodes are spread (`topology.kubernetes.io/zone`); none when empty.
    pub zones: Vec<String>,
    /// How long a pod takes from its node to running.
    pub start_time: Duration,
    /// How long containers run of whose commands nothing is known, in pods that are to come to an end.
    pub run_time: Duration,
    /// How long a pod takes to stop; no more than its grace period.
    pub stop_time: Duration,
    /// Whether nodes tell what they do with a pod in events.
    pub has_pod_events: bool,
    /// How often leases are renewed.
    pub lease_renew_interval: Duration,
    /// How long a lease is good for.
    pub lease_duration: Duration,
    /// How often nodes report their status.
    pub status_report_interval: Duration,
    /// The version that nodes say they have.
    pub kubelet_version: String,
}

/// Pods that one node can have: the addresses of its range.
pub const PODS_MAX: u32 = 250;

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            name_prefix: "node-".to_owned(),
            cpu: "8".to_owned(),
            memory: "32Gi".to_owned(),
            ephemeral_storage: "100Gi".to_owned(),
            pods: 110,
            extended_resources: BTreeMap::new(),
            labels: BTreeMap::new(),
            zones: Vec::new(),
            start_time: Duration::from_millis(300),
            run_time: Duration::from_secs(1),
            stop_time: Duration::from_millis(300),
            has_pod_events: true,
            lease_renew_interval: Duration::from_secs(10),
            lease_duration: Duration::from_secs(40),
            status_report_interval: Duration::from_secs(300),
            kubelet_version: "v1.35.4".to_owned(),
        }
    }
}
