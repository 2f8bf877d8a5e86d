//! The body of an answer, as it arrives.

use crate::error::{BoxError, Error, Result};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use http_body::Body as _;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body of an answer.
pub struct Body(UnsyncBoxBody<Bytes, BoxError>);

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body(..)")
    }
}

impl Body {
    /// Wraps any HTTP body.
    pub fn new<B>(body: B) -> Body
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Body(body.map_err(Into::into).boxed_unsync())
    }

    /// A body that is all there.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Body {
        Body::new(Full::new(bytes.into()))
    }

    /// A body whose bytes a stream gives.
    pub fn from_stream(stream: impl Stream<Item = std::result::Result<Bytes, BoxError>> + Send + 'static) -> Body {
        Body::new(StreamBody::new(stream.map(|bytes| bytes.map(Frame::data))))
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Connection`] when the connection broke before the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// As [`Body::chunk`], for those who poll.
    ///
    /// # Errors
    /// As [`Body::chunk`].
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>>> {
        loop {
            match ready!(Pin::new(&mut self.0).poll_frame(cx)) {
                None => return Poll::Ready(Ok(None)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
                Some(Err(source)) => {
                    return Poll::Ready(Err(Error::Connection { server: "the server".to_owned(), source }));
                }
            }
        }
    }

    /// Everything that is left.
    ///
    /// # Errors
    /// As [`Body::chunk`]; [`Error::TooLarge`] when there are more than `limit_bytes`.
    pub async fn collect(mut self, limit_bytes: usize) -> Result<Bytes> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut all = BytesMut::with_capacity((first.len() + second.len()) * 2);
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(chunk) = self.chunk().await? {
            if all.len() + chunk.len() > limit_bytes {
                return Err(Error::TooLarge { limit_bytes });
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }
}
