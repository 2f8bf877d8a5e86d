//! What the rules of many kinds share: places in an object, checks of names, numbers, enumerations, addresses,
//! selectors, resource amounts and claims, and equality as upstream means it.
//!
//! A check takes the place it looks at ([`At`]) and the list that its findings go to; it allocates nothing while all
//! is well. The rules of one kind live in that kind's own module.

pub mod at;
pub mod checks;
pub mod claim;
pub mod conditions;
pub mod diff;
pub mod equality;
pub mod expression;
pub mod goform;
pub mod ip;
pub mod node_labels;
pub mod pem;
pub mod resources;
pub mod selectors;
pub mod signer;
pub mod webhook;

pub use at::At;
pub use checks::{
    dns1123_label, dns1123_subdomain, immutable, nonnegative, one_of, one_of_required, port_number,
    port_number_or_name, positive, push_faults, qualified_name, required,
};

/// Texts that were seen already.
pub type Seen<'a> = std::collections::BTreeSet<&'a str>;

/// How many bytes a field of bytes holds, which on the wire is base64.
pub fn n_bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}
