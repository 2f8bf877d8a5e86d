//! The group `rbac.authorization.k8s.io`.

pub mod binding;
pub mod role;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "clusterrolebindings" => &binding::Binding { is_namespaced: false },
        "clusterroles" => &role::ClusterRole,
        "rolebindings" => &binding::Binding { is_namespaced: true },
        "roles" => &role::Role,
        _ => return None,
    })
}
