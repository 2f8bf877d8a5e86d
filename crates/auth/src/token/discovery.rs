//! The documents by which others find the keys of this issuer: OpenID discovery and the JSON web key set.

use super::keys::VerifyKey;
use pintle_apimachinery::{Value, json};
use std::collections::BTreeSet;

/// Why there can be no discovery document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// OpenID wants https.
    #[error("issuer URL must use https scheme, got: {0}")]
    IssuerNotHttps(String),
    /// OpenID allows no query.
    #[error("issuer URL may not include a query, got: {0}")]
    IssuerQuery(String),
    /// OpenID allows no fragment.
    #[error("issuer URL may not include a fragment, got: {0}")]
    IssuerFragment(String),
    /// There is nothing to publish.
    #[error("no keys provided for validating keyset")]
    NoKeys,
}

/// The two documents, as they are sent.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// `/.well-known/openid-configuration`, `application/json`.
    pub configuration: Vec<u8>,
    /// `/openid/v1/jwks`, `application/jwk-set+json`.
    pub key_set: Vec<u8>,
}

impl Discovery {
    /// Where the key set is served.
    pub const KEY_SET_PATH: &'static str = "/openid/v1/jwks";
    /// Where the configuration is served.
    pub const CONFIGURATION_PATH: &'static str = "/.well-known/openid-configuration";
    /// The media type of the key set.
    pub const KEY_SET_MEDIA_TYPE: &'static str = "application/jwk-set+json";
    /// The `Cache-Control` of both.
    pub const CACHE_CONTROL: &'static str = "public, max-age=3600";

    /// The documents of an issuer. `key_set_uri` is where the key set can be fetched.
    ///
    /// # Errors
    /// [`DiscoveryError`] when the issuer's URL cannot be one of OpenID's, or there are no keys.
    pub fn new(issuer: &str, key_set_uri: &str, keys: &[VerifyKey]) -> Result<Discovery, DiscoveryError> {
        if !issuer.starts_with("https://") {
            return Err(DiscoveryError::IssuerNotHttps(issuer.to_owned()));
        }
        if issuer.contains('#') {
            return Err(DiscoveryError::IssuerFragment(issuer.to_owned()));
        }
        if issuer.contains('?') {
            return Err(DiscoveryError::IssuerQuery(issuer.to_owned()));
        }
        if keys.is_empty() {
            return Err(DiscoveryError::NoKeys);
        }
        let algorithms: BTreeSet<&str> = keys.iter().map(VerifyKey::algorithm).collect();
        let configuration = json!({
            "issuer": issuer,
            "jwks_uri": key_set_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms.into_iter().collect::<Vec<&str>>(),
        });
        let key_set = json!({"keys": keys.iter().map(VerifyKey::to_jwk).collect::<Value>()});
        Ok(Discovery { configuration: configuration.to_json(), key_set: key_set.to_json() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::SigningKey;
    use crate::token::keys::tests::fresh_pem;

    #[test]
    fn documents() {
        let key = SigningKey::from_pem(fresh_pem().as_bytes()).unwrap().public;
        let discovery = Discovery::new("https://x/", "https://x/openid/v1/jwks", std::slice::from_ref(&key)).unwrap();
        let configuration = pintle_apimachinery::value::parse(&discovery.configuration).unwrap();
        assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));
        let keys = pintle_apimachinery::value::parse(&discovery.key_set).unwrap();
        assert_eq!(keys["keys"].items()[0]["kid"].as_str(), Some(key.id.as_str()));
        assert_eq!(keys["keys"].items()[0]["x"].str_or_empty().len(), 43);
        assert_eq!(keys["keys"].items()[0]["y"].str_or_empty().len(), 43);
        for (issuer, error) in [
            ("http://x", "issuer URL must use https scheme, got: http://x"),
            ("https://x?a", "issuer URL may not include a query, got: https://x?a"),
            ("https://x#a", "issuer URL may not include a fragment, got: https://x#a"),
        ] {
            assert_eq!(Discovery::new(issuer, "", std::slice::from_ref(&key)).unwrap_err().to_string(), error);
        }
    }
}
