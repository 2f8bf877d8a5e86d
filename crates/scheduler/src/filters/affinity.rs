//! Pods that must (not) be near other pods, and those that would like (not) to be.

use super::{Plugins, Rejection};
use crate::cache::{Cache, NodeInfo};
use crate::pod_info::PodInfo;
use crate::terms::PodTerm;
use pintle_apimachinery::Str;
use std::collections::BTreeMap;

/// Numbers by place: by topology key and value.
type Places = BTreeMap<(Str, String), i64>;

fn add_at(places: &mut Places, node: &NodeInfo, key: &Str, amount: i64) {
    if let Some(value) = node.labels.get(key.as_str()) {
        *places.entry((key.clone(), value.clone())).or_default() += amount;
    }
}

fn at(places: &Places, node: &NodeInfo, key: &Str) -> i64 {
    let Some(value) = node.labels.get(key.as_str()) else { return 0 };
    places.get(&(key.clone(), value.clone())).copied().unwrap_or_default()
}

/// Required affinity and anti-affinity around one pod.
#[derive(Clone, Debug)]
pub(super) struct Affinity {
    near: Vec<PodTerm>,
    far: Vec<PodTerm>,
    /// Pods that all of `near` mean, by place.
    wanted: Places,
    /// Pods that one of `far` means, by place.
    unwanted: Places,
    /// Pods that must not be near this one, by place.
    repelling: Places,
    /// Whether the pod itself is such a one as it must be near: then it may be the first.
    may_be_first: bool,
}

impl Affinity {
    pub(super) fn new(cache: &Cache, pod: &PodInfo) -> Affinity {
        let mut affinity = Affinity {
            near: pod.affinity.clone(),
            far: pod.anti_affinity.clone(),
            wanted: Places::new(),
            unwanted: Places::new(),
            repelling: Places::new(),
            may_be_first: means_all(&pod.affinity, pod, cache),
        };
        let has_terms = !affinity.near.is_empty() || !affinity.far.is_empty();
        for node in cache.nodes().values().filter(|node| node.is_known) {
            if has_terms || node.has_repelling() {
                for other in &node.pods {
                    affinity.update(pod, node, other, 1, cache);
                }
            }
        }
        affinity
    }

    /// Counts a pod in or out that is on this node.
    pub(super) fn update(&mut self, pod: &PodInfo, node: &NodeInfo, other: &PodInfo, factor: i64, cache: &Cache) {
        for term in &other.anti_affinity {
            if term.matches(&pod.name.namespace, &pod.labels, &cache.namespaces) {
                add_at(&mut self.repelling, node, &term.topology_key, factor);
            }
        }
        if !self.near.is_empty() && means_all(&self.near, other, cache) {
            for term in &self.near {
                add_at(&mut self.wanted, node, &term.topology_key, factor);
            }
        }
        for term in &self.far {
            if term.matches(&other.name.namespace, &other.labels, &cache.namespaces) {
                add_at(&mut self.unwanted, node, &term.topology_key, factor);
            }
        }
    }

    pub(super) fn check(&self, node: &NodeInfo) -> Result<(), Rejection> {
        let reject = |reason: &'static str, is_resolvable| {
            Err(Rejection::new(Plugins::INTER_POD_AFFINITY, reason, is_resolvable))
        };
        if !self.near.is_empty() && !self.is_near_enough(node) {
            return reject("node(s) didn't match pod affinity rules", false);
        }
        if self.far.iter().any(|term| at(&self.unwanted, node, &term.topology_key) > 0) {
            return reject("node(s) didn't match pod anti-affinity rules", true);
        }
        let is_repelled = !self.repelling.is_empty()
            && self.repelling.iter().any(|((key, value), n)| *n > 0 && node.labels.get(key.as_str()) == Some(value));
        if is_repelled {
            return reject("node(s) didn't satisfy existing pods anti-affinity rules", true);
        }
        Ok(())
    }

    fn is_near_enough(&self, node: &NodeInfo) -> bool {
        if self.near.iter().any(|term| !node.labels.contains_key(term.topology_key.as_str())) {
            return false;
        }
        let has_all = self.near.iter().all(|term| at(&self.wanted, node, &term.topology_key) > 0);
        has_all || self.may_be_first && self.wanted.values().all(|n| *n <= 0)
    }
}

/// Whether every term means the pod.
fn means_all(terms: &[PodTerm], pod: &PodInfo, cache: &Cache) -> bool {
    terms.iter().all(|term| term.matches(&pod.name.namespace, &pod.labels, &cache.namespaces))
}

/// Wishes of pods to be near each other or not, summed up by place.
#[derive(Debug)]
pub struct Attraction {
    places: Places,
}

impl Attraction {
    /// Looks at all pods; `None` when nobody has a wish.
    pub fn new(cache: &Cache, pod: &PodInfo) -> Option<Attraction> {
        let mut places = Places::new();
        for node in cache.nodes().values().filter(|node| node.is_known) {
            if pod.preferred.is_empty() && !node.has_attracted() {
                continue;
            }
            for other in &node.pods {
                for term in &pod.preferred {
                    if term.matches(&other.name.namespace, &other.labels, &cache.namespaces) {
                        add_at(&mut places, node, &term.topology_key, term.weight);
                    }
                }
                // what another must be near weighs a little for this one as well
                let required = other.affinity.iter().map(|term| (term, 1));
                for (term, weight) in other.preferred.iter().map(|term| (term, term.weight)).chain(required) {
                    if term.matches(&pod.name.namespace, &pod.labels, &cache.namespaces) {
                        add_at(&mut places, node, &term.topology_key, weight);
                    }
                }
            }
        }
        (!places.is_empty()).then_some(Attraction { places })
    }

    /// The sum of the wishes about the node.
    pub fn score(&self, node: &NodeInfo) -> i64 {
        let here = self.places.iter().filter(|((key, value), _)| node.labels.get(key.as_str()) == Some(value));
        here.map(|(_, amount)| amount).sum()
    }
}
