//! Watches over WebSocket, for browsers: one message for each event.

use crate::reply::{self, Reply};
use bytes::{Buf, Bytes};
use futures_util::{SinkExt, Stream, StreamExt};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

/// Time that a client gets to take one message; a slower one is left.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// What is in the pieces of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// JSON lines, sent as text.
    Lines,
    /// Protobuf frames with their length before them, sent as binary messages without it.
    Lengths,
}

/// The key of a WebSocket handshake, when the request is one.
pub(crate) fn handshake(headers: &HeaderMap) -> Option<&HeaderValue> {
    let says = |name: HeaderName, word: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let is_asked_for = says(header::CONNECTION, "upgrade") && says(header::UPGRADE, "websocket");
    headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| is_asked_for)
}

/// Answers a handshake, and sends `pieces` once the connection is switched over.
pub(crate) fn watch(
    key: &HeaderValue,
    upgrade: OnUpgrade,
    framing: Framing,
    pieces: impl Stream<Item = Bytes> + Send + 'static,
) -> Reply {
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
    tokio::spawn(async move {
        match upgrade.await {
            Ok(upgraded) => {
                let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
                send(socket, framing, pieces).await;
            }
            Err(why) => tracing::debug!(%why, "a connection was not switched to WebSocket"),
        }
    });
    let mut reply = reply::empty(101);
    let headers = reply.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accepted) = accepted {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    }
    reply
}

async fn send<S>(mut socket: WebSocketStream<S>, framing: Framing, pieces: impl Stream<Item = Bytes>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    tokio::pin!(pieces);
    loop {
        let piece = tokio::select! {
            piece = pieces.next() => piece,
            // pings are answered by reading; anything else that a watcher says is not for us
            heard = socket.next() => match heard {
                Some(Ok(message)) if !message.is_close() => continue,
                _ => return,
            },
        };
        let Some(piece) = piece else { break };
        for message in messages(framing, piece) {
            match tokio::time::timeout(SEND_TIMEOUT, socket.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
    // the client may have gone already
    let _ = socket.close(None).await;
}

/// One message for each event of a piece.
fn messages(framing: Framing, mut piece: Bytes) -> Vec<Message> {
    let mut messages = Vec::new();
    match framing {
        Framing::Lines => {
            while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
                let line = piece.split_to(end + 1);
                messages.extend(line.try_into().ok().map(Message::Text));
            }
        }
        Framing::Lengths => {
            while piece.len() >= 4 {
                let length = usize::try_from(piece.get_u32()).unwrap_or(usize::MAX).min(piece.len());
                messages.push(Message::Binary(piece.split_to(length)));
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_for_each_event_and_an_orderly_end() {
        for (framing, piece) in [
            (Framing::Lines, Bytes::from_static(b"{\"a\":1}\n{\"b\":2}\n")),
            (Framing::Lengths, Bytes::from_static(b"\0\0\0\x02hi\0\0\0\x03you")),
        ] {
            let (ours, theirs) = tokio::io::duplex(1024);
            let server = async move {
                let socket = WebSocketStream::from_raw_socket(ours, Role::Server, None).await;
                send(socket, framing, futures_util::stream::iter([piece])).await;
            };
            let client = async move {
                let mut socket = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
                let mut heard = Vec::new();
                while let Some(Ok(message)) = socket.next().await {
                    heard.push(message);
                }
                heard
            };
            let ((), heard) = tokio::join!(server, client);
            let expected = match framing {
                Framing::Lines => [Message::text("{\"a\":1}\n"), Message::text("{\"b\":2}\n")],
                Framing::Lengths => [Message::binary(&b"hi"[..]), Message::binary(&b"you"[..])],
            };
            assert_eq!(heard[..2], expected);
            assert!(heard[2].is_close(), "{heard:?}");
        }
    }

    #[test]
    fn what_a_handshake_is() {
        let headers = |pairs: &[(HeaderName, &'static str)]| -> HeaderMap {
            pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
        };
        let key = (header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==");
        let upgrade = (header::UPGRADE, "websocket");
        let connection = (header::CONNECTION, "keep-alive, Upgrade");
        assert!(handshake(&headers(&[key.clone(), upgrade.clone(), connection.clone()])).is_some());
        assert!(handshake(&headers(&[key.clone(), connection.clone()])).is_none());
        assert!(handshake(&headers(&[key, upgrade])).is_none());
        assert!(handshake(&headers(&[connection])).is_none());
    }
}
