//! [`Client`]: sends requests to one server, with rate limit, retries and impersonation.

use crate::config::{Config, Impersonate};
use crate::error::{About, Error, Result, status_of_answer};
use crate::rate_limit::RateLimiter;
use crate::request::{Request, Verb};
use crate::transport::{Body, HttpTransport, Transport};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Response, Uri};
use pintle_apimachinery::env::Env;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// Times a request is sent again because the server said when to come back (429 or 5xx with `Retry-After`) or because
/// a read lost its connection; then the last answer counts. As client-go.
pub const RETRIES_MAX: u32 = 10;

/// The longest `Retry-After` that is waited for inside a request; a server that wants more gets its answer passed on.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// How long to wait before a read that lost its connection is sent again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// The largest answer that is read at once; larger lists are read in pages or as a stream.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 << 30;

/// The largest answer read for its error text.
const ERROR_BYTES_MAX: usize = 4 << 20;

/// A connection to one API server. Cheap to clone; all clones share connections, credentials and limits.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    impersonate: Option<Arc<HeaderMap>>,
}

#[derive(Debug)]
struct Shared {
    transport: Arc<dyn Transport>,
    server: Uri,
    default_namespace: String,
    user_agent: HeaderValue,
    timeout: Option<Duration>,
    limiter: Option<RateLimiter>,
    env: Env,
}

impl Client {
    /// A client for this configuration. Opens no connection yet.
    ///
    /// # Errors
    /// [`Error::Config`] when certificates or keys cannot be used.
    pub fn new(config: Config) -> Result<Client> {
        let transport = Arc::new(HttpTransport::new(&config)?);
        Client::with_transport(config, transport)
    }

    /// A client for the server that [`Config::infer`] finds.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn try_default() -> Result<Client> {
        Client::new(Config::infer()?)
    }

    /// A client whose requests go through `transport`.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when the user agent or the impersonated user cannot be a header.
    pub fn with_transport(config: Config, transport: Arc<dyn Transport>) -> Result<Client> {
        let user_agent = HeaderValue::try_from(&config.user_agent)
            .map_err(|_| Error::InvalidRequest(format!("{:?} cannot be a user agent", config.user_agent)))?;
        let impersonate = config.impersonate.as_ref().map(impersonation_headers).transpose()?.map(Arc::new);
        let shared = Shared {
            transport,
            server: config.server,
            default_namespace: config.default_namespace,
            user_agent,
            timeout: config.timeout,
            limiter: config.qps.and_then(|qps| RateLimiter::new(qps, config.burst)),
            env: config.env,
        };
        Ok(Client { shared: Arc::new(shared), impersonate })
    }

    /// A client that shares everything with this one and acts as somebody else.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when a name cannot be a header.
    pub fn impersonating(&self, impersonate: &Impersonate) -> Result<Client> {
        let headers = impersonation_headers(impersonate)?;
        Ok(Client { shared: Arc::clone(&self.shared), impersonate: Some(Arc::new(headers)) })
    }

    /// The namespace used when none is named.
    pub fn default_namespace(&self) -> &str {
        &self.shared.default_namespace
    }

    /// The server's address.
    pub fn server(&self) -> &Uri {
        &self.shared.server
    }

    /// Clock and dice of the configuration.
    pub fn env(&self) -> &Env {
        &self.shared.env
    }

    /// Sends a request and gives the answer once its head is there. Failures of the server are errors.
    ///
    /// # Errors
    /// [`Error`]; `Api` for every answer whose code is not 2xx.
    pub async fn send(&self, request: &Request) -> Result<Response<Body>> {
        let mut attempt = 0;
        loop {
            if let Some(limiter) = &self.shared.limiter {
                limiter.wait().await;
            }
            attempt += 1;
            let result = self.send_once(request).await;
            match retry_delay(request.verb, &result).filter(|_| attempt <= RETRIES_MAX) {
                Some(delay) => {
                    tracing::debug!(path = %request.path, attempt, ?delay, "sending the request again");
                    drop(result);
                    tokio::time::sleep(delay).await;
                }
                None => return answer_or_error(request, result?).await,
            }
        }
    }

    async fn send_once(&self, request: &Request) -> Result<Response<Body>> {
        let http_request = self.http_request(request)?;
        let sending = self.shared.transport.send(http_request);
        match self.shared.timeout.filter(|_| request.verb != Verb::Watch) {
            Some(limit) => tokio::time::timeout(limit, sending).await.map_err(|_| Error::Timeout(limit))?,
            None => sending.await,
        }
    }

    fn http_request(&self, request: &Request) -> Result<http::Request<Bytes>> {
        let invalid = |error: http::Error| Error::InvalidRequest(error.to_string());
        let prefix = self.shared.server.path().trim_end_matches('/');
        let uri = Uri::builder()
            .scheme(self.shared.server.scheme_str().unwrap_or("http"))
            .authority(self.shared.server.authority().map_or("localhost", http::uri::Authority::as_str))
            .path_and_query(format!("{prefix}{}", request.path_and_query()))
            .build()
            .map_err(invalid)?;
        let mut built = http::Request::new(request.body.clone());
        *built.method_mut() = request.verb.method();
        *built.uri_mut() = uri;
        let headers = built.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(request.accept));
        headers.insert(USER_AGENT, self.shared.user_agent.clone());
        if !request.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(request.content_type));
        }
        if let Some(impersonate) = &self.impersonate {
            headers.extend(impersonate.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        Ok(built)
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// As [`Client::send`]; [`Error::TooLarge`] past [`ANSWER_BYTES_MAX`].
    pub async fn bytes(&self, request: &Request) -> Result<Bytes> {
        let reading = self.send(request).await?.into_body().collect(ANSWER_BYTES_MAX);
        match self.shared.timeout {
            Some(limit) => tokio::time::timeout(limit, reading).await.map_err(|_| Error::Timeout(limit))?,
            None => reading.await,
        }
    }

    /// Sends a request and decodes the answer's JSON.
    ///
    /// # Errors
    /// As [`Client::bytes`]; [`Error::Decode`] when the answer is no `T`.
    pub async fn json<T: DeserializeOwned>(&self, request: &Request) -> Result<T> {
        decode_json(&self.bytes(request).await?)
    }

    /// GETs a path such as `/version` and decodes the JSON.
    ///
    /// # Errors
    /// As [`Client::json`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.json(&Request::new(Verb::Get, path)).await
    }

    /// GETs a path such as `/readyz?verbose` and gives the text.
    ///
    /// # Errors
    /// As [`Client::bytes`]; [`Error::Decode`] when the answer is no UTF-8.
    pub async fn get_text(&self, path: &str) -> Result<String> {
        let mut request = Request::new(Verb::Get, path);
        request.accept = "*/*";
        let bytes = self.bytes(&request).await?;
        String::from_utf8(bytes.to_vec()).map_err(|error| Error::decode("text", error))
    }
}

pub(crate) fn decode_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::decode(short_type_name::<T>(), error))
}

/// `Pod` for `k8s_openapi::api::core::v1::Pod`.
pub(crate) fn short_type_name<T>() -> String {
    let full = std::any::type_name::<T>();
    let head = full.split('<').next().unwrap_or(full);
    head.rsplit("::").next().unwrap_or(head).to_owned()
}

/// How long to wait before sending again; `None` when the result stands.
fn retry_delay(verb: Verb, result: &Result<Response<Body>>) -> Option<Duration> {
    match result {
        Ok(response) => {
            let code = response.status().as_u16();
            let delay = Duration::from_secs(u64::from(retry_after_seconds(response.headers())?));
            ((code == 429 || code >= 500) && delay <= RETRY_AFTER_MAX).then_some(delay)
        }
        // Reads may be repeated; a write may have happened. A watch is for its owner to resume.
        Err(Error::Connection { .. }) => matches!(verb, Verb::Get | Verb::List).then_some(RECONNECT_DELAY),
        Err(_) => None,
    }
}

fn retry_after_seconds(headers: &HeaderMap) -> Option<u32> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

async fn answer_or_error(request: &Request, response: Response<Body>) -> Result<Response<Body>> {
    for warning in response.headers().get_all(http::header::WARNING) {
        if let Some(text) = warning.to_str().ok().and_then(warning_text) {
            if request.is_about_metadata() {
                // whoever asks for the metadata of every kind did not choose this one
                tracing::debug!(path = %request.path, "{text}");
            } else {
                tracing::warn!(path = %request.path, "{text}");
            }
        }
    }
    if response.status().is_success() {
        return Ok(response);
    }
    let code = response.status().as_u16();
    let retry_after = retry_after_seconds(response.headers()).and_then(|seconds| i32::try_from(seconds).ok());
    let body = response.into_body().collect(ERROR_BYTES_MAX).await.unwrap_or_default();
    let method = request.verb.method();
    let (group, resource, name) = &request.about;
    let about = About { method: method.as_str(), resource, group, name };
    Err(Error::from(status_of_answer(code, &body, retry_after.unwrap_or_default(), about)))
}

/// The text of a `Warning: 299 - "text"` header.
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.strip_prefix("299 ")?.split_once(' ')?.1.trim();
    let inner = quoted.strip_prefix('"')?;
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(text),
            '\\' => text.extend(chars.next()),
            c => text.push(c),
        }
    }
    None
}

fn impersonation_headers(impersonate: &Impersonate) -> Result<HeaderMap> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| Error::InvalidRequest(format!("cannot impersonate {text:?}")))
    };
    let mut headers = HeaderMap::new();
    if !impersonate.user.is_empty() {
        headers.insert(HeaderName::from_static("impersonate-user"), value(&impersonate.user)?);
    }
    if let Some(uid) = &impersonate.uid {
        headers.insert(HeaderName::from_static("impersonate-uid"), value(uid)?);
    }
    for group in &impersonate.groups {
        headers.append(HeaderName::from_static("impersonate-group"), value(group)?);
    }
    for (key, values) in &impersonate.extra {
        let mut name = String::from("impersonate-extra-");
        for byte in key.to_lowercase().bytes() {
            // as upstream: what no header name may hold is percent-encoded
            if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
                name.push(char::from(byte));
            } else {
                name.push_str(&format!("%{byte:02X}"));
            }
        }
        let name = HeaderName::try_from(name)
            .map_err(|_| Error::InvalidRequest(format!("cannot impersonate with extra {key:?}")))?;
        for text in values {
            headers.append(name.clone(), value(text)?);
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_unquoted() {
        assert_eq!(warning_text(r#"299 - "unknown field \"spec.x\"""#).as_deref(), Some(r#"unknown field "spec.x""#));
        assert_eq!(warning_text("199 - \"other\""), None);
    }

    #[test]
    fn impersonation() {
        let impersonate = Impersonate {
            user: "alice".into(),
            uid: None,
            groups: vec!["a".into(), "b".into()],
            extra: [("example.org/Scope".to_owned(), vec!["x".to_owned()])].into(),
        };
        let headers = impersonation_headers(&impersonate).unwrap();
        assert_eq!(headers.get_all("impersonate-group").iter().count(), 2);
        assert_eq!(headers["impersonate-extra-example.org%2fscope"], "x");
    }
}
