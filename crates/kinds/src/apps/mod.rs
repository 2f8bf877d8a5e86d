//! The group `apps`: what keeps pods running.

pub mod controllerrevision;
pub mod daemonset;
pub mod deployment;
pub mod replicaset;
pub mod statefulset;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "controllerrevisions" => &controllerrevision::ControllerRevision,
        "daemonsets" => &daemonset::DaemonSet,
        "deployments" => &deployment::Deployment,
        "replicasets" => &replicaset::ReplicaSet,
        "statefulsets" => &statefulset::StatefulSet,
        _ => return None,
    })
}
