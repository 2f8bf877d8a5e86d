//! The role of `etcd` for test harnesses that start one beside kube-apiserver: answers the health checks that they
//! poll, and tells the API server in which directory its embedded store is to lie. It stores nothing itself.

use crate::exit::Failure;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the API server asks for the directory.
const DIRECTORY_PATH: &str = "/pintle/store-directory";
/// Time for one request; peers are on the same machine.
const PEER_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a request's head or of an answer that are read.
const MESSAGE_BYTES_MAX: u64 = 16 * 1024;

/// What counts of etcd's flags.
#[derive(Debug, PartialEq, Eq)]
struct Role {
    data_dir: PathBuf,
    listen: Vec<String>,
}

impl Role {
    /// Reads etcd's flags; those that concern what this role does not do are passed over.
    fn parse(args: &[String]) -> Role {
        let mut role = Role { data_dir: PathBuf::from("default.etcd"), listen: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let Some(flag) = arg.trim_start_matches('-').split('=').next().filter(|_| arg.starts_with('-')) else {
                continue;
            };
            if !matches!(flag, "data-dir" | "listen-client-urls") {
                continue;
            }
            let value = match arg.split_once('=') {
                Some((_, value)) => value.to_owned(),
                None => args.next().cloned().unwrap_or_default(),
            };
            match flag {
                "data-dir" => role.data_dir = PathBuf::from(value),
                _ => role.listen = value.split(',').map(str::to_owned).collect(),
            }
        }
        if role.listen.is_empty() {
            role.listen.push("http://localhost:2379".to_owned());
        }
        role
    }
}

/// Runs the role until the process is told to end.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    if args.iter().any(|arg| matches!(arg.as_str(), "--version" | "-version" | "version")) {
        println!("etcd Version: 3.6.0\nrole of Pintle {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    let role = Role::parse(&args);
    std::fs::create_dir_all(&role.data_dir)
        .map_err(|source| Failure::Directory { directory: role.data_dir.display().to_string(), source })?;
    let directory = std::fs::canonicalize(&role.data_dir).context("cannot resolve --data-dir")?;
    let mut listeners = Vec::new();
    for url in &role.listen {
        let address = address_of(url).with_context(|| format!("--listen-client-urls={url}"))?;
        listeners.push(TcpListener::bind(address).map_err(|source| Failure::Address {
            address,
            fix: "choose another port with --listen-client-urls",
            source,
        })?);
    }
    let threads: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            let directory = directory.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    // a peer that breaks off asks again
                    let _ = answer(stream, &directory);
                }
            })
        })
        .collect();
    eprintln!("serving client requests for the embedded store in {}", directory.display());
    for thread in threads {
        // the threads end with the process only
        let _ = thread.join();
    }
    Ok(())
}

fn address_of(url: &str) -> Result<SocketAddr> {
    let Some(authority) = url.strip_prefix("http://") else {
        return Err(Failure::Usage(format!("{url}: this role listens on http:// URLs only")).into());
    };
    let authority = authority.trim_end_matches('/');
    let found = authority.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or_else(|| Failure::Usage(format!("{url}: cannot tell the address")).into())
}

fn answer(mut stream: TcpStream, directory: &Path) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PEER_TIMEOUT))?;
    stream.set_write_timeout(Some(PEER_TIMEOUT))?;
    let mut lines = BufReader::new(stream.try_clone()?.take(MESSAGE_BYTES_MAX)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let (status, body) = match request.split(' ').nth(1) {
        Some("/health" | "/livez" | "/readyz") => ("200 OK", r#"{"health":"true","reason":""}"#.to_owned()),
        Some("/version") => ("200 OK", r#"{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}"#.to_owned()),
        Some(DIRECTORY_PATH) => ("200 OK", directory.display().to_string()),
        _ => ("404 Not Found", "404 page not found\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The directory that the etcd role of this binary tells at `url`; `None` when a real etcd is there, or nobody.
pub(crate) fn directory_at(url: &str) -> Option<PathBuf> {
    let address = address_of(url).ok()?;
    let mut stream = TcpStream::connect_timeout(&address, PEER_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(PEER_TIMEOUT)).ok()?;
    write!(stream, "GET {DIRECTORY_PATH} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut reply = String::new();
    stream.take(MESSAGE_BYTES_MAX).read_to_string(&mut reply).ok()?;
    let (head, body) = reply.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| PathBuf::from(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_test_harnesses() {
        let args =
            ["--listen-peer-urls=http://localhost:0", "-data-dir", "/tmp/x", "--listen-client-urls=http://127.0.0.1:1"];
        let role = Role::parse(&args.map(str::to_owned));
        assert_eq!(role.data_dir, Path::new("/tmp/x"));
        assert_eq!(role.listen, ["http://127.0.0.1:1"]);
    }

    #[test]
    fn the_api_server_learns_the_directory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || answer(listener.accept().unwrap().0, Path::new("/tmp/here")).unwrap());
        assert_eq!(directory_at(&url).unwrap(), Path::new("/tmp/here"));
        server.join().unwrap();
    }
}
