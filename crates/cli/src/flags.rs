//! Flags of the server, under kube-apiserver's names where they mean something here.

use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The data directory of a server that is told none.
pub(crate) const DEFAULT_DATA_DIR: &str = "pintle-data";

/// Where things are kept and what is listened on.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerFlags {
    /// Where keys, certificates, the kubeconfig and the objects are kept; made if it does not exist. Default:
    /// `pintle-data`, or the directory of the etcd role when `--etcd-servers` points there.
    #[arg(long, value_name = "DIR", env = "PINTLE_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The address to listen on.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,
    /// The port to listen on; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(crate) secure_port: u16,
    /// The address under which others reach the server: in the kubeconfig, the certificate and the `kubernetes` service.
    /// Default: the bind address, or 127.0.0.1 when that is unspecified.
    #[arg(long, value_name = "IP")]
    pub(crate) advertise_address: Option<IpAddr>,
    /// Further names and addresses that the server's certificate is to cover.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) tls_san: Vec<String>,
    #[command(flatten)]
    pub(crate) certificates: CertificateFlags,
    #[command(flatten)]
    pub(crate) access: AccessFlags,
    #[command(flatten)]
    pub(crate) request_header: RequestHeaderFlags,
    #[command(flatten)]
    pub(crate) admission: AdmissionFlags,
    #[command(flatten)]
    pub(crate) services: ServiceFlags,
    #[command(flatten)]
    pub(crate) storage: StorageFlags,
    #[command(flatten)]
    pub(crate) requests: RequestFlags,
    /// Seconds that running requests get to finish when the server stops.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) shutdown_grace_seconds: u64,
}

/// How many requests are served at once.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestFlags {
    /// Requests that read and are served at once; more wait, then get 429. 0 means no limit.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) max_requests_inflight: usize,
    /// Requests that write and are served at once; more wait, then get 429. 0 means no limit.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_mutating_requests_inflight: usize,
    /// How long a request may take, watches and the like aside; longer ones get 504.
    #[arg(long, value_name = "DURATION", default_value = "1m0s", value_parser = duration)]
    pub(crate) request_timeout: Duration,
}

/// Certificates that are brought along instead of made.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Certificates")]
pub(crate) struct CertificateFlags {
    /// The server's certificate (with its chain). Made under the data directory by default.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// The key of the server's certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// Where to write `apiserver.crt` and `apiserver.key`, when the server makes its own certificate.
    #[arg(long, value_name = "DIR")]
    pub(crate) cert_dir: Option<PathBuf>,
    /// Client certificates signed by these authorities are accepted, besides those that the server makes itself.
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,
}

/// Who gets in, and what they may.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessFlags {
    /// Bearer tokens: a CSV file with token, user name, user uid and, in quotes, groups.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// Whether requests without credentials are let in as system:anonymous, who may next to nothing.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) anonymous_auth: bool,
    /// How requests are authorised, in order.
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = "Node,RBAC")]
    pub(crate) authorization_mode: Vec<String>,
    /// Who issues service account tokens.
    #[arg(long, value_name = "URL", default_value = "https://kubernetes.default.svc.cluster.local")]
    pub(crate) service_account_issuer: Vec<String>,
    /// Keys (public or private) that service account tokens may be signed with. Default: the signing key.
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_key_file: Vec<PathBuf>,
    /// The key that signs service account tokens. Made under the data directory by default.
    #[arg(long, value_name = "FILE")]
    pub(crate) service_account_signing_key_file: Option<PathBuf>,
    /// What tokens must be good for. Default: the issuers.
    #[arg(long, value_name = "AUDIENCES", value_delimiter = ',')]
    pub(crate) api_audiences: Vec<String>,
}

/// Proxies in front of the server, which say who asks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Proxies in front")]
pub(crate) struct RequestHeaderFlags {
    /// Requests with a client certificate signed by these authorities may say in headers who asks.
    #[arg(long, value_name = "FILE")]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,
    /// The common names that such certificates may have. Default: any.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) requestheader_allowed_names: Vec<String>,
    /// The headers that carry the user's name.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "X-Remote-User")]
    pub(crate) requestheader_username_headers: Vec<String>,
    /// The headers that carry the user's uid.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "X-Remote-Uid")]
    pub(crate) requestheader_uid_headers: Vec<String>,
    /// The headers that carry the user's groups.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "X-Remote-Group")]
    pub(crate) requestheader_group_headers: Vec<String>,
    /// What the names of headers with extra attributes begin with.
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',', default_value = "X-Remote-Extra-")]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}

/// Admission plugins.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct AdmissionFlags {
    /// Admission plugins to switch on, besides those that are on by default.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,
    /// Admission plugins to switch off.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disable_admission_plugins: Vec<String>,
}

/// Addresses and ports of Services.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Services")]
pub(crate) struct ServiceFlags {
    /// Addresses of Services: one range, or one of each family.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', default_value = "10.0.0.0/24")]
    pub(crate) service_cluster_ip_range: Vec<String>,
    /// Ports of Services on nodes.
    #[arg(long, value_name = "FIRST-LAST", default_value = "30000-32767")]
    pub(crate) service_node_port_range: String,
    /// Reach services (of webhooks) at their endpoints instead of their cluster IPs.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) enable_aggregator_routing: bool,
}

/// Where objects lie.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Storage")]
pub(crate) struct StorageFlags {
    /// The back end: `embedded` (the default) or `etcd3`.
    #[arg(long, value_name = "NAME")]
    pub(crate) storage_backend: Option<String>,
    /// Addresses of an etcd v3 cluster. Given, objects lie there.
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    pub(crate) etcd_servers: Vec<String>,
    /// Resources that lie elsewhere: `group/resource#URL;URL`, the group empty for the core.
    #[arg(long, value_name = "OVERRIDES", value_delimiter = ',')]
    pub(crate) etcd_servers_overrides: Vec<String>,
    /// The authority that signed the certificates of etcd's servers.
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_cafile: Option<PathBuf>,
    /// The certificate to show to etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub(crate) etcd_certfile: Option<PathBuf>,
    /// The key of the certificate to show to etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub(crate) etcd_keyfile: Option<PathBuf>,
    /// How often etcd is asked to forget history older than that (`5m0s`); 0 never asks.
    #[arg(long, value_name = "DURATION", default_value = "5m0s", value_parser = duration)]
    pub(crate) etcd_compaction_interval: Duration,
    /// How long the embedded store remembers former versions: from so far back lists and watches may start.
    #[arg(long, value_name = "DURATION", default_value = "10m0s", value_parser = duration)]
    pub(crate) history_time: Duration,
    /// How long events are kept.
    #[arg(long, value_name = "DURATION", default_value = "1h0m0s", value_parser = duration)]
    pub(crate) event_ttl: Duration,
    /// What the keys of all objects begin with.
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    pub(crate) etcd_prefix: String,
    /// Whether lists and watches are served from memory.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) watch_cache: bool,
    /// Events that the watch cache of a resource remembers, as `resource[.group]#size`; 0 switches the cache off for it.
    /// Events have none by default.
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub(crate) watch_cache_sizes: Vec<String>,
}

/// `pintle up`.
#[derive(Clone, Debug, Args)]
pub(crate) struct UpFlags {
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
    #[command(flatten)]
    pub(crate) server: ServerFlags,
}

/// What runs beside the server.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterFlags {
    /// Simulated nodes, which run the pods that the scheduler gives them.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) nodes: u32,
    /// The control loops to run, by kube-controller-manager's names: `*` for all, `-NAME` for all but that one.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "*", allow_hyphen_values = true)]
    pub(crate) controllers: Vec<String>,
}

/// `pintle kubeconfig`.
#[derive(Clone, Debug, Args)]
pub(crate) struct KubeconfigFlags {
    /// The data directory of the server.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR, env = "PINTLE_DATA_DIR")]
    pub(crate) data_dir: PathBuf,
    /// Make a client certificate for this user, instead of showing the administrator's kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// A group of that user; may be given several times.
    #[arg(long, value_name = "NAME", requires = "user")]
    pub(crate) group: Vec<String>,
}

/// Reads a duration as Go writes it: `1h30m`, `250ms`, `0`.
fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 7] =
        [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let bad = || format!("{text:?} is no duration: write it as 1h30m, 45s or 250ms");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let number_len = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let number: f64 = rest[..number_len].parse().map_err(|_| bad())?;
        rest = &rest[number_len..];
        let unit_len = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..unit_len]).ok_or_else(bad)?;
        seconds += number * unit;
        rest = &rest[unit_len..];
    }
    if text.is_empty() {
        return Err(bad());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("1h0m0s"), Ok(Duration::from_secs(3600)));
        assert_eq!(duration("1.5s250ms"), Ok(Duration::from_millis(1750)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for bad in ["", "5", "m", "1x", "-1s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
