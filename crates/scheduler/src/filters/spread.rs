//! Pods that are to be spread over places.

use super::{Plugins, Rejection, accepts, untolerated};
use crate::cache::{Cache, NodeInfo};
use crate::pod_info::{Demands, PodInfo, Spread};
use pintle_apimachinery::Str;
use std::collections::BTreeMap;

/// The required constraints of one pod.
#[derive(Clone, Debug)]
pub(super) struct RequiredSpread {
    constraints: Vec<Counted>,
    namespace: String,
}

#[derive(Clone, Debug)]
struct Counted {
    spread: Spread,
    /// Matching pods by place, for the places of all nodes that count.
    counts: BTreeMap<String, i64>,
    /// 1 if the pod itself is one of those that count.
    own: i64,
}

/// Whether a node counts for a constraint.
fn node_counts(spread: &Spread, node: &NodeInfo, demands: &Demands) -> bool {
    node.is_known
        && (!spread.honors_affinity || accepts(demands, node))
        && (!spread.honors_taints || untolerated(demands, node).is_ok())
}

fn pod_counts(spread: &Spread, namespace: &str, pod: &PodInfo) -> bool {
    !pod.is_terminating && pod.name.namespace == namespace && spread.selector.matches(&pod.labels)
}

impl RequiredSpread {
    pub(super) fn new(cache: &Cache, pod: &PodInfo, demands: &Demands) -> RequiredSpread {
        let required: Vec<&Spread> = demands.spread.iter().filter(|spread| spread.is_required).collect();
        let namespace = pod.name.namespace.clone();
        let constraints = required.iter().map(|spread| {
            let mut counts = BTreeMap::new();
            for node in cache.nodes().values().filter(|node| node_counts(spread, node, demands)) {
                // only nodes that have every place are places at all
                if required.iter().any(|other| !node.labels.contains_key(other.topology_key.as_str())) {
                    continue;
                }
                let Some(place) = node.labels.get(spread.topology_key.as_str()) else { continue };
                let n = node.pods.iter().filter(|other| pod_counts(spread, &namespace, other)).count();
                *counts.entry(place.clone()).or_default() += i64::try_from(n).unwrap_or(i64::MAX);
            }
            let own = i64::from(spread.selector.matches(&pod.labels));
            Counted { spread: (*spread).clone(), counts, own }
        });
        let constraints = constraints.collect();
        RequiredSpread { constraints, namespace: namespace.to_string() }
    }

    pub(super) fn update(&mut self, node: &NodeInfo, pod: &PodInfo, factor: i64) {
        for constraint in &mut self.constraints {
            if pod_counts(&constraint.spread, &self.namespace, pod)
                && let Some(place) = node.labels.get(constraint.spread.topology_key.as_str())
                && let Some(count) = constraint.counts.get_mut(place)
            {
                *count += factor;
            }
        }
    }

    pub(super) fn check(&self, node: &NodeInfo) -> Result<(), Rejection> {
        let reject = |reason: &'static str, is_resolvable| {
            Err(Rejection::new(Plugins::POD_TOPOLOGY_SPREAD, reason, is_resolvable))
        };
        for constraint in &self.constraints {
            let spread = &constraint.spread;
            let Some(place) = node.labels.get(spread.topology_key.as_str()) else {
                return reject("node(s) didn't match pod topology spread constraints (missing required label)", false);
            };
            let has_enough_places = i64::try_from(constraint.counts.len()).unwrap_or(i64::MAX) >= spread.min_domains;
            let least = constraint.counts.values().copied().min().filter(|_| has_enough_places).unwrap_or_default();
            let here = constraint.counts.get(place).copied().unwrap_or_default();
            if here + constraint.own - least > spread.max_skew {
                return reject("node(s) didn't match pod topology spread constraints", true);
            }
        }
        Ok(())
    }
}

/// How full places are, for the constraints that are wishes, and for pods of one owner, which are spread even if nobody
/// asks for it.
#[derive(Debug)]
pub struct SpreadCounts {
    constraints: Vec<(Spread, BTreeMap<String, i64>)>,
    siblings: Option<Siblings>,
}

/// Where the pods of the same owner are.
#[derive(Debug)]
struct Siblings {
    by_node: BTreeMap<Str, i64>,
    by_zone: BTreeMap<String, i64>,
    n_nodes: usize,
}

/// The label that says in which zone a node is.
const ZONE: &str = "topology.kubernetes.io/zone";
/// A difference between nodes that does not matter yet, for pods of one owner.
const NODE_SKEW: i64 = 3;
/// A difference between zones that does not matter yet, for pods of one owner.
const ZONE_SKEW: i64 = 5;

impl Siblings {
    fn new(cache: &Cache, owner: &str) -> Siblings {
        let by_node = cache.nodes_of_owner(owner).cloned().unwrap_or_default();
        let mut by_zone = BTreeMap::new();
        for (name, n) in &by_node {
            if let Some(zone) = cache.nodes().get(name).and_then(|node| node.labels.get(ZONE)) {
                *by_zone.entry(zone.clone()).or_default() += n;
            }
        }
        Siblings { by_node, by_zone, n_nodes: cache.n_nodes() }
    }

    fn score(&self, node: &NodeInfo) -> f64 {
        let here = self.by_node.get(&node.name).copied().unwrap_or_default();
        let in_zone = node.labels.get(ZONE).map(|zone| self.by_zone.get(zone).copied().unwrap_or_default());
        fullness(here, self.n_nodes, NODE_SKEW) + in_zone.map_or(0.0, |n| fullness(n, self.by_zone.len(), ZONE_SKEW))
    }
}

impl SpreadCounts {
    /// Looks at the pods that count; `None` when nothing is to be spread.
    pub fn new(cache: &Cache, pod: &PodInfo, demands: &Demands) -> Option<SpreadCounts> {
        let wishes: Vec<&Spread> = demands.spread.iter().filter(|spread| !spread.is_required).collect();
        let has_siblings = demands.spread.is_empty() && !pod.owner.is_empty();
        if wishes.is_empty() && !has_siblings {
            return None;
        }
        let constraints = wishes.into_iter().map(|spread| {
            let mut places = BTreeMap::new();
            for node in cache.nodes().values().filter(|node| node_counts(spread, node, demands)) {
                let Some(place) = node.labels.get(spread.topology_key.as_str()) else { continue };
                let n = node.pods.iter().filter(|other| pod_counts(spread, &pod.name.namespace, other)).count();
                *places.entry(place.clone()).or_default() += i64::try_from(n).unwrap_or(i64::MAX);
            }
            (spread.clone(), places)
        });
        let siblings = has_siblings.then(|| Siblings::new(cache, &pod.owner));
        Some(SpreadCounts { constraints: constraints.collect(), siblings })
    }

    /// How full the node's places are; less is better. `None` for a node that lacks a place.
    pub fn score(&self, node: &NodeInfo) -> Option<f64> {
        let mut sum = self.siblings.as_ref().map_or(0.0, |siblings| siblings.score(node));
        for (spread, places) in &self.constraints {
            let place = node.labels.get(spread.topology_key.as_str())?;
            sum += fullness(places.get(place).copied().unwrap_or_default(), places.len(), spread.max_skew);
        }
        Some(sum)
    }
}

/// More places make each pod count more, as upstream has it.
#[expect(clippy::cast_precision_loss, reason = "a score")]
fn fullness(count: i64, n_places: usize, max_skew: i64) -> f64 {
    count as f64 * (n_places as f64 + 2.0).ln() + (max_skew - 1) as f64
}
