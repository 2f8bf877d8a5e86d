//! Making room: which pods of lower priority would have to go so that a pod can be put onto a node. Pure.
//!
//! Follows: kubernetes pkg/scheduler/framework/preemption (v1.35). What is different: disruption budgets do not make one
//! node better than another.

use crate::cache::{Cache, NodeInfo};
use crate::filters::{Filter, Reason};
use crate::pod_info::{Demands, PodInfo};
use crate::select::{Unschedulable, histogram};
use jiff::Timestamp;
use pintle_apimachinery::Str;
use std::cmp::Reverse;
use std::sync::Arc;

/// Nodes on which room could be made that are compared; the search ends with so many.
const CANDIDATES_MAX: usize = 100;

/// A node on which room can be made.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The node.
    pub node: Str,
    /// Who has to go, the most important first.
    pub victims: Vec<Arc<PodInfo>>,
}

/// Looks for the node where the least is lost by making room. What came of it is put into `why`.
pub fn preempt(cache: &Cache, pod: &PodInfo, demands: &Demands, why: &mut Unschedulable) -> Option<Candidate> {
    if why.n_nodes == 0 {
        return None;
    }
    if demands.never_preempts {
        why.preemption = text("not eligible due to preemptionPolicy=Never.");
        return None;
    }
    if waits_for_victims(cache, pod) {
        why.preemption = text("not eligible due to a terminating pod on the nominated node.");
        return None;
    }
    let filter = Filter::new(cache, pod, demands);
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut reasons: Vec<Reason> = Vec::new();
    for (idx, rejection) in &why.rejections {
        let Some((_, node)) = cache.nodes().get_index(*idx) else { continue };
        if !rejection.is_resolvable {
            reasons.push("Preemption is not helpful for scheduling".into());
            continue;
        }
        if candidates.len() >= CANDIDATES_MAX {
            break;
        }
        match victims(cache, pod, node, filter.clone()) {
            Ok(victims) => candidates.push(Candidate { node: node.name.clone(), victims }),
            Err(found) => reasons.extend(found),
        }
    }
    let best = candidates.into_iter().min_by_key(loss);
    if best.is_none() {
        let n_nodes = why.n_nodes;
        why.preemption = text(&format!("0/{n_nodes} nodes are available: {}.", histogram(reasons.iter())));
    }
    best
}

/// What upstream's plugins that make room say one after the other: nothing is ever claimed here.
fn text(preemption: &str) -> String {
    format!("no new claims to deallocate, preemption: {preemption}")
}

/// Whether room is being made for the pod already.
fn waits_for_victims(cache: &Cache, pod: &PodInfo) -> bool {
    let node = cache.nodes().get(&pod.nominated_node).filter(|_| !pod.nominated_node.is_empty());
    node.is_some_and(|node| node.pods.iter().any(|other| other.is_terminating && other.priority < pod.priority))
}

/// The fewest and least important pods that must leave the node.
fn victims(
    cache: &Cache,
    pod: &PodInfo,
    node: &NodeInfo,
    mut filter: Filter<'_>,
) -> Result<Vec<Arc<PodInfo>>, Vec<Reason>> {
    let mut node = node.clone();
    let mut lesser: Vec<Arc<PodInfo>> = node.pods.iter().filter(|p| p.priority < pod.priority).cloned().collect();
    if lesser.is_empty() {
        return Err(vec!["No preemption victims found for incoming pod".into()]);
    }
    lesser.sort_by_key(importance);
    for victim in &lesser {
        node.remove(&victim.name);
        filter.update(&node, victim, -1, cache);
    }
    filter.check(cache, &node).map_err(|rejection| rejection.reasons)?;
    let mut victims = Vec::new();
    for victim in lesser {
        // whoever can stay, stays: the most important are asked first
        node.add(Arc::clone(&victim));
        filter.update(&node, &victim, 1, cache);
        if filter.check(cache, &node).is_err() {
            node.remove(&victim.name);
            filter.update(&node, &victim, -1, cache);
            victims.push(victim);
        }
    }
    Ok(victims)
}

/// The most important pod comes first: by priority, then by age.
fn importance(pod: &Arc<PodInfo>) -> (Reverse<i32>, Timestamp) {
    (Reverse(pod.priority), pod.started.or(pod.created).unwrap_or(Timestamp::MAX))
}

/// What is lost on a node: less is better.
fn loss(candidate: &Candidate) -> (i32, i64, usize, Reverse<Timestamp>) {
    let victims = &candidate.victims;
    let highest = victims.iter().map(|victim| victim.priority).max().unwrap_or(i32::MIN);
    let sum = victims.iter().map(|victim| i64::from(victim.priority) + i64::from(i32::MAX) + 1).sum();
    let oldest = victims.iter().filter(|victim| victim.priority == highest).filter_map(|victim| victim.started).min();
    (highest, sum, victims.len(), Reverse(oldest.unwrap_or(Timestamp::MIN)))
}
