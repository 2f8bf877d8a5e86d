//! WebSockets: the streams of `exec` and `attach` as channels, and tunnels for SPDY.
//!
//! The first byte of each message says which channel it is of. Follows: apimachinery/pkg/util/remotecommand (v0.35).

use super::channels::{Channel, Channels, End, Message, QUEUE_MAX};
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message as Frame};

/// Channel protocols, the most wanted first.
pub(super) const CHANNEL_PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

/// The protocol of a WebSocket that carries a SPDY session.
pub(super) const TUNNEL_PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";

/// Bytes of one message; a longer one ends the connection.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Bytes on their way through a tunnel.
const TUNNEL_BYTES_MAX: usize = 64 * 1024;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
/// Only in version 5: the channel in the next byte is closed.
const CLOSE: u8 = 255;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Takes a connection over that was upgraded.
pub(super) async fn socket(upgraded: Upgraded) -> Socket {
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(MESSAGE_BYTES_MAX);
    config.max_frame_size = Some(MESSAGE_BYTES_MAX);
    WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await
}

/// Carries the streams of a command until it has ended or the client is gone.
pub(super) fn carry(socket: Socket) -> Channels {
    let (typed, stdin) = mpsc::channel(QUEUE_MAX);
    let (messages, mut shown) = mpsc::channel::<Message>(QUEUE_MAX);
    tokio::spawn(async move {
        let (mut sink, mut stream) = socket.split();
        let mut typed = Some(typed);
        loop {
            tokio::select! {
                message = shown.recv() => {
                    let Some(message) = message else { break };
                    let is_end = matches!(message, Message::End(_));
                    if sink.send(Frame::Binary(frame(message))).await.is_err() || is_end {
                        break;
                    }
                }
                received = stream.next() => match received {
                    Some(Ok(Frame::Binary(data))) => take(data, &mut typed).await,
                    Some(Ok(Frame::Text(text))) => take(Bytes::from(text), &mut typed).await,
                    Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
                    Some(Ok(Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_))) => {}
                },
            }
        }
        close(sink, stream).await;
    });
    Channels { stdin, messages }
}

/// Says goodbye, and waits for the same.
async fn close<S, R>(mut sink: S, mut stream: R)
where
    S: futures_util::Sink<Frame> + Unpin,
    R: futures_util::Stream<Item = tungstenite::Result<Frame>> + Unpin,
{
    /// How long the client may take to say goodbye.
    const GOODBYE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
    let normal = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    if sink.send(Frame::Close(Some(normal))).await.is_ok() {
        let last = async { while let Some(Ok(_)) = stream.next().await {} };
        // who does not answer is left
        let _ = tokio::time::timeout(GOODBYE_TIMEOUT, last).await;
    }
}

fn frame(message: Message) -> Bytes {
    let (channel, data) = match message {
        Message::Output(Channel::Stdout, data) => (STDOUT, data),
        Message::Output(Channel::Stderr, data) => (STDERR, data),
        Message::End(end) => (STATUS, status(&end)),
    };
    let mut frame = BytesMut::with_capacity(1 + data.len());
    frame.extend_from_slice(&[channel]);
    frame.extend_from_slice(&data);
    frame.freeze()
}

pub(super) fn status(end: &End) -> Bytes {
    Bytes::from(end.to_status().to_string())
}

/// Takes what the client sent: input, or the end of it. Sizes of terminals do not matter here.
async fn take(data: Bytes, typed: &mut Option<mpsc::Sender<Bytes>>) {
    match data.split_first() {
        Some((&STDIN, rest)) if !rest.is_empty() => {
            if let Some(sender) = typed
                && sender.send(data.slice(1..)).await.is_err()
            {
                *typed = None;
            }
        }
        Some((&CLOSE, [STDIN, ..])) => *typed = None,
        _ => {}
    }
}

/// A byte stream over the messages of a WebSocket.
pub(super) fn tunnel(socket: Socket) -> DuplexStream {
    let (near, far) = tokio::io::duplex(TUNNEL_BYTES_MAX);
    tokio::spawn(async move {
        let (mut read, mut write) = tokio::io::split(far);
        let (mut sink, mut stream) = socket.split();
        let mut buffer = BytesMut::with_capacity(TUNNEL_BYTES_MAX);
        loop {
            tokio::select! {
                n_read = read.read_buf(&mut buffer) => {
                    if !matches!(n_read, Ok(n) if n > 0) {
                        break;
                    }
                    if sink.send(Frame::Binary(buffer.split().freeze())).await.is_err() {
                        break;
                    }
                }
                received = stream.next() => match received {
                    Some(Ok(Frame::Binary(data))) => {
                        if write.write_all(&data).await.is_err() {
                            break;
                        }
                    }
                    Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
                    Some(Ok(_)) => {}
                },
            }
        }
        // the other side learns of it by the end of its stream
        let _ = write.shutdown().await;
        close(sink, stream).await;
    });
    near
}
