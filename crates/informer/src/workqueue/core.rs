//! The queue's state without time of its own and without tasks: what waits, what is worked on, what comes later.

use super::QueueItem;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use tokio::time::Instant;

/// The state of a queue.
#[derive(Debug)]
pub(super) struct Core<T> {
    /// What is ready, by priority (highest first), then by arrival. Holds exactly the items of `ready`.
    order: BTreeMap<(std::cmp::Reverse<i32>, u64), T>,
    /// Where each ready item stands in `order`. Disjoint from `working`.
    ready: BTreeMap<T, (i32, u64)>,
    /// What is being worked on.
    working: BTreeSet<T>,
    /// What was added while it was being worked on, with its priority. A subset of `working`.
    again: BTreeMap<T, i32>,
    /// What comes later; may hold stale entries, which `due` skips.
    later: BinaryHeap<Later<T>>,
    /// When each item of `later` really comes, and with which priority.
    due_at: BTreeMap<T, (Instant, i32)>,
    n_added: u64,
    is_draining: bool,
    is_shut_down: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Later<T> {
    at: Instant,
    item: T,
}

impl<T: Ord> Ord for Later<T> {
    fn cmp(&self, other: &Later<T>) -> std::cmp::Ordering {
        // the heap gives the greatest first: the soonest must be the greatest
        other.at.cmp(&self.at).then_with(|| other.item.cmp(&self.item))
    }
}

impl<T: Ord> PartialOrd for Later<T> {
    fn partial_cmp(&self, other: &Later<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// What [`Core::take`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken<T> {
    Item(T),
    /// Nothing is ready; the next comes at this time, if anything comes.
    Nothing(Option<Instant>),
    /// Nothing is ready and nothing will be.
    ShutDown,
}

impl<T: QueueItem> Core<T> {
    pub(super) fn new() -> Core<T> {
        Core {
            order: BTreeMap::new(),
            ready: BTreeMap::new(),
            working: BTreeSet::new(),
            again: BTreeMap::new(),
            later: BinaryHeap::new(),
            due_at: BTreeMap::new(),
            n_added: 0,
            is_draining: false,
            is_shut_down: false,
        }
    }

    /// Makes an item ready, now or once it is no longer worked on. Whether that is news.
    pub(super) fn add(&mut self, item: T, priority: i32) -> bool {
        if self.is_shut_down {
            return false;
        }
        let is_news = if self.working.contains(&item) {
            let before = self.again.insert(item.clone(), priority);
            if let Some(before) = before.filter(|before| *before > priority) {
                self.again.insert(item, before);
            }
            before.is_none()
        } else {
            self.make_ready(item, priority)
        };
        self.check();
        is_news
    }

    fn make_ready(&mut self, item: T, priority: i32) -> bool {
        match self.ready.get(&item).copied() {
            Some((before, _)) if before >= priority => false,
            Some((before, arrival)) => {
                // more urgent now; its turn among its equals stays that of its arrival
                self.order.remove(&(std::cmp::Reverse(before), arrival));
                self.order.insert((std::cmp::Reverse(priority), arrival), item.clone());
                self.ready.insert(item, (priority, arrival));
                false
            }
            None => {
                self.n_added += 1;
                self.order.insert((std::cmp::Reverse(priority), self.n_added), item.clone());
                self.ready.insert(item, (priority, self.n_added));
                true
            }
        }
    }

    /// Makes an item ready at a time; the sooner of several counts.
    pub(super) fn add_at(&mut self, item: T, at: Instant, priority: i32) {
        if self.is_shut_down {
            return;
        }
        let (known_at, known_priority) = self.due_at.get(&item).copied().unwrap_or((at, priority));
        let sooner = at.min(known_at);
        if !self.due_at.contains_key(&item) || sooner < known_at {
            self.later.push(Later { at: sooner, item: item.clone() });
        }
        self.due_at.insert(item, (sooner, priority.max(known_priority)));
        self.check();
    }

    /// Moves what is due into the ready ones; gives those that are new there.
    pub(super) fn promote(&mut self, now: Instant) -> Vec<T> {
        let mut promoted = Vec::new();
        while self.later.peek().is_some_and(|next| next.at <= now) {
            let Some(Later { at, item }) = self.later.pop() else { break };
            let Some((due, priority)) = self.due_at.get(&item).copied().filter(|(due, _)| *due == at) else {
                continue;
            };
            debug_assert!(due <= now);
            self.due_at.remove(&item);
            if self.add(item.clone(), priority) {
                promoted.push(item);
            }
        }
        promoted
    }

    /// Takes out the next ready item, to be worked on until [`Core::done`].
    pub(super) fn take(&mut self) -> Taken<T> {
        let Some((_, item)) = self.order.pop_first() else {
            return match self.later.peek() {
                _ if self.is_shut_down => Taken::ShutDown,
                next => Taken::Nothing(next.map(|next| next.at)),
            };
        };
        self.ready.remove(&item);
        self.working.insert(item.clone());
        self.check();
        Taken::Item(item)
    }

    /// An item is no longer worked on. Whether it is ready again at once.
    pub(super) fn done(&mut self, item: &T) -> bool {
        self.working.remove(item);
        let is_again = match self.again.remove_entry(item) {
            Some((item, priority)) => self.make_ready(item, priority),
            None => false,
        };
        self.check();
        is_again
    }

    /// Takes nothing more in. What is ready is still given out; what comes later is dropped.
    pub(super) fn shut_down(&mut self, is_draining: bool) {
        self.is_shut_down = true;
        self.is_draining = is_draining;
        self.later.clear();
        self.due_at.clear();
        if !is_draining {
            self.again.clear();
        }
        self.check();
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.is_shut_down
    }

    /// Whether nothing is ready or worked on.
    pub(super) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.working.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn n_later(&self) -> usize {
        self.due_at.len()
    }

    /// The field comments above, executed while the queue is short.
    fn check(&self) {
        const CHECKED_ITEMS_MAX: usize = 64;
        debug_assert_eq!(self.order.len(), self.ready.len());
        if !cfg!(debug_assertions) || self.ready.len() + self.working.len() > CHECKED_ITEMS_MAX {
            return;
        }
        for (item, (priority, arrival)) in &self.ready {
            debug_assert_eq!(self.order.get(&(std::cmp::Reverse(*priority), *arrival)), Some(item));
            debug_assert!(!self.working.contains(item), "{item:?} is ready and worked on");
        }
        debug_assert!(self.again.keys().all(|item| self.working.contains(item)));
        debug_assert!(self.later.len() >= self.due_at.len());
    }
}
