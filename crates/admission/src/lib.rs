//! Admission: what may be written, beyond what validation can see, and what is filled in before.
//!
//! A [`Chain`] of plugins in upstream's order, each of which may change the object first and refuse it later. Other
//! objects come in through [`pintle_auth::Lookup`]; the few writes that admission makes (usage of quotas) go out through
//! traits that the server implements.

pub mod attributes;
pub mod chain;
mod compiled;
mod errors;
pub mod expressions;
mod language;
mod matching;
pub mod plugins;
pub mod pod;
mod policy;
pub mod quota;
pub mod webhook;

pub use attributes::{Admission, AdmitAll, Attributes, Operation, Warnings};
pub use chain::{Chain, Plugin, Rounds};
pub use errors::{forbidden, object_name};
pub use expressions::Expressions;
pub use language::{Cel, EXPRESSION_COST_MAX};
pub use matching::{Forms, SingleForms};
pub use policy::{MESSAGE_BYTES_MAX, ValidatingAdmissionPolicy};
