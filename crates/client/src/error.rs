//! What can go wrong with a request, by what the caller can do about it.

use pintle_apimachinery::{Status, Value};
use std::time::Duration;

/// Any error as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The result of a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request has no answer to show.
///
/// The predicates (`is_not_found`, `is_conflict` ...) read like `k8s.io/apimachinery/pkg/api/errors` and are `false`
/// for everything that is not the server's own refusal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused the request and said why.
    #[error("{0}")]
    Api(Box<Status>),
    /// No connection to the server. The request was not sent.
    #[error("cannot connect to {server}")]
    Connect {
        /// Host and port.
        server: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The connection broke. A write may or may not have happened.
    #[error("the connection to {server} broke")]
    Connection {
        /// Host and port.
        server: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// No answer in time. A write may or may not have happened.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The credentials of the configuration could not be had.
    #[error("cannot get credentials from {from}")]
    Credentials {
        /// The plugin's command or the token's file.
        from: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// What was to be sent has no JSON form.
    #[error("cannot encode the {what}")]
    Encode {
        /// Kind of the body.
        what: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The answer is not what was asked for.
    #[error("cannot decode the {what}")]
    Decode {
        /// What it should be.
        what: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The answer is larger than this client reads at once.
    #[error("the answer is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The request makes no sense; it was not sent.
    #[error("invalid request: {0}")]
    InvalidRequest(String),
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        Error::Api(Box::new(status))
    }
}

impl From<Box<Status>> for Error {
    fn from(status: Box<Status>) -> Error {
        Error::Api(status)
    }
}

/// Predicates over the server's refusals.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident => $reason:literal),* $(,)?) => {
        impl Error {
            $($(#[$doc])* pub fn $name(&self) -> bool { self.has_reason($reason) })*
        }
    };
}

reasons! {
    /// There is no such object, or no such resource.
    is_not_found => "NotFound",
    /// An object of this name exists.
    is_already_exists => "AlreadyExists",
    /// The object has changed since it was read: read it again, decide again.
    is_conflict => "Conflict",
    /// The version asked for is gone: list again.
    is_expired => "Expired",
    /// The version asked for is gone (older servers' word).
    is_gone => "Gone",
    /// The object breaks a rule; see [`Status::details`] for every one.
    is_invalid => "Invalid",
    /// The request is malformed.
    is_bad_request => "BadRequest",
    /// The user may not do this.
    is_forbidden => "Forbidden",
    /// The server does not know the user.
    is_unauthorized => "Unauthorized",
    /// The server is too busy for this request: back off.
    is_too_many_requests => "TooManyRequests",
    /// The server could not finish in time; a write may or may not have happened.
    is_timeout => "Timeout",
    /// The server could not do it now: try again.
    is_server_timeout => "ServerTimeout",
    /// The server cannot serve now.
    is_service_unavailable => "ServiceUnavailable",
    /// Something went wrong inside the server.
    is_internal_error => "InternalError",
    /// The resource has no such verb.
    is_method_not_supported => "MethodNotAllowed",
    /// The server has no representation that the client accepts.
    is_not_acceptable => "NotAcceptable",
    /// The server does not read what the client sent.
    is_unsupported_media_type => "UnsupportedMediaType",
    /// The body is too large.
    is_request_entity_too_large => "RequestEntityTooLarge",
}

impl Error {
    /// The server's refusal, if it is one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Error::Api(status) => Some(status),
            Error::Connect { .. }
            | Error::Connection { .. }
            | Error::Timeout(_)
            | Error::Config(_)
            | Error::Credentials { .. }
            | Error::Encode { .. }
            | Error::Decode { .. }
            | Error::TooLarge { .. }
            | Error::InvalidRequest(_) => None,
        }
    }

    /// Whether the server gave this reason.
    pub fn has_reason(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.is(reason))
    }

    /// The HTTP status code of the server's refusal.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// After how long the server wants to be asked again.
    pub fn suggested_delay(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        u64::try_from(seconds).ok().filter(|s| *s > 0).map(Duration::from_secs)
    }

    /// Whether the refusal has a cause with this reason.
    pub fn has_cause(&self, reason: &str) -> bool {
        let causes = self.status().and_then(|status| status.details.as_ref()).map(|details| &details.causes);
        causes.is_some_and(|causes| causes.iter().any(|cause| cause.reason == reason))
    }

    /// Whether the namespace is going away, so that nothing can be created in it.
    pub fn is_namespace_terminating(&self) -> bool {
        self.is_forbidden() && self.has_cause("NamespaceTerminating")
    }

    /// Whether the server has not yet seen the version asked for.
    pub fn is_too_large_resource_version(&self) -> bool {
        const OLD_TEXT: &str = "Too large resource version";
        self.is_timeout()
            && (self.has_cause("ResourceVersionTooLarge")
                || self.status().is_some_and(|status| status.message.contains(OLD_TEXT)))
    }

    /// Whether the request certainly had no effect because it never reached the server.
    pub fn is_unsent(&self) -> bool {
        match self {
            Error::Connect { .. }
            | Error::Config(_)
            | Error::Credentials { .. }
            | Error::Encode { .. }
            | Error::InvalidRequest(_) => true,
            Error::Api(_)
            | Error::Connection { .. }
            | Error::Timeout(_)
            | Error::Decode { .. }
            | Error::TooLarge { .. } => false,
        }
    }

    pub(crate) fn decode(what: impl Into<String>, source: impl Into<BoxError>) -> Error {
        Error::Decode { what: what.into(), source: source.into() }
    }

    /// The error as a `Status`, to put into a watch stream: the server's own, or one of the client's making.
    pub fn to_status(&self, verb: &str) -> Status {
        if let Some(status) = self.status() {
            return status.clone();
        }
        let text = chain_text(self);
        let message = format!("an error on the server ({text:?}) has prevented the request from succeeding");
        let cause = if matches!(self, Error::Decode { .. }) { "ClientWatchDecoding" } else { "ClientConnection" };
        let message = if verb.is_empty() { message } else { format!("{message} ({verb})") };
        Status::failure(500, "InternalError", message).with_cause(cause, text, "")
    }
}

/// An error and its sources in one line.
pub fn chain_text(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

/// What a request was about, for the texts of errors that the server did not word itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) method: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) group: &'a str,
    pub(crate) name: &'a str,
}

/// The `Status` of an answer that is a failure: the body if it is one, else what the code alone says.
pub(crate) fn status_of_answer(code: u16, body: &[u8], retry_after_seconds: i32, about: About<'_>) -> Status {
    if let Ok(value) = pintle_apimachinery::value::parse(body)
        && value["kind"].as_str() == Some("Status")
        && value["status"].as_str() != Some("Success")
    {
        return completed(Status::from_value(&value), code, retry_after_seconds);
    }
    generic_status(code, body, retry_after_seconds, about)
}

/// The `Status` of an answer that is a failure, for requests that are not about a resource of an API: the body if it is
/// a `Status`, else what the code alone says.
pub fn failure_status(code: u16, body: &[u8]) -> Status {
    status_of_answer(code, body, 0, About { method: "POST", resource: "", group: "", name: "" })
}

fn completed(mut status: Status, code: u16, retry_after_seconds: i32) -> Status {
    if status.code == 0 {
        status.code = code;
    }
    if retry_after_seconds > 0 {
        let details = status.details.get_or_insert_default();
        if details.retry_after_seconds == 0 {
            details.retry_after_seconds = retry_after_seconds;
        }
    }
    status
}

fn generic_status(code: u16, body: &[u8], retry_after_seconds: i32, about: About<'_>) -> Status {
    let said = String::from_utf8_lossy(body).trim().to_owned();
    let said = if said.is_empty() { "unknown".to_owned() } else { said };
    let (reason, message) = match code {
        400 => ("BadRequest", "the server rejected our request for an unknown reason".to_owned()),
        401 => ("Unauthorized", "the server has asked for the client to provide credentials".to_owned()),
        403 => ("Forbidden", said.clone()),
        404 => ("NotFound", "the server could not find the requested resource".to_owned()),
        405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource".to_owned()),
        406 if said == "unknown" => (
            "NotAcceptable",
            "the server was unable to respond with a content type that the client supports".to_owned(),
        ),
        406 => ("NotAcceptable", said.clone()),
        409 if about.method == "POST" => ("AlreadyExists", "the server reported a conflict".to_owned()),
        409 => ("Conflict", "the server reported a conflict".to_owned()),
        415 => ("UnsupportedMediaType", said.clone()),
        422 => ("Invalid", "the server rejected our request due to an error in our request".to_owned()),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later".to_owned(),
        ),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request".to_owned()),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned(),
        ),
        500.. => (
            "InternalError",
            format!(
                "an error on the server ({}) has prevented the request from succeeding",
                pintle_apimachinery::field::go_quote(&said)
            ),
        ),
        _ => ("", format!("the server responded with the status code {code} but did not return more information")),
    };
    let resource = pintle_apimachinery::GroupResource::new(about.group, about.resource);
    let method = about.method.to_lowercase();
    let message = match (about.resource.is_empty(), about.name.is_empty()) {
        (true, _) => message,
        (false, true) => format!("{message} ({method} {resource})"),
        (false, false) => format!("{message} ({method} {resource} {})", about.name),
    };
    let details = pintle_apimachinery::status::Details {
        name: about.name.to_owned(),
        group: resource.group,
        kind: resource.resource,
        retry_after_seconds,
        ..Default::default()
    };
    Status::failure(code, reason, message).with_details(details).with_cause("UnexpectedServerResponse", said, "")
}

/// A `Status` from its JSON text; `None` when it is none.
pub(crate) fn status_from_json(bytes: &[u8]) -> Option<Status> {
    let value: Value = pintle_apimachinery::value::parse(bytes).ok()?;
    (value["kind"].as_str() == Some("Status")).then(|| Status::from_value(&value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const ABOUT: About<'_> = About { method: "GET", resource: "pods", group: "", name: "a" };

    #[test]
    fn answers_without_a_status() {
        let text = |code, body: &str| {
            let status = status_of_answer(code, body.as_bytes(), 0, ABOUT);
            format!("{} {}: {}", status.code, status.reason, status.message)
        };
        expect![[r#"
            404 NotFound: the server could not find the requested resource (get pods a)
            502 InternalError: an error on the server ("bad gateway") has prevented the request from succeeding (get pods a)
            418 : the server responded with the status code 418 but did not return more information (get pods a)
            403 Forbidden: no way (get pods a)
        "#]]
        .assert_eq(&format!(
            "{}\n{}\n{}\n{}\n",
            text(404, "404 page not found"),
            text(502, "bad gateway"),
            text(418, ""),
            text(403, "no way")
        ));
    }

    #[test]
    fn the_servers_own_status_wins() {
        let body = br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"slow down","reason":"TooManyRequests","code":429}"#;
        let error = Error::from(status_of_answer(429, body, 7, ABOUT));
        assert!(error.is_too_many_requests() && !error.is_conflict());
        assert_eq!(error.suggested_delay(), Some(Duration::from_secs(7)));
        assert_eq!(error.to_string(), "slow down");
    }

    #[test]
    fn chains_do_not_repeat() {
        let io = std::io::Error::other("refused");
        let error = Error::Connect { server: "h:1".into(), source: Box::new(io) };
        assert_eq!(chain_text(&error), "cannot connect to h:1: refused");
    }
}
