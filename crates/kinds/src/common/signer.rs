//! Names of signers: `example.com/name`.

use super::{At, required};
use pintle_apimachinery::ErrorList;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::names::{self, Faults, LABEL_BYTES_MAX, SUBDOMAIN_BYTES_MAX};

/// What follows the slash may be a label, a dot and a subdomain long.
const PATH_BYTES_MAX: usize = SUBDOMAIN_BYTES_MAX + LABEL_BYTES_MAX + 1;
/// A signer's name may have this many bytes.
const NAME_BYTES_MAX: usize = SUBDOMAIN_BYTES_MAX + 1 + PATH_BYTES_MAX;

/// The name of a signer.
pub fn validate_signer_name(at: &At<'_>, errors: &mut ErrorList) {
    if !required(at, errors) {
        return;
    }
    let (domain, path) = match at.text().split_once('/') {
        Some((domain, path)) if !path.contains('/') => (domain, path),
        _ => {
            errors.push(at.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'"));
            return;
        }
    };
    if domain.len() > SUBDOMAIN_BYTES_MAX {
        errors.push(at.too_long(SUBDOMAIN_BYTES_MAX));
    }
    validate_labels(at, domain, names::dns1123_label, errors);
    if !domain.contains('.') {
        errors.push(at.invalid_showing(domain, "should be a domain with at least two segments separated by dots"));
    }
    validate_labels(at, path, names::dns1123_subdomain, errors);
    if at.text().len() > NAME_BYTES_MAX {
        errors.push(at.too_long(NAME_BYTES_MAX));
    }
}

/// The faults of the first wrong one of the names between dots.
fn validate_labels(at: &At<'_>, text: &str, rule: fn(&str) -> Faults, errors: &mut ErrorList) {
    for label in text.split('.') {
        let faults = rule(label);
        if !faults.is_empty() {
            let told = |fault| at.invalid_showing(text, format!("validating label {}: {fault}", go_quote(label)));
            errors.extend(faults.into_iter().map(told));
            return;
        }
    }
}
