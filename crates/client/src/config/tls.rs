//! The TLS side of a configuration: what is trusted and what is shown, as rustls wants it. The crypto provider is
//! `ring`, chosen here and not by the process.

use super::{ClientCertificate, ConfigError, TlsSettings};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::path::Path;
use std::sync::Arc;

/// Where systems keep the certificates that they trust; the first that is there is read, as Go does.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Builds the handshake's settings. `plugin_certificate` stands in for the one of the settings (credential plugins).
pub(crate) fn rustls_config(
    settings: &TlsSettings,
    plugin_certificate: Option<&ClientCertificate>,
    http1_only: bool,
) -> Result<ClientConfig, ConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|source| ConfigError::Tls { what: "TLS 1.2 and 1.3".to_owned(), source: Box::new(source) })?;
    let builder = if settings.insecure_skip_verify {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustAnyone { provider }))
    } else {
        builder.with_root_certificates(roots(settings)?)
    };
    let certificate = plugin_certificate.or(settings.client_certificate.as_ref());
    let mut config = match certificate {
        Some(certificate) => {
            let (chain, key) = identity(certificate)?;
            builder.with_client_auth_cert(chain, key).map_err(|source| ConfigError::Tls {
                what: "the client certificate".to_owned(),
                source: Box::new(source),
            })?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols =
        if http1_only { vec![b"http/1.1".to_vec()] } else { vec![b"h2".to_vec(), b"http/1.1".to_vec()] };
    Ok(config)
}

impl TlsSettings {
    /// What these settings are to a handshake, for connections that are opened outside this crate.
    ///
    /// # Errors
    /// [`ConfigError::Tls`] when certificates or keys cannot be used.
    pub fn handshake(&self, http1_only: bool) -> Result<ClientConfig, ConfigError> {
        rustls_config(self, None, http1_only)
    }
}

fn roots(settings: &TlsSettings) -> Result<RootCertStore, ConfigError> {
    let mut store = RootCertStore::empty();
    let (what, pem) = match &settings.certificate_authority_pem {
        Some(pem) => ("the certificate authority".to_owned(), pem.clone()),
        None => system_bundle()?,
    };
    for certificate in certificates(&what, &pem)? {
        // a system's bundle may hold certificates that rustls does not take; a configured one may not
        if let Err(source) = store.add(certificate)
            && settings.certificate_authority_pem.is_some()
        {
            return Err(ConfigError::Tls { what, source: Box::new(source) });
        }
    }
    if store.is_empty() {
        return Err(ConfigError::Tls { what, source: "it holds no certificate".into() });
    }
    Ok(store)
}

fn system_bundle() -> Result<(String, String), ConfigError> {
    let configured = std::env::var("SSL_CERT_FILE").ok().filter(|path| !path.is_empty());
    let found = configured
        .or_else(|| SYSTEM_BUNDLES.iter().find(|path| Path::new(path).exists()).map(|path| (*path).to_owned()));
    let Some(path) = found else {
        let source = "no certificate authority is configured and the system has no bundle".into();
        return Err(ConfigError::Tls { what: "the system's certificates".to_owned(), source });
    };
    let pem = super::read_text(Path::new(&path))?;
    Ok((path, pem))
}

fn certificates(what: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    rustls_pemfile::certs(&mut pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|source| ConfigError::Tls { what: what.to_owned(), source: Box::new(source) })
}

fn identity(
    certificate: &ClientCertificate,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ConfigError> {
    let chain = certificates("the client certificate", &certificate.certificate_pem)?;
    let what = || "the client key".to_owned();
    let key = rustls_pemfile::private_key(&mut certificate.key_pem.reveal().as_bytes())
        .map_err(|source| ConfigError::Tls { what: what(), source: Box::new(source) })?
        .ok_or_else(|| ConfigError::Tls { what: what(), source: "it holds no key".into() })?;
    Ok((chain, key))
}

/// `insecure-skip-tls-verify`: the handshake's signatures are checked, whose they are is not.
#[derive(Debug)]
struct TrustAnyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
