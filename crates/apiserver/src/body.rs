//! Response bodies: whole ones, and streams of chunks.

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A response's body.
pub enum ResponseBody {
    /// All of it, taken out when it is sent.
    Whole(Option<Bytes>),
    /// Chunks as they come.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl ResponseBody {
    /// No body.
    pub fn empty() -> ResponseBody {
        ResponseBody::Whole(None)
    }

    /// A whole body.
    pub fn whole(bytes: impl Into<Bytes>) -> ResponseBody {
        ResponseBody::Whole(Some(bytes.into()))
    }

    /// A body of chunks.
    pub fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> ResponseBody {
        ResponseBody::Stream(Box::pin(chunks))
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ResponseBody::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.as_ref().map_or(0, Bytes::len)),
            ResponseBody::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            ResponseBody::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
            }
            ResponseBody::Stream(chunks) => {
                chunks.as_mut().poll_next(cx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ResponseBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            ResponseBody::Stream(_) => SizeHint::default(),
        }
    }
}
