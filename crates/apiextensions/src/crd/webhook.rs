//! Validation of a conversion webhook's address.
//!
//! Follows: apiserver/pkg/util/webhook/validation.go (v0.35).

use base64::Engine as _;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};
use pintle_kinds::common::{At, webhook};

/// The errors of a client configuration.
pub(super) fn validate_client_config(config: &Value, path: &Path<'_>, allows_bad_bundle: bool, errors: &mut ErrorList) {
    webhook::validate_client_config(&At::new(config, *path), errors);
    let bundle = config["caBundle"].str_or_empty();
    if !bundle.is_empty()
        && !allows_bad_bundle
        && let Some(why) = bundle_fault(bundle)
    {
        errors.push(FieldError::invalid(&path.child("caBundle"), bundle, why));
    }
}

/// What is wrong with a bundle of certificates (base64 of PEM), if anything.
pub fn bundle_fault(bundle: &str) -> Option<String> {
    const PREFIX: &str = "unable to load root certificates:";
    let engine = base64::engine::general_purpose::STANDARD;
    let pem = engine.decode(bundle).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let mut rest = pem.as_str();
    let mut has_other_block = false;
    while let Some(begin) = rest.find("-----BEGIN ") {
        let after = &rest[begin + 11..];
        let Some((label, after)) = after.split_once("-----") else { break };
        let Some((body, after)) = after.split_once(&format!("-----END {label}-----")) else { break };
        has_other_block = true;
        rest = after;
        if label == "CERTIFICATE" && !body.contains(':') {
            let der: String = body.chars().filter(|c| !c.is_whitespace()).collect();
            return match engine.decode(der) {
                // the outermost of a certificate is a DER sequence
                Ok(der) if der.first() == Some(&0x30) => None,
                Ok(_) => Some(format!("{PREFIX} failed to parse certificate: x509: malformed certificate")),
                Err(_) => Some(format!("{PREFIX} unable to parse bytes as PEM block")),
            };
        }
    }
    let why = if has_other_block && rest.trim().is_empty() {
        "no valid certificate authority data seen"
    } else {
        "unable to parse bytes as PEM block"
    };
    Some(format!("{PREFIX} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles() {
        let junk = base64::engine::general_purpose::STANDARD.encode("junk");
        assert_eq!(
            bundle_fault(&junk).as_deref(),
            Some("unable to load root certificates: unable to parse bytes as PEM block")
        );
    }
}
