//! The group `flowcontrol.apiserver.k8s.io`.

pub mod bootstrap;
pub mod flowschema;
pub mod prioritylevel;
mod validation;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "flowschemas" => &flowschema::FlowSchema,
        "prioritylevelconfigurations" => &prioritylevel::PriorityLevelConfiguration,
        _ => return None,
    })
}
