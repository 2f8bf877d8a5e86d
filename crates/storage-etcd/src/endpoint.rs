//! One member's address, and a connection to it.

use crate::options::{OptionsError, TlsFiles};
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tonic::body::Body;
use tower_service::Service;

/// Time for a connection to stand, TLS included. Then the next member is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How often a connection in use is probed. etcd takes offence at less than 5 s.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Time for the answer to a probe. Then the connection is given up.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes that may be under way to one stream, such as a page of a list.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;

/// Bytes that may be under way to all streams of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Where systems keep the authorities they trust.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// One member's address.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    origin: Uri,
    authority: String,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Endpoint {
    /// The endpoint of a URL. `tls` is called for the first that needs it.
    pub(crate) fn parse(
        url: &str,
        tls: &mut dyn FnMut() -> Result<Arc<ClientConfig>, OptionsError>,
    ) -> Result<Endpoint, OptionsError> {
        let bad = || OptionsError::Endpoint { url: url.to_owned() };
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let authority = rest.trim_end_matches('/');
        let parsed: http::uri::Authority = authority.parse().map_err(|_| bad())?;
        if parsed.port_u16().is_none() || !matches!(scheme, "http" | "https") {
            return Err(bad());
        }
        let origin = format!("{scheme}://{authority}").parse().map_err(|_| bad())?;
        let tls = match scheme {
            "https" => {
                let host = parsed.host().trim_start_matches('[').trim_end_matches(']').to_owned();
                Some((tls()?, ServerName::try_from(host).map_err(|_| bad())?))
            }
            _ => None,
        };
        Ok(Endpoint { origin, authority: authority.to_owned(), tls })
    }

    /// Its text in messages.
    pub(crate) fn name(&self) -> &str {
        &self.authority
    }

    /// Connects.
    pub(crate) async fn connect(&self) -> io::Result<Connection> {
        match tokio::time::timeout(CONNECT_TIMEOUT, self.connect_in_time()).await {
            Ok(connected) => connected,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no connection in time")),
        }
    }

    async fn connect_in_time(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect(&*self.authority).await?;
        stream.set_nodelay(true)?;
        let sender = match &self.tls {
            None => handshake(stream).await?,
            Some((config, name)) => {
                let connector = tokio_rustls::TlsConnector::from(config.clone());
                handshake(connector.connect(name.clone(), stream).await?).await?
            }
        };
        Ok(Connection { sender, origin: self.origin.clone() })
    }
}

async fn handshake<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S) -> io::Result<SendRequest<Body>> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the last of its senders; why it ended before, each request on it says.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// A connection to one member, shared by all requests on it.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Body>,
    pub(crate) origin: Uri,
}

impl Connection {
    /// Whether nothing can be sent on it any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<Response<Incoming>, hyper::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.sender.send_request(request))
    }
}

/// TLS towards etcd.
pub(crate) fn tls_config(files: &TlsFiles) -> Result<Arc<ClientConfig>, OptionsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = |error: rustls::Error| OptionsError::Tls { why: error.to_string() };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(tls)?;
    let builder = builder.with_root_certificates(authorities(files.ca.as_deref())?);
    let mut config = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => {
            builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?).map_err(tls)?
        }
        (None, None) => builder.with_no_client_auth(),
        (Some(_), None) | (None, Some(_)) => {
            return Err(OptionsError::Tls { why: "a certificate needs its key, and a key its certificate".to_owned() });
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

fn authorities(path: Option<&Path>) -> Result<RootCertStore, OptionsError> {
    let system = || SYSTEM_AUTHORITIES.iter().map(PathBuf::from).find(|path| path.exists());
    let Some(path) = path.map(Path::to_path_buf).or_else(system) else {
        return Err(OptionsError::Tls { why: "no authority is given that signs etcd's certificates".to_owned() });
    };
    let mut roots = RootCertStore::empty();
    let (n_added, _) = roots.add_parsable_certificates(certificates(&path)?);
    if n_added == 0 {
        return Err(OptionsError::File { path, why: "holds no authority's certificate".to_owned() });
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, OptionsError> {
    let found: Result<Vec<_>, io::Error> = rustls_pemfile::certs(&mut &*read(path)?).collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(OptionsError::File { path: path.to_owned(), why: "holds no certificate".to_owned() }),
        Err(error) => Err(OptionsError::File { path: path.to_owned(), why: error.to_string() }),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, OptionsError> {
    match rustls_pemfile::private_key(&mut &*read(path)?) {
        Ok(Some(key)) => Ok(key),
        Ok(None) => Err(OptionsError::File { path: path.to_owned(), why: "holds no private key".to_owned() }),
        Err(error) => Err(OptionsError::File { path: path.to_owned(), why: error.to_string() }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, OptionsError> {
    std::fs::read(path).map_err(|error| OptionsError::File { path: path.to_owned(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parse = |url: &str| Endpoint::parse(url, &mut || Err(OptionsError::NoEndpoint));
        let origin = |url: &str| parse(url).map(|endpoint| endpoint.origin.to_string()).unwrap_or_default();
        assert_eq!(origin("http://127.0.0.1:2379"), "http://127.0.0.1:2379/");
        assert_eq!(origin("etcd-0.example:2379"), "http://etcd-0.example:2379/");
        assert_eq!(origin("http://[::1]:2379/"), "http://[::1]:2379/");
        for bad in ["", "http://127.0.0.1", "unix:///x", "ftp://x:1", "http://a b:1"] {
            assert!(matches!(parse(bad), Err(OptionsError::Endpoint { .. })), "{bad}");
        }
        assert!(matches!(parse("https://x:1"), Err(OptionsError::NoEndpoint)));
    }
}
