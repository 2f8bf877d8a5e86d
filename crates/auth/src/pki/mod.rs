//! Keys and certificates of a cluster: made on the first start, kept in a directory, reused and renewed afterwards.
//!
//! Not here: who a certificate is (authn), the certificate API (its controllers sign with [`Authority::sign_request`]).

mod agents;
mod authority;
mod files;
mod kubeconfig;
mod tls;

pub use agents::{agent_client_config, agent_server_config};
pub use authority::{Authority, Pair, RequestError, Subject, request_organizations};
pub use files::{FileError, write_private};
pub use kubeconfig::Kubeconfig;
pub use tls::{TlsError, server_config};

use jiff::Timestamp;
use pintle_apimachinery::env::Env;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// How long an authority lasts, in days.
pub const AUTHORITY_DAYS: i64 = 3650;
/// How long any other certificate lasts, in days.
pub const CERTIFICATE_DAYS: i64 = 365;
/// A certificate that ends within so many days is made anew.
pub const RENEW_BEFORE_DAYS: i64 = 60;

/// Why the keys and certificates cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file holds something else than it should. The user has to move it away.
    #[error("{path} does not hold what it should: {why}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A certificate cannot be made.
    #[error("cannot make the certificate of {name}: {why}")]
    Issue {
        /// Of whom.
        name: String,
        /// What is wrong.
        why: String,
    },
}

/// The keys and certificates of a cluster.
#[derive(Debug)]
pub struct Pki {
    dir: PathBuf,
    now: Timestamp,
    env: Env,
    /// Signs serving and client certificates. Files `ca.crt`, `ca.key`.
    pub ca: Authority,
    /// Signs the client certificate of the aggregation proxy. Files `front-proxy-ca.crt`, `front-proxy-ca.key`.
    pub front_proxy_ca: Authority,
    /// PEM of the key that signs service account tokens. File `sa.key`.
    pub service_account_key: String,
}

/// The names and addresses that a serving certificate must cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServingNames {
    /// DNS names.
    pub dns: Vec<String>,
    /// Addresses.
    pub ips: Vec<IpAddr>,
}

impl ServingNames {
    /// What every server of a cluster answers to, beside its own names: `localhost`, the `kubernetes` service by name
    /// and (where known) by address.
    pub fn of_cluster(hosts: &[String], service_ips: &[IpAddr], cluster_domain: &str) -> ServingNames {
        let mut names = ServingNames {
            dns: ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
                .map(str::to_owned)
                .to_vec(),
            ips: vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from(std::net::Ipv6Addr::LOCALHOST)],
        };
        names.dns.push(format!("kubernetes.default.svc.{cluster_domain}"));
        names.ips.extend(service_ips);
        for host in hosts {
            match host.parse() {
                Ok(ip) => names.ips.push(ip),
                Err(_) => names.dns.push(host.to_lowercase()),
            }
        }
        names.dns.sort();
        names.dns.dedup();
        names.ips.sort();
        names.ips.dedup();
        names
    }

    fn covers(&self, other: &ServingNames) -> bool {
        other.dns.iter().all(|name| self.dns.contains(name)) && other.ips.iter().all(|ip| self.ips.contains(ip))
    }
}

impl Pki {
    /// The keys and certificates in `dir`, made where they are missing. The directory is made with mode 0700, private
    /// keys with mode 0600.
    ///
    /// # Errors
    /// [`PkiError`]: an authority or key that is there and malformed is never replaced.
    pub fn open(dir: &Path, env: &Env) -> Result<Pki, PkiError> {
        files::make_dir(dir)?;
        let now = env.clock.now();
        let ca = authority(dir, "ca", "kubernetes", now, env)?;
        let front_proxy_ca = authority(dir, "front-proxy-ca", "front-proxy-ca", now, env)?;
        let service_account_key = match files::read(&dir.join("sa.key"))? {
            Some(key) => key,
            None => {
                let key = authority::fresh_key("service accounts")?.serialize_pem();
                files::write_private(&dir.join("sa.key"), key.as_bytes())?;
                key
            }
        };
        Ok(Pki { dir: dir.to_owned(), now, env: env.clone(), ca, front_proxy_ca, service_account_key })
    }

    /// The certificate that the server shows (`apiserver.crt`, `apiserver.key`).
    ///
    /// # Errors
    /// [`PkiError`] when it cannot be read or made.
    pub fn serving(&self, names: &ServingNames) -> Result<Pair, PkiError> {
        let subject = Subject { common_name: "kube-apiserver", organizations: &[], serving: Some(names) };
        self.pair("apiserver", &self.ca, &subject)
    }

    /// The certificate of a client, kept under `file`: `common_name` is its user, `organizations` are its groups.
    ///
    /// # Errors
    /// [`PkiError`] when it cannot be read or made.
    pub fn client(&self, file: &str, common_name: &str, organizations: &[&str]) -> Result<Pair, PkiError> {
        self.pair(file, &self.ca, &Subject { common_name, organizations, serving: None })
    }

    /// A certificate for the API of nodes that are simulated on this machine. It is not kept.
    ///
    /// # Errors
    /// [`PkiError`] when it cannot be made.
    pub fn simulated_nodes(&self) -> Result<Pair, PkiError> {
        let names = ServingNames { dns: vec!["localhost".to_owned()], ips: vec![IpAddr::from([127, 0, 0, 1])] };
        let subject =
            Subject { common_name: "system:node:simulated", organizations: &["system:nodes"], serving: Some(&names) };
        self.ca.issue(&subject, self.now, &self.env)
    }

    /// The certificate by which the aggregation proxy shows itself to extension servers (`front-proxy-client.crt`).
    ///
    /// # Errors
    /// [`PkiError`] when it cannot be read or made.
    pub fn front_proxy_client(&self) -> Result<Pair, PkiError> {
        let subject = Subject { common_name: "front-proxy-client", organizations: &[], serving: None };
        self.pair("front-proxy-client", &self.front_proxy_ca, &subject)
    }

    fn pair(&self, file: &str, issuer: &Authority, subject: &Subject<'_>) -> Result<Pair, PkiError> {
        let (certificate_path, key_path) = (self.dir.join(format!("{file}.crt")), self.dir.join(format!("{file}.key")));
        if let (Some(certificate), Some(key)) = (files::read(&certificate_path)?, files::read(&key_path)?) {
            let pair = Pair { certificate, key };
            if issuer.still_good(&pair, subject, self.now) {
                return Ok(pair);
            }
            tracing::info!(file, "certificate does not fit any more, making it anew");
        }
        let pair = issuer.issue(subject, self.now, &self.env)?;
        files::write_private(&key_path, pair.key.as_bytes())?;
        files::write_private(&certificate_path, pair.certificate.as_bytes())?;
        Ok(pair)
    }
}

fn authority(dir: &Path, file: &str, name: &str, now: Timestamp, env: &Env) -> Result<Authority, PkiError> {
    let (certificate_path, key_path) = (dir.join(format!("{file}.crt")), dir.join(format!("{file}.key")));
    if let (Some(certificate), Some(key)) = (files::read(&certificate_path)?, files::read(&key_path)?) {
        return Authority::from_pem(&certificate, &key)
            .map_err(|why| PkiError::Malformed { path: certificate_path, why });
    }
    let authority = Authority::generate(name, now, env)?;
    files::write_private(&key_path, authority.key_pem().as_bytes())?;
    files::write_private(&certificate_path, authority.certificate.as_bytes())?;
    Ok(authority)
}

#[cfg(test)]
mod tests;
