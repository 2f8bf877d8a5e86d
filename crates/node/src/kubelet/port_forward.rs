//! Forwarded ports of simulated pods: what listens there says over HTTP that it is simulated.

use super::spdy::{self, Stream};
use bytes::{Bytes, BytesMut};
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes of a request's head that are looked at.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Connections whose second stream has not come yet; further ones are dropped.
const HALVES_MAX: usize = 256;

/// Serves a SPDY session over which a client forwards ports: a pair of streams for each connection, one for data and
/// one for what goes wrong.
pub(super) async fn serve<I>(io: I, pod: Arc<Pod>)
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let mut streams = spdy::serve(io);
    let mut halves: BTreeMap<String, Stream> = BTreeMap::new();
    while let Some(stream) = streams.recv().await {
        let request = stream.header("requestID").to_owned();
        let Some(other) = halves.remove(&request) else {
            if halves.len() < HALVES_MAX {
                halves.insert(request, stream);
            }
            continue;
        };
        let (data, error) = if stream.header("streamtype") == "data" { (stream, other) } else { (other, stream) };
        tokio::spawn(connection(data, error, Arc::clone(&pod)));
    }
}

/// One connection to a port.
async fn connection(mut data: Stream, error: Stream, pod: Arc<Pod>) {
    let port = data.header("port").to_owned();
    let mut head = BytesMut::new();
    while let Some(bytes) = data.input.recv().await {
        head.extend_from_slice(&bytes);
        if head.windows(4).any(|end| end == b"\r\n\r\n") || head.len() > HEAD_BYTES_MAX || !may_be_http(&head) {
            break;
        }
    }
    if head.windows(4).any(|end| end == b"\r\n\r\n") {
        data.output.send(answer(&pod, &port)).await;
    } else if !head.is_empty() {
        error.output.send(Bytes::from(format!("port {port} of a simulated pod speaks HTTP alone"))).await;
    }
    data.output.close().await;
    error.output.close().await;
}

fn may_be_http(head: &[u8]) -> bool {
    head.first().is_none_or(u8::is_ascii_uppercase)
}

/// What a simulated pod answers to any HTTP request, as text.
pub(super) fn page(pod: &Pod, port: &str) -> String {
    let (namespace, name) = (pod.metadata.namespace.as_deref(), pod.metadata.name.as_deref());
    let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
    format!("Pod {namespace}/{name} is simulated by Pintle; this is its port {port}.\n")
}

/// The same, as it goes over a connection.
fn answer(pod: &Pod, port: &str) -> Bytes {
    let text = page(pod, port);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    Bytes::from(head + &text)
}
