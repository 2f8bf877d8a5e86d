//! RoleBindings and ClusterRoleBindings.

use crate::{Strategy, UpdateStrategy};
use pintle_apimachinery::Value;
use pintle_apimachinery::names::{self, Faults};

/// The API group of roles, and of the subjects that are users and groups.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The strategy of RoleBindings and ClusterRoleBindings.
#[derive(Debug)]
pub struct Binding {
    /// Whether these are RoleBindings.
    pub is_namespaced: bool,
}

impl UpdateStrategy for Binding {}

impl Strategy for Binding {
    fn set_defaults(&self, object: &mut Value) {
        if object["roleRef"]["apiGroup"].is_empty() {
            object["roleRef"].set("apiGroup", GROUP);
        }
        for subject in object.get_mut("subjects").map_or(&mut [][..], Value::items_mut) {
            if matches!(subject["kind"].str_or_empty(), "User" | "Group") && subject["apiGroup"].is_empty() {
                subject.set("apiGroup", GROUP);
            }
        }
    }

    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        names::path_segment(name, is_prefix)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
