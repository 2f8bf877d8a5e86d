//! The group `discovery.k8s.io`.

pub mod endpointslice;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    match resource {
        "endpointslices" => Some(&endpointslice::EndpointSlice),
        _ => None,
    }
}
