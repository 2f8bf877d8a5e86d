//! TLS between the server and the agents of nodes.

use super::Pair;
use super::tls::TlsError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::sync::Arc;

fn failed(error: &dyn std::fmt::Display) -> TlsError {
    TlsError::new(error)
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(pair: &Pair) -> Result<Identity, TlsError> {
    let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(|error| failed(&error))?;
    Ok((chain.map_err(|error| failed(&error))?, key))
}

fn roots(authority: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
    }
    Ok(roots)
}

/// How the server speaks to agents: it shows `client`, and does not look at whose certificate the agent has, unless
/// there is an `authority` that must have signed it. Without `client` for whoever else is spoken to.
///
/// # Errors
/// [`TlsError`] when certificates or keys are malformed.
pub fn agent_client_config(client: Option<&Pair>, authority: Option<&str>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let builder = match authority {
        Some(authority) => builder.with_root_certificates(roots(authority)?),
        None => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer { provider })),
    };
    let Some(client) = client else { return Ok(builder.with_no_client_auth()) };
    let (chain, key) = identity(client)?;
    builder.with_client_auth_cert(chain, key).map_err(|error| failed(&error))
}

/// How an agent is spoken to: it shows `serving`, and lets only those in whom `authority` has certified.
///
/// # Errors
/// [`TlsError`] when certificates or keys are malformed.
pub fn agent_server_config(serving: &Pair, authority: &str) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(authority)?), Arc::clone(&provider));
    let verifier = verifier.build().map_err(|error| failed(&error))?;
    let (chain, key) = identity(serving)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| failed(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Lets every server pass that has the key of its certificate.
#[derive(Debug)]
struct AnyServer {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
