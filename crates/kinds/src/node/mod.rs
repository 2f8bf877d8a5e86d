//! The group `node.k8s.io`.

pub mod runtimeclass;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    match resource {
        "runtimeclasses" => Some(&runtimeclass::RuntimeClass),
        _ => None,
    }
}
