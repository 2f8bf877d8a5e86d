//! The group `apiregistration.k8s.io`.

pub mod apiservice;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    match resource {
        "apiservices" => Some(&apiservice::ApiService),
        _ => None,
    }
}
