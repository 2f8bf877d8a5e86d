//! gzip of large lists, when the client asks for it.

use crate::body::ResponseBody;
use crate::list::ListBody;
use crate::reply::{self, Reply};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt, stream};
use http::request::Parts;
use http::{HeaderValue, header};
use std::io::Write as _;

/// Shorter answers are not worth the work, as upstream has it.
const COMPRESSED_BYTES_MIN: usize = 128 * 1024;
/// Upstream's level: the quickest.
const LEVEL: Compression = Compression::new(1);

/// A list as a reply, compressed if it is long and the client takes it.
pub(crate) fn list_reply(parts: &Parts, content_type: &'static str, body: ListBody) -> Reply {
    let is_wanted = parts
        .headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|v| v.split(',').any(|encoding| encoding.trim().split(';').next() == Some("gzip")));
    let is_long = match &body {
        ListBody::Whole(bytes) => bytes.len() >= COMPRESSED_BYTES_MIN,
        ListBody::Chunks(_) => true,
    };
    if !(is_wanted && is_long) {
        return match body {
            ListBody::Whole(bytes) => reply::bytes(200, content_type, bytes),
            ListBody::Chunks(chunks) => with_body(content_type, ResponseBody::Stream(chunks)),
        };
    }
    let chunks: std::pin::Pin<Box<dyn Stream<Item = Bytes> + Send>> = match body {
        ListBody::Whole(bytes) => Box::pin(stream::iter([bytes])),
        ListBody::Chunks(chunks) => chunks,
    };
    let mut reply = with_body(content_type, ResponseBody::stream(gzip(chunks)));
    reply.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    reply.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    reply
}

fn with_body(content_type: &'static str, body: ResponseBody) -> Reply {
    let mut reply = reply::bytes(200, content_type, Bytes::new());
    *reply.body_mut() = body;
    reply
}

type Chunks = std::pin::Pin<Box<dyn Stream<Item = Bytes> + Send>>;

fn gzip(chunks: Chunks) -> impl Stream<Item = Bytes> + Send {
    let encoder = GzEncoder::new(Vec::new(), LEVEL);
    stream::unfold(Some((chunks, encoder)), |state| async move {
        let (mut chunks, mut encoder) = state?;
        loop {
            let Some(chunk) = chunks.next().await else {
                // writing to a Vec cannot fail
                return encoder.finish().ok().map(|last| (Bytes::from(last), None));
            };
            if encoder.write_all(&chunk).is_err() {
                return None;
            }
            let ready = std::mem::take(encoder.get_mut());
            if !ready.is_empty() {
                return Some((Bytes::from(ready), Some((chunks, encoder))));
            }
        }
    })
}
