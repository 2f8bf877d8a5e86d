//! Role-based access control: rules, who has which, and that nobody gives away what they have not got.
//!
//! Follows: pkg/registry/rbac, plugin/pkg/auth/authorizer/rbac (v1.35).

mod aggregate;
mod escalation;
mod index;
mod rule;

pub use aggregate::aggregated_rules;
pub use escalation::{RoleWrite, check_escalation};
pub use index::{RESOLVED_NAMESPACES_MAX, RESOLVED_USERS_MAX, Rbac};
pub use rule::{Rule, covers, full_authority};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
