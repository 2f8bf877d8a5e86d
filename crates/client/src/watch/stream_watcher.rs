//! [`StreamWatcher`]: a decoder's events as a watch, its errors reported as events.

use super::{Bookmark, Event, Watch};
use crate::error::{Error, Result, status_from_json};
use crate::transport::Body;
use crate::wire::{FrameType, LineSplitter, split_frame, text_of, value_at};
use bytes::{Buf as _, Bytes};
use futures_util::Stream;
use pintle_apimachinery::Status;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Gives the events of a stream one after the other.
pub trait Decoder<T>: Send {
    /// The next event; `None` when the stream has ended.
    fn poll_decode(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event<T>>>>;
}

/// Makes an error into the `Status` that a watch can show.
pub trait Reporter: Send {
    /// The status.
    fn as_status(&self, error: &Error) -> Status;
}

/// Reports errors as upstream's client does: a `Status` with a code, a reason and the verb.
#[derive(Clone, Debug)]
pub struct ClientErrorReporter {
    code: u16,
    verb: &'static str,
    reason: &'static str,
}

impl ClientErrorReporter {
    /// Reports with this code, verb and cause.
    pub fn new(code: u16, verb: &'static str, reason: &'static str) -> ClientErrorReporter {
        ClientErrorReporter { code, verb, reason }
    }

    /// What every watch of this client uses.
    pub fn for_watch() -> ClientErrorReporter {
        ClientErrorReporter::new(500, "GET", "ClientWatchDecoding")
    }
}

impl Reporter for ClientErrorReporter {
    fn as_status(&self, error: &Error) -> Status {
        let text = format!("unable to decode an event from the watch stream: {}", crate::error::chain_text(error));
        let quoted = pintle_apimachinery::field::go_quote(&text);
        let message =
            format!("an error on the server ({quoted}) has prevented the request from succeeding ({})", self.verb);
        Status::failure(self.code, "InternalError", message)
            .with_cause("UnexpectedServerResponse", text.clone(), "")
            .with_cause(self.reason, text, "")
    }
}

/// A watch over anything that decodes into events.
///
/// The stream itself is the result channel. It ends when the decoder does, after an error, and after
/// [`stop`](Watch::stop); it closes what it reads from when it ends or is dropped, whichever is first.
pub struct StreamWatcher<T> {
    /// `None` once the watch has ended: what it read from is closed.
    decoder: Option<Box<dyn Decoder<T>>>,
    reporter: Box<dyn Reporter>,
    stopper: Stopper,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Stops a watch from elsewhere.
#[derive(Clone, Debug)]
pub struct Stopper(CancellationToken);

impl Stopper {
    /// Ends the watch.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

impl<T> std::fmt::Debug for StreamWatcher<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamWatcher").field("is_open", &self.decoder.is_some()).finish_non_exhaustive()
    }
}

impl<T> StreamWatcher<T> {
    /// A watch over `decoder` whose errors go through `reporter`.
    pub fn new(decoder: impl Decoder<T> + 'static, reporter: impl Reporter + 'static) -> StreamWatcher<T> {
        let token = CancellationToken::new();
        StreamWatcher {
            decoder: Some(Box::new(decoder)),
            reporter: Box::new(reporter),
            stopped: Box::pin(token.clone().cancelled_owned()),
            stopper: Stopper(token),
        }
    }

    /// Something that can stop this watch from another task.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }
}

impl<T> Stream for StreamWatcher<T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        if self.stopped.as_mut().poll(cx).is_ready() {
            self.decoder = None;
        }
        let Some(decoder) = &mut self.decoder else { return Poll::Ready(None) };
        match ready!(decoder.poll_decode(cx)) {
            Some(Ok(event)) => {
                if matches!(event, Event::Error(_)) {
                    self.decoder = None;
                }
                Poll::Ready(Some(event))
            }
            Some(Err(Error::Connection { source, .. })) => {
                // the server went away: as if it had closed the watch
                tracing::debug!(error = %source, "the watch's connection broke");
                self.decoder = None;
                Poll::Ready(None)
            }
            Some(Err(error)) => {
                self.decoder = None;
                Poll::Ready(Some(Event::Error(Box::new(self.reporter.as_status(&error)))))
            }
            None => {
                self.decoder = None;
                Poll::Ready(None)
            }
        }
    }
}

impl<T> Watch<T> for StreamWatcher<T> {
    fn stop(&mut self) {
        self.stopper.stop();
        self.decoder = None;
    }
}

/// Decodes the JSON lines of an answer's body; `F` makes a `T` of an object's bytes.
#[derive(Debug)]
pub struct BodyDecoder<F> {
    body: Body,
    decode: F,
    lines: LineSplitter,
    chunk: Bytes,
    is_ended: bool,
}

impl<F> BodyDecoder<F> {
    /// Decodes `body`.
    pub fn new(body: Body, decode: F) -> BodyDecoder<F> {
        BodyDecoder { body, decode, lines: LineSplitter::default(), chunk: Bytes::new(), is_ended: false }
    }
}

impl<T, F: Fn(&[u8]) -> Result<T> + Send> Decoder<T> for BodyDecoder<F> {
    fn poll_decode(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event<T>>>> {
        loop {
            while !self.chunk.is_empty() {
                let decode = &self.decode;
                let (n_used, event) = self.lines.next_line(&self.chunk, |line| decode_frame(line, decode));
                self.chunk.advance(n_used);
                if let Some(Some(event)) = event {
                    return Poll::Ready(Some(event));
                }
            }
            if self.is_ended {
                return Poll::Ready(None);
            }
            if self.lines.is_too_long() {
                let limit_bytes = crate::wire::FRAME_BYTES_MAX;
                return Poll::Ready(Some(Err(Error::TooLarge { limit_bytes })));
            }
            match ready!(self.body.poll_chunk(cx)) {
                Ok(Some(chunk)) => self.chunk = chunk,
                Err(error) => return Poll::Ready(Some(Err(error))),
                Ok(None) => {
                    self.is_ended = true;
                    // a last line without its end: complete, or cut off and then of no use
                    if let Some(Ok(event)) = decode_frame(self.lines.rest(), &self.decode) {
                        return Poll::Ready(Some(Ok(event)));
                    }
                }
            }
        }
    }
}

/// The event of one line; `None` for an empty line.
fn decode_frame<T>(line: &[u8], decode: &impl Fn(&[u8]) -> Result<T>) -> Option<Result<Event<T>>> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let Some((frame_type, object)) = split_frame(line) else {
        let shown = String::from_utf8_lossy(line.get(..120).unwrap_or(line)).into_owned();
        return Some(Err(Error::decode("watch event", format!("no watch event: {shown}"))));
    };
    Some(match frame_type {
        FrameType::Added => decode(object).map(Event::Added),
        FrameType::Modified => decode(object).map(Event::Modified),
        FrameType::Deleted => decode(object).map(Event::Deleted),
        FrameType::Bookmark => Ok(Event::Bookmark(bookmark(object))),
        FrameType::Error => match status_from_json(object) {
            Some(status) => Ok(Event::Error(Box::new(status))),
            None => Err(Error::decode("Status", "an error event without a Status")),
        },
    })
}

fn bookmark(object: &[u8]) -> Bookmark {
    let text = |path: &[&str]| value_at(object, path).and_then(text_of);
    let version = text(&["metadata", "resourceVersion"]).unwrap_or_default();
    let end = text(&["metadata", "annotations", pintle_apimachinery::meta::well_known::INITIAL_EVENTS_END]);
    Bookmark { resource_version: version.into_owned(), is_initial_events_end: end.as_deref() == Some("true") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt as _;

    fn watcher(text: &'static str) -> StreamWatcher<String> {
        let decode = |bytes: &[u8]| {
            let name = value_at(bytes, &["metadata", "name"]).and_then(text_of);
            name.map(std::borrow::Cow::into_owned).ok_or_else(|| Error::decode("name", "none"))
        };
        StreamWatcher::new(BodyDecoder::new(Body::from_bytes(text), decode), ClientErrorReporter::for_watch())
    }

    async fn transcript(text: &'static str) -> String {
        let mut watcher = watcher(text);
        let mut out = String::new();
        while let Some(event) = watcher.next().await {
            out += &format!("{event:?}\n");
        }
        out
    }

    #[tokio::test]
    async fn events_in_order() {
        expect_test::expect![[r#"
            Added("a")
            Modified("a")
            Bookmark(Bookmark { resource_version: "9", is_initial_events_end: true })
            Deleted("a")
        "#]]
        .assert_eq(
            &transcript(concat!(
                r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#,
                "\n",
                r#"{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}"#,
                "\n\n",
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
                "\n",
                r#"{"type":"DELETED","object":{"metadata":{"name":"a"}}}"#,
            ))
            .await,
        );
    }

    #[tokio::test]
    async fn errors_end_the_watch() {
        let gone = concat!(
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#,
            "\n",
            r#"{"type":"ADDED","object":{"metadata":{"name":"never seen"}}}"#,
            "\n",
        );
        assert_eq!(transcript(gone).await.lines().count(), 1);
        let mut broken = watcher("{\"type\":\"ADDED\",\"object\":{}}\n");
        let Some(Event::Error(status)) = broken.next().await else { panic!("no error") };
        expect_test::expect![[r#"an error on the server ("unable to decode an event from the watch stream: cannot decode the name: none") has prevented the request from succeeding (GET)"#]]
        .assert_eq(&status.message);
        assert!(broken.next().await.is_none());
    }

    #[tokio::test]
    async fn stopping_from_elsewhere() {
        let mut watcher = watcher("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n");
        watcher.stopper().stop();
        assert!(watcher.next().await.is_none());
    }
}
