//! [`PodInfo`]: what the scheduler keeps of a pod.

use crate::resources::{Resources, pod_requests};
use crate::terms::{LabelMap, NodeTerm, PodTerm, label_values, node_terms, selector};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Affinity, Pod, PodSpec, Toleration, TopologySpreadConstraint};
use pintle_apimachinery::Str;
use pintle_apimachinery::labels::Selector;
use pintle_client::Object as _;
use pintle_informer::ObjectName;

/// A pod that is on a node, or is to be put onto one.
#[derive(Clone, Debug)]
pub struct PodInfo {
    /// Namespace and name.
    pub name: ObjectName,
    /// The uid.
    pub uid: Str,
    /// The labels.
    pub labels: LabelMap,
    /// The uid of the owner that controls it; empty for none.
    pub owner: Str,
    /// What it needs.
    pub requests: Resources,
    /// What it counts for in scores.
    pub counts: Resources,
    /// The priority.
    pub priority: i32,
    /// The node it is on; empty for none.
    pub node: Str,
    /// The node that is being cleared for it; empty for none.
    pub nominated_node: Str,
    /// Ports that it takes on the node: address, protocol, port.
    pub host_ports: Vec<HostPort>,
    /// Pods near which it must be.
    pub affinity: Vec<PodTerm>,
    /// Pods near which it must not be.
    pub anti_affinity: Vec<PodTerm>,
    /// Pods near which it would like to be (or, with a negative weight, not to be).
    pub preferred: Vec<PodTerm>,
    /// Persistent volume claims that it uses.
    pub claims: Vec<Str>,
    /// When it was made, and when it started.
    pub created: Option<Timestamp>,
    /// When it was started.
    pub started: Option<Timestamp>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// What counts only as long as it is on no node.
    pub demands: Option<Box<Demands>>,
}

/// What a pod asks of the node it is to be put onto.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// Who is to schedule it.
    pub scheduler_name: String,
    /// Names of what it has to wait for.
    pub gates: Vec<String>,
    /// Labels that the node must have.
    pub node_selector: NodeLabels,
    /// Alternatives, one of which the node must match; `None` for no such requirement.
    pub required_nodes: Option<Vec<NodeTerm>>,
    /// What it would like the node to be, with weights.
    pub preferred_nodes: Vec<(i64, NodeTerm)>,
    /// Taints that it bears.
    pub tolerations: Vec<Toleration>,
    /// How it is to be spread.
    pub spread: Vec<Spread>,
    /// Whether it never makes others go.
    pub never_preempts: bool,
    /// The generation of the specification.
    pub generation: Option<i64>,
    /// Whether its status says already that it cannot be scheduled, and why.
    pub told: Option<(String, String)>,
}

/// Labels that a node must have; by default, none.
#[derive(Clone, Debug)]
pub struct NodeLabels(pub Selector);

impl Default for NodeLabels {
    fn default() -> NodeLabels {
        NodeLabels(Selector::everything())
    }
}

/// A port on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    ip: Str,
    protocol: Str,
    port: i32,
}

impl HostPort {
    /// Whether both cannot be had at once.
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        let is_any = |ip: &str| ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || is_any(&self.ip) || is_any(&other.ip))
    }
}

/// A constraint on how pods are spread.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The label of nodes whose values are the places.
    pub topology_key: Str,
    /// How much more pods a place may have than the emptiest one.
    pub max_skew: i64,
    /// Whether the constraint must hold; else it is a wish.
    pub is_required: bool,
    /// Which pods count.
    pub selector: Selector,
    /// Places that there must be; with fewer, the emptiest one counts as empty.
    pub min_domains: i64,
    /// Whether only nodes count that the pod's node affinity lets it onto.
    pub honors_affinity: bool,
    /// Whether only nodes count whose taints the pod bears.
    pub honors_taints: bool,
}

impl PodInfo {
    /// What is to be known of a pod.
    pub fn new(pod: &Pod) -> PodInfo {
        let default = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&default);
        let status = pod.status.as_ref();
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        let (requests, counts) = pod_requests(spec);
        let node = Str::new(spec.node_name.as_deref().unwrap_or_default());
        let owners = pod.metadata.owner_references.iter().flatten();
        let owner = owners.filter(|owner| owner.controller == Some(true)).map(|owner| Str::new(&owner.uid)).next();
        let (affinity, anti_affinity, preferred) = pod_terms(spec.affinity.as_ref(), pod.namespace());
        PodInfo {
            name: ObjectName::of(pod),
            uid: Str::new(pod.uid()),
            owner: owner.unwrap_or_default(),
            requests,
            counts,
            priority: spec.priority.unwrap_or_default(),
            nominated_node: Str::new(status.and_then(|s| s.nominated_node_name.as_deref()).unwrap_or_default()),
            host_ports: host_ports(spec),
            affinity,
            anti_affinity,
            preferred,
            claims: claims(spec, pod.name()),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
            is_terminating: pod.is_terminating(),
            demands: node.is_empty().then(|| Box::new(Demands::new(pod, spec, &labels))),
            node,
            labels,
        }
    }

    /// The same pod on a node.
    #[must_use]
    pub fn on_node(&self, node: &str) -> PodInfo {
        PodInfo { node: Str::new(node), demands: None, ..self.clone() }
    }
}

impl Demands {
    fn new(pod: &Pod, spec: &PodSpec, labels: &LabelMap) -> Demands {
        let node_affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required =
            node_affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
        let preferred = node_affinity
            .and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref())
            .into_iter()
            .flatten();
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        let told = conditions.into_iter().flatten().find(|c| c.type_ == "PodScheduled" && c.status == "False");
        Demands {
            scheduler_name: spec.scheduler_name.clone().unwrap_or_else(|| "default-scheduler".to_owned()),
            gates: spec.scheduling_gates.iter().flatten().map(|gate| gate.name.clone()).collect(),
            node_selector: node_selector(spec),
            required_nodes: required.map(node_terms),
            preferred_nodes: preferred.map(|term| (i64::from(term.weight), NodeTerm::new(&term.preference))).collect(),
            tolerations: spec.tolerations.clone().unwrap_or_default(),
            spread: spec.topology_spread_constraints.iter().flatten().map(|c| Spread::new(c, labels)).collect(),
            never_preempts: spec.preemption_policy.as_deref() == Some("Never"),
            generation: pod.metadata.generation,
            told: told.map(|c| (c.reason.clone().unwrap_or_default(), c.message.clone().unwrap_or_default())),
        }
    }
}

fn node_selector(spec: &PodSpec) -> NodeLabels {
    let Some(labels) = &spec.node_selector else { return NodeLabels::default() };
    let selector_object = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
        match_labels: Some(labels.clone()),
        ..Default::default()
    };
    NodeLabels(selector(&selector_object))
}

impl Spread {
    fn new(constraint: &TopologySpreadConstraint, labels: &LabelMap) -> Spread {
        let base = constraint.label_selector.as_ref().map_or_else(Selector::nothing, selector);
        let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
        let selector = if keys.is_empty() { base } else { both(base, label_values(labels, keys)) };
        Spread {
            topology_key: Str::new(&constraint.topology_key),
            max_skew: i64::from(constraint.max_skew),
            is_required: constraint.when_unsatisfiable == "DoNotSchedule",
            selector,
            min_domains: i64::from(constraint.min_domains.unwrap_or(1)),
            honors_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honors_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }
}

/// A selector with further requirements.
fn both(base: Selector, more: Vec<pintle_apimachinery::labels::Requirement>) -> Selector {
    let text = [base.to_string(), Selector::of(more).to_string()];
    let joined: Vec<&str> = text.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    if base.is_nothing() { base } else { Selector::parse(&joined.join(",")).unwrap_or_else(|_| Selector::nothing()) }
}

fn pod_terms(affinity: Option<&Affinity>, namespace: &str) -> (Vec<PodTerm>, Vec<PodTerm>, Vec<PodTerm>) {
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let near_required = near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref());
    let far_required = far.and_then(|far| far.required_during_scheduling_ignored_during_execution.as_ref());
    let read = |terms: Option<&Vec<_>>| terms.into_iter().flatten().map(|t| PodTerm::new(t, namespace, 0)).collect();
    let mut preferred = Vec::new();
    let near_wishes = near.and_then(|near| near.preferred_during_scheduling_ignored_during_execution.as_ref());
    let far_wishes = far.and_then(|far| far.preferred_during_scheduling_ignored_during_execution.as_ref());
    for (sign, wishes) in [(1, near_wishes), (-1, far_wishes)] {
        for wish in wishes.into_iter().flatten() {
            preferred.push(PodTerm::new(&wish.pod_affinity_term, namespace, sign * wish.weight));
        }
    }
    (read(near_required), read(far_required), preferred)
}

fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().flatten().filter(|c| c.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    ports
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            Some(HostPort {
                ip: Str::new(port.host_ip.as_deref().filter(|ip| !ip.is_empty()).unwrap_or("0.0.0.0")),
                protocol: Str::new(port.protocol.as_deref().unwrap_or("TCP")),
                port: number,
            })
        })
        .collect()
}

fn claims(spec: &PodSpec, pod: &str) -> Vec<Str> {
    let volumes = spec.volumes.iter().flatten();
    let named = volumes.filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => Some(Str::new(&claim.claim_name)),
        (None, Some(_)) => Some(Str::from(format!("{pod}-{}", volume.name))),
        (None, None) => None,
    });
    named.collect()
}
