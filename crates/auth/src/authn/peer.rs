//! Client certificates: verified once for each connection and authority, then a name to read.
//!
//! The TLS layer asks for a certificate and lets every chain pass ([`crate::pki::server_config`]); here it is verified,
//! so that a bad one is a 401 and not a broken connection.

use crate::user;
use jiff::Timestamp;
use parking_lot::Mutex;
use pintle_apimachinery::Str;
use pintle_kinds::UserInfo;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, UnixTime};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The attribute of a certificate's subject that tells the user's uid.
const OID_UID: &str = "1.3.6.1.4.1.57683.2";

/// What a client certificate says, and which authorities have been found to stand behind it.
#[derive(Debug)]
pub struct PeerCertificate {
    chain: Vec<CertificateDer<'static>>,
    subject: Result<Subject, String>,
    /// Of each authority asked so far (by its id) the result.
    verified: Mutex<Vec<(u64, Result<(), String>)>>,
}

#[derive(Debug)]
struct Subject {
    common_name: String,
    user: UserInfo,
    not_after: i64,
    identifier: String,
}

impl PeerCertificate {
    /// The certificate that a connection has shown, with the intermediates that came along. `None` for no certificate.
    pub fn new(chain: &[CertificateDer<'_>]) -> Option<PeerCertificate> {
        let subject = Subject::parse(chain.first()?);
        let chain = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        Some(PeerCertificate { chain, subject, verified: Mutex::default() })
    }

    /// The subject's common name; empty for none.
    pub fn common_name(&self) -> &str {
        self.subject.as_ref().map(|subject| subject.common_name.as_str()).unwrap_or_default()
    }
}

impl Subject {
    fn parse(certificate: &CertificateDer<'_>) -> Result<Subject, String> {
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| error.to_string())?;
        let (mut common_name, mut groups, mut uids) = (String::new(), Vec::new(), Vec::new());
        for attribute in parsed.subject().iter_attributes() {
            let Ok(text) = attribute.as_str() else { continue };
            match attribute.attr_type().to_id_string().as_str() {
                "2.5.4.3" => text.clone_into(&mut common_name),
                "2.5.4.10" => groups.push(Str::new(text)),
                OID_UID => uids.push(text),
                _ => {}
            }
        }
        let uid = match uids.as_slice() {
            [] => "",
            [""] => return Err("UID cannot be an empty string".to_owned()),
            [uid] => uid,
            _ => return Err(format!("expected 1 UID, but found multiple: {}", uids.join(", "))),
        };
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        let user = UserInfo {
            name: Str::new(&common_name),
            uid: Str::new(uid),
            groups,
            extra: vec![user::extra(user::CREDENTIAL_ID, format!("X509SHA256={}", hex(digest.as_ref(), "")))],
        };
        let identifier = format!("SN={}", parsed.tbs_certificate.serial);
        Ok(Subject { common_name, user, not_after: parsed.validity().not_after.timestamp(), identifier })
    }
}

fn hex(bytes: &[u8], separator: &str) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for (idx, byte) in bytes.iter().enumerate() {
        if idx > 0 {
            out.push_str(separator);
        }
        // writing to a String cannot fail
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Authorities that sign the certificates of clients.
pub struct ClientCa {
    /// Tells this authority from others in a [`PeerCertificate`].
    id: u64,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl std::fmt::Debug for ClientCa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClientCa({})", self.id)
    }
}

static N_AUTHORITIES: AtomicU64 = AtomicU64::new(0);

impl ClientCa {
    /// The authorities of a PEM bundle.
    ///
    /// # Errors
    /// A text for the user when there is none, or one is malformed.
    pub fn from_pem(bundle: &[u8]) -> Result<ClientCa, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        if roots.is_empty() {
            return Err("data does not contain any valid certificates".to_owned());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(ClientCa { id: N_AUTHORITIES.fetch_add(1, Ordering::Relaxed), verifier })
    }

    /// Whether these authorities stand behind the certificate, now.
    ///
    /// # Errors
    /// Why they do not.
    pub fn verify(&self, peer: &PeerCertificate, now: Timestamp) -> Result<(), String> {
        let subject = peer.subject.as_ref().map_err(String::clone)?;
        let failed = |why: &str| format!("verifying certificate {} failed: {why}", subject.identifier);
        if now.as_second() > subject.not_after {
            return Err(failed("x509: certificate has expired or is not yet valid"));
        }
        let mut verified = peer.verified.lock();
        if let Some((_, result)) = verified.iter().find(|(id, _)| *id == self.id) {
            return result.clone();
        }
        let at = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default()));
        let result = match peer.chain.split_first() {
            Some((leaf, intermediates)) => {
                let verified = self.verifier.verify_client_cert(leaf, intermediates, at);
                verified.map(|_| ()).map_err(|error| failed(&error.to_string()))
            }
            None => Err("no certificate".to_owned()),
        };
        verified.push((self.id, result.clone()));
        result
    }

    /// The user that the certificate names: its common name, with its organisations as groups.
    pub(super) fn authenticate(&self, peer: &PeerCertificate, now: Timestamp) -> Result<Option<UserInfo>, String> {
        self.verify(peer, now)?;
        let subject = peer.subject.as_ref().map_err(String::clone)?;
        Ok((!subject.common_name.is_empty()).then(|| subject.user.clone()))
    }
}
