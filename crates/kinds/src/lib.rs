//! What is particular to each built-in kind: defaults, what a strategy does before a write, validation, selectable
//! fields, table cells, conversion between versions. Everything here is pure and works on [`Value`]s of the kind's
//! wire form; no storage, no HTTP, no other objects (those are admission's business).
//!
//! One folder per API group; [`strategy_for`] is the only place that knows them all.

pub mod common;
pub mod meta;
pub mod strategy;

pub use strategy::{FieldTable, Generic, RequestInfo, Strategy, UpdateStrategy, UserInfo};

/// The strategy of a resource, in the version whose wire form it works on. Resources without rules of their own get
/// [`Generic`].
pub fn strategy_for(group: &str, resource: &str) -> &'static dyn Strategy {
    let _ = (group, resource);
    &Generic
}
