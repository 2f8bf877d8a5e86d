//! Replies: Statuses, objects, texts, with the headers that every answer carries.

use crate::body::ResponseBody;
use crate::negotiate::{Form, Output, content_type};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use pintle_apimachinery::Status;
use pintle_registry::decode::Media;

/// An answer.
pub(crate) type Reply = Response<ResponseBody>;

/// A reply with a body of this type.
pub(crate) fn bytes(code: u16, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(ResponseBody::whole(body));
    *reply.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}

/// A plain text, as Go's `http.Error` writes it.
pub(crate) fn text(code: u16, body: impl Into<Bytes>) -> Reply {
    let mut reply = bytes(code, "text/plain; charset=utf-8", body);
    reply.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

/// A reply without a body.
pub(crate) fn empty(code: u16) -> Reply {
    let mut reply = Response::new(ResponseBody::empty());
    *reply.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}

/// Go's answer to a path that nothing serves.
pub(crate) fn page_not_found() -> Reply {
    text(404, "404 page not found\n")
}

/// A Status, in the encoding that the client accepts.
pub(crate) fn status(status: &Status, accept: &str) -> Reply {
    let allowed = crate::negotiate::Allowed { protobuf: true, transforms: true, watch: false, watchable: false };
    let output = crate::negotiate::output(accept, allowed).map_or(Output::JSON, |o| Output { form: Form::Object, ..o });
    let value = status.to_value();
    let (media, body) = match crate::declared::encode(&value, &output) {
        Ok(body) => (output.media, body),
        Err(_) => (Media::Json, Bytes::from(value.to_json())),
    };
    let mut reply = bytes(if status.code == 0 { 200 } else { status.code }, content_type(media), body);
    let seconds = status.details.as_ref().map_or(0, |d| d.retry_after_seconds);
    if seconds > 0 {
        reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    reply
}

/// Adds `Warning: 299` headers.
pub(crate) fn add_warnings(reply: &mut Reply, warnings: &[String]) {
    /// Bytes that all warnings of a reply may take; further ones are cut, as upstream does.
    const WARNING_BYTES_MAX: usize = 4 * 1024;
    let mut n_bytes = 0;
    for warning in warnings {
        let text = format!("299 - {}", quote(warning));
        n_bytes += text.len();
        if n_bytes > WARNING_BYTES_MAX {
            return;
        }
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            reply.headers_mut().append(header::WARNING, value);
        }
    }
}

/// A quoted-string: quotes and backslashes escaped, control characters left out.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\r' | '\t' => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
