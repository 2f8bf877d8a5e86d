//! The group `scheduling.k8s.io`.

pub mod priorityclass;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    match resource {
        "priorityclasses" => Some(&priorityclass::PriorityClass),
        _ => None,
    }
}
