//! Where etcd is and how to reach it.

use std::path::PathBuf;

/// Where etcd is and how to reach it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The members of one cluster: `https://host:port`, `http://host:port` or `host:port`. One is used at a time; when it
    /// fails, the next.
    pub endpoints: Vec<String>,
    /// For `https` endpoints.
    pub tls: TlsFiles,
}

/// PEM files.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// The authorities that may sign etcd's certificates. Those of the system when there is none.
    pub ca: Option<PathBuf>,
    /// The certificate to show to etcd, with its chain.
    pub certificate: Option<PathBuf>,
    /// The certificate's key.
    pub key: Option<PathBuf>,
}

/// Why the options make no sense.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// No endpoint.
    #[error("no endpoint of etcd is given")]
    NoEndpoint,
    /// An endpoint that is none.
    #[error("{url:?} is no endpoint of etcd: write it as https://host:port")]
    Endpoint {
        /// The text given.
        url: String,
    },
    /// A file that cannot be read, or that holds something else.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The certificate and its key do not go together.
    #[error("TLS towards etcd: {why}")]
    Tls {
        /// What is wrong.
        why: String,
    },
}
