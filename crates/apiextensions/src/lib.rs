//! Custom resources: the definitions themselves, and what follows from a definition: schemas that prune, default and
//! validate, rules in CEL, columns, scale, selectable fields, conversion, the strategy of the instances.
//!
//! Everything here is pure: no storage, no HTTP, no clock. The registry holds one [`CompiledDefinition`] per definition
//! and asks it.

pub mod columns;
pub mod conditions;
pub mod conversion;
pub mod crd;
pub mod jsonpath;
pub mod rules;
pub mod scale;
pub mod strategy;
pub mod structural;
pub mod version;

pub use crd::DefinitionStrategy;
/// CEL, for those who know this crate only.
pub use pintle_cel as cel;
pub use strategy::CustomResourceStrategy;
pub use structural::Structural;
pub use version::{CompiledDefinition, CompiledVersion};
