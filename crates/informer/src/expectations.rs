//! What a controller has asked the server for and not yet seen in its cache.
//!
//! A controller that makes three pods and looks again before its cache shows them would make three more. So it
//! records how many additions and deletions it expects for an object, its handlers count those that arrive, and it
//! works on the object again only when nothing is expected any more.
//!
//! Follows: kubernetes/pkg/controller/controller_utils.go (v1.35).

use crate::ObjectName;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What was not seen after so long is no longer waited for: an event may have been lost, and the controller must look
/// for itself.
pub const EXPECTATIONS_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What is expected for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlleeExpectations {
    /// Additions still to be seen; below zero when more came than were expected.
    pub adds: i64,
    /// Deletions still to be seen.
    pub deletions: i64,
    /// Since when.
    pub since: Instant,
}

impl ControlleeExpectations {
    /// Whether everything was seen.
    pub fn is_fulfilled(&self) -> bool {
        self.adds <= 0 && self.deletions <= 0
    }

    /// Whether it is waited for no longer.
    pub fn is_expired(&self) -> bool {
        self.since.elapsed() > EXPECTATIONS_TIMEOUT
    }
}

/// Counts expected additions and deletions per object. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ControllerExpectations {
    expected: Arc<Mutex<BTreeMap<ObjectName, ControlleeExpectations>>>,
}

impl ControllerExpectations {
    /// Nothing is expected.
    pub fn new() -> ControllerExpectations {
        ControllerExpectations::default()
    }

    /// What is expected for an object.
    pub fn get(&self, name: &ObjectName) -> Option<ControlleeExpectations> {
        self.expected.lock().get(name).copied()
    }

    /// Whether the controller may work on the object: nothing is expected, or not any more.
    pub fn satisfied_expectations(&self, name: &ObjectName) -> bool {
        self.get(name).is_none_or(|expected| expected.is_fulfilled() || expected.is_expired())
    }

    /// Expects so many additions and deletions from now on, whatever was expected before.
    pub fn set_expectations(&self, name: &ObjectName, adds: usize, deletions: usize) {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let expected = ControlleeExpectations { adds: count(adds), deletions: count(deletions), since: Instant::now() };
        self.expected.lock().insert(name.clone(), expected);
    }

    /// Expects so many additions, and no deletions.
    pub fn expect_creations(&self, name: &ObjectName, adds: usize) {
        self.set_expectations(name, adds, 0);
    }

    /// Expects so many deletions, and no additions.
    pub fn expect_deletions(&self, name: &ObjectName, deletions: usize) {
        self.set_expectations(name, 0, deletions);
    }

    /// An addition was seen, or the request for it failed.
    pub fn creation_observed(&self, name: &ObjectName) {
        self.lower_expectations(name, 1, 0);
    }

    /// A deletion was seen, or the request for it failed.
    pub fn deletion_observed(&self, name: &ObjectName) {
        self.lower_expectations(name, 0, 1);
    }

    /// Expects less.
    pub fn lower_expectations(&self, name: &ObjectName, adds: i64, deletions: i64) {
        self.raise_expectations(name, -adds, -deletions);
    }

    /// Expects more.
    pub fn raise_expectations(&self, name: &ObjectName, adds: i64, deletions: i64) {
        if let Some(expected) = self.expected.lock().get_mut(name) {
            expected.adds = expected.adds.saturating_add(adds);
            expected.deletions = expected.deletions.saturating_add(deletions);
        }
    }

    /// The object is gone: nothing is expected for it.
    pub fn delete_expectations(&self, name: &ObjectName) {
        self.expected.lock().remove(name);
    }
}

/// [`ControllerExpectations`] that also remember which objects are expected to go, by uid, so that a deletion that is
/// told several times (first as a deletion timestamp, then as gone) counts once. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct UidTrackingControllerExpectations {
    counts: ControllerExpectations,
    /// Uids whose deletion was not seen yet. Locked before the counts.
    uids: Arc<Mutex<BTreeMap<ObjectName, BTreeSet<String>>>>,
}

impl UidTrackingControllerExpectations {
    /// Nothing is expected.
    pub fn new() -> UidTrackingControllerExpectations {
        UidTrackingControllerExpectations::default()
    }

    /// Whether the controller may work on the object: nothing is expected, or not any more.
    pub fn satisfied_expectations(&self, name: &ObjectName) -> bool {
        self.counts.satisfied_expectations(name)
    }

    /// What is expected for an object.
    pub fn get(&self, name: &ObjectName) -> Option<ControlleeExpectations> {
        self.counts.get(name)
    }

    /// The uids whose deletion is expected.
    pub fn uids(&self, name: &ObjectName) -> BTreeSet<String> {
        self.uids.lock().get(name).cloned().unwrap_or_default()
    }

    /// Expects so many additions, and no deletions.
    pub fn expect_creations(&self, name: &ObjectName, adds: usize) {
        self.counts.expect_creations(name, adds);
    }

    /// Expects the deletion of these uids, and no additions.
    pub fn expect_deletions<S: Into<String>>(&self, name: &ObjectName, uids: impl IntoIterator<Item = S>) {
        let uids: BTreeSet<String> = uids.into_iter().map(Into::into).collect();
        let mut known = self.uids.lock();
        self.counts.expect_deletions(name, uids.len());
        known.insert(name.clone(), uids);
    }

    /// An addition was seen, or the request for it failed.
    pub fn creation_observed(&self, name: &ObjectName) {
        self.counts.creation_observed(name);
    }

    /// A deletion was seen, or the request for it failed. Counts once for each expected uid.
    pub fn deletion_observed(&self, name: &ObjectName, uid: &str) {
        let mut uids = self.uids.lock();
        if uids.get_mut(name).is_some_and(|expected| expected.remove(uid)) {
            self.counts.deletion_observed(name);
        }
    }

    /// Expects more additions or deletions.
    pub fn raise_expectations(&self, name: &ObjectName, adds: i64, deletions: i64) {
        self.counts.raise_expectations(name, adds, deletions);
    }

    /// The object is gone: nothing is expected for it.
    pub fn delete_expectations(&self, name: &ObjectName) {
        let mut uids = self.uids.lock();
        self.counts.delete_expectations(name);
        uids.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn satisfied_when_seen_or_too_old() {
        let expectations = ControllerExpectations::new();
        let name = ObjectName::new("ns", "rs");
        assert!(expectations.satisfied_expectations(&name), "never heard of");
        expectations.expect_creations(&name, 2);
        expectations.creation_observed(&name);
        assert!(!expectations.satisfied_expectations(&name));
        expectations.creation_observed(&name);
        assert!(expectations.satisfied_expectations(&name));
        expectations.creation_observed(&name);
        assert!(expectations.satisfied_expectations(&name), "more than expected is fine");

        expectations.expect_deletions(&name, 1);
        tokio::time::advance(EXPECTATIONS_TIMEOUT).await;
        assert!(!expectations.satisfied_expectations(&name));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(expectations.satisfied_expectations(&name));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_counts_once() {
        let expectations = UidTrackingControllerExpectations::new();
        let name = ObjectName::new("ns", "rs");
        expectations.expect_deletions(&name, ["u1", "u2"]);
        expectations.deletion_observed(&name, "u1");
        expectations.deletion_observed(&name, "u1");
        expectations.deletion_observed(&name, "somebody else");
        assert!(!expectations.satisfied_expectations(&name));
        expectations.deletion_observed(&name, "u2");
        assert!(expectations.satisfied_expectations(&name));
        expectations.delete_expectations(&name);
        assert_eq!(expectations.get(&name), None);
    }
}
