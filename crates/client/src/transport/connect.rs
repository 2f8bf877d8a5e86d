//! Opening connections: TCP, TLS, and whatever else a [`Connector`] can do.

use crate::error::BoxError;
use futures_util::future::BoxFuture;
use http::Uri;
use rustls_pki_types::ServerName;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A byte stream in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// An open connection.
pub struct Connection {
    /// The stream.
    pub io: Box<dyn Io>,
    /// Whether the two sides agreed on HTTP/2.
    pub is_http2: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("is_http2", &self.is_http2).finish_non_exhaustive()
    }
}

/// Opens connections to one server. Implement it to reach a server through something else than TCP (a pipe in the
/// same process, a tunnel).
pub trait Connector: Send + Sync + std::fmt::Debug + 'static {
    /// Opens a connection.
    ///
    /// # Errors
    /// Whatever stood in the way.
    fn connect(&self, server: &Uri) -> BoxFuture<'_, Result<Connection, BoxError>>;
}

/// TCP, with TLS for `https`.
#[derive(Debug)]
pub struct TcpConnector {
    tls: Option<Arc<rustls::ClientConfig>>,
    /// The name to expect in the certificate instead of the host.
    server_name: Option<String>,
}

impl TcpConnector {
    /// Connects with these handshake settings; without any, `https` is refused.
    pub fn new(tls: Option<Arc<rustls::ClientConfig>>, server_name: Option<String>) -> TcpConnector {
        TcpConnector { tls, server_name }
    }

    fn name(&self, host: &str) -> Result<ServerName<'static>, BoxError> {
        let name = self.server_name.as_deref().unwrap_or(host);
        Ok(ServerName::try_from(name.trim_matches(['[', ']']).to_owned())?)
    }
}

impl Connector for TcpConnector {
    fn connect(&self, server: &Uri) -> BoxFuture<'_, Result<Connection, BoxError>> {
        let host = server.host().unwrap_or_default().to_owned();
        let is_https = server.scheme_str() == Some("https");
        let port = server.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        Box::pin(async move {
            let tcp = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
            tcp.set_nodelay(true)?;
            if !is_https {
                return Ok(Connection { io: Box::new(tcp), is_http2: false });
            }
            let tls = self.tls.clone().ok_or("the client has no TLS settings")?;
            let stream = TlsConnector::from(tls).connect(self.name(&host)?, tcp).await?;
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            Ok(Connection { io: Box::new(stream), is_http2 })
        })
    }
}
