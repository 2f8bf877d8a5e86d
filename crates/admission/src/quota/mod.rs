//! Quotas: what an object uses, which quotas it falls under, and whether there is room.
//!
//! The arithmetic is pure, so that the controller that counts anew uses it as well ([`usage_of_namespace`]).
//! Follows: apiserver/pkg/admission/plugin/resourcequota (v0.35), pkg/quota/v1 (v1.35).

mod check;
mod evaluator;
mod lists;
mod plugin;
mod scopes;

pub use check::{QuotaStatus, check_request};
pub use evaluator::{Evaluator, evaluator_for, usage_of_namespace};
pub use plugin::{QUOTA_TRIES_MAX, QuotaWriter, ResourceQuota};
