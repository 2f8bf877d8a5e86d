//! The core group, whose `apiVersion` is `v1`.

pub mod configmap;
pub mod endpoints;
pub mod event;
pub mod limitrange;
pub mod namespace;
pub mod node;
pub mod persistentvolume;
pub mod persistentvolumeclaim;
pub mod pod;
pub mod podtemplate;
pub mod quantities;
pub mod replicationcontroller;
pub mod resourcequota;
pub mod secret;
pub mod service;
pub mod serviceaccount;
pub mod tls;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "configmaps" => &configmap::ConfigMap,
        "endpoints" => &endpoints::Endpoints,
        "events" => &event::CoreEvent,
        "limitranges" => &limitrange::LimitRange,
        "namespaces" => &namespace::Namespace,
        "nodes" => &node::Node,
        "persistentvolumeclaims" => &persistentvolumeclaim::PersistentVolumeClaim,
        "persistentvolumes" => &persistentvolume::PersistentVolume,
        "pods" => &pod::Pod,
        "podtemplates" => &podtemplate::PodTemplate,
        "replicationcontrollers" => &replicationcontroller::ReplicationController,
        "resourcequotas" => &resourcequota::ResourceQuota,
        "secrets" => &secret::Secret,
        "serviceaccounts" => &serviceaccount::ServiceAccount,
        "services" => &service::Service,
        _ => return None,
    })
}

/// The 400 of most core kinds for a field selector that names another field.
pub(crate) fn label_not_supported(field: &str) -> String {
    format!("field label not supported: {field}")
}
