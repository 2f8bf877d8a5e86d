//! The transport over HTTP: a pool of connections and the credentials that go with every request.

use super::connect::{Connector, TcpConnector};
use super::pool::Pool;
use super::{Body, Transport};
use crate::config::{Config, rustls_config};
use crate::credentials::{Credential, Credentials};
use crate::error::{Error, Result};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use parking_lot::Mutex;
use std::sync::Arc;

/// Carries requests over HTTP/2 or HTTP/1.1, over TLS if the server's address says `https`.
#[derive(Debug)]
pub struct HttpTransport {
    config: Config,
    credentials: Credentials,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    pool: Arc<Pool>,
    /// Which of the credentials' certificates the pool's connections show.
    certificate_version: u64,
    /// Whether the caller brought the connector: it then decides about TLS.
    is_fixed: bool,
}

impl HttpTransport {
    /// The transport of a configuration. Opens no connection yet.
    ///
    /// # Errors
    /// [`Error::Config`] when certificates or keys cannot be used.
    pub fn new(config: &Config) -> Result<HttpTransport> {
        let connector = tcp_connector(config, None)?;
        Ok(HttpTransport::build(config, connector, false))
    }

    /// The transport over connections of another kind.
    pub fn with_connector(config: &Config, connector: Arc<dyn Connector>) -> HttpTransport {
        HttpTransport::build(config, connector, true)
    }

    fn build(config: &Config, connector: Arc<dyn Connector>, is_fixed: bool) -> HttpTransport {
        let pool = Arc::new(Pool::new(config.server.clone(), connector, config.connect_timeout));
        HttpTransport {
            credentials: Credentials::new(config),
            current: Mutex::new(Current { pool, certificate_version: 0, is_fixed }),
            config: config.clone(),
        }
    }

    /// The connections that show the certificate of `credential`: new ones if it has changed.
    fn pool(&self, credential: &Credential) -> Result<Arc<Pool>> {
        let mut current = self.current.lock();
        if credential.certificate_version != current.certificate_version && !current.is_fixed {
            let connector = tcp_connector(&self.config, Some(credential))?;
            let server = self.config.server.clone();
            current.pool = Arc::new(Pool::new(server, connector, self.config.connect_timeout));
            current.certificate_version = credential.certificate_version;
        }
        Ok(Arc::clone(&current.pool))
    }

    async fn send_as(&self, credential: &Credential, request: &Request<Bytes>) -> Result<Response<Body>> {
        let mut copy = Request::new(Full::new(request.body().clone()));
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        if let Some(authorization) = &credential.authorization {
            copy.headers_mut().entry(AUTHORIZATION).or_insert_with(|| authorization.clone());
        }
        self.pool(credential)?.send(copy).await
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, Error>> {
        Box::pin(async move {
            let credential = self.credentials.current().await?;
            let response = self.send_as(&credential, &request).await?;
            if response.status() != StatusCode::UNAUTHORIZED || !self.credentials.renew(&credential) {
                return Ok(response);
            }
            // the credentials may have expired before their time: once more with fresh ones
            let renewed = self.credentials.current().await?;
            self.send_as(&renewed, &request).await
        })
    }
}

fn tcp_connector(config: &Config, credential: Option<&Credential>) -> Result<Arc<dyn Connector>> {
    let tls = if config.server.scheme_str() == Some("https") {
        let certificate = credential.and_then(|credential| credential.certificate.as_ref());
        Some(Arc::new(rustls_config(&config.tls, certificate, config.http1_only)?))
    } else {
        None
    };
    Ok(Arc::new(TcpConnector::new(tls, config.tls.server_name.clone())))
}
