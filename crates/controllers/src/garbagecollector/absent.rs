//! Owners known not to exist, so that a thousand dependents of one owner do not ask for it a thousand times.

use super::graph::Identity;
use std::collections::{BTreeSet, VecDeque};

/// Absent owners remembered; the one longest known is forgotten first. A forgotten one is asked for again.
pub(super) const ABSENT_OWNERS_MAX: usize = 500;

/// A bounded set of identities. Invariant: `order` holds exactly the members of `members`, the oldest first.
#[derive(Debug, Default)]
pub(super) struct AbsentOwners {
    members: BTreeSet<Identity>,
    order: VecDeque<Identity>,
}

impl AbsentOwners {
    /// Remembers an owner.
    pub(super) fn add(&mut self, identity: Identity) {
        if self.members.insert(identity.clone()) {
            self.order.push_back(identity);
        }
        if self.order.len() > ABSENT_OWNERS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.members.remove(&oldest);
        }
    }

    /// Whether the owner is known not to exist.
    pub(super) fn has(&self, identity: &Identity) -> bool {
        self.members.contains(identity)
    }
}
