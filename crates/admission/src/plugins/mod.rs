//! The plugins.

mod always;
mod certificates;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod limit_ranger;
mod namespace_lifecycle;
mod owner_references;
mod pod_node_selector;
pub mod pod_security;
mod pod_topology_labels;
mod pods;
mod priority;
mod role_escalation;
mod runtime_class;
mod service_account;
mod storage;
mod taint_nodes;
#[cfg(test)]
pub(crate) mod testing;

pub use always::{AlwaysAdmit, AlwaysDeny};
pub use certificates::{CertificateApproval, CertificateSigning, CertificateSubjectRestriction};
pub use default_ingress_class::DefaultIngressClass;
pub use default_storage_class::DefaultStorageClass;
pub use default_toleration_seconds::DefaultTolerationSeconds;
pub use limit_ranger::LimitRanger;
pub use namespace_lifecycle::{NamespaceExists, NamespaceLifecycle};
pub use owner_references::{OwnerReferencesPermissionEnforcement, RestMapping, RestMappings};
pub use pod_node_selector::PodNodeSelector;
pub use pod_security::PodSecurity;
pub use pod_topology_labels::PodTopologyLabels;
pub(crate) use pods::is_extended_resource;
pub use pods::{
    AlwaysPullImages, DenyServiceExternalIps, ExtendedResourceToleration, LimitPodHardAntiAffinityTopology,
};
pub use priority::Priority;
pub use role_escalation::RoleEscalation;
pub use runtime_class::RuntimeClass;
pub use service_account::{DEFAULT_ACCOUNT_TRIES_MAX, ServiceAccount};
pub use storage::{PersistentVolumeClaimResize, StorageObjectInUseProtection};
pub use taint_nodes::TaintNodesByCondition;

use pintle_apimachinery::Value;
use pintle_apimachinery::meta::Meta;
use std::sync::Arc;

/// The newest of the classes that are marked as default, by name where they are equally old.
fn default_class(classes: Vec<Arc<Value>>, annotations: &[&str]) -> Option<Arc<Value>> {
    let is_default = |class: &Value| annotations.iter().any(|key| class.annotation(key) == Some("true"));
    let mut marked: Vec<Arc<Value>> = classes.into_iter().filter(|class| is_default(class)).collect();
    marked.sort_by(|a, b| b.creation_timestamp().cmp(&a.creation_timestamp()).then_with(|| a.name().cmp(b.name())));
    marked.into_iter().next()
}
