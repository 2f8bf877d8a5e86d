//! HTTP/1.1 by hand: what goes over the wire is what the test wrote, and what came is what the test sees.

use crate::server::{Server, TOKEN};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long a server may be silent before a test gives up.
const SILENCE: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The object's version.
    pub(crate) fn version(&self) -> String {
        self.json()["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
    }
}

/// A connection, which lives over several requests.
pub(crate) struct Connection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    /// What came of a watch and is not a whole line yet.
    partial: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(server: &Server) -> io::Result<Connection> {
        let mut roots = RootCertStore::empty();
        let authority = server.dir.data().join("pki/ca.crt");
        let certificate = CertificateDer::from_pem_file(authority).map_err(io::Error::other)?;
        roots.add(certificate).map_err(io::Error::other)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
        tcp.set_read_timeout(Some(SILENCE))?;
        tcp.set_nodelay(true)?;
        let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        Ok(Connection { stream: BufReader::new(StreamOwned::new(tls, tcp)), partial: Vec::new() })
    }

    /// Sends a request and reads the answer's head.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += "\r\n";
        let mut request = text.into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        self.stream.get_mut().flush()?;
        let first = self.crlf_line()?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status line: {first:?}")))?;
        let mut headers = BTreeMap::new();
        loop {
            let line = self.crlf_line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        Ok(Response { status, headers, body: Vec::new() })
    }

    /// A whole exchange, in JSON.
    pub(crate) fn request(&mut self, method: &str, path: &str, body: &[u8]) -> io::Result<Response> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let headers: &[(&str, &str)] =
            if body.is_empty() { &[("Accept", "application/json")] } else { &[("Content-Type", kind)] };
        let mut response = self.send(method, path, headers, body)?;
        self.read_body(&mut response)?;
        Ok(response)
    }

    pub(crate) fn read_body(&mut self, response: &mut Response) -> io::Result<()> {
        if let Some(length) = response.headers.get("content-length") {
            let length = length.parse().map_err(io::Error::other)?;
            response.body.resize(length, 0);
            return self.stream.read_exact(&mut response.body);
        }
        while let Some(mut chunk) = self.chunk()? {
            response.body.append(&mut chunk);
        }
        Ok(())
    }

    /// The next chunk of a chunked body; `None` at its proper end.
    pub(crate) fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.crlf_line()?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        self.stream.read_exact(&mut chunk)?;
        chunk.truncate(length);
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }

    /// The next event of a watch; `None` at its proper end.
    pub(crate) fn event(&mut self) -> io::Result<Option<serde_json::Value>> {
        loop {
            if let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
                let rest = self.partial.split_off(end + 1);
                let line = std::mem::replace(&mut self.partial, rest);
                return serde_json::from_slice(&line).map(Some).map_err(io::Error::other);
            }
            match self.chunk()? {
                Some(mut chunk) => self.partial.append(&mut chunk),
                None => return Ok(None),
            }
        }
    }

    fn crlf_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}
