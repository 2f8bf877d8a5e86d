//! The scheduler: puts pods onto nodes.
//!
//! [`Scheduler::start`] runs it against any Kubernetes server. Inside, the decision is pure: a [`queue`] says whose turn
//! it is, [`filters`] say where a pod can go and why not elsewhere, [`scores`] say where it goes best, over a [`cache`]
//! of nodes that also has the pods that are on their way.
//!
//! Follows: kubernetes pkg/scheduler (v1.35) with its default plugins, weights and texts. What is different: pods of one
//! owner are spread by counting that owner's pods, not by looking up which services select them; images do not count.

pub mod cache;
pub mod filters;
pub mod pod_info;
pub mod preempt;
pub mod queue;
pub mod resources;
mod scheduler;
pub mod scores;
pub mod select;
pub mod terms;

#[cfg(test)]
mod tests;

pub use scheduler::{Scheduler, SchedulerOptions};
