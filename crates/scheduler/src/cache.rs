//! [`Cache`]: nodes and what is on them, including pods that are only assumed to be there.

use crate::pod_info::PodInfo;
use crate::resources::Resources;
use crate::terms::{LabelMap, Namespaces};
use indexmap::IndexMap;
use k8s_openapi::api::core::v1::{Node, Taint};
use pintle_apimachinery::Str;
use pintle_client::Object as _;
use pintle_informer::ObjectName;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node and what is on it.
#[derive(Clone, Debug, Default)]
pub struct NodeInfo {
    /// The name.
    pub name: Str,
    /// Whether the node exists; else only pods say that they are on it.
    pub is_known: bool,
    /// The labels.
    pub labels: LabelMap,
    /// The taints.
    pub taints: Vec<Taint>,
    /// Whether it takes no new pods.
    pub is_unschedulable: bool,
    /// What it has for pods.
    pub allocatable: Resources,
    /// How many pods it takes.
    pub n_pods_max: usize,
    /// What its pods need.
    pub requested: Resources,
    /// What its pods count for in scores.
    pub counted: Resources,
    /// Its pods.
    pub pods: Vec<Arc<PodInfo>>,
    /// How many of them must not be near others.
    n_repelling: usize,
    /// How many of them would like (not) to be near others, or must be.
    n_attracted: usize,
}

/// What changed about a node, as far as pods that wait may care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeChange {
    /// It is new.
    pub is_new: bool,
    /// It has more of something.
    pub has_more: bool,
    /// Its labels.
    pub labels: bool,
    /// Its taints, or whether it takes pods.
    pub taints: bool,
}

impl NodeInfo {
    fn set(&mut self, node: &Node) -> NodeChange {
        let before = self.clone_head();
        self.is_known = true;
        self.name = Str::new(node.name());
        self.labels = node.metadata.labels.clone().unwrap_or_default();
        let spec = node.spec.as_ref();
        self.taints = spec.and_then(|spec| spec.taints.clone()).unwrap_or_default();
        self.is_unschedulable = spec.and_then(|spec| spec.unschedulable).unwrap_or_default();
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        self.allocatable = allocatable.map(Resources::of).unwrap_or_default();
        let n_pods = allocatable.and_then(|list| list.get("pods")).and_then(|pods| pods.0.parse().ok());
        self.n_pods_max = n_pods.unwrap_or_default();
        NodeChange {
            is_new: !before.is_known,
            has_more: before.allocatable != self.allocatable || before.n_pods_max != self.n_pods_max,
            labels: before.labels != self.labels,
            taints: before.taints != self.taints || before.is_unschedulable != self.is_unschedulable,
        }
    }

    /// The node without its pods.
    fn clone_head(&self) -> NodeInfo {
        NodeInfo {
            is_known: self.is_known,
            labels: self.labels.clone(),
            taints: self.taints.clone(),
            is_unschedulable: self.is_unschedulable,
            allocatable: self.allocatable.clone(),
            n_pods_max: self.n_pods_max,
            ..NodeInfo::default()
        }
    }

    /// Puts a pod onto it.
    pub fn add(&mut self, pod: Arc<PodInfo>) {
        self.account(&pod, 1);
        self.n_repelling += usize::from(!pod.anti_affinity.is_empty());
        self.n_attracted += usize::from(!pod.affinity.is_empty() || !pod.preferred.is_empty());
        self.pods.push(pod);
    }

    /// Takes a pod off it.
    pub fn remove(&mut self, name: &ObjectName) {
        let Some(idx) = self.pods.iter().position(|pod| pod.name == *name) else { return };
        let pod = self.pods.swap_remove(idx);
        self.account(&pod, -1);
        self.n_repelling -= usize::from(!pod.anti_affinity.is_empty());
        self.n_attracted -= usize::from(!pod.affinity.is_empty() || !pod.preferred.is_empty());
    }

    fn account(&mut self, pod: &PodInfo, factor: i64) {
        self.requested.add(&pod.requests, factor);
        self.counted.add(&pod.counts, factor);
    }

    /// Whether any of its pods must not be near others.
    pub fn has_repelling(&self) -> bool {
        self.n_repelling > 0
    }

    /// Whether any of its pods wants to be near others, or away from them.
    pub fn has_attracted(&self) -> bool {
        self.n_attracted > 0
    }
}

/// A pod in the cache.
#[derive(Clone, Debug)]
struct Placed {
    pod: Arc<PodInfo>,
    /// Nobody has confirmed yet that it is on its node.
    is_assumed: bool,
}

/// All nodes and the pods on them.
#[derive(Debug, Default)]
pub struct Cache {
    nodes: IndexMap<Str, NodeInfo>,
    n_known: usize,
    /// Each pod that is on a node, and in that node's list.
    pods: BTreeMap<ObjectName, Placed>,
    /// How many pods of each owner are on which nodes; nothing that is 0.
    owners: BTreeMap<Str, BTreeMap<Str, i64>>,
    /// Pods for which room is being made, by the node that is being cleared.
    nominated: BTreeMap<Str, Vec<Arc<PodInfo>>>,
    /// The labels of namespaces.
    pub namespaces: Namespaces,
}

impl Cache {
    /// Adds a node, or changes it.
    pub fn set_node(&mut self, node: &Node) -> NodeChange {
        let info = self.nodes.entry(Str::new(node.name())).or_default();
        let change = info.set(node);
        self.n_known += usize::from(change.is_new);
        change
    }

    /// Takes a node away. Pods that are still on it stay known.
    pub fn remove_node(&mut self, name: &str) {
        let Some(info) = self.nodes.get_mut(name).filter(|info| info.is_known) else { return };
        info.is_known = false;
        self.n_known -= 1;
        if info.pods.is_empty() {
            self.nodes.swap_remove(name);
        }
    }

    /// How many nodes there are.
    pub fn n_nodes(&self) -> usize {
        self.n_known
    }

    /// The nodes, by position; among them are some that do not exist, see [`NodeInfo::is_known`].
    pub fn nodes(&self) -> &IndexMap<Str, NodeInfo> {
        &self.nodes
    }

    /// The pod of this name, if it is on a node.
    pub fn pod(&self, name: &ObjectName) -> Option<&Arc<PodInfo>> {
        self.pods.get(name).map(|placed| &placed.pod)
    }

    /// Adds a pod that is on a node, or changes it. Gives what was known of it before.
    pub fn set_pod(&mut self, pod: Arc<PodInfo>) -> Option<Arc<PodInfo>> {
        self.place(pod, false)
    }

    /// Puts a pod onto a node before the server says so.
    pub fn assume(&mut self, pod: Arc<PodInfo>) {
        self.place(pod, true);
    }

    fn place(&mut self, pod: Arc<PodInfo>, is_assumed: bool) -> Option<Arc<PodInfo>> {
        let before = self.remove_pod(&pod.name);
        let node = self
            .nodes
            .entry(pod.node.clone())
            .or_insert_with(|| NodeInfo { name: pod.node.clone(), ..NodeInfo::default() });
        node.add(Arc::clone(&pod));
        if !pod.owner.is_empty() {
            let nodes = self.owners.entry(pod.owner.clone()).or_default();
            *nodes.entry(pod.node.clone()).or_default() += 1;
        }
        self.pods.insert(pod.name.clone(), Placed { pod, is_assumed });
        before
    }

    /// Takes back that a pod is on a node, unless the server has said so meanwhile.
    pub fn forget(&mut self, name: &ObjectName) {
        if self.pods.get(name).is_some_and(|placed| placed.is_assumed) {
            self.remove_pod(name);
        }
    }

    /// Promises a pod the room on its nominated node; a promise of before is off.
    pub fn nominate(&mut self, pod: &Arc<PodInfo>) {
        self.denominate(&pod.name);
        if !pod.nominated_node.is_empty() {
            self.nominated.entry(pod.nominated_node.clone()).or_default().push(Arc::clone(pod));
        }
    }

    /// Takes a promise back.
    pub fn denominate(&mut self, name: &ObjectName) {
        self.nominated.retain(|_, pods| {
            pods.retain(|pod| pod.name != *name);
            !pods.is_empty()
        });
    }

    /// The pods that were promised room on a node.
    pub fn nominated(&self, node: &str) -> &[Arc<PodInfo>] {
        self.nominated.get(node).map_or(&[], Vec::as_slice)
    }

    /// Whether a pod is only assumed to be on its node.
    pub fn is_assumed(&self, name: &ObjectName) -> bool {
        self.pods.get(name).is_some_and(|placed| placed.is_assumed)
    }

    /// Takes a pod away.
    pub fn remove_pod(&mut self, name: &ObjectName) -> Option<Arc<PodInfo>> {
        let placed = self.pods.remove(name)?;
        self.remove_from_owner(&placed.pod);
        if let Some(node) = self.nodes.get_mut(&placed.pod.node) {
            node.remove(name);
            if !node.is_known && node.pods.is_empty() {
                self.nodes.swap_remove(&placed.pod.node);
            }
        }
        Some(placed.pod)
    }

    fn remove_from_owner(&mut self, pod: &PodInfo) {
        let Some(nodes) = self.owners.get_mut(&pod.owner) else { return };
        if let Some(n) = nodes.get_mut(&pod.node) {
            *n -= 1;
            if *n == 0 {
                nodes.remove(&pod.node);
            }
        }
        if nodes.is_empty() {
            self.owners.remove(&pod.owner);
        }
    }

    /// On which nodes the pods of an owner are, and how many.
    pub fn nodes_of_owner(&self, owner: &str) -> Option<&BTreeMap<Str, i64>> {
        self.owners.get(owner)
    }
}
