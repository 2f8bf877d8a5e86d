//! The pods that wait: those to try now, those to try later, and those that wait for something to happen.
//!
//! Follows: kubernetes pkg/scheduler/backend/queue (v1.35).

use crate::filters::Plugins;
use crate::pod_info::PodInfo;
use pintle_informer::ObjectName;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The pause after a pod's first failure; it doubles with each further one.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// The longest pause after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// A pod that waits for something to happen is tried again after this long even if nothing has.
const UNSCHEDULABLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Order among pods to try: the highest priority first, then who came first.
type Turn = (Reverse<i32>, u64, ObjectName);

/// Where a pod is.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// To be tried now.
    Active(Turn),
    /// To be tried after its pause.
    Backoff(Instant, Turn),
    /// To be tried after its pause, and not before: the last time something broke.
    Penalty(Instant, Turn),
    /// Waits for an event since then.
    Waiting(Instant),
    /// Being tried.
    InFlight,
}

#[derive(Debug)]
struct Waiter {
    pod: Arc<PodInfo>,
    place: Place,
    /// Order of arrival.
    number: u64,
    n_attempts: u32,
    /// What was in its way the last time.
    rejected_by: Plugins,
    /// Not before then.
    not_before: Option<Instant>,
}

/// The queue. Every pod is in `waiters` once, and in the one set that its place names.
#[derive(Debug, Default)]
pub struct SchedulingQueue {
    waiters: BTreeMap<ObjectName, Waiter>,
    active: BTreeSet<Turn>,
    backoff: BTreeSet<(Instant, Turn)>,
    penalty: BTreeSet<(Instant, Turn)>,
    waiting: BTreeSet<(Instant, ObjectName)>,
    n_arrived: u64,
}

impl SchedulingQueue {
    /// Adds a pod that is new, or is another one now.
    pub fn set(&mut self, pod: Arc<PodInfo>, now: Instant) {
        let name = pod.name.clone();
        let is_gated = pod.demands.as_ref().is_some_and(|demands| !demands.gates.is_empty());
        match self.waiters.get_mut(&name).filter(|waiter| waiter.pod.uid == pod.uid) {
            Some(waiter) => {
                let may_help = may_help(&waiter.pod, &pod);
                let is_waiting = matches!(waiter.place, Place::Waiting(_));
                waiter.pod = pod;
                if is_waiting && may_help && !is_gated {
                    self.move_on(&name, now);
                }
            }
            None => {
                self.remove(&name);
                self.n_arrived += 1;
                let waiter = Waiter {
                    pod,
                    place: Place::InFlight,
                    number: self.n_arrived,
                    n_attempts: 0,
                    rejected_by: if is_gated { Plugins::SCHEDULING_GATES } else { Plugins::NONE },
                    not_before: None,
                };
                self.waiters.insert(name.clone(), waiter);
                self.put(&name, if is_gated { Place::Waiting(now) } else { Place::InFlight });
                if !is_gated {
                    self.move_on(&name, now);
                }
            }
        }
        self.check();
    }

    /// Takes a pod away: it is gone, or it is on a node.
    pub fn remove(&mut self, name: &ObjectName) -> Option<Arc<PodInfo>> {
        self.take_out(name);
        let removed = self.waiters.remove(name);
        self.check();
        removed.map(|waiter| waiter.pod)
    }

    /// Whether the pod is here.
    pub fn get(&self, name: &ObjectName) -> Option<&Arc<PodInfo>> {
        self.waiters.get(name).map(|waiter| &waiter.pod)
    }

    /// Changes what is known of a pod that waits, without trying it for that.
    pub fn replace(&mut self, pod: Arc<PodInfo>) {
        if let Some(waiter) = self.waiters.get_mut(&pod.name) {
            waiter.pod = pod;
        }
    }

    /// How many pods are to be tried now, wait for their time, and wait for an event.
    pub fn lens(&self) -> (usize, usize, usize) {
        (self.active.len(), self.backoff.len() + self.penalty.len(), self.waiting.len())
    }

    /// The next pod to try. It stays in the queue, being tried, until [`done`](SchedulingQueue::done) or
    /// [`failed`](SchedulingQueue::failed).
    pub fn pop(&mut self, now: Instant) -> Option<Arc<PodInfo>> {
        self.flush(now);
        // who waits for its time may go before it when there is nobody else
        let turn = self.active.first().cloned().or_else(|| self.backoff.first().map(|(_, turn)| turn.clone()))?;
        let name = turn.2;
        self.put(&name, Place::InFlight);
        self.check();
        let waiter = self.waiters.get_mut(&name)?;
        waiter.n_attempts += 1;
        Some(Arc::clone(&waiter.pod))
    }

    /// The pod that was being tried has a node.
    pub fn done(&mut self, name: &ObjectName) {
        self.remove(name);
    }

    /// The pod that was being tried has none. It waits for an event that touches what was in its way; if nothing was
    /// (an error), for its time.
    pub fn failed(&mut self, name: &ObjectName, rejected_by: Plugins, now: Instant) {
        let Some(waiter) = self.waiters.get_mut(name) else { return };
        waiter.rejected_by = rejected_by;
        waiter.not_before = Some(now + backoff(waiter.n_attempts));
        if rejected_by.is_empty() {
            let place = Place::Penalty(now + backoff(waiter.n_attempts), waiter.turn());
            self.put(name, place);
        } else {
            self.put(name, Place::Waiting(now));
        }
        self.check();
    }

    /// Something happened that may help pods in whose way one of `plugins` was.
    pub fn on_event(&mut self, plugins: Plugins, now: Instant) {
        if self.waiting.is_empty() {
            return;
        }
        let touched: Vec<ObjectName> = self
            .waiting
            .iter()
            .filter(|(_, name)| {
                let is_gated = |waiter: &Waiter| waiter.rejected_by == Plugins::SCHEDULING_GATES;
                self.waiters.get(name).is_some_and(|waiter| waiter.rejected_by.intersects(plugins) && !is_gated(waiter))
            })
            .map(|(_, name)| name.clone())
            .collect();
        for name in touched {
            self.move_on(&name, now);
        }
        self.check();
    }

    /// When there will be something to do, if nothing happens before. `None` for never.
    pub fn next_deadline(&self) -> Option<Instant> {
        let backoff = self.backoff.first().map(|(at, _)| *at);
        let penalty = self.penalty.first().map(|(at, _)| *at);
        let waiting = self.waiting.first().map(|(since, _)| *since + UNSCHEDULABLE_TIMEOUT);
        [backoff, penalty, waiting].into_iter().flatten().min()
    }

    /// Moves pods on whose time has come.
    fn flush(&mut self, now: Instant) {
        loop {
            let sets = [&self.backoff, &self.penalty];
            let due = sets.into_iter().find_map(|set| set.first().filter(|(at, _)| *at <= now));
            let Some((_, turn)) = due.cloned() else { break };
            self.put(&turn.2.clone(), Place::Active(turn));
        }
        while let Some((since, name)) = self.waiting.first().cloned() {
            if since + UNSCHEDULABLE_TIMEOUT > now {
                break;
            }
            let is_gated =
                self.waiters.get(&name).is_some_and(|waiter| waiter.rejected_by == Plugins::SCHEDULING_GATES);
            if is_gated {
                self.put(&name, Place::Waiting(now));
            } else {
                self.move_on(&name, now);
            }
        }
    }

    /// To be tried now, or as soon as the pause after the last failure is over.
    fn move_on(&mut self, name: &ObjectName, now: Instant) {
        let Some(waiter) = self.waiters.get(name) else { return };
        let place = match waiter.not_before {
            Some(at) if at > now => Place::Backoff(at, waiter.turn()),
            _ => Place::Active(waiter.turn()),
        };
        self.put(name, place);
    }

    fn take_out(&mut self, name: &ObjectName) {
        match self.waiters.get(name).map(|waiter| &waiter.place) {
            Some(Place::Active(turn)) => {
                self.active.remove(turn);
            }
            Some(Place::Backoff(at, turn)) => {
                self.backoff.remove(&(*at, turn.clone()));
            }
            Some(Place::Penalty(at, turn)) => {
                self.penalty.remove(&(*at, turn.clone()));
            }
            Some(Place::Waiting(since)) => {
                self.waiting.remove(&(*since, name.clone()));
            }
            Some(Place::InFlight) | None => {}
        }
    }

    fn put(&mut self, name: &ObjectName, place: Place) {
        self.take_out(name);
        let Some(waiter) = self.waiters.get_mut(name) else { return };
        match &place {
            Place::Active(turn) => {
                self.active.insert(turn.clone());
            }
            Place::Backoff(at, turn) => {
                self.backoff.insert((*at, turn.clone()));
            }
            Place::Penalty(at, turn) => {
                self.penalty.insert((*at, turn.clone()));
            }
            Place::Waiting(since) => {
                self.waiting.insert((*since, name.clone()));
            }
            Place::InFlight => {}
        }
        waiter.place = place;
    }

    /// Every pod is in the one set that its place names.
    fn check(&self) {
        let n_placed = self.active.len() + self.backoff.len() + self.penalty.len() + self.waiting.len();
        debug_assert!(n_placed <= self.waiters.len());
    }
}

impl Waiter {
    fn turn(&self) -> Turn {
        (Reverse(self.pod.priority), self.number, self.pod.name.clone())
    }
}

fn backoff(n_attempts: u32) -> Duration {
    BACKOFF_MIN.saturating_mul(1 << n_attempts.saturating_sub(1).min(10)).min(BACKOFF_MAX)
}

/// Whether the pod may fit now that it is another one. A change of its status alone does not help.
fn may_help(before: &PodInfo, after: &PodInfo) -> bool {
    let generation = |pod: &PodInfo| pod.demands.as_ref().and_then(|demands| demands.generation);
    let n_gates = |pod: &PodInfo| pod.demands.as_ref().map_or(0, |demands| demands.gates.len());
    before.labels != after.labels
        || before.requests != after.requests
        || n_gates(before) != n_gates(after)
        || generation(before) != generation(after)
}

#[cfg(test)]
mod tests;
