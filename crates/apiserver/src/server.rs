//! Connections: TLS, HTTP/1.1 and HTTP/2 by ALPN, and their orderly end.

use crate::handle::handle;
use crate::state::State;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use pintle_auth::authn::PeerCertificate;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

/// Streams that one HTTP/2 connection may have open; client-go opens a second connection beyond.
const STREAMS_MAX: u32 = 1_000;
/// Time for a TLS handshake; a slower peer is dropped.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that a stream's answer may buffer while its client does not read.
const SEND_BUFFER_BYTES_MAX: usize = 256 * 1024;
/// Receive windows of HTTP/2: a whole request body fits into a few round trips.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// See [`STREAM_WINDOW_BYTES`].
const CONNECTION_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
/// Open connections; further ones wait in the listener's queue.
pub const CONNECTIONS_MAX: usize = 60_000;

/// Serves connections until `stop` completes; then lets what runs finish for at most `grace`.
pub async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    state: Arc<State>,
    stop: impl Future<Output = ()>,
    grace: Duration,
) {
    let connections = TaskTracker::new();
    let permits = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
    let (ending, is_ending) = tokio::sync::watch::channel(false);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let (tls, state, is_ending) = (tls.clone(), state.clone(), is_ending.clone());
        connections.spawn(async move {
            connection(stream, tls, state, is_ending).await;
            drop(permit);
        });
    }
    drop(listener);
    // the receivers may all be gone already
    let _ = ending.send(true);
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections did not end within the grace period");
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<tokio::sync::Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    /// Pause after the system refuses a connection (out of descriptors, say), so that the loop does not spin.
    const REFUSED_PAUSE: Duration = Duration::from_millis(50);
    let permit = permits.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(why) => {
            tracing::warn!(%why, "cannot accept a connection");
            tokio::time::sleep(REFUSED_PAUSE).await;
            None
        }
    }
}

async fn connection(
    stream: TcpStream,
    tls: TlsAcceptor,
    state: Arc<State>,
    mut is_ending: tokio::sync::watch::Receiver<bool>,
) {
    if let Err(why) = stream.set_nodelay(true) {
        tracing::debug!(%why, "cannot switch Nagle's algorithm off");
    }
    let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(why)) => {
            tracing::debug!(%why, "TLS handshake failed");
            return;
        }
        Err(_) => return,
    };
    let peer = stream.get_ref().1.peer_certificates().and_then(PeerCertificate::new).map(Arc::new);
    let service = service_fn(move |request| {
        let (state, peer) = (state.clone(), peer.clone());
        async move { Ok::<_, Infallible>(handle(state, peer, request).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HANDSHAKE_TIMEOUT).half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_send_buf_size(SEND_BUFFER_BYTES_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(served);
    let mut is_told = false;
    loop {
        tokio::select! {
            ended = &mut served => {
                if let Err(why) = ended {
                    tracing::debug!(%why, "connection ended");
                }
                return;
            }
            _ = is_ending.wait_for(|ending| *ending), if !is_told => {
                is_told = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}
