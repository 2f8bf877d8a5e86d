//! TLS towards etcd, with certificates on both sides.

use super::server::{Directory, Server, until};
use super::{key, value};
use crate::{EtcdStore, Options, TlsFiles};
use pintle_storage::Storage;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::PathBuf;

/// An authority, and certificates that it signed.
struct Files {
    directory: Directory,
}

impl Files {
    fn make() -> Files {
        let directory = Directory::new();
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let write = |name: &str, text: String| std::fs::write(directory.0.join(name), text).expect("a file");
        write("ca.pem", authority.pem());
        for name in ["server", "client"] {
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
            write(&format!("{name}.pem"), params.signed_by(&key, &authority).expect("a certificate").pem());
            write(&format!("{name}.key"), key.serialize_pem());
        }
        Files { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.0.join(name)
    }
}

#[tokio::test]
async fn both_sides_show_certificates() {
    let files = Files::make();
    let flag = |flag: &str, name: &str| format!("{flag}={}", files.path(name).display());
    let flags = [
        flag("--cert-file", "server.pem"),
        flag("--key-file", "server.key"),
        flag("--trusted-ca-file", "ca.pem"),
        "--client-cert-auth=true".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let Some(mut servers) = Server::cluster(1, &flags) else { return };
    let server = servers.remove(0);
    let store = |tls| EtcdStore::new(&Options { endpoints: vec![server.url.clone()], tls }).expect("good options");
    let full = TlsFiles {
        ca: Some(files.path("ca.pem")),
        certificate: Some(files.path("client.pem")),
        key: Some(files.path("client.key")),
    };
    let good = store(full.clone());
    until(async || good.health().await.is_ok()).await;
    let created = good.create(key("a"), value("1")).await.expect("it is new");
    assert_eq!(created.value, "1");
    let without_certificate = store(TlsFiles { certificate: None, key: None, ..full.clone() });
    assert!(without_certificate.health().await.is_err());
    let other_authority = Files::make();
    let distrusting = store(TlsFiles { ca: Some(other_authority.path("ca.pem")), ..full });
    assert!(distrusting.health().await.is_err());
}

#[tokio::test]
async fn bad_files_are_named() {
    let files = Files::make();
    let refused = |tls| {
        let options = Options { endpoints: vec!["https://127.0.0.1:1".to_owned()], tls };
        EtcdStore::new(&options).expect_err("bad files").to_string()
    };
    let missing = TlsFiles { ca: Some(files.path("nobody.pem")), ..TlsFiles::default() };
    assert!(refused(missing).contains("nobody.pem"));
    let no_certificate = TlsFiles { ca: Some(files.path("client.key")), ..TlsFiles::default() };
    assert!(refused(no_certificate).ends_with("holds no certificate"));
    let half = TlsFiles { ca: Some(files.path("ca.pem")), key: Some(files.path("client.key")), certificate: None };
    assert!(refused(half).contains("a key its certificate"));
}
