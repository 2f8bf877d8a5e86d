//! The group `policy`.

pub mod poddisruptionbudget;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    match resource {
        "poddisruptionbudgets" => Some(&poddisruptionbudget::PodDisruptionBudget),
        _ => None,
    }
}
