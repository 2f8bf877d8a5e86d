//! Flags of the server, under kube-apiserver's names where they mean something here.

use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

/// Where things are kept and what is listened on.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerFlags {
    /// Where keys, certificates, the kubeconfig and the objects are kept. Made if it does not exist.
    #[arg(long, value_name = "DIR", default_value = "pintle-data", env = "PINTLE_DATA_DIR")]
    pub(crate) data_dir: PathBuf,
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
    pub(crate) admission: AdmissionFlags,
    #[command(flatten)]
    pub(crate) services: ServiceFlags,
    #[command(flatten)]
    pub(crate) storage: StorageFlags,
    /// Seconds that running requests get to finish when the server stops.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) shutdown_grace_seconds: u64,
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
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
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
    /// What the keys of all objects begin with.
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    pub(crate) etcd_prefix: String,
    /// Whether lists and watches are served from memory.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) watch_cache: bool,
    /// Per resource, `resource[.group]#size`: 0 switches the watch cache off for it.
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub(crate) watch_cache_sizes: Vec<String>,
}
