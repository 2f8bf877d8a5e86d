//! The group `coordination.k8s.io`.

pub mod lease;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    match resource {
        "leases" => Some(&lease::Lease),
        _ => None,
    }
}
