//! Tokens of service accounts: keys, signatures, claims, and the documents by which others can check them.

mod der;
mod discovery;
mod jws;
mod keys;
mod service_account;

pub use discovery::{Discovery, DiscoveryError};
pub use jws::{Compact, JwsError};
pub use keys::{KeyError, SigningKey, VerifyKey};
pub use service_account::{
    BoundTo, Claims, EXPIRATION_EXTENSION_SECONDS, ISSUER_LEGACY, Issuer, LEEWAY_SECONDS, WARN_ONLY_EXPIRATION_SECONDS,
};
