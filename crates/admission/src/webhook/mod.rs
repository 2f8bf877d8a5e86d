//! Webhooks: admission by servers elsewhere, as objects of the API configure it.
//!
//! The plugins know neither how a webhook is reached ([`Caller`]; [`HttpCaller`] does it over HTTPS), nor how objects
//! are converted between versions ([`crate::Forms`]), nor the language of match conditions ([`crate::Expressions`]).

mod call;
mod dispatch;
mod hook;
mod http;
mod mutating;
mod review;
mod service;
#[cfg(test)]
mod tests;
mod validating;

pub use call::{CallError, Caller};
pub use dispatch::Webhooks;
pub use http::{ANSWER_BYTES_MAX, CLIENTS_MAX, HttpCaller};
pub(crate) use mutating::Memory;
pub use mutating::MutatingAdmissionWebhook;
pub(crate) use review::request_of;
pub use service::{Routing, ServiceResolver};
pub use validating::ValidatingAdmissionWebhook;
