//! Custom resources: the definitions themselves, and what follows from a definition: schemas that prune, default and
//! validate, rules in CEL, columns, scale, selectable fields, conversion, the strategy of the instances.
//!
//! Everything here is pure: no storage, no HTTP, no clock. The registry holds one [`CompiledDefinition`] per definition
//! and asks it; controllers hold definitions and ask [`conditions`].

pub mod jsonpath;
pub mod structural;

/// CEL, for those who know this crate only.
pub use pintle_cel as cel;
pub use structural::Structural;
