//! Roles and ClusterRoles.

use crate::{Strategy, UpdateStrategy};
use pintle_apimachinery::names::{self, Faults};

/// The strategy of Roles.
#[derive(Debug)]
pub struct Role;

/// The strategy of ClusterRoles.
#[derive(Debug)]
pub struct ClusterRole;

impl UpdateStrategy for Role {}

impl Strategy for Role {
    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        names::path_segment(name, is_prefix)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}

impl UpdateStrategy for ClusterRole {}

impl Strategy for ClusterRole {
    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        names::path_segment(name, is_prefix)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
