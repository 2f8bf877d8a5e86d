//! Webhooks over HTTPS. Errors read as Go's HTTP client words them.
//!
//! Follows: apiserver/pkg/util/webhook/client.go (v0.35).

use super::call::{CallError, Caller};
use super::service::{ServiceResolver, join_host_port};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, Uri};
use indexmap::IndexMap;
use parking_lot::Mutex;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{Value, value};
use pintle_client::config::TlsSettings;
use pintle_client::error::{BoxError, chain_text, failure_status};
use pintle_client::transport::{Connection, Connector, HttpTransport, Transport};
use pintle_client::{Config, Error};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

/// Webhooks whose connections are kept. The one that was made first goes when there is one more.
pub const CLIENTS_MAX: usize = 200;

/// How long an answer may be (bytes). A longer one counts as a failed call.
pub const ANSWER_BYTES_MAX: usize = 32 << 20;

const AGENT: &str = concat!("pintle/", env!("CARGO_PKG_VERSION"));

/// Calls webhooks over HTTPS, keeping connections open.
#[derive(Debug)]
pub struct HttpCaller {
    services: ServiceResolver,
    /// By the configuration of the client.
    clients: Mutex<IndexMap<String, Arc<Client>>>,
}

#[derive(Debug)]
struct Client {
    transport: HttpTransport,
    /// Without the query.
    url: String,
}

impl HttpCaller {
    /// Finds services with `services`.
    pub fn new(services: ServiceResolver) -> HttpCaller {
        HttpCaller { services, clients: Mutex::default() }
    }

    fn client(&self, client_config: &Value) -> Result<Arc<Client>, String> {
        let key = client_config.to_json_string();
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = Arc::new(self.new_client(client_config)?);
        if clients.len() >= CLIENTS_MAX {
            clients.shift_remove_index(0);
        }
        clients.insert(key, client.clone());
        Ok(client)
    }

    fn new_client(&self, client_config: &Value) -> Result<Client, String> {
        let (target, service) = target(client_config)?;
        let host = target.host().unwrap_or_default();
        let authority = join_host_port(host.trim_matches(['[', ']']), i64::from(target.port_u16().unwrap_or(443)));
        let shown = target.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let url = format!("https://{shown}{}", clean_path(target.path()));
        let server = format!("https://{authority}");
        let mut config = Config::new(&server).map_err(|why| chain_text(&why))?;
        config.http1_only = service.is_some() || !is_local(host);
        let ca = client_config["caBundle"].str_or_empty();
        let settings = TlsSettings { certificate_authority_pem: ca_pem(ca)?, ..TlsSettings::default() };
        let tls = match settings.certificate_authority_pem {
            Some(_) => Some(settings.handshake(config.http1_only).map_err(|why| chain_text(&why))?),
            None => None,
        };
        let connector = HookConnector {
            host: host.trim_matches(['[', ']']).to_owned(),
            address: authority,
            service: service.map(|service| (self.services.clone(), service)),
            tls: tls.map(Arc::new),
            settings,
            is_http1_only: config.http1_only,
        };
        Ok(Client { transport: HttpTransport::with_connector(&config, Arc::new(connector)), url })
    }
}

#[async_trait]
impl Caller for HttpCaller {
    async fn call(&self, client_config: &Value, body: Value, timeout: Option<Duration>) -> Result<Value, CallError> {
        let client = self.client(client_config).map_err(CallError::Unusable)?;
        let query = timeout.map(|timeout| format!("?timeout={}s", timeout.as_secs())).unwrap_or_default();
        let url = format!("{}{query}", client.url);
        let answer = match timeout {
            None => client.post(&url, body).await,
            Some(timeout) => tokio::time::timeout(timeout, client.post(&url, body))
                .await
                .unwrap_or_else(|_| Err(failed_post(&url, "context deadline exceeded"))),
        };
        answer.map_err(CallError::Failed)
    }
}

impl Client {
    async fn post(&self, url: &str, body: Value) -> Result<Value, String> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, AGENT)
            .body(Bytes::from(body.to_json()))
            .map_err(|why| failed_post(url, &why.to_string()))?;
        let response = self.transport.send(request).await.map_err(|error| failed_post(url, &error_text(error)))?;
        let code = response.status().as_u16();
        let body = response.into_body().collect(ANSWER_BYTES_MAX).await.map_err(error_text)?;
        if !(200..=206).contains(&code) {
            return Err(failure_status(code, &body).message);
        }
        value::parse(&body).map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))
    }
}

fn failed_post(url: &str, why: &str) -> String {
    format!("Post {}: {why}", go_quote(url))
}

fn error_text(error: Error) -> String {
    match error {
        Error::Connect { source, .. } => chain_text(&*source),
        Error::Connection { source, .. } => {
            let text = chain_text(&*source);
            if text.contains("connection closed before message completed") { "EOF".to_owned() } else { text }
        }
        other => chain_text(&other),
    }
}

/// A port of a Service.
#[derive(Clone, Debug)]
struct ServicePort {
    namespace: String,
    name: String,
    port: i64,
}

/// The address to call, and the service behind it.
fn target(client_config: &Value) -> Result<(Uri, Option<ServicePort>), String> {
    let service = &client_config["service"];
    if !service.is_null() {
        let (namespace, name) = (service["namespace"].str_or_empty(), service["name"].str_or_empty());
        let port = service["port"].as_i64().unwrap_or(443);
        let path = service["path"].str_or_empty();
        let slash = if path.starts_with('/') { "" } else { "/" };
        let url = format!("https://{name}.{namespace}.svc:{port}{slash}{path}");
        let uri = url.parse().map_err(|why| format!("Unparsable URL: {why}"))?;
        return Ok((uri, Some(ServicePort { namespace: namespace.to_owned(), name: name.to_owned(), port })));
    }
    match client_config["url"].str_or_empty() {
        "" => Err("webhook configuration must have either service or URL".to_owned()),
        url => Ok((url.parse().map_err(|why| format!("Unparsable URL: {why}"))?, None)),
    }
}

/// The path without empty and dotted segments and without a slash at its end.
fn clean_path(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

fn is_local(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The certificates of a `caBundle`, if it says any.
fn ca_pem(bundle: &str) -> Result<Option<String>, String> {
    if bundle.is_empty() {
        return Ok(None);
    }
    let unusable = || "unable to load root certificates: unable to parse bytes as PEM block".to_owned();
    let pem = STANDARD.decode(bundle).map_err(|_| unusable())?;
    let text = String::from_utf8(pem).map_err(|_| unusable())?;
    if text.contains("-----BEGIN CERTIFICATE-----") { Ok(Some(text)) } else { Err(unusable()) }
}

/// Connects to a webhook, wherever its service is at the moment.
#[derive(Debug)]
struct HookConnector {
    /// The name that the certificate must have.
    host: String,
    /// Host and port, unless there is a service.
    address: String,
    service: Option<(ServiceResolver, ServicePort)>,
    /// Of the webhook's own authorities.
    tls: Option<Arc<rustls::ClientConfig>>,
    settings: TlsSettings,
    is_http1_only: bool,
}

impl HookConnector {
    async fn open(&self) -> Result<Connection, BoxError> {
        let address = match &self.service {
            None => self.address.clone(),
            Some((resolver, service)) => resolver.resolve(&service.namespace, &service.name, service.port).await?,
        };
        let tcp = dial(&address).await?;
        tcp.set_nodelay(true)?;
        let tls = match &self.tls {
            Some(tls) => tls.clone(),
            None => Arc::new(self.settings.handshake(self.is_http1_only)?),
        };
        let name = rustls_pki_types::ServerName::try_from(self.host.clone())?;
        let stream = TlsConnector::from(tls).connect(name, tcp).await;
        let stream = stream.map_err(|error| handshake_text(&error, &self.host))?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Connection { io: Box::new(stream), is_http2 })
    }
}

impl Connector for HookConnector {
    fn connect(&self, _server: &Uri) -> BoxFuture<'_, Result<Connection, BoxError>> {
        Box::pin(self.open())
    }
}

/// A TCP connection to the first address of `host:port` that takes one.
async fn dial(address: &str) -> Result<TcpStream, String> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let addresses = lookup_host(address).await.map_err(|_| format!("dial tcp: lookup {host}: no such host"))?;
    let mut first_error = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                first_error.get_or_insert_with(|| format!("dial tcp {address}: connect: {}", os_text(&error)));
            }
        }
    }
    Err(first_error.unwrap_or_else(|| format!("dial tcp: lookup {host}: no such host")))
}

fn os_text(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        ErrorKind::TimedOut => "connection timed out".to_owned(),
        ErrorKind::HostUnreachable => "no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => error.to_string(),
    }
}

fn handshake_text(error: &std::io::Error, host: &str) -> String {
    use rustls::CertificateError as Fault;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match inner {
        None => return os_text(error),
        Some(rustls::Error::InvalidMessage(_)) => {
            return "http: server gave HTTP response to HTTPS client".to_owned();
        }
        Some(rustls::Error::InvalidCertificate(fault)) => match fault {
            Fault::UnknownIssuer | Fault::BadSignature => "certificate signed by unknown authority".to_owned(),
            Fault::Expired | Fault::ExpiredContext { .. } | Fault::NotValidYet | Fault::NotValidYetContext { .. } => {
                "certificate has expired or is not yet valid".to_owned()
            }
            Fault::NotValidForName => format!("certificate is not valid for any names, but wanted to match {host}"),
            Fault::NotValidForNameContext { presented, .. } => name_text(host, presented),
            other => other.to_string(),
        },
        Some(other) => return format!("tls: {other}"),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

fn name_text(host: &str, presented: &[String]) -> String {
    // names come as `DnsName("a")` and `IpAddress(127.0.0.1)`
    let names: Vec<&str> = presented
        .iter()
        .map(|name| name.split_once('(').map_or(name.as_str(), |(_, n)| n.trim_matches(['"', ')'])))
        .collect();
    let is_ip = host.parse::<std::net::IpAddr>().is_ok();
    if is_ip && !presented.iter().any(|name| name.starts_with("IpAddress")) {
        return format!("cannot validate certificate for {host} because it doesn't contain any IP SANs");
    }
    if names.is_empty() {
        return format!("certificate is not valid for any names, but wanted to match {host}");
    }
    format!("certificate is valid for {}, not {host}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::Routing;
    use expect_test::expect;
    use pintle_apimachinery::env::Env;
    use pintle_apimachinery::json;
    use pintle_auth::StaticLookup;
    use pintle_auth::pki::{Authority, ServingNames, Subject, server_config};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    fn caller() -> HttpCaller {
        let lookup = Arc::new(StaticLookup::default());
        let services = ServiceResolver { lookup, routing: Routing::ClusterIp, own_address: None, env: Env::seeded(1) };
        HttpCaller::new(services)
    }

    /// A webhook that answers every request with `code` and `body`; its port and its authority's certificate.
    async fn serve(dns: &str, code: u16, body: &'static str) -> (u16, String) {
        let env = Env::system();
        let ca = Authority::generate("test", env.clock.now(), &env).expect("an authority");
        let names = ServingNames { dns: vec![dns.to_owned()], ips: vec![] };
        let subject = Subject { common_name: "hook", organizations: &[], serving: Some(&names) };
        let pair = ca.issue(&subject, env.clock.now(), &env).expect("a certificate");
        let acceptor = TlsAcceptor::from(Arc::new(server_config(&pair, "", &[b"http/1.1"]).expect("settings")));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(tcp).await else { return };
                    let mut seen = Vec::new();
                    // the request is one JSON document, so that it has come when its last brace has
                    while !seen.ends_with(b"}") {
                        if stream.read_buf(&mut seen).await.unwrap_or_default() == 0 {
                            return;
                        }
                    }
                    let line = String::from_utf8_lossy(&seen);
                    let line = line.lines().next().unwrap_or_default();
                    let body = body.replace("LINE", line);
                    let head = format!("HTTP/1.1 {code} Fine\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    let _ = stream.write_all(head.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        (port, STANDARD.encode(ca.certificate))
    }

    async fn call(client_config: Value) -> String {
        match caller().call(&client_config, json!({}), Some(Duration::from_secs(5))).await {
            Ok(answer) => answer.to_json_string(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn answers_and_failures() {
        let (port, ca) = serve("localhost", 200, r#"{"seen": "LINE"}"#).await;
        let (other_port, other_ca) = serve("elsewhere", 200, "{}").await;
        let (broken_port, broken_ca) = serve("localhost", 500, "boom").await;
        let (odd_port, odd_ca) = serve("localhost", 200, "what?").await;
        let mut told = String::new();
        for config in [
            json!({"url": format!("https://localhost:{port}/a//b/?x"), "caBundle": ca.clone()}),
            json!({"url": format!("https://localhost:{port}"), "caBundle": ca.clone()}),
            json!({"url": format!("https://localhost:{port}"), "caBundle": other_ca.clone()}),
            json!({"url": format!("https://localhost:{other_port}"), "caBundle": other_ca.clone()}),
            json!({"url": format!("https://127.0.0.1:{other_port}"), "caBundle": other_ca}),
            json!({"url": format!("https://localhost:{broken_port}"), "caBundle": broken_ca}),
            json!({"url": format!("https://localhost:{odd_port}"), "caBundle": odd_ca}),
            json!({"url": "https://localhost", "caBundle": "anVuaw=="}),
            json!({"url": "https://127.0.0.1:1/check"}),
            json!({"service": {"namespace": "ns", "name": "hook", "path": "/p"}}),
            json!({}),
        ] {
            let text = call(config).await;
            let text = text.replace(&port.to_string(), "PORT").replace(&other_port.to_string(), "OTHER");
            told += &format!("{text}\n");
        }
        expect![[r#"
            {"seen":"POST /a/b?timeout=5s HTTP/1.1"}
            {"seen":"POST /?timeout=5s HTTP/1.1"}
            failed to call webhook: Post "https://localhost:PORT/?timeout=5s": tls: failed to verify certificate: x509: certificate signed by unknown authority
            failed to call webhook: Post "https://localhost:OTHER/?timeout=5s": tls: failed to verify certificate: x509: certificate is valid for elsewhere, not localhost
            failed to call webhook: Post "https://127.0.0.1:OTHER/?timeout=5s": tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs
            failed to call webhook: an error on the server ("boom") has prevented the request from succeeding
            failed to call webhook: couldn't get version/kind; json parse error: invalid character 'w' looking for beginning of value
            could not get REST client: unable to load root certificates: unable to parse bytes as PEM block
            failed to call webhook: Post "https://127.0.0.1:1/check?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused
            failed to call webhook: Post "https://hook.ns.svc:443/p?timeout=5s": service "hook" not found
            could not get REST client: webhook configuration must have either service or URL
        "#]].assert_eq(&told);
    }

    #[tokio::test(start_paused = true)]
    async fn a_webhook_that_never_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let text = call(json!({"url": format!("https://127.0.0.1:{port}/")})).await;
        let wanted = format!(
            r#"failed to call webhook: Post "https://127.0.0.1:{port}/?timeout=5s": context deadline exceeded"#
        );
        assert_eq!(text, wanted);
    }
}
