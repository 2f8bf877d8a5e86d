//! Who asks and what they may: authenticators, authorizers, tokens, certificates, the policy every cluster starts with,
//! and the review APIs as functions.
//!
//! Not here: HTTP (the server calls [`authn::Authenticator`] and [`authz::Chain`] and renders their answers), storage
//! (objects come in through [`Lookup`] and through events), admission.

pub mod authn;
pub mod authz;
pub mod bootstrap;
pub mod impersonation;
pub mod lookup;
pub mod pki;
pub mod pod_refs;
pub mod review;
pub mod token;
pub mod user;

pub use authn::{Authenticated, Authenticator, AuthnError, RequestParts};
pub use authz::{Attributes, Authorizer, Chain, Decision, Verdict};
pub use lookup::{Lookup, StaticLookup};
pub use pintle_kinds::UserInfo;
