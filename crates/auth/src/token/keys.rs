//! Keys that sign and verify tokens: RSA (RS256) and ECDSA on P-256 and P-384 (ES256, ES384), from PEM.

use super::der;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pintle_apimachinery::{Str, Value, json};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, KeyPair as _, RsaKeyPair, UnparsedPublicKey};
use rustls_pki_types::pem::{self, PemObject as _};
use std::fmt;

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// There is no PEM block with a key.
    #[error("data does not contain any valid RSA or ECDSA keys")]
    NoKey,
    /// The key is of another kind.
    #[error("the key is neither RSA nor ECDSA on P-256 or P-384")]
    Unsupported,
    /// The key is malformed, or too weak.
    #[error("the key is not usable: {0}")]
    Malformed(String),
}

/// A kind of signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
    Es384,
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
        }
    }
}

const OID_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const OID_EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const OID_P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const OID_P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const NULL: &[u8] = &[0x05, 0x00];

/// A key that verifies signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyKey {
    /// The key's id: what upstream derives from the public key.
    pub id: Str,
    algorithm: Algorithm,
    /// RSA: the DER of RSAPublicKey. ECDSA: the uncompressed point.
    material: Vec<u8>,
}

impl fmt::Debug for VerifyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyKey({} {})", self.algorithm.name(), self.id)
    }
}

impl VerifyKey {
    fn new(algorithm: Algorithm, material: &[u8]) -> VerifyKey {
        let identifier = match algorithm {
            Algorithm::Rs256 => der::element(der::SEQUENCE, &[&der::element(der::OID, &[OID_RSA]), NULL]),
            Algorithm::Es256 => ec_identifier(OID_P256),
            Algorithm::Es384 => ec_identifier(OID_P384),
        };
        let spki = der::element(der::SEQUENCE, &[&identifier, &der::element(der::BIT_STRING, &[&[0], material])]);
        let id = URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, &spki));
        VerifyKey { id: Str::from(id), algorithm, material: material.to_vec() }
    }

    /// The key in the DER of a SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`KeyError`] when it is none that is supported.
    pub fn from_spki(spki: &[u8]) -> Result<VerifyKey, KeyError> {
        let parse = || {
            let (content, _) = der::expect(spki, der::SEQUENCE)?;
            let (identifier, rest) = der::expect(content, der::SEQUENCE)?;
            let (bits, _) = der::expect(rest, der::BIT_STRING)?;
            let (oid, parameters) = der::expect(identifier, der::OID)?;
            Some((oid, parameters, bits.strip_prefix(&[0])?))
        };
        let (oid, parameters, key) = parse().ok_or_else(|| KeyError::Malformed("not a public key".to_owned()))?;
        let curve = der::expect(parameters, der::OID).map(|(curve, _)| curve);
        match (oid, curve) {
            (OID_RSA, _) => Ok(VerifyKey::new(Algorithm::Rs256, key)),
            (OID_EC, Some(OID_P256)) => Ok(VerifyKey::new(Algorithm::Es256, key)),
            (OID_EC, Some(OID_P384)) => Ok(VerifyKey::new(Algorithm::Es384, key)),
            _ => Err(KeyError::Unsupported),
        }
    }

    /// Every key in the PEM text: public keys, the public halves of private keys, the keys of certificates.
    ///
    /// # Errors
    /// [`KeyError::NoKey`] when there is none, else why one cannot be used.
    pub fn list_from_pem(text: &[u8]) -> Result<Vec<VerifyKey>, KeyError> {
        let mut keys = Vec::new();
        for section in <(pem::SectionKind, Vec<u8>)>::pem_slice_iter(text) {
            let (kind, content) = section.map_err(|error| KeyError::Malformed(error.to_string()))?;
            match kind {
                pem::SectionKind::PublicKey => keys.push(VerifyKey::from_spki(&content)?),
                pem::SectionKind::Certificate => {
                    let (_, certificate) = x509_parser::parse_x509_certificate(&content)
                        .map_err(|error| KeyError::Malformed(error.to_string()))?;
                    keys.push(VerifyKey::from_spki(certificate.tbs_certificate.subject_pki.raw)?);
                }
                pem::SectionKind::PrivateKey | pem::SectionKind::RsaPrivateKey | pem::SectionKind::EcPrivateKey => {
                    keys.push(SigningKey::from_section(kind, &content)?.public);
                }
                _ => {}
            }
        }
        if keys.is_empty() { Err(KeyError::NoKey) } else { Ok(keys) }
    }

    /// The name of the signatures it verifies: `RS256`, `ES256`, `ES384`.
    pub fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Whether `signature`, in the form that JWS has, is this key's over `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn signature::VerificationAlgorithm = match self.algorithm {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
        };
        UnparsedPublicKey::new(algorithm, &self.material).verify(message, signature).is_ok()
    }

    /// The key as an item of a JSON web key set.
    pub fn to_jwk(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = json!({"use": "sig", "kid": self.id.as_str(), "alg": self.algorithm.name()});
        match self.algorithm {
            Algorithm::Rs256 => {
                jwk.set("kty", "RSA");
                let numbers = der::expect(&self.material, der::SEQUENCE)
                    .and_then(|(content, _)| der::expect(content, der::INTEGER))
                    .and_then(|(n, rest)| Some((n, der::expect(rest, der::INTEGER)?.0)));
                if let Some((n, e)) = numbers {
                    jwk.set("n", encode(der::magnitude(n)));
                    jwk.set("e", encode(der::magnitude(e)));
                }
            }
            Algorithm::Es256 | Algorithm::Es384 => {
                jwk.set("kty", "EC");
                jwk.set("crv", if self.algorithm == Algorithm::Es256 { "P-256" } else { "P-384" });
                // the point is a 4 and the two coordinates
                let (x, y) = self.material.get(1..).unwrap_or_default().split_at(self.material.len() / 2);
                jwk.set("x", encode(x));
                jwk.set("y", encode(y));
            }
        }
        jwk
    }
}

fn ec_identifier(curve: &[u8]) -> Vec<u8> {
    der::element(der::SEQUENCE, &[&der::element(der::OID, &[OID_EC]), &der::element(der::OID, &[curve])])
}

/// A key that signs.
pub struct SigningKey {
    /// Its public half.
    pub public: VerifyKey,
    pair: Pair,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ec(Box<EcdsaKeyPair>),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({} {})", self.public.algorithm(), self.public.id)
    }
}

impl SigningKey {
    /// The first private key in the PEM text: PKCS #8, PKCS #1 (RSA) or SEC 1 (EC).
    ///
    /// # Errors
    /// [`KeyError::NoKey`] when there is none, else why it cannot be used.
    pub fn from_pem(text: &[u8]) -> Result<SigningKey, KeyError> {
        for section in <(pem::SectionKind, Vec<u8>)>::pem_slice_iter(text) {
            let (kind, content) = section.map_err(|error| KeyError::Malformed(error.to_string()))?;
            if matches!(
                kind,
                pem::SectionKind::PrivateKey | pem::SectionKind::RsaPrivateKey | pem::SectionKind::EcPrivateKey
            ) {
                return SigningKey::from_section(kind, &content);
            }
        }
        Err(KeyError::NoKey)
    }

    fn from_section(kind: pem::SectionKind, content: &[u8]) -> Result<SigningKey, KeyError> {
        match kind {
            pem::SectionKind::RsaPrivateKey => SigningKey::rsa(RsaKeyPair::from_der(content)),
            pem::SectionKind::EcPrivateKey => SigningKey::ec(content, None),
            _ => SigningKey::from_pkcs8(content),
        }
    }

    /// The key of a PKCS #8 document.
    ///
    /// # Errors
    /// [`KeyError`] when it is none that is supported.
    pub fn from_pkcs8(content: &[u8]) -> Result<SigningKey, KeyError> {
        let parse = || {
            let (content, _) = der::expect(content, der::SEQUENCE)?;
            let (_, rest) = der::expect(content, der::INTEGER)?;
            let (identifier, rest) = der::expect(rest, der::SEQUENCE)?;
            let (oid, parameters) = der::expect(identifier, der::OID)?;
            Some((oid, parameters, der::expect(rest, der::OCTET_STRING)?.0))
        };
        let (oid, parameters, inner) = parse().ok_or_else(|| KeyError::Malformed("not PKCS #8".to_owned()))?;
        match oid {
            OID_RSA => SigningKey::rsa(RsaKeyPair::from_der(inner)),
            OID_EC => SigningKey::ec(inner, der::expect(parameters, der::OID).map(|(curve, _)| curve)),
            _ => Err(KeyError::Unsupported),
        }
    }

    fn rsa(pair: Result<RsaKeyPair, ring::error::KeyRejected>) -> Result<SigningKey, KeyError> {
        let pair = pair.map_err(|error| KeyError::Malformed(error.to_string()))?;
        let public = VerifyKey::new(Algorithm::Rs256, pair.public_key().as_ref());
        Ok(SigningKey { public, pair: Pair::Rsa(Box::new(pair)) })
    }

    /// The key of an ECPrivateKey, which may name its curve and carry its public half.
    fn ec(content: &[u8], curve: Option<&[u8]>) -> Result<SigningKey, KeyError> {
        let malformed = || KeyError::Malformed("not an EC private key with its public half".to_owned());
        let (content, _) = der::expect(content, der::SEQUENCE).ok_or_else(malformed)?;
        let (_, rest) = der::expect(content, der::INTEGER).ok_or_else(malformed)?;
        let (secret, mut rest) = der::expect(rest, der::OCTET_STRING).ok_or_else(malformed)?;
        let (mut curve, mut point) = (curve, None);
        while let Some((tag, inner, after)) = der::next(rest) {
            match tag {
                0xa0 => curve = curve.or_else(|| Some(der::expect(inner, der::OID)?.0)),
                0xa1 => point = der::expect(inner, der::BIT_STRING).and_then(|(bits, _)| bits.strip_prefix(&[0])),
                _ => {}
            }
            rest = after;
        }
        let (algorithm, signing, len) = match curve {
            Some(OID_P256) => (Algorithm::Es256, &signature::ECDSA_P256_SHA256_FIXED_SIGNING, 32),
            Some(OID_P384) => (Algorithm::Es384, &signature::ECDSA_P384_SHA384_FIXED_SIGNING, 48),
            _ => return Err(KeyError::Unsupported),
        };
        let point = point.ok_or_else(malformed)?;
        // some writers drop leading zeros
        let mut padded = vec![0; usize::saturating_sub(len, secret.len())];
        padded.extend_from_slice(secret);
        let pair = EcdsaKeyPair::from_private_key_and_public_key(signing, &padded, point, &SystemRandom::new())
            .map_err(|error| KeyError::Malformed(error.to_string()))?;
        Ok(SigningKey { public: VerifyKey::new(algorithm, point), pair: Pair::Ec(Box::new(pair)) })
    }

    /// The signature over `message`, in the form that JWS has.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] when the key refuses to sign.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let failed = |_| KeyError::Malformed("signing failed".to_owned());
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
                Ok(signature)
            }
            Pair::Ec(pair) => Ok(pair.sign(&random, message).map_err(failed)?.as_ref().to_vec()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A fresh P-256 key in PEM.
    pub(crate) fn fresh_pem() -> String {
        rcgen::KeyPair::generate().unwrap().serialize_pem()
    }

    /// A 2048 bit RSA key, made for this test alone.
    const RSA_PKCS1: &str = include_str!("testdata/rsa-pkcs1.pem");
    const RSA_PKCS8: &str = include_str!("testdata/rsa-pkcs8.pem");
    const RSA_PUBLIC: &str = include_str!("testdata/rsa-public.pem");
    const EC_SEC1: &str = include_str!("testdata/ec-sec1.pem");
    const EC_PUBLIC: &str = include_str!("testdata/ec-public.pem");

    #[test]
    fn signs_and_verifies_with_every_spelling_of_a_key() {
        let p256 = fresh_pem();
        for (private, public) in
            [(RSA_PKCS1, RSA_PUBLIC), (RSA_PKCS8, RSA_PUBLIC), (EC_SEC1, EC_PUBLIC), (p256.as_str(), p256.as_str())]
        {
            let key = SigningKey::from_pem(private.as_bytes()).unwrap();
            let public = VerifyKey::list_from_pem(public.as_bytes()).unwrap().remove(0);
            assert_eq!(key.public, public);
            let signature = key.sign(b"message").unwrap();
            assert!(public.verifies(b"message", &signature));
            assert!(!public.verifies(b"massage", &signature));
        }
    }

    #[test]
    fn key_ids_are_upstreams() {
        // what `openssl pkey -pubin -outform DER | sha256sum` gives, in base64url
        let key = &VerifyKey::list_from_pem(RSA_PUBLIC.as_bytes()).unwrap()[0];
        assert_eq!(key.id, include_str!("testdata/rsa-public.id").trim());
        assert_eq!(key.to_jwk()["e"].as_str(), Some("AQAB"));
    }

    #[test]
    fn junk_is_refused() {
        assert_eq!(SigningKey::from_pem(b"junk").unwrap_err(), KeyError::NoKey);
        assert_eq!(VerifyKey::list_from_pem(b"").unwrap_err(), KeyError::NoKey);
        let broken = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
        assert!(matches!(SigningKey::from_pem(broken.as_bytes()), Err(KeyError::Malformed(_))));
    }
}
