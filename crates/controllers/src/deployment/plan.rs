//! How many replicas each ReplicaSet of a deployment gets. Pure.

use super::revision::{DESIRED_REPLICAS, MAX_REPLICAS, annotation_of, by_creation, revision_of};
use crate::common::intstr::scaled;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, RollingUpdateDeployment};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pintle_client::Object as _;
use std::cmp::Ordering;

/// The replicas that a deployment asks for.
pub(super) fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The replicas that a set asks for.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The replicas that a set has and that are available.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

/// The pods that a set has.
pub(super) fn actual(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map(|status| status.replicas).unwrap_or_default()
}

fn total<'a>(sets: impl IntoIterator<Item = &'a ReplicaSet>, count: fn(&ReplicaSet) -> i32) -> i32 {
    sets.into_iter().map(count).sum()
}

/// Whether the deployment replaces pods gradually.
pub(super) fn is_rolling(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("RollingUpdate")
}

/// How many pods there may be too many, and how many too few, during a rolling update.
fn fenceposts(deployment: &Deployment) -> (i32, i32) {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone());
    let RollingUpdateDeployment { max_surge, max_unavailable } = rolling.unwrap_or_default();
    let count = |value: Option<IntOrString>, rounds_up: bool| {
        value.and_then(|value| scaled(&value, replicas(deployment), rounds_up)).unwrap_or_default()
    };
    let (surge, unavailable) = (count(max_surge, true), count(max_unavailable, false));
    // both are zero only by rounding down: something must give
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

/// How many pods there may be too many.
pub(super) fn max_surge(deployment: &Deployment) -> i32 {
    if is_rolling(deployment) { fenceposts(deployment).0 } else { 0 }
}

/// How many pods may be unavailable.
pub(super) fn max_unavailable(deployment: &Deployment) -> i32 {
    if is_rolling(deployment) { fenceposts(deployment).1.min(replicas(deployment)).max(0) } else { 0 }
}

/// A set and the size that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resize {
    /// The uid of the set.
    pub(super) uid: String,
    /// Its new size.
    pub(super) to: i32,
}

fn resize(set: &ReplicaSet, to: i32) -> Resize {
    Resize { uid: set.uid().to_owned(), to }
}

fn is_big(set: &&ReplicaSet) -> bool {
    size(set) > 0
}

/// The size of a new set when it is made or grows: as large as the surge allows.
pub(super) fn new_set_size<'a>(
    deployment: &Deployment,
    all: impl IntoIterator<Item = &'a ReplicaSet>,
    new_size: i32,
) -> i32 {
    if !is_rolling(deployment) {
        return replicas(deployment);
    }
    let most = replicas(deployment).saturating_add(max_surge(deployment));
    let current = total(all, size);
    if current >= most {
        return new_size;
    }
    new_size + (most - current).min(replicas(deployment) - new_size)
}

/// Whether every set is where the deployment last put it, so that a rollout may go on: none was scaled for another
/// number of replicas.
pub(super) fn is_scaling_event<'a>(deployment: &Deployment, all: impl IntoIterator<Item = &'a ReplicaSet>) -> bool {
    all.into_iter().filter(is_big).any(|set| {
        let desired = annotation_of(set, DESIRED_REPLICAS).parse::<i32>().ok().filter(|n| *n >= 0);
        desired.is_some_and(|desired| desired != replicas(deployment))
    })
}

/// The sizes of the sets after the deployment was scaled: in proportion, so that a rollout in the middle stays there.
pub(super) fn proportional(deployment: &Deployment, new: Option<&ReplicaSet>, old: &[ReplicaSet]) -> Vec<Resize> {
    if let Some(set) = active_or_latest(new, old) {
        return vec![resize(set, replicas(deployment))];
    }
    if new.is_some_and(|new| is_saturated(deployment, new)) {
        return old.iter().filter(is_big).map(|set| resize(set, 0)).collect();
    }
    if !is_rolling(deployment) {
        return Vec::new();
    }
    let mut sets: Vec<&ReplicaSet> = old.iter().chain(new).filter(is_big).collect();
    let wanted = replicas(deployment);
    let allowed = if wanted > 0 { wanted.saturating_add(max_surge(deployment)) } else { 0 };
    let to_add = allowed - total(sets.iter().copied(), size);
    match to_add.cmp(&0) {
        // the newest grow first, the oldest shrink first
        Ordering::Greater => sets.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| by_creation(b, a))),
        Ordering::Less => sets.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| by_creation(a, b))),
        Ordering::Equal => {}
    }
    let mut added = 0;
    let mut sizes: Vec<Resize> = Vec::with_capacity(sets.len());
    for set in sets {
        let part = if to_add == 0 { 0 } else { proportion(deployment, set, to_add, added) };
        added += part;
        sizes.push(resize(set, size(set) + part));
    }
    if let Some(first) = sizes.first_mut().filter(|_| to_add != 0) {
        // what rounding left over
        first.to = (first.to + to_add - added).max(0);
    }
    sizes
}

/// The only set that has replicas; the new one, or the latest old one, if none has. `None` if several have.
fn active_or_latest<'a>(new: Option<&'a ReplicaSet>, old: &'a [ReplicaSet]) -> Option<&'a ReplicaSet> {
    let active: Vec<&ReplicaSet> = old.iter().chain(new).filter(is_big).collect();
    match active[..] {
        [] => new.or_else(|| old.iter().max_by(|a, b| by_creation(a, b))),
        [only] => Some(only),
        _ => None,
    }
}

fn is_saturated(deployment: &Deployment, new: &ReplicaSet) -> bool {
    let wanted = replicas(deployment);
    let desired = annotation_of(new, DESIRED_REPLICAS).parse::<i32>();
    desired == Ok(wanted) && size(new) == wanted && available(new) == wanted
}

/// A set's part of `to_add`, of which `added` are given away.
fn proportion(deployment: &Deployment, set: &ReplicaSet, to_add: i32, added: i32) -> i32 {
    if size(set) == 0 || to_add == added {
        return 0;
    }
    let part = fraction(deployment, set);
    let left = to_add - added;
    if to_add > 0 { part.min(left) } else { part.max(left) }
}

/// How much a set changes if it keeps its share.
fn fraction(deployment: &Deployment, set: &ReplicaSet) -> i32 {
    if replicas(deployment) == 0 {
        return -size(set);
    }
    let most = replicas(deployment).saturating_add(max_surge(deployment));
    let before = annotation_of(set, MAX_REPLICAS).parse::<i32>().ok().filter(|n| *n > 0);
    let before = before.or_else(|| deployment.status.as_ref()?.replicas.filter(|n| *n != 0));
    let Some(before) = before else { return 0 };
    let share = f64::from(size(set).wrapping_mul(most)) / f64::from(before);
    #[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest integer of the type")]
    let rounded = if share < 0.0 { (share - 0.5) as i32 } else { (share + 0.5) as i32 };
    rounded - size(set)
}

/// The next step of the new set in a rolling update.
pub(super) fn rolling_up(deployment: &Deployment, new: &ReplicaSet, old: &[ReplicaSet]) -> Option<Resize> {
    let wanted = replicas(deployment);
    let to = match size(new).cmp(&wanted) {
        Ordering::Equal => return None,
        Ordering::Greater => wanted,
        Ordering::Less => new_set_size(deployment, old.iter().chain([new]), size(new)),
    };
    (to != size(new)).then(|| resize(new, to))
}

/// The next steps of the old sets in a rolling update: pods that do not work first, then as many as may be missing.
pub(super) fn rolling_down(deployment: &Deployment, new: &ReplicaSet, old: &[ReplicaSet]) -> Vec<Resize> {
    let mut sets: Vec<(&ReplicaSet, i32)> = old.iter().filter(is_big).map(|set| (set, size(set))).collect();
    if sets.is_empty() {
        return Vec::new();
    }
    sets.sort_by(|(a, _), (b, _)| by_creation(a, b));
    let min_available = replicas(deployment) - max_unavailable(deployment);
    let new_unavailable = size(new) - available(new);
    let most = total(old.iter().chain([new]), size) - min_available - new_unavailable;
    if most <= 0 {
        return Vec::new();
    }
    let mut cleaned = 0;
    for (set, to) in &mut sets {
        if cleaned < most && *to != available(set) {
            let part = (most - cleaned).min(*to - available(set));
            *to -= part;
            cleaned += part;
        }
    }
    let all_available = total(old.iter().filter(is_big).chain([new]), available);
    let mut left = (all_available - min_available).max(0);
    for (_, to) in &mut sets {
        let part = left.min(*to);
        *to -= part;
        left -= part;
    }
    sets.into_iter().filter(|(set, to)| size(set) != *to).map(|(set, to)| resize(set, to)).collect()
}

/// The old sets that are beyond the history limit and have no pods: the oldest revisions.
pub(super) fn beyond_history<'a>(deployment: &Deployment, old: &'a [ReplicaSet]) -> Vec<&'a ReplicaSet> {
    let limit = deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
    let Some(limit) = limit.filter(|limit| *limit != i32::MAX).and_then(|limit| usize::try_from(limit).ok()) else {
        return Vec::new();
    };
    let mut sets: Vec<&ReplicaSet> = old.iter().filter(|set| !set.is_terminating()).collect();
    let n_beyond = sets.len().saturating_sub(limit);
    sets.sort_by(|a, b| match (revision_of(a), revision_of(b)) {
        (Some(a_revision), Some(b_revision)) if a_revision != b_revision => a_revision.cmp(&b_revision),
        _ => by_creation(a, b),
    });
    sets.truncate(n_beyond);
    let observed =
        |set: &ReplicaSet| set.status.as_ref().and_then(|status| status.observed_generation).unwrap_or_default();
    sets.retain(|set| {
        actual(set) == 0 && size(set) == 0 && set.metadata.generation.unwrap_or_default() <= observed(set)
    });
    sets
}

/// Whether the rollout is over, as this status tells it.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = replicas(deployment);
    status.updated_replicas.unwrap_or_default() == wanted
        && status.replicas.unwrap_or_default() == wanted
        && status.available_replicas.unwrap_or_default() == wanted
        && status.observed_generation >= deployment.metadata.generation
}

#[cfg(test)]
mod tests;
