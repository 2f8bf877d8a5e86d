//! An authority: a key and a certificate that sign others.

use super::{AUTHORITY_DAYS, CERTIFICATE_DAYS, PkiError, RENEW_BEFORE_DAYS, ServingNames};
use jiff::Timestamp;
use pintle_apimachinery::env::Env;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use std::net::IpAddr;
use std::time::Duration;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension, X509Certificate};

/// How far a certificate's beginning lies in the past, in seconds: clocks differ.
const BACKDATE_SECONDS: i64 = 300;

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate, with those that it needs up to the authority.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("certificate", &self.certificate.len()).finish_non_exhaustive()
    }
}

/// Whose certificate.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The common name: of a client, its user.
    pub common_name: &'a str,
    /// The organisations: of a client, its groups.
    pub organizations: &'a [&'a str],
    /// The names of a server; `None` for a client.
    pub serving: Option<&'a ServingNames>,
}

/// A key and a certificate that sign others.
pub struct Authority {
    /// The certificate, in PEM.
    pub certificate: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("certificate", &self.certificate.len()).finish_non_exhaustive()
    }
}

/// Why a certificate signing request cannot be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to sign the certificate request: {0}")]
pub struct RequestError(pub String);

/// A fresh P-256 key.
pub(super) fn fresh_key(name: &str) -> Result<KeyPair, PkiError> {
    KeyPair::generate().map_err(|error| PkiError::Issue { name: name.to_owned(), why: error.to_string() })
}

fn parameters(now: Timestamp, seconds: i64, env: &Env) -> CertificateParams {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let at = |second: i64| epoch + Duration::from_secs(u64::try_from(second).unwrap_or_default());
    let mut parameters = CertificateParams::default();
    parameters.not_before = at(now.as_second() - BACKDATE_SECONDS);
    parameters.not_after = at(now.as_second() + seconds);
    // 63 bits: positive, and unlikely enough to come twice
    let serial = env.ids.random_u64() >> 1;
    parameters.serial_number = Some(SerialNumber::from_slice(&serial.to_be_bytes()));
    parameters.distinguished_name = DistinguishedName::new();
    parameters
}

const DAY_SECONDS: i64 = 86_400;

impl Authority {
    /// A new authority.
    ///
    /// # Errors
    /// [`PkiError::Issue`] when there are no random numbers.
    pub fn generate(name: &str, now: Timestamp, env: &Env) -> Result<Authority, PkiError> {
        let failed = |why: String| PkiError::Issue { name: name.to_owned(), why };
        let key = fresh_key(name)?;
        let mut parameters = parameters(now, AUTHORITY_DAYS * DAY_SECONDS, env);
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = parameters.self_signed(&key).map_err(|error| failed(error.to_string()))?;
        Authority::from_pem(&certificate.pem(), &key.serialize_pem()).map_err(failed)
    }

    /// The authority of this certificate and key.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Authority, String> {
        let key = KeyPair::from_pem(key).map_err(|error| error.to_string())?;
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| error.to_string())?;
        {
            let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
            if parsed.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
                return Err("the key is not that of the certificate".to_owned());
            }
        }
        let issuer = Issuer::from_ca_cert_der(&der, key).map_err(|error| error.to_string())?;
        Ok(Authority { certificate: certificate.to_owned(), der, issuer })
    }

    /// The private key, in PEM.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A new certificate with a new key.
    ///
    /// # Errors
    /// [`PkiError::Issue`] when a name cannot stand in a certificate.
    pub fn issue(&self, subject: &Subject<'_>, now: Timestamp, env: &Env) -> Result<Pair, PkiError> {
        let failed = |why: String| PkiError::Issue { name: subject.common_name.to_owned(), why };
        let key = fresh_key(subject.common_name)?;
        let mut parameters = parameters(now, CERTIFICATE_DAYS * DAY_SECONDS, env);
        for organization in subject.organizations {
            parameters.distinguished_name.push(DnType::OrganizationName, *organization);
        }
        if subject.organizations.len() > 1 {
            return Err(failed("more than one organisation needs a certificate signing request".to_owned()));
        }
        parameters.distinguished_name.push(DnType::CommonName, subject.common_name);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        parameters.use_authority_key_identifier_extension = true;
        match subject.serving {
            None => parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            Some(names) => {
                parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
                for name in &names.dns {
                    let name = name.as_str().try_into().map_err(|error: rcgen::Error| failed(error.to_string()))?;
                    parameters.subject_alt_names.push(SanType::DnsName(name));
                }
                parameters.subject_alt_names.extend(names.ips.iter().copied().map(SanType::IpAddress));
            }
        }
        let certificate = parameters.signed_by(&key, &self.issuer).map_err(|error| failed(error.to_string()))?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// Whether a certificate made earlier still serves: signed by this authority, for this subject, covering its
    /// names, and not about to end.
    pub(super) fn still_good(&self, pair: &Pair, subject: &Subject<'_>, now: Timestamp) -> bool {
        let check = || {
            let der = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).ok()?;
            let (_, parsed) = X509Certificate::from_der(&der).ok()?;
            let (_, own) = X509Certificate::from_der(&self.der).ok()?;
            let key = KeyPair::from_pem(&pair.key).ok()?;
            let is_ours = parsed.public_key().subject_public_key.data.as_ref() == key.public_key_raw()
                && parsed.verify_signature(Some(own.public_key())).is_ok();
            let names = |oid: &str| -> Vec<&str> {
                let attributes = parsed.subject().iter_attributes();
                attributes.filter(|a| a.attr_type().to_id_string() == oid).filter_map(|a| a.as_str().ok()).collect()
            };
            let is_same = names("2.5.4.3") == [subject.common_name] && names("2.5.4.10") == subject.organizations;
            let lasts = parsed.validity().not_after.timestamp() > now.as_second() + RENEW_BEFORE_DAYS * DAY_SECONDS;
            let covers = subject.serving.is_none_or(|wanted| serving_names(&parsed).covers(wanted));
            Some(is_ours && is_same && lasts && covers)
        };
        check().unwrap_or(false)
    }

    /// Signs a PEM certificate signing request as it is, for these key usages (`client auth`, `server auth`, `digital
    /// signature` ...) and so many seconds. The answer is the certificate, in PEM.
    ///
    /// # Errors
    /// [`RequestError`] when the request is malformed or its own signature is wrong.
    pub fn sign_request(
        &self,
        request: &str,
        usages: &[&str],
        seconds: i64,
        now: Timestamp,
        env: &Env,
    ) -> Result<String, RequestError> {
        let mut request =
            CertificateSigningRequestParams::from_pem(request).map_err(|error| RequestError(error.to_string()))?;
        let fresh = parameters(now, seconds, env);
        let wanted = &mut request.params;
        wanted.not_before = fresh.not_before;
        wanted.not_after = fresh.not_after;
        wanted.serial_number = fresh.serial_number;
        wanted.is_ca = IsCa::ExplicitNoCa;
        wanted.use_authority_key_identifier_extension = true;
        wanted.key_usages = usages.iter().filter_map(|usage| key_usage(usage)).collect();
        wanted.extended_key_usages = usages.iter().filter_map(|usage| extended_key_usage(usage)).collect();
        let certificate = request.signed_by(&self.issuer).map_err(|error| RequestError(error.to_string()))?;
        Ok(certificate.pem())
    }
}

fn serving_names(certificate: &X509Certificate<'_>) -> ServingNames {
    let mut names = ServingNames::default();
    for extension in certificate.extensions() {
        let ParsedExtension::SubjectAlternativeName(found) = extension.parsed_extension() else { continue };
        for name in &found.general_names {
            match name {
                GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => {
                    let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                    names.ips.extend(v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)).ok());
                }
                _ => {}
            }
        }
    }
    names
}

fn key_usage(usage: &str) -> Option<KeyUsagePurpose> {
    Some(match usage {
        "signing" | "digital signature" => KeyUsagePurpose::DigitalSignature,
        "content commitment" => KeyUsagePurpose::ContentCommitment,
        "key encipherment" => KeyUsagePurpose::KeyEncipherment,
        "data encipherment" => KeyUsagePurpose::DataEncipherment,
        "key agreement" => KeyUsagePurpose::KeyAgreement,
        "cert sign" => KeyUsagePurpose::KeyCertSign,
        "crl sign" => KeyUsagePurpose::CrlSign,
        "encipher only" => KeyUsagePurpose::EncipherOnly,
        "decipher only" => KeyUsagePurpose::DecipherOnly,
        _ => return None,
    })
}

fn extended_key_usage(usage: &str) -> Option<ExtendedKeyUsagePurpose> {
    Some(match usage {
        "any" => ExtendedKeyUsagePurpose::Any,
        "server auth" => ExtendedKeyUsagePurpose::ServerAuth,
        "client auth" => ExtendedKeyUsagePurpose::ClientAuth,
        "code signing" => ExtendedKeyUsagePurpose::CodeSigning,
        "email protection" | "s/mime" => ExtendedKeyUsagePurpose::EmailProtection,
        "timestamping" => ExtendedKeyUsagePurpose::TimeStamping,
        "ocsp signing" => ExtendedKeyUsagePurpose::OcspSigning,
        _ => return None,
    })
}

/// The organisations in the subject of a PEM certificate signing request.
///
/// # Errors
/// Why the request cannot be read.
pub fn request_organizations(pem: &[u8]) -> Result<Vec<String>, String> {
    use x509_parser::certification_request::X509CertificationRequest;
    let no_request = || "PEM block type must be CERTIFICATE REQUEST".to_owned();
    let der = rustls_pki_types::CertificateSigningRequestDer::from_pem_slice(pem).map_err(|_| no_request())?;
    let (_, request) = X509CertificationRequest::from_der(&der).map_err(|error| error.to_string())?;
    let subject = &request.certification_request_info.subject;
    Ok(subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect())
}
