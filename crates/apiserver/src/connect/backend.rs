//! Connections to those who answer: nodes' agents, pods, services.

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Time to open a connection; past it the request fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A body on its way to a backend.
pub(super) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Who is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
    /// It is a node's agent: it is shown who this server is.
    pub(crate) is_agent: bool,
    /// Path and query; of a proxy, what its own path begins with.
    pub(crate) path: String,
}

impl Target {
    /// Host and port as they stand in a URL.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// How backends are reached.
#[derive(Clone, Debug)]
pub struct Backends {
    agents: Arc<ClientConfig>,
    others: Arc<ClientConfig>,
    /// Whether `nodes/proxy` may reach an agent on this machine, where simulated nodes have theirs. Else no proxy
    /// reaches what listens on this machine only.
    pub allows_local_nodes: bool,
}

impl Backends {
    /// With `agents` towards nodes' agents, and `others` towards pods and services.
    pub fn new(agents: ClientConfig, others: ClientConfig, allows_local_nodes: bool) -> Backends {
        Backends { agents: Arc::new(agents), others: Arc::new(others), allows_local_nodes }
    }

    /// Sends a GET for the target's path.
    pub(super) async fn get(&self, target: &Target) -> Result<Response<Incoming>, String> {
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let request = Request::get(&target.path).header(header::HOST, target.authority()).body(body);
        let request = request.map_err(|why| why.to_string())?;
        self.send(target, request).await
    }

    /// Sends a request over a connection of its own.
    pub(super) async fn send(&self, target: &Target, request: Request<Body>) -> Result<Response<Incoming>, String> {
        match tokio::time::timeout(CONNECT_TIMEOUT, self.open(target)).await {
            Ok(Ok(mut sender)) => sender.send_request(request).await.map_err(|why| chain(&why)),
            Ok(Err(why)) => Err(format!("dial tcp {}: {why}", target.authority())),
            Err(_) => Err(format!("dial tcp {}: i/o timeout", target.authority())),
        }
    }

    async fn open(&self, target: &Target) -> Result<hyper::client::conn::http1::SendRequest<Body>, String> {
        let stream = TcpStream::connect((target.host.as_str(), target.port)).await.map_err(|why| dial_error(&why))?;
        if let Err(why) = stream.set_nodelay(true) {
            tracing::debug!(%why, "cannot switch Nagle's algorithm off");
        }
        if !target.is_tls {
            return handshake(TokioIo::new(stream)).await;
        }
        let config = if target.is_agent { &self.agents } else { &self.others };
        let name = ServerName::try_from(target.host.clone()).map_err(|why| why.to_string())?;
        let connected = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        handshake(TokioIo::new(connected.map_err(|why| why.to_string())?)).await
    }
}

/// The words of Go for what goes wrong most.
fn dial_error(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        std::io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        std::io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

async fn handshake<I>(io: I) -> Result<hyper::client::conn::http1::SendRequest<Body>, String>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = hyper::client::conn::http1::handshake(io).await.map_err(|why| chain(&why))?;
    tokio::spawn(async move {
        if let Err(why) = connection.with_upgrades().await {
            tracing::debug!(%why, "the connection to a backend ended");
        }
    });
    Ok(sender)
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(why) = cause {
        text.push_str(": ");
        text.push_str(&why.to_string());
        cause = why.source();
    }
    text
}
