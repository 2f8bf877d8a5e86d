//! The documents with which others verify service account tokens.

use crate::handle::Incoming;
use crate::reply::{self, Reply};
use http::{HeaderValue, header};
use pintle_auth::token::{Discovery, DiscoveryError, VerifyKey};

/// OpenID discovery of the server's issuer, if it has any.
#[derive(Debug)]
pub struct OpenId(Option<Discovery>);

impl OpenId {
    /// The documents of an issuer; `url` is where the server is reached.
    ///
    /// # Errors
    /// [`DiscoveryError`] when the issuer's URL cannot be one of OpenID's.
    pub fn new(issuer: &str, url: &str, keys: &[VerifyKey]) -> Result<OpenId, DiscoveryError> {
        let key_set = format!("{url}{}", Discovery::KEY_SET_PATH);
        Discovery::new(issuer, &key_set, keys).map(|documents| OpenId(Some(documents)))
    }

    /// No documents.
    pub fn none() -> OpenId {
        OpenId(None)
    }
}

/// Answers `/.well-known/openid-configuration` and `/openid/v1/jwks`.
pub(crate) fn serve(incoming: &Incoming<'_>) -> Reply {
    let Some(documents) = &incoming.state.openid.0 else { return reply::page_not_found() };
    let is_keys = incoming.info.path == Discovery::KEY_SET_PATH;
    let (media_type, body) = if is_keys {
        (Discovery::KEY_SET_MEDIA_TYPE, &documents.key_set)
    } else {
        ("application/json", &documents.configuration)
    };
    if !matches!(incoming.info.verb, "get" | "head") {
        return reply::status(&pintle_apimachinery::Status::method_not_allowed(), "");
    }
    let accept = incoming.accept();
    let is_accepted = accept.is_empty()
        || accept.split(',').map(|range| range.split(';').next().unwrap_or_default().trim()).any(|range| {
            range == media_type
                || range == "*/*"
                || (range == "application/*" && media_type.starts_with("application/"))
        });
    if !is_accepted {
        let text = format!("406: Not Acceptable\n\nAvailable representations: {media_type}");
        let status = pintle_apimachinery::Status::not_acceptable(text)
            .with_details(pintle_apimachinery::status::Details::default());
        return reply::status(&status, "");
    }
    let mut reply = reply::bytes(200, media_type, body.clone());
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(Discovery::CACHE_CONTROL));
    reply
}
