//! Whether a certificate and a private key in PEM belong together, told in the words of Go's `tls.X509KeyPair`.
//!
//! Not here: the contents of the key. A pair that reads as PEM is taken to match.

use crate::common::pem;

/// What is wrong with the pair, if it shows in its PEM.
pub fn key_pair_fault(certificate: &[u8], key: &[u8]) -> Option<String> {
    certificate_fault(certificate).or_else(|| key_fault(key))
}

fn certificate_fault(text: &[u8]) -> Option<String> {
    let labels: Vec<String> = pem::blocks(text).map(|block| block.label).collect();
    if labels.iter().any(|label| label == "CERTIFICATE") {
        return None;
    }
    Some(match labels.as_slice() {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [label] if label.ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()
        }
        labels => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            labels.join(" ")
        ),
    })
}

fn key_fault(text: &[u8]) -> Option<String> {
    let labels: Vec<String> = pem::blocks(text).map(|block| block.label).collect();
    if labels.iter().any(|label| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY")) {
        return None;
    }
    Some(match labels.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [label] if label == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        labels => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
            labels.join(" ")
        ),
    })
}
