//! What is particular to each built-in kind: defaults, what a strategy does before a write, validation, selectable
//! fields, table cells, conversion between versions. Everything here is pure and works on [`Value`]s of the kind's
//! wire form; no storage, no HTTP, no other objects (those are admission's business).
//!
//! One folder per API group; [`strategy_for`] is the only place that knows them all.

pub mod admissionregistration;
pub mod apiregistration;
pub mod apps;
pub mod autoscaling;
pub mod batch;
pub mod certificates;
pub mod common;
pub mod convert;
pub mod coordination;
pub mod core;
pub mod discovery;
pub mod flowcontrol;
pub mod meta;
pub mod networking;
pub mod node;
pub mod policy;
pub mod prepare;
pub mod rbac;
pub mod resource;
pub mod scheduling;
pub mod storage;
pub mod strategy;
pub mod table;
#[cfg(test)]
mod testing;
mod workload;

pub use strategy::{FieldTable, Generic, MetadataRounds, RequestInfo, Strategy, UpdateStrategy, UserInfo};

/// The strategy of a resource, in the version whose wire form it works on. Resources without rules of their own get
/// [`Generic`].
pub fn strategy_for(group: &str, resource: &str) -> &'static dyn Strategy {
    let found = match group {
        "" => core::strategy(resource),
        "admissionregistration.k8s.io" => admissionregistration::strategy(resource),
        "apiregistration.k8s.io" => apiregistration::strategy(resource),
        "apps" => apps::strategy(resource),
        "autoscaling" => autoscaling::strategy(resource),
        "batch" => batch::strategy(resource),
        "certificates.k8s.io" => certificates::strategy(resource),
        "coordination.k8s.io" => coordination::strategy(resource),
        "discovery.k8s.io" => discovery::strategy(resource),
        "events.k8s.io" if resource == "events" => Some(&core::event::GroupEvent as _),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::strategy(resource),
        "networking.k8s.io" => networking::strategy(resource),
        "node.k8s.io" => node::strategy(resource),
        "policy" => policy::strategy(resource),
        "rbac.authorization.k8s.io" => rbac::strategy(resource),
        "resource.k8s.io" => resource::strategy(resource),
        "scheduling.k8s.io" => scheduling::strategy(resource),
        "storage.k8s.io" => storage::strategy(resource),
        _ => None,
    };
    found.unwrap_or(&Generic)
}
