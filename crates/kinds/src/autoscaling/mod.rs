//! The group `autoscaling`, worked on in the form of its version 2.

pub mod horizontalpodautoscaler;
pub mod v1;
mod validation;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    match resource {
        "horizontalpodautoscalers" => Some(&horizontalpodautoscaler::HorizontalPodAutoscaler),
        _ => None,
    }
}
