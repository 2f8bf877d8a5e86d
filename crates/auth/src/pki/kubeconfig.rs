//! Kubeconfig files with everything inside.

use super::{FileError, Pair, write_private};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_apimachinery::field::go_quote;
use std::path::Path;

/// One cluster, one user, one context.
#[derive(Clone, Debug)]
pub struct Kubeconfig<'a> {
    /// The name of cluster and context.
    pub name: &'a str,
    /// The server's URL.
    pub server: &'a str,
    /// The authority that the server's certificate must have, in PEM.
    pub ca: &'a str,
    /// The name of the user's entry.
    pub user: &'a str,
    /// The user's certificate and key.
    pub client: &'a Pair,
}

impl Kubeconfig<'_> {
    /// The text of the file.
    pub fn to_yaml(&self) -> String {
        let encode = |text: &str| STANDARD.encode(text);
        let (name, user, server) = (go_quote(self.name), go_quote(self.user), go_quote(self.server));
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: {name}\n\
             \x20 cluster:\n\
             \x20   server: {server}\n\
             \x20   certificate-authority-data: {ca}\n\
             users:\n\
             - name: {user}\n\
             \x20 user:\n\
             \x20   client-certificate-data: {certificate}\n\
             \x20   client-key-data: {key}\n\
             contexts:\n\
             - name: {name}\n\
             \x20 context:\n\
             \x20   cluster: {name}\n\
             \x20   user: {user}\n\
             current-context: {name}\n",
            ca = encode(self.ca),
            certificate = encode(&self.client.certificate),
            key = encode(&self.client.key),
        )
    }

    /// Writes the file with mode 0600, whole or not at all.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        write_private(path, self.to_yaml().as_bytes())
    }
}
