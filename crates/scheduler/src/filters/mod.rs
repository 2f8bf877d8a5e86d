//! Which nodes a pod can be put onto, and why not onto others.
//!
//! A [`Filter`] is prepared once for a pod and then asked about each node. Its parts are asked in upstream's order; the
//! first that objects counts. Follows: kubernetes pkg/scheduler/framework/plugins (v1.35), texts included.

mod affinity;
mod spread;

pub use affinity::Attraction;
pub use spread::SpreadCounts;

use crate::cache::{Cache, NodeInfo};
use crate::pod_info::{Demands, PodInfo};
use crate::terms::{named_nodes, tolerates};
use affinity::Affinity;
use pintle_apimachinery::Str;
use spread::RequiredSpread;
use std::borrow::Cow;
use std::ops::BitOr;

/// What can be in a pod's way. Each is a bit, so that a set of them is a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plugins(u16);

impl Plugins {
    /// The node takes no new pods.
    pub const NODE_UNSCHEDULABLE: Plugins = Plugins(1);
    /// The node has taints.
    pub const TAINT_TOLERATION: Plugins = Plugins(1 << 1);
    /// The node is not of the wanted kind.
    pub const NODE_AFFINITY: Plugins = Plugins(1 << 2);
    /// Ports are taken.
    pub const NODE_PORTS: Plugins = Plugins(1 << 3);
    /// There is not enough of something.
    pub const NODE_RESOURCES_FIT: Plugins = Plugins(1 << 4);
    /// A volume is missing.
    pub const VOLUME_BINDING: Plugins = Plugins(1 << 5);
    /// Pods would not be spread as wanted.
    pub const POD_TOPOLOGY_SPREAD: Plugins = Plugins(1 << 6);
    /// Pods are near that must not be, or not near that must be.
    pub const INTER_POD_AFFINITY: Plugins = Plugins(1 << 7);
    /// The pod waits for others to let it go.
    pub const SCHEDULING_GATES: Plugins = Plugins(1 << 8);
    /// Everything.
    pub const ALL: Plugins = Plugins(u16::MAX);
    /// Nothing.
    pub const NONE: Plugins = Plugins(0);

    /// Whether both sets have something in common.
    pub fn intersects(self, other: Plugins) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Plugins {
    type Output = Plugins;

    fn bitor(self, other: Plugins) -> Plugins {
        Plugins(self.0 | other.0)
    }
}

/// A reason, in upstream's words.
pub type Reason = Cow<'static, str>;

/// Why a pod cannot be put onto a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Who objects.
    pub plugin: Plugins,
    /// Why.
    pub reasons: Vec<Reason>,
    /// Whether it could help if pods left the node.
    pub is_resolvable: bool,
}

impl Rejection {
    fn new(plugin: Plugins, reason: impl Into<Reason>, is_resolvable: bool) -> Rejection {
        Rejection { plugin, reasons: vec![reason.into()], is_resolvable }
    }
}

/// What is asked of nodes on behalf of one pod.
#[derive(Clone, Debug)]
pub struct Filter<'a> {
    pod: &'a PodInfo,
    demands: &'a Demands,
    affinity: Affinity,
    spread: RequiredSpread,
    /// The nodes that alone can do.
    pub named: Option<Vec<Str>>,
}

impl<'a> Filter<'a> {
    /// Looks at the whole cluster once.
    pub fn new(cache: &Cache, pod: &'a PodInfo, demands: &'a Demands) -> Filter<'a> {
        Filter {
            pod,
            demands,
            affinity: Affinity::new(cache, pod),
            spread: RequiredSpread::new(cache, pod, demands),
            named: demands.required_nodes.as_deref().and_then(named_nodes),
        }
    }

    /// Whether the pod can be put onto the node.
    ///
    /// # Errors
    /// The first [`Rejection`].
    pub fn check(&self, cache: &Cache, node: &NodeInfo) -> Result<(), Rejection> {
        let promised = cache.nominated(&node.name);
        let mut rivals =
            promised.iter().filter(|rival| rival.priority >= self.pod.priority && rival.uid != self.pod.uid);
        let Some(first) = rivals.next() else { return self.check_alone(node) };
        // the room that was made for others counts as taken
        let (mut node, mut filter) = (node.clone(), self.clone());
        for rival in std::iter::once(first).chain(rivals) {
            node.add(std::sync::Arc::clone(rival));
            filter.update(&node, rival, 1, cache);
        }
        filter.check_alone(&node)?;
        // nor may the pod depend on somebody who has not come yet
        self.check_alone(cache.nodes().get(&node.name).unwrap_or(&node))
    }

    fn check_alone(&self, node: &NodeInfo) -> Result<(), Rejection> {
        self.unschedulable(node)?;
        untolerated(self.demands, node)?;
        if !accepts(self.demands, node) {
            let reason = "node(s) didn't match Pod's node affinity/selector";
            return Err(Rejection::new(Plugins::NODE_AFFINITY, reason, false));
        }
        self.ports(node)?;
        fits(self.pod, node)?;
        self.spread.check(node)?;
        self.affinity.check(node)
    }

    /// The same after pods have left or come to the node.
    pub fn update(&mut self, node: &NodeInfo, pod: &PodInfo, factor: i64, cache: &Cache) {
        self.spread.update(node, pod, factor);
        self.affinity.update(self.pod, node, pod, factor, cache);
    }

    fn unschedulable(&self, node: &NodeInfo) -> Result<(), Rejection> {
        let taint = k8s_openapi::api::core::v1::Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Default::default()
        };
        if node.is_unschedulable && !tolerates(&self.demands.tolerations, &taint) {
            return Err(Rejection::new(Plugins::NODE_UNSCHEDULABLE, "node(s) were unschedulable", false));
        }
        Ok(())
    }

    fn ports(&self, node: &NodeInfo) -> Result<(), Rejection> {
        if self.pod.host_ports.is_empty() {
            return Ok(());
        }
        let taken = node.pods.iter().flat_map(|pod| &pod.host_ports);
        let is_free = !taken.into_iter().any(|taken| self.pod.host_ports.iter().any(|port| port.conflicts_with(taken)));
        if is_free {
            return Ok(());
        }
        let reason = "node(s) didn't have free ports for the requested pod ports";
        Err(Rejection::new(Plugins::NODE_PORTS, reason, true))
    }
}

/// Whether the node has a taint that keeps the pod off.
fn untolerated(demands: &Demands, node: &NodeInfo) -> Result<(), Rejection> {
    let keeps_off =
        |taint: &&k8s_openapi::api::core::v1::Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    if node.taints.iter().filter(keeps_off).any(|taint| !tolerates(&demands.tolerations, taint)) {
        return Err(Rejection::new(Plugins::TAINT_TOLERATION, "node(s) had untolerated taint(s)", false));
    }
    Ok(())
}

/// Whether the pod's node selector and node affinity let it onto the node.
fn accepts(demands: &Demands, node: &NodeInfo) -> bool {
    demands.node_selector.0.matches(&node.labels)
        && demands.required_nodes.as_ref().is_none_or(|terms| terms.iter().any(|t| t.matches(&node.name, &node.labels)))
}

/// Whether the node has enough left.
fn fits(pod: &PodInfo, node: &NodeInfo) -> Result<(), Rejection> {
    let mut reasons: Vec<Reason> = Vec::new();
    let mut is_resolvable = true;
    if node.pods.len() + 1 > node.n_pods_max {
        reasons.push("Too many pods".into());
    }
    let (asked, has, used) = (&pod.requests, &node.allocatable, &node.requested);
    let mut check = |name: &str, asked: i64, has: i64, used: i64| {
        if asked > 0 && asked > has - used {
            reasons.push(format!("Insufficient {name}").into());
            is_resolvable &= asked <= has;
        }
    };
    check("cpu", asked.milli_cpu, has.milli_cpu, used.milli_cpu);
    check("memory", asked.memory, has.memory, used.memory);
    check("ephemeral-storage", asked.ephemeral_storage, has.ephemeral_storage, used.ephemeral_storage);
    for (name, amount) in &asked.others {
        check(name, *amount, has.other(name), used.other(name));
    }
    if reasons.is_empty() {
        return Ok(());
    }
    Err(Rejection { plugin: Plugins::NODE_RESOURCES_FIT, reasons, is_resolvable })
}
