//! The group `certificates.k8s.io`.

pub mod signingrequest;
mod validation;
mod x509;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    match resource {
        "certificatesigningrequests" => Some(&signingrequest::CertificateSigningRequest),
        _ => None,
    }
}
