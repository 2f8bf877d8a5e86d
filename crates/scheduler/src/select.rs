//! One pod, all nodes: the decision. Pure; ties are broken by a number that is handed in.

use crate::cache::{Cache, NodeInfo};
use crate::filters::{Filter, Plugins, Reason, Rejection};
use crate::pod_info::{Demands, PodInfo};
use crate::scores::scores;
use pintle_apimachinery::Str;
use std::collections::BTreeMap;

/// Nodes that are always looked for, however large the cluster is.
const FEASIBLE_NODES_MIN: usize = 100;
/// The least share of nodes, in percent, that is looked for.
const FEASIBLE_PERCENT_MIN: usize = 5;

/// Why a pod cannot be put anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unschedulable {
    /// How many nodes there are.
    pub n_nodes: usize,
    /// What stands in the way whatever the node; then the nodes were not asked.
    pub general: Option<Rejection>,
    /// Why not onto each node, by position in the cache.
    pub rejections: Vec<(usize, Rejection)>,
    /// What came of making room.
    pub preemption: String,
}

impl Unschedulable {
    /// Everything that stands in the way.
    pub fn plugins(&self) -> Plugins {
        let all = self.rejections.iter().map(|(_, rejection)| rejection).chain(&self.general);
        all.fold(Plugins::NONE, |set, rejection| set | rejection.plugin)
    }
}

impl std::fmt::Display for Unschedulable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.n_nodes == 0 {
            return f.write_str("no nodes available to schedule pods");
        }
        write!(f, "0/{} nodes are available:", self.n_nodes)?;
        match &self.general {
            Some(general) => write!(f, " {}.", general.reasons.join(", "))?,
            None => {
                let histogram = histogram(self.rejections.iter().flat_map(|(_, rejection)| &rejection.reasons));
                if !histogram.is_empty() {
                    write!(f, " {histogram}.")?;
                }
            }
        }
        if !self.preemption.is_empty() {
            write!(f, " {}", self.preemption)?;
        }
        Ok(())
    }
}

/// How many nodes have each reason, as text.
pub fn histogram<'a>(reasons: impl Iterator<Item = &'a Reason>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut texts: Vec<String> = counts.into_iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    texts.sort();
    texts.join(", ")
}

/// How many nodes that would do are enough.
pub fn n_feasible_wanted(n_nodes: usize) -> usize {
    if n_nodes < FEASIBLE_NODES_MIN {
        return n_nodes;
    }
    let percent = 50_usize.saturating_sub(n_nodes / 125).max(FEASIBLE_PERCENT_MIN);
    (n_nodes * percent / 100).max(FEASIBLE_NODES_MIN)
}

/// Where the search for nodes goes on the next time, so that large clusters fill evenly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor(usize);

/// Chooses the node for a pod.
///
/// # Errors
/// [`Unschedulable`] when there is none.
pub fn select(
    cache: &Cache,
    pod: &PodInfo,
    demands: &Demands,
    cursor: &mut Cursor,
    random: u64,
) -> Result<Str, Box<Unschedulable>> {
    let filter = Filter::new(cache, pod, demands);
    let mut failure = Unschedulable { n_nodes: cache.n_nodes(), ..Unschedulable::default() };
    if !pod.nominated_node.is_empty()
        && let Some(node) = cache.nodes().get(&pod.nominated_node).filter(|node| node.is_known)
        && filter.check(cache, node).is_ok()
    {
        return Ok(node.name.clone());
    }
    let feasible = match &filter.named {
        Some(names) => among_named(cache, &filter, names, &mut failure),
        None => among_all(cache, &filter, cursor, &mut failure),
    };
    match feasible.as_slice() {
        [] => Err(Box::new(failure)),
        [only] => Ok(only.name.clone()),
        _ => Ok(best(cache, pod, demands, &feasible, random)),
    }
}

fn among_all<'c>(
    cache: &'c Cache,
    filter: &Filter<'_>,
    cursor: &mut Cursor,
    failure: &mut Unschedulable,
) -> Vec<&'c NodeInfo> {
    let n_slots = cache.nodes().len();
    let n_wanted = n_feasible_wanted(cache.n_nodes());
    let mut feasible = Vec::new();
    let mut n_looked_at = 0;
    while n_looked_at < n_slots && feasible.len() < n_wanted {
        let idx = (cursor.0 + n_looked_at) % n_slots;
        n_looked_at += 1;
        let Some((_, node)) = cache.nodes().get_index(idx).filter(|(_, node)| node.is_known) else { continue };
        match filter.check(cache, node) {
            Ok(()) => feasible.push(node),
            Err(rejection) => failure.rejections.push((idx, rejection)),
        }
    }
    cursor.0 = if n_slots == 0 { 0 } else { (cursor.0 + n_looked_at) % n_slots };
    feasible
}

/// The pod says by name where it can be: nobody else is asked.
fn among_named<'c>(
    cache: &'c Cache,
    filter: &Filter<'_>,
    names: &[Str],
    failure: &mut Unschedulable,
) -> Vec<&'c NodeInfo> {
    let mut feasible = Vec::new();
    for name in names {
        let Some((idx, _, node)) = cache.nodes().get_full(name).filter(|(_, _, node)| node.is_known) else { continue };
        match filter.check(cache, node) {
            Ok(()) => feasible.push(node),
            Err(rejection) => failure.rejections.push((idx, rejection)),
        }
    }
    if feasible.is_empty() {
        // the others were excluded before they were asked
        let n_asked = failure.rejections.len();
        let reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
        for (idx, (_, node)) in cache.nodes().iter().enumerate() {
            let is_asked = failure.rejections.iter().take(n_asked).any(|(asked, _)| *asked == idx);
            if node.is_known && !is_asked {
                let reasons = vec![reason.into()];
                failure
                    .rejections
                    .push((idx, Rejection { plugin: Plugins::NODE_AFFINITY, reasons, is_resolvable: false }));
            }
        }
    }
    feasible
}

/// The node with the most points; one of them if several have as many.
fn best(cache: &Cache, pod: &PodInfo, demands: &Demands, feasible: &[&NodeInfo], random: u64) -> Str {
    let scores = scores(cache, pod, demands, feasible);
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let best: Vec<&NodeInfo> =
        feasible.iter().zip(&scores).filter(|(_, score)| **score >= most).map(|(node, _)| *node).collect();
    let idx = usize::try_from(random).unwrap_or(usize::MAX) % best.len().max(1);
    best.get(idx).map(|node| node.name.clone()).unwrap_or_default()
}
