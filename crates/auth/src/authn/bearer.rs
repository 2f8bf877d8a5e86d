//! Where a request keeps its bearer token: the `Authorization` header, or a WebSocket subprotocol.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

/// What the subprotocol that carries a token begins with.
pub(crate) const SUBPROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The token of the `Authorization` header.
pub(super) fn token(headers: &HeaderMap) -> Option<&str> {
    let mut parts = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The token among the subprotocols of a WebSocket handshake.
///
/// # Errors
/// Upstream's text when it is malformed, stands there twice, or stands alone.
pub(super) fn websocket_token(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    if !is_websocket(headers) {
        return Ok(None);
    }
    let (mut found, mut n_others) = (None, 0);
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    for protocol in values.flat_map(|value| value.split(',')).map(str::trim) {
        let Some(encoded) = protocol.strip_prefix(SUBPROTOCOL_PREFIX) else {
            n_others += 1;
            continue;
        };
        if found.is_some() {
            return Err("multiple base64.bearer.authorization tokens specified");
        }
        let decoded =
            URL_SAFE_NO_PAD.decode(encoded).map_err(|_| "invalid base64.bearer.authorization token encoding")?;
        found = Some(String::from_utf8(decoded).map_err(|_| "invalid base64.bearer.authorization token")?);
    }
    match found {
        Some(token) if !token.is_empty() && n_others == 0 => Err("missing additional subprotocol"),
        Some(token) if !token.is_empty() => Ok(Some(token)),
        Some(_) | None => Ok(None),
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let has = |name, wanted: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|item| item.trim().eq_ignore_ascii_case(wanted))
    };
    has(UPGRADE, "websocket") && has(CONNECTION, "upgrade")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn authorization_header() {
        for (value, want) in [
            ("Bearer x", Some("x")),
            ("bearer x y", Some("x")),
            ("  Bearer x  ", Some("x")),
            ("Bearer  x", None),
            ("Bearer", None),
            ("Basic x", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]);
            assert_eq!(token(&headers), want, "{value:?}");
        }
    }

    #[test]
    fn websocket_subprotocol() {
        let check = |protocols: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
            headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(protocols).unwrap());
            websocket_token(&headers)
        };
        let token = format!("{SUBPROTOCOL_PREFIX}{}", URL_SAFE_NO_PAD.encode("x"));
        assert_eq!(check(&format!("{token}, v5.channel.k8s.io")), Ok(Some("x".to_owned())));
        assert_eq!(check("v5.channel.k8s.io"), Ok(None));
        assert_eq!(check(&token), Err("missing additional subprotocol"));
        assert_eq!(check(&format!("a,{token},{token}")), Err("multiple base64.bearer.authorization tokens specified"));
        assert_eq!(
            check(&format!("a,{SUBPROTOCOL_PREFIX}*")),
            Err("invalid base64.bearer.authorization token encoding")
        );
        assert_eq!(websocket_token(&HeaderMap::new()), Ok(None));
    }
}
