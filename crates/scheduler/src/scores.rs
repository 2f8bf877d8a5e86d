//! Which of the nodes that a pod can be put onto is best.
//!
//! Every part gives each node 0 to 100 points; they are weighed and added up. Follows: kubernetes
//! pkg/scheduler/framework/plugins (v1.35), default weights included. Image locality does not count: nothing is pulled.

use crate::cache::{Cache, NodeInfo};
use crate::filters::{Attraction, SpreadCounts};
use crate::pod_info::{Demands, PodInfo};
use crate::terms::tolerates;

/// The most points that one part gives.
const POINTS_MAX: f64 = 100.0;

const TAINTS_WEIGHT: f64 = 3.0;
const AFFINITY_WEIGHT: f64 = 2.0;
const SPREAD_WEIGHT: f64 = 2.0;
const ATTRACTION_WEIGHT: f64 = 2.0;

/// The points of each node, in order.
pub fn scores(cache: &Cache, pod: &PodInfo, demands: &Demands, nodes: &[&NodeInfo]) -> Vec<f64> {
    let mut points: Vec<f64> = nodes.iter().map(|node| least_allocated(pod, node) + balanced(pod, node)).collect();
    let mut add = |weight: f64, part: Vec<f64>| {
        for (sum, part) in points.iter_mut().zip(part) {
            *sum += weight * part;
        }
    };
    if nodes.iter().any(|node| node.taints.iter().any(|taint| taint.effect == "PreferNoSchedule")) {
        add(TAINTS_WEIGHT, less_is_better(nodes.iter().map(|node| unwelcome(demands, node)).collect()));
    }
    if !demands.preferred_nodes.is_empty() {
        add(AFFINITY_WEIGHT, more_is_better(nodes.iter().map(|node| preferred(demands, node)).collect()));
    }
    if let Some(counts) = SpreadCounts::new(cache, pod, demands) {
        let full: Vec<Option<f64>> = nodes.iter().map(|node| counts.score(node)).collect();
        add(SPREAD_WEIGHT, spread(&full));
    }
    if let Some(attraction) = Attraction::new(cache, pod) {
        #[expect(clippy::cast_precision_loss, reason = "a score")]
        let sums = nodes.iter().map(|node| attraction.score(node) as f64).collect();
        add(ATTRACTION_WEIGHT, from_least_to_most(sums));
    }
    points
}

/// The share of what the node has that is left, on average over CPU and memory.
#[expect(clippy::cast_precision_loss, reason = "a score")]
fn least_allocated(pod: &PodInfo, node: &NodeInfo) -> f64 {
    let left = |has: i64, used: i64| {
        if has <= 0 || used > has { 0.0 } else { (has - used) as f64 * POINTS_MAX / has as f64 }
    };
    let cpu = left(node.allocatable.milli_cpu, node.counted.milli_cpu + pod.counts.milli_cpu);
    let memory = left(node.allocatable.memory, node.counted.memory + pod.counts.memory);
    ((cpu + memory) / 2.0).floor()
}

/// How alike the shares of CPU and memory are that would be used.
#[expect(clippy::cast_precision_loss, reason = "a score")]
fn balanced(pod: &PodInfo, node: &NodeInfo) -> f64 {
    let share = |has: i64, used: i64| if has <= 0 { 1.0 } else { (used as f64 / has as f64).min(1.0) };
    let cpu = share(node.allocatable.milli_cpu, node.requested.milli_cpu + pod.requests.milli_cpu);
    let memory = share(node.allocatable.memory, node.requested.memory + pod.requests.memory);
    ((1.0 - ((cpu - memory) / 2.0).abs()) * POINTS_MAX).floor()
}

/// Taints that would rather keep the pod off.
#[expect(clippy::cast_precision_loss, reason = "a score")]
fn unwelcome(demands: &Demands, node: &NodeInfo) -> f64 {
    let unborne = |taint: &&k8s_openapi::api::core::v1::Taint| {
        taint.effect == "PreferNoSchedule" && !tolerates(&demands.tolerations, taint)
    };
    node.taints.iter().filter(unborne).count() as f64
}

#[expect(clippy::cast_precision_loss, reason = "a score")]
fn preferred(demands: &Demands, node: &NodeInfo) -> f64 {
    let matching = demands.preferred_nodes.iter().filter(|(_, term)| term.matches(&node.name, &node.labels));
    matching.map(|(weight, _)| *weight as f64).sum()
}

fn more_is_better(mut amounts: Vec<f64>) -> Vec<f64> {
    let most = amounts.iter().copied().fold(0.0, f64::max);
    for amount in &mut amounts {
        *amount = if most > 0.0 { (*amount * POINTS_MAX / most).floor() } else { 0.0 };
    }
    amounts
}

fn less_is_better(amounts: Vec<f64>) -> Vec<f64> {
    more_is_better(amounts).into_iter().map(|points| POINTS_MAX - points).collect()
}

fn from_least_to_most(mut amounts: Vec<f64>) -> Vec<f64> {
    let least = amounts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = amounts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for amount in &mut amounts {
        *amount = if most > least { ((*amount - least) * POINTS_MAX / (most - least)).floor() } else { 0.0 };
    }
    amounts
}

/// The emptiest place gets all points; a node that is in no place gets none.
fn spread(full: &[Option<f64>]) -> Vec<f64> {
    let known = || full.iter().flatten().copied();
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    let points = |full: &Option<f64>| match full {
        None => 0.0,
        Some(_) if most <= 0.0 => POINTS_MAX,
        Some(full) => (POINTS_MAX * (most + least - full) / most).floor(),
    };
    full.iter().map(points).collect()
}
