//! The connections to one server: a few HTTP/2 ones that carry many requests each, or HTTP/1.1 ones that carry one.
//!
//! The first connection tells which protocol the server speaks. A request that could not be written to a connection
//! that turned out dead is sent over another one; one that was written is never repeated here.

use super::Body;
use super::connect::{Connection, Connector};
use crate::error::{BoxError, Error, Result};
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// Requests in flight on one HTTP/2 connection; for more, another connection is opened. Servers announce 100 or more,
/// and a request past the server's limit would wait for a watch to end.
const STREAMS_PER_CONNECTION_MAX: usize = 90;

/// Idle HTTP/1.1 connections kept; further ones are closed when their request is done.
const IDLE_CONNECTIONS_MAX: usize = 25;

/// A silent HTTP/2 connection is pinged after this long, as client-go does.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// A ping unanswered for this long means that the connection is dead: every request on it fails.
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes that the server may send ahead on one stream. Enough for a gigabit at 30 ms.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;

/// Bytes that the server may send ahead on one connection.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// The largest frame accepted: large lists come in few pieces.
const FRAME_BYTES_MAX: u32 = 256 << 10;

/// Times a request is offered to another connection because the one at hand was dead.
const STALE_CONNECTIONS_MAX: usize = 5;

type RequestBody = Full<Bytes>;

#[derive(Debug)]
pub(super) struct Pool {
    server: Uri,
    connector: Arc<dyn Connector>,
    connect_timeout: Duration,
    open: Mutex<Open>,
    /// Held while dialling, so that a burst of requests to an HTTP/2 server opens one connection.
    dialling: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Open {
    http2: Vec<Http2>,
    /// Idle or on their way to be so.
    http1: Vec<http1::SendRequest<RequestBody>>,
    is_http1_server: bool,
}

#[derive(Clone, Debug)]
struct Http2 {
    sender: http2::SendRequest<RequestBody>,
    n_streams: Arc<AtomicUsize>,
}

/// One request's place on an HTTP/2 connection, given back when the answer's body is dropped.
#[derive(Debug)]
struct StreamPlace(Arc<AtomicUsize>);

impl StreamPlace {
    fn take(n_streams: &Arc<AtomicUsize>) -> StreamPlace {
        n_streams.fetch_add(1, Ordering::Relaxed);
        StreamPlace(Arc::clone(n_streams))
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Sender {
    Http1(http1::SendRequest<RequestBody>),
    Http2(Http2, StreamPlace),
}

impl Pool {
    pub(super) fn new(server: Uri, connector: Arc<dyn Connector>, connect_timeout: Duration) -> Pool {
        Pool {
            server,
            connector,
            connect_timeout,
            open: Mutex::new(Open::default()),
            dialling: tokio::sync::Mutex::new(()),
        }
    }

    pub(super) async fn send(&self, mut request: Request<RequestBody>) -> Result<Response<Body>> {
        for _ in 0..STALE_CONNECTIONS_MAX {
            let (sender, is_fresh) = self.sender().await?;
            match self.send_on(sender, request).await {
                Ok(response) => return Ok(response),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_fresh => request = unsent,
                    Some(_) => return Err(self.connect_error(error.into_error())),
                    None => {
                        return Err(Error::Connection { server: self.name(), source: Box::new(error.into_error()) });
                    }
                },
            }
        }
        Err(self.connect_error("every connection closed before it took the request"))
    }

    async fn send_on(
        &self,
        sender: Sender,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Body>, TrySendError<Request<RequestBody>>> {
        match sender {
            Sender::Http2(mut connection, place) => {
                let response = connection.sender.try_send_request(request).await?;
                Ok(response.map(|body| Body::new(Placed { body, _place: place })))
            }
            Sender::Http1(mut sender) => {
                to_origin_form(&mut request);
                let response = sender.try_send_request(request).await?;
                let mut open = self.open.lock();
                if open.http1.len() < IDLE_CONNECTIONS_MAX {
                    open.http1.push(sender);
                }
                drop(open);
                Ok(response.map(Body::new))
            }
        }
    }

    /// A connection for one request, and whether it was just opened.
    async fn sender(&self) -> Result<(Sender, bool)> {
        if let Some(sender) = self.take_open() {
            return Ok((sender, false));
        }
        if self.open.lock().is_http1_server {
            return Ok((self.dial().await?, true));
        }
        let _guard = self.dialling.lock().await;
        if let Some(sender) = self.take_open() {
            return Ok((sender, false));
        }
        Ok((self.dial().await?, true))
    }

    fn take_open(&self) -> Option<Sender> {
        let mut open = self.open.lock();
        open.http2.retain(|connection| !connection.sender.is_closed());
        let is_free = |connection: &&Http2| connection.n_streams.load(Ordering::Relaxed) < STREAMS_PER_CONNECTION_MAX;
        if let Some(connection) = open.http2.iter().find(is_free) {
            let place = StreamPlace::take(&connection.n_streams);
            return Some(Sender::Http2(connection.clone(), place));
        }
        open.http1.retain(|sender| !sender.is_closed());
        let idle_idx = open.http1.iter().rposition(http1::SendRequest::is_ready)?;
        Some(Sender::Http1(open.http1.swap_remove(idle_idx)))
    }

    async fn dial(&self) -> Result<Sender> {
        let dialled = tokio::time::timeout(self.connect_timeout, self.connector.connect(&self.server)).await;
        let connection = match dialled {
            Ok(Ok(connection)) => connection,
            Ok(Err(source)) => return Err(self.connect_error(source)),
            Err(_) => return Err(self.connect_error(format!("no connection within {:?}", self.connect_timeout))),
        };
        let sender =
            if connection.is_http2 { self.start_http2(connection).await } else { self.start_http1(connection).await };
        sender.map_err(|source| self.connect_error(source))
    }

    async fn start_http2(&self, connection: Connection) -> Result<Sender, BoxError> {
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES_MAX)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(connection.io))
            .await?;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "an HTTP/2 connection ended");
            }
        });
        let connection = Http2 { sender, n_streams: Arc::new(AtomicUsize::new(0)) };
        let place = StreamPlace::take(&connection.n_streams);
        self.open.lock().http2.push(connection.clone());
        Ok(Sender::Http2(connection, place))
    }

    async fn start_http1(&self, connection: Connection) -> Result<Sender, BoxError> {
        let (sender, driver) = http1::handshake(TokioIo::new(connection.io)).await?;
        tokio::spawn(async move {
            if let Err(error) = driver.with_upgrades().await {
                tracing::debug!(%error, "an HTTP/1.1 connection ended");
            }
        });
        self.open.lock().is_http1_server = true;
        Ok(Sender::Http1(sender))
    }

    fn name(&self) -> String {
        self.server.authority().map(ToString::to_string).unwrap_or_default()
    }

    fn connect_error(&self, source: impl Into<BoxError>) -> Error {
        Error::Connect { server: self.name(), source: source.into() }
    }
}

/// HTTP/1.1 wants the path alone in the request line and the server in the `Host` header.
fn to_origin_form(request: &mut Request<RequestBody>) {
    if let Some(authority) = request.uri().authority()
        && let Ok(host) = http::HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().entry(http::header::HOST).or_insert(host);
    }
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
}

/// An answer's body together with its place on the connection.
struct Placed {
    body: hyper::body::Incoming,
    _place: StreamPlace,
}

impl http_body::Body for Placed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, hyper::Error>>> {
        std::pin::Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
