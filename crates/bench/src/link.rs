//! HTTP/2 connections that cost little: requests are bytes made beforehand, answers are counted and not understood.

use crate::tally::Fault;
use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pintle_client::Config;
use pintle_client::config::Auth;
use pintle_client::transport::{Connector, TcpConnector};
use std::sync::Arc;

/// Receive window of a stream: that of Go's client, which is what most servers meet.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Receive window of a connection: that of Go's client.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;
/// Bytes of a refusal that are read for the report; the rest is skipped.
const REFUSAL_BYTES_MAX: usize = 4096;

/// A request, ready to be sent any number of times.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: PathAndQuery,
    pub(crate) accept: HeaderValue,
    pub(crate) content_type: Option<HeaderValue>,
    pub(crate) gzip: bool,
    pub(crate) body: Bytes,
}

impl Call {
    /// A request without a body that asks for JSON.
    pub(crate) fn new(method: Method, path: &str) -> Result<Call> {
        Ok(Call {
            method,
            path: path.parse().with_context(|| format!("{path:?} is no path"))?,
            accept: HeaderValue::from_static("application/json"),
            content_type: None,
            gzip: false,
            body: Bytes::new(),
        })
    }

    /// A GET.
    pub(crate) fn get(path: &str) -> Result<Call> {
        Call::new(Method::GET, path)
    }

    /// With a body of this type.
    pub(crate) fn with_body(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Call {
        self.content_type = Some(HeaderValue::from_static(content_type));
        self.body = body.into();
        self
    }

    /// Asking for this type.
    pub(crate) fn accepting(mut self, accept: &'static str) -> Call {
        self.accept = HeaderValue::from_static(accept);
        self
    }
}

/// Opens connections to one server.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    server: Uri,
    connector: Arc<TcpConnector>,
    /// Sent with every request.
    headers: HeaderMap,
}

impl Dialer {
    /// For the server of this configuration.
    pub(crate) fn new(config: &Config) -> Result<Dialer> {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static("pintle-bench"));
        let token = match &config.auth {
            Auth::None => None,
            Auth::Token(token) => Some(token.reveal().to_owned()),
            Auth::TokenFile(path) => {
                Some(std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?)
            }
            Auth::Basic { .. } | Auth::Exec(_) => {
                bail!("the kubeconfig's user needs a certificate or a token: other credentials are not supported here")
            }
        };
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim())).context("the token")?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let tls = match config.server.scheme_str() {
            Some("https") => Some(Arc::new(config.tls.handshake(false).context("TLS settings")?)),
            _ => None,
        };
        let connector = Arc::new(TcpConnector::new(tls, config.tls.server_name.clone()));
        Ok(Dialer { server: config.server.clone(), connector, headers })
    }

    /// A new connection.
    pub(crate) async fn link(&self) -> Result<Link> {
        let connected = self.connector.connect(&self.server).await;
        let connection =
            connected.map_err(anyhow::Error::from_boxed).with_context(|| format!("cannot reach {}", self.server))?;
        if !connection.is_http2 {
            bail!("{} does not speak HTTP/2", self.server);
        }
        let handshake = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake(TokioIo::new(connection.io));
        let (sender, driver) = handshake.await.context("HTTP/2 handshake")?;
        // its end shows in the requests
        tokio::spawn(driver);
        Ok(Link { sender, server: self.server.clone(), headers: self.headers.clone() })
    }

    /// Several new connections.
    pub(crate) async fn links(&self, n: usize) -> Result<Vec<Link>> {
        let mut links = Vec::with_capacity(n);
        for _ in 0..n {
            links.push(self.link().await?);
        }
        Ok(links)
    }
}

/// A connection; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    sender: SendRequest<Full<Bytes>>,
    server: Uri,
    headers: HeaderMap,
}

impl Link {
    /// Sends a request and gives the head of the answer, if that is a success.
    pub(crate) async fn open(&mut self, call: &Call) -> Result<Response<Incoming>, Fault> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = self.uri(call)?;
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        headers.insert(header::ACCEPT, call.accept.clone());
        if let Some(content_type) = &call.content_type {
            headers.insert(header::CONTENT_TYPE, content_type.clone());
        }
        if call.gzip {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        self.sender.ready().await.map_err(|why| Fault::of_connection(&why))?;
        let response = self.sender.send_request(request).await.map_err(|why| Fault::of_connection(&why))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status();
        let mut text = BytesMut::new();
        let mut body = response.into_body();
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(data) = frame.data_ref()
                && text.len() < REFUSAL_BYTES_MAX
            {
                text.extend_from_slice(data);
            }
        }
        Err(Fault::of_answer(code, &text))
    }

    fn uri(&self, call: &Call) -> Result<Uri, Fault> {
        let mut parts = self.server.clone().into_parts();
        parts.path_and_query = Some(call.path.clone());
        Uri::from_parts(parts).map_err(|why| Fault::of_connection(&why))
    }

    /// Sends a request, reads the whole answer and gives the number of its bytes.
    pub(crate) async fn count(&mut self, call: &Call) -> Result<u64, Fault> {
        let mut body = self.open(call).await?.into_body();
        let mut n_bytes = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|why| Fault::of_connection(&why))?;
            n_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        Ok(n_bytes)
    }

    /// Sends a request and gives the whole answer.
    pub(crate) async fn fetch(&mut self, call: &Call) -> Result<Bytes, Fault> {
        let body = self.open(call).await?.into_body();
        Ok(body.collect().await.map_err(|why| Fault::of_connection(&why))?.to_bytes())
    }
}
