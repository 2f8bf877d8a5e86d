//! The TLS configuration of the server.

use super::Pair;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use std::sync::Arc;

/// Why there can be no TLS.
#[derive(Debug, thiserror::Error)]
#[error("the serving certificate cannot be used: {0}")]
pub struct TlsError(String);

impl TlsError {
    pub(super) fn new(why: &dyn std::fmt::Display) -> TlsError {
        TlsError(why.to_string())
    }
}

/// A configuration that shows this certificate, speaks these protocols (most wanted first) and asks for a client
/// certificate, of one of these authorities (in PEM), as it tells clients that have several. Whatever comes is let
/// through once the client has proved that it has the key: whether it is trusted is for authentication to say, with a
/// 401.
///
/// # Errors
/// [`TlsError`] when certificate and key are malformed or do not belong together.
pub fn server_config(serving: &Pair, client_authorities: &str, protocols: &[&[u8]]) -> Result<ServerConfig, TlsError> {
    let failed = |error: &dyn std::fmt::Display| TlsError(error.to_string());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(serving.certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes()).map_err(|error| failed(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let authorities = subjects(client_authorities);
    let verifier = Arc::new(AnyClient { provider: Arc::clone(&provider), authorities });
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| failed(&error))?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// Lets every client pass whose certificate is its own.
#[derive(Debug)]
struct AnyClient {
    provider: Arc<CryptoProvider>,
    authorities: Vec<DistinguishedName>,
}

/// The names of the authorities in a PEM file; what is no certificate is left to authentication to complain about.
fn subjects(authorities: &str) -> Vec<DistinguishedName> {
    let certificates = CertificateDer::pem_slice_iter(authorities.as_bytes()).filter_map(Result::ok);
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    roots.subjects()
}

impl AnyClient {
    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}

impl ClientCertVerifier for AnyClient {
    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.authorities
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, self.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}
