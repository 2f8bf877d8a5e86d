//! What is wrong with the certificate requests and certificates inside objects, in the words of Go's `crypto/x509`.
//!
//! Signatures by keys on curves other than P-256 and P-384, and by RSA keys of less than 2048 bits, cannot be checked
//! and are refused. Of documents that are no ASN.1 at all the words are Go's; deeper faults have words of their own.

use crate::common::pem;
use pintle_apimachinery::field::go_quote;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry::{
    OID_PKCS1_MD5WITHRSAENC, OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA, OID_SIG_ECDSA_WITH_SHA256,
    OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519, Oid,
};
use x509_parser::prelude::{FromDer as _, X509Certificate, X509Error};

/// What is wrong with a PEM text that should hold a certificate request with a good signature.
pub(super) fn request_fault(text: &[u8]) -> Option<String> {
    let block = pem::blocks(text).next().filter(|block| block.label == "CERTIFICATE REQUEST");
    let Some(block) = block else { return Some("PEM block type must be CERTIFICATE REQUEST".to_owned()) };
    if let Some(fault) = sequence_fault(&block.bytes) {
        return Some(fault);
    }
    match X509CertificationRequest::from_der(&block.bytes) {
        Ok((_, request)) => signature_fault(&request),
        Err(why) => Some(format!("asn1: structure error: {why}")),
    }
}

fn signature_fault(request: &X509CertificationRequest<'_>) -> Option<String> {
    let algorithm = &request.signature_algorithm.algorithm;
    if let Some((_, name)) = INSECURE.iter().find(|(oid, _)| oid == algorithm) {
        return Some(format!("x509: cannot verify signature: insecure algorithm {name}"));
    }
    let is_ecdsa =
        [OID_SIG_ECDSA_WITH_SHA256, OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512].contains(algorithm);
    let fault = match request.verify_signature() {
        Ok(()) => return None,
        Err(X509Error::SignatureVerificationError) if is_ecdsa => "x509: ECDSA verification failure",
        Err(X509Error::SignatureVerificationError) if *algorithm == OID_SIG_ED25519 => {
            "x509: Ed25519 verification failure"
        }
        Err(X509Error::SignatureVerificationError) => "crypto/rsa: verification error",
        Err(_) => "x509: cannot verify signature: algorithm unimplemented",
    };
    Some(fault.to_owned())
}

/// Algorithms that prove nothing any more.
const INSECURE: [(Oid<'static>, &str); 3] =
    [(OID_PKCS1_MD5WITHRSAENC, "MD5-RSA"), (OID_PKCS1_SHA1WITHRSA, "SHA1-RSA"), (OID_SHA1_WITH_RSA, "SHA1-RSA")];

/// What is wrong with a PEM text that may be empty and otherwise holds certificates.
pub(super) fn certificate_fault(text: &[u8]) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let mut n_blocks = 0;
    for block in pem::blocks(text) {
        n_blocks += 1;
        if block.label != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {}", go_quote(&block.label)));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        if block.bytes.is_empty() {
            return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        let mut rest = block.bytes.as_slice();
        while !rest.is_empty() {
            if Head::read(rest).is_none_or(|head| !head.is_sequence() || head.end() > rest.len()) {
                return Some("x509: malformed certificate".to_owned());
            }
            match X509Certificate::from_der(rest) {
                Ok((after, _)) => rest = after,
                Err(_) => return Some("x509: malformed tbs certificate".to_owned()),
            }
        }
    }
    (n_blocks == 0).then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

/// What an ASN.1 value begins with.
struct Head {
    class: u8,
    tag: u32,
    is_compound: bool,
    /// Bytes before the content.
    n_head: usize,
    /// Bytes of content that are announced.
    n_content: usize,
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Head> {
        let first = *bytes.first()?;
        let mut at = 1;
        let mut tag = u32::from(first & 0x1f);
        if tag == 0x1f {
            tag = 0;
            loop {
                let b = *bytes.get(at)?;
                at += 1;
                tag = tag.checked_mul(128)?.checked_add(u32::from(b & 0x7f))?;
                if b & 0x80 == 0 {
                    break;
                }
            }
        }
        let b = *bytes.get(at)?;
        at += 1;
        let mut n_content = usize::from(b & 0x7f);
        if b & 0x80 != 0 {
            let n_bytes = n_content;
            n_content = 0;
            for _ in 0..n_bytes {
                n_content = n_content.checked_mul(256)?.checked_add(usize::from(*bytes.get(at)?))?;
                at += 1;
            }
        }
        Some(Head { class: first >> 6, tag, is_compound: first & 0x20 != 0, n_head: at, n_content })
    }

    fn is_sequence(&self) -> bool {
        self.class == 0 && self.tag == 16 && self.is_compound
    }

    fn end(&self) -> usize {
        self.n_head.saturating_add(self.n_content)
    }
}

/// What is wrong with bytes that should be one ASN.1 sequence and nothing more.
fn sequence_fault(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return Some("asn1: syntax error: sequence truncated".to_owned());
    }
    let Some(head) = Head::read(bytes) else {
        return Some("asn1: syntax error: truncated tag or length".to_owned());
    };
    if !head.is_sequence() {
        return Some(format!(
            "asn1: structure error: tags don't match (16 vs {{class:{} tag:{} length:{} isCompound:{}}}) \
             {{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 \
             timeType:0 set:false omitEmpty:false}} certificateRequest @{}",
            head.class, head.tag, head.n_content, head.is_compound, head.n_head
        ));
    }
    if head.end() > bytes.len() {
        return Some("asn1: syntax error: data truncated".to_owned());
    }
    (head.end() < bytes.len()).then(|| "asn1: syntax error: trailing data".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let pem = |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        let fault = |text: &str| request_fault(text.as_bytes()).unwrap_or_default();
        let kind = "CERTIFICATE REQUEST";
        let good = "MIHWMH8CAQAwHTEMMAoGA1UECgwDZGV2MQ0wCwYDVQQDDARqYW5lMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1q4WwNtGtt59HbkK\
                    Zm3QZ7pYs45Gst1KVp6yiqyyQutinVpg1CC3UjsozNY43szq8Yd2D0r/2FKKOkP/RSh4RaAAMAoGCCqGSM49BAMCA0cAMEQCIDGXTHob\
                    wCDjDpT2sTitGuExj+M5nfoyioszm/nmPj0eAiBUh/9cpn3F6xU+SuZuBc+DtOgaw0b7WSIoOdK6pfwU2A==";
        assert_eq!(fault(&pem(kind, good)), "");
        assert_eq!(fault(&pem("CERTIFICATE", good)), "PEM block type must be CERTIFICATE REQUEST");
        let forged = good.replace("amFuZT", "amFuZQ").replace("ZGV2", "ZGV3");
        assert_eq!(fault(&pem(kind, &forged)), "x509: ECDSA verification failure");
        assert_eq!(fault(&pem(kind, "")), "asn1: syntax error: sequence truncated");
        assert_eq!(fault(&pem(kind, "MIHW")), "asn1: syntax error: data truncated");
        assert_eq!(
            fault(&pem(kind, "bm9wZQ==")),
            "asn1: structure error: tags don't match (16 vs {class:1 tag:14 length:111 isCompound:true}) {optional:false \
             explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false \
             omitEmpty:false} certificateRequest @2"
        );
    }

    #[test]
    fn certificates() {
        let fault = |text: &str| certificate_fault(text.as_bytes()).unwrap_or_default();
        assert_eq!(fault(""), "");
        assert_eq!(fault("x"), "must contain at least one CERTIFICATE PEM block");
        assert_eq!(
            fault("-----BEGIN A-----\nAQID\n-----END A-----"),
            "only CERTIFICATE PEM blocks are allowed, found \"A\""
        );
        let pem = |body: &str| format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
        assert_eq!(fault(&pem("K: v\n\nAQID")), "no PEM block headers are permitted");
        assert_eq!(fault(&pem("")), "found CERTIFICATE PEM block containing 0 certificates");
        assert_eq!(fault(&pem("AQID")), "x509: malformed certificate");
        assert_eq!(fault(&pem("MAA=")), "x509: malformed tbs certificate");
    }
}
