//! JSON Web Signatures in their compact form, as far as tokens need them.

use super::keys::{KeyError, SigningKey, VerifyKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pintle_apimachinery::{Str, Value, json, value};

/// Why a token cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwsError {
    /// It is no compact JWS with JSON inside.
    #[error("square/go-jose: compact JWS format must have three parts")]
    Malformed,
    /// No key verifies it.
    #[error("square/go-jose: error in cryptographic primitive")]
    BadSignature,
}

/// A token taken apart and not verified yet.
#[derive(Debug)]
pub struct Compact<'t> {
    /// The id of the key that it says has signed it; may be empty.
    pub key_id: Str,
    /// The signature's kind.
    pub algorithm: Str,
    /// The claims; not to be trusted before [`Compact::verify`].
    pub claims: Value,
    message: &'t str,
    signature: Vec<u8>,
}

impl<'t> Compact<'t> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// [`JwsError::Malformed`] when it is none.
    pub fn parse(token: &'t str) -> Result<Compact<'t>, JwsError> {
        let parse = || {
            let (message, signature) = token.rsplit_once('.')?;
            let (header, payload) = message.split_once('.')?;
            let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
            let header = value::parse(&decode(header)?).ok()?;
            let claims = value::parse(&decode(payload)?).ok()?;
            claims.as_object()?;
            Some(Compact {
                key_id: Str::new(header["kid"].str_or_empty()),
                algorithm: Str::new(header["alg"].str_or_empty()),
                claims,
                message,
                signature: decode(signature)?,
            })
        };
        parse().ok_or(JwsError::Malformed)
    }

    /// Whether one of the keys has signed it: those of its key id, or all when it names none.
    ///
    /// # Errors
    /// [`JwsError::BadSignature`] when none has.
    pub fn verify(&self, keys: &[VerifyKey]) -> Result<(), JwsError> {
        let is_verified = keys
            .iter()
            .filter(|key| self.key_id.is_empty() || key.id == self.key_id)
            .any(|key| key.algorithm() == self.algorithm && key.verifies(self.message.as_bytes(), &self.signature));
        if is_verified { Ok(()) } else { Err(JwsError::BadSignature) }
    }
}

/// The claims, signed.
///
/// # Errors
/// [`KeyError`] when the key refuses to sign.
pub(super) fn sign(key: &SigningKey, claims: &Value) -> Result<String, KeyError> {
    let header = json!({"alg": key.public.algorithm(), "kid": key.public.id.as_str()});
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_json()), URL_SAFE_NO_PAD.encode(claims.to_json()));
    let signature = key.sign(message.as_bytes())?;
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::keys::tests::fresh_pem;

    #[test]
    fn signed_tokens_verify_and_others_do_not() {
        let (key, other) = (
            SigningKey::from_pem(fresh_pem().as_bytes()).unwrap(),
            SigningKey::from_pem(fresh_pem().as_bytes()).unwrap(),
        );
        let token = sign(&key, &json!({"sub": "x"})).unwrap();
        let parsed = Compact::parse(&token).unwrap();
        assert_eq!(parsed.claims, json!({"sub": "x"}));
        assert_eq!(parsed.verify(&[other.public.clone(), key.public.clone()]), Ok(()));
        assert_eq!(parsed.verify(std::slice::from_ref(&other.public)), Err(JwsError::BadSignature));
        let forged = token.replacen('.', ".e30", 1);
        assert!(Compact::parse(&forged).is_err() || Compact::parse(&forged).unwrap().verify(&[key.public]).is_err());
        for bad in ["", "a.b", "a.b.c", "e30.e30", "e30.W10.e30", "{}"] {
            assert!(Compact::parse(bad).is_err(), "{bad}");
        }
    }
}
