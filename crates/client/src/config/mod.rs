//! Where the server is and who we are: from a kubeconfig, from inside a pod, or given explicitly.

mod kubeconfig;
mod tls;

pub use kubeconfig::{
    Cluster, Context, ExecConfig, ExecEnvVar, Kubeconfig, NamedCluster, NamedContext, NamedExtension, NamedUser, User,
};
pub(crate) use tls::rustls_config;

use crate::error::BoxError;
use base64::Engine as _;
use http::Uri;
use pintle_apimachinery::env::Env;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Text that must not show in logs.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Why there is no usable configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is no kubeconfig.
    #[error("{} is not a kubeconfig", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The kubeconfig does not define what it refers to.
    #[error("the kubeconfig has no {what} named {name:?}")]
    Missing {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Neither a kubeconfig nor a pod's service account was found.
    #[error("there is no kubeconfig, and this does not run in a pod ({0})")]
    NotFound(String),
    /// A setting makes no sense.
    #[error("invalid {setting}: {why}")]
    Invalid {
        /// Which.
        setting: &'static str,
        /// Why.
        why: String,
    },
    /// Certificates or keys cannot be used.
    #[error("cannot use {what}")]
    Tls {
        /// Which.
        what: String,
        /// Why.
        #[source]
        source: BoxError,
    },
}

impl ConfigError {
    fn at(self, file: &Path) -> ConfigError {
        match self {
            ConfigError::Parse { source, .. } => ConfigError::Parse { path: file.to_owned(), source },
            other => other,
        }
    }

    fn invalid(setting: &'static str, why: impl ToString) -> ConfigError {
        ConfigError::Invalid { setting, why: why.to_string() }
    }
}

/// How the client proves who it is, beside a client certificate.
#[derive(Clone, Debug, Default)]
pub enum Auth {
    /// Not at all.
    #[default]
    None,
    /// A bearer token.
    Token(Secret),
    /// A bearer token in a file that others renew.
    TokenFile(PathBuf),
    /// Basic authentication.
    Basic {
        /// User name.
        username: String,
        /// Password.
        password: Secret,
    },
    /// A program that prints credentials.
    Exec(Box<ExecConfig>),
}

/// A client certificate with its key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate and those that vouch for it.
    pub certificate_pem: String,
    /// The key.
    pub key_pem: Secret,
}

/// Who to act as instead of oneself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonate {
    /// User name; empty acts as oneself.
    pub user: String,
    /// The user's uid.
    pub uid: Option<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What is trusted and shown in the TLS handshake.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// PEM certificates that vouch for the server; `None` trusts the system's.
    pub certificate_authority_pem: Option<String>,
    /// The name to expect in the server's certificate, if it is not the host.
    pub server_name: Option<String>,
    /// Trust any server. Insecure.
    pub insecure_skip_verify: bool,
    /// Shown to the server.
    pub client_certificate: Option<ClientCertificate>,
}

/// Everything a [`Client`](crate::Client) needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// The server, with a path prefix if it has one.
    pub server: Uri,
    /// The namespace used when none is named.
    pub default_namespace: String,
    /// Trust and certificates.
    pub tls: TlsSettings,
    /// Credentials.
    pub auth: Auth,
    /// Who to act as.
    pub impersonate: Option<Impersonate>,
    /// Sent as `User-Agent`; the server's default name for field ownership is what stands before the slash.
    pub user_agent: String,
    /// How long one request may take from end to end; watches excepted. `None` waits for ever.
    pub timeout: Option<Duration>,
    /// How long connecting may take, TLS included.
    pub connect_timeout: Duration,
    /// Requests a second on average that this client allows itself; `None` for no limit.
    pub qps: Option<f32>,
    /// Requests at once that [`Config::qps`] lets through after a pause.
    pub burst: u32,
    /// Ask for gzip. Saves the network and costs both ends time: right over slow links, wrong on one machine.
    pub compression: bool,
    /// Speak HTTP/1.1 only.
    pub http1_only: bool,
    /// Clock and dice, for expiry and jitter.
    pub env: Env,
}

/// Connecting takes no longer than this unless the configuration says otherwise: past it the attempt fails.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Picks from a kubeconfig. What is `None` follows from the current context.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigOptions {
    /// Name of the context.
    pub context: Option<String>,
    /// Name of the cluster instead of the context's.
    pub cluster: Option<String>,
    /// Name of the user instead of the context's.
    pub user: Option<String>,
}

impl Config {
    /// For the server at `url` (`http://` or `https://`), without credentials.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] when `url` is none.
    pub fn new(url: &str) -> Result<Config, ConfigError> {
        Ok(Config {
            server: server_uri(url)?,
            default_namespace: "default".to_owned(),
            tls: TlsSettings::default(),
            auth: Auth::None,
            impersonate: None,
            user_agent: concat!("pintle-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            timeout: None,
            connect_timeout: CONNECT_TIMEOUT,
            qps: None,
            burst: 10,
            compression: false,
            http1_only: false,
            env: Env::system(),
        })
    }

    /// Finds the configuration as other clients do: `KUBECONFIG`, then `~/.kube/config`, then the service account of
    /// the pod that this runs in.
    ///
    /// # Errors
    /// [`ConfigError`] when a configuration is there and unusable, [`ConfigError::NotFound`] when there is none.
    pub fn infer() -> Result<Config, ConfigError> {
        match Kubeconfig::read()? {
            Some(kubeconfig) => Config::from_kubeconfig(&kubeconfig, &KubeconfigOptions::default()),
            None => Config::in_cluster(),
        }
    }

    /// From the file at `path`.
    ///
    /// # Errors
    /// [`ConfigError`] when the file is missing or unusable.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Config, ConfigError> {
        Config::from_kubeconfig(&Kubeconfig::read_from(path)?, &KubeconfigOptions::default())
    }

    /// From the service account of the pod that this runs in.
    ///
    /// # Errors
    /// [`ConfigError::NotFound`] outside a pod, other errors when the mounted files cannot be read.
    pub fn in_cluster() -> Result<Config, ConfigError> {
        in_cluster_from(Path::new(SERVICE_ACCOUNT_FOLDER), |name| std::env::var(name).ok())
    }

    /// From a kubeconfig that is already read.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when a name leads nowhere, [`ConfigError::Read`] when a file that it names cannot be
    /// read, [`ConfigError::Invalid`] for a setting that makes no sense.
    pub fn from_kubeconfig(kubeconfig: &Kubeconfig, options: &KubeconfigOptions) -> Result<Config, ConfigError> {
        let context = pick_context(kubeconfig, options)?;
        let cluster_name = options.cluster.as_deref().unwrap_or(&context.cluster);
        let cluster = kubeconfig
            .clusters
            .iter()
            .find(|entry| entry.name == cluster_name)
            .and_then(|entry| entry.cluster.as_ref())
            .ok_or_else(|| ConfigError::Missing { what: "cluster", name: cluster_name.to_owned() })?;
        let server = cluster.server.as_deref().filter(|server| !server.is_empty());
        let mut config = Config::new(server.ok_or_else(|| ConfigError::invalid("server", "it is empty"))?)?;
        config.tls.certificate_authority_pem =
            pem(cluster.certificate_authority_data.as_deref(), cluster.certificate_authority.as_deref())?;
        config.tls.server_name.clone_from(&cluster.tls_server_name);
        config.tls.insecure_skip_verify = cluster.insecure_skip_tls_verify.unwrap_or_default();
        if let Some(namespace) = context.namespace.as_ref().filter(|namespace| !namespace.is_empty()) {
            config.default_namespace.clone_from(namespace);
        }
        if let Some(user_name) = options.user.as_ref().or(context.user.as_ref()).filter(|name| !name.is_empty()) {
            let user = kubeconfig
                .users
                .iter()
                .find(|entry| entry.name == *user_name)
                .ok_or_else(|| ConfigError::Missing { what: "user", name: user_name.clone() })?;
            if let Some(user) = &user.user {
                config.set_user(user)?;
            }
        }
        Ok(config)
    }

    fn set_user(&mut self, user: &User) -> Result<(), ConfigError> {
        let certificate = pem(user.client_certificate_data.as_deref(), user.client_certificate.as_deref())?;
        let key = pem(user.client_key_data.as_ref().map(Secret::reveal), user.client_key.as_deref())?;
        self.tls.client_certificate = match (certificate, key) {
            (Some(certificate_pem), Some(key_pem)) => {
                Some(ClientCertificate { certificate_pem, key_pem: Secret::new(key_pem) })
            }
            (None, None) => None,
            (Some(_), None) => return Err(ConfigError::invalid("user", "client-certificate without client-key")),
            (None, Some(_)) => return Err(ConfigError::invalid("user", "client-key without client-certificate")),
        };
        if user.auth_provider.is_some() {
            let why = "auth-provider plugins no longer exist; use an exec plugin";
            return Err(ConfigError::invalid("user", why));
        }
        self.auth = if let Some(path) = &user.token_file {
            Auth::TokenFile(path.clone())
        } else if let Some(token) = user.token.as_ref().filter(|token| !token.reveal().is_empty()) {
            Auth::Token(token.clone())
        } else if let Some(exec) = &user.exec {
            Auth::Exec(Box::new(exec.clone()))
        } else if let Some(username) = &user.username {
            Auth::Basic { username: username.clone(), password: user.password.clone().unwrap_or_default() }
        } else {
            Auth::None
        };
        if let Some(name) = &user.impersonate {
            self.impersonate = Some(Impersonate {
                user: name.clone(),
                uid: user.impersonate_uid.clone(),
                groups: user.impersonate_groups.clone().unwrap_or_default(),
                extra: user.impersonate_user_extra.clone().unwrap_or_default(),
            });
        }
        Ok(())
    }

    /// With another user agent.
    #[must_use]
    pub fn with_user_agent(mut self, user_agent: impl Into<String>) -> Config {
        self.user_agent = user_agent.into();
        self
    }

    /// With a limit on requests: `qps` a second on average, `burst` at once.
    #[must_use]
    pub fn with_rate_limit(mut self, qps: f32, burst: u32) -> Config {
        (self.qps, self.burst) = (Some(qps), burst);
        self
    }

    /// With a bearer token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Config {
        self.auth = Auth::Token(Secret::new(token));
        self
    }

    /// Acting as somebody else.
    #[must_use]
    pub fn with_impersonation(mut self, impersonate: Impersonate) -> Config {
        self.impersonate = Some(impersonate);
        self
    }
}

fn pick_context(kubeconfig: &Kubeconfig, options: &KubeconfigOptions) -> Result<Context, ConfigError> {
    let name = options.context.as_ref().or(kubeconfig.current_context.as_ref()).filter(|name| !name.is_empty());
    let Some(name) = name else {
        if let Some(cluster) = &options.cluster {
            return Ok(Context { cluster: cluster.clone(), ..Context::default() });
        }
        return Err(ConfigError::invalid("kubeconfig", "it has no current-context and none was named"));
    };
    let found = kubeconfig.contexts.iter().find(|entry| entry.name == *name).and_then(|entry| entry.context.clone());
    found.ok_or_else(|| ConfigError::Missing { what: "context", name: name.clone() })
}

/// The server's address; `host:port` alone means http, as in client-go.
fn server_uri(text: &str) -> Result<Uri, ConfigError> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: Uri = with_scheme.parse().map_err(|error| ConfigError::invalid("server", format!("{text:?}: {error}")))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some() => Ok(uri),
        _ => Err(ConfigError::invalid("server", format!("{text:?} is no http or https address"))),
    }
}

fn pem(data: Option<&str>, file: Option<&Path>) -> Result<Option<String>, ConfigError> {
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let compact: String = data.split_whitespace().collect();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(compact)
            .map_err(|error| ConfigError::invalid("inline certificate or key", error))?;
        return match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(ConfigError::invalid("inline certificate or key", error)),
        };
    }
    match file.filter(|file| !file.as_os_str().is_empty()) {
        Some(file) => read_text(file).map(Some),
        None => Ok(None),
    }
}

fn read_text(file: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(file).map_err(|source| ConfigError::Read { path: file.to_owned(), source })
}

/// Where a pod finds its service account.
const SERVICE_ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn in_cluster_from(folder: &Path, env: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    let variable = |name: &str| {
        env(name).filter(|value| !value.is_empty()).ok_or_else(|| ConfigError::NotFound(format!("{name} is not set")))
    };
    let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let mut config = Config::new(&format!("https://{host}:{port}"))?;
    let token_file = folder.join("token");
    read_text(&token_file)?;
    config.auth = Auth::TokenFile(token_file);
    config.tls.certificate_authority_pem = Some(read_text(&folder.join("ca.crt"))?);
    if let Ok(namespace) = read_text(&folder.join("namespace")) {
        config.default_namespace = namespace.trim().to_owned();
    }
    Ok(config)
}

#[cfg(test)]
mod tests;
