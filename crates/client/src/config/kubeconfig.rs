//! The kubeconfig file: its types, reading one or several, and merging.
//!
//! Follows: client-go tools/clientcmd (v0.35): of several files the first that sets a name or the current context wins;
//! relative paths are relative to the file they stand in.

use super::{ConfigError, Secret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kubeconfig {
    /// `v1`.
    #[serde(rename = "apiVersion", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// `Config`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The context used when none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_context: Option<String>,
    /// Servers.
    #[serde(deserialize_with = "null_is_empty")]
    pub clusters: Vec<NamedCluster>,
    /// Pairs of a server and a user.
    #[serde(deserialize_with = "null_is_empty")]
    pub contexts: Vec<NamedContext>,
    /// Credentials.
    #[serde(deserialize_with = "null_is_empty")]
    pub users: Vec<NamedUser>,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::<Vec<T>>::deserialize(from)?.unwrap_or_default())
}

/// A server and its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedCluster {
    /// What contexts call it.
    pub name: String,
    /// The server.
    #[serde(default)]
    pub cluster: Option<Cluster>,
}

/// How to reach a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Cluster {
    /// `https://host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The name to expect in the server's certificate, if it is not the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_server_name: Option<String>,
    /// Trust any server. Insecure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure_skip_tls_verify: Option<bool>,
    /// PEM file of the certificates that vouch for the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_authority: Option<PathBuf>,
    /// The same, inline in base64. Wins over the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_authority_data: Option<String>,
    /// An HTTP proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
    /// Do not ask for compressed answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_compression: Option<bool>,
    /// Settings for credential plugins and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<NamedExtension>>,
}

/// A setting that is opaque to clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedExtension {
    /// Its name.
    pub name: String,
    /// Its content.
    #[serde(default)]
    pub extension: serde_json::Value,
}

/// A context and its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedContext {
    /// What `--context` says.
    pub name: String,
    /// The context.
    #[serde(default)]
    pub context: Option<Context>,
}

/// A server, a user and a namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Context {
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The namespace used when none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Credentials and their name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedUser {
    /// What contexts call them.
    pub name: String,
    /// The credentials.
    #[serde(default)]
    pub user: Option<User>,
}

/// Credentials. A token file wins over a token; inline data wins over a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct User {
    /// PEM file of the client's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<PathBuf>,
    /// The same, inline in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate_data: Option<String>,
    /// PEM file of the client's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key: Option<PathBuf>,
    /// The same, inline in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key_data: Option<Secret>,
    /// A bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// A file with a bearer token, read again from time to time.
    #[serde(rename = "tokenFile", skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// User name for basic authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Password for basic authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Act as this user.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub impersonate: Option<String>,
    /// Act as the user with this uid.
    #[serde(rename = "as-uid", skip_serializing_if = "Option::is_none")]
    pub impersonate_uid: Option<String>,
    /// Act as a member of these groups.
    #[serde(rename = "as-groups", skip_serializing_if = "Option::is_none")]
    pub impersonate_groups: Option<Vec<String>>,
    /// Further attributes to act with.
    #[serde(rename = "as-user-extra", skip_serializing_if = "Option::is_none")]
    pub impersonate_user_extra: Option<BTreeMap<String, Vec<String>>>,
    /// A program that prints credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecConfig>,
    /// A plugin that was compiled into old clients; refused with a clear message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_provider: Option<serde_json::Value>,
}

/// A program that prints credentials (`client.authentication.k8s.io`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExecConfig {
    /// The version of `ExecCredential` spoken: `client.authentication.k8s.io/v1` or `v1beta1`.
    pub api_version: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Environment variables to add.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<ExecEnvVar>>,
    /// What to tell the user when the program is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_hint: Option<String>,
    /// Whether the program is told which server it is for.
    pub provide_cluster_info: bool,
    /// `Never`, `IfAvailable` or `Always`: whether the program may ask the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive_mode: Option<String>,
}

/// An environment variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecEnvVar {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Kubeconfig {
    /// Reads YAML or JSON text.
    ///
    /// # Errors
    /// [`ConfigError::Parse`] when it is not a kubeconfig.
    pub fn from_yaml(text: &str) -> Result<Kubeconfig, ConfigError> {
        if text.trim().is_empty() {
            return Ok(Kubeconfig::default());
        }
        serde_saphyr::from_str(text)
            .map_err(|source| ConfigError::Parse { path: PathBuf::from("<text>"), source: Box::new(source) })
    }

    /// Reads one file; relative paths in it become relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError::Read`] when the file cannot be read, [`ConfigError::Parse`] when it is no kubeconfig.
    pub fn read_from(path: impl AsRef<Path>) -> Result<Kubeconfig, ConfigError> {
        let path = path.as_ref();
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let mut config = Kubeconfig::from_yaml(&text).map_err(|error| error.at(path))?;
        config.resolve_paths(path.parent().unwrap_or_else(|| Path::new("")));
        Ok(config)
    }

    /// Reads what `KUBECONFIG` names (a list of files, those that are missing left out) or `~/.kube/config`.
    /// `None` when there is no such file.
    ///
    /// # Errors
    /// [`ConfigError`] when a file is there and cannot be used.
    pub fn read() -> Result<Option<Kubeconfig>, ConfigError> {
        let paths: Vec<PathBuf> = match std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
            Some(list) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
            None => std::env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect(),
        };
        let mut merged: Option<Kubeconfig> = None;
        for path in paths.iter().filter(|path| path.exists()) {
            let next = Kubeconfig::read_from(path)?;
            merged = Some(match merged {
                Some(earlier) => earlier.merge(next),
                None => next,
            });
        }
        Ok(merged)
    }

    /// Adds what `later` has and `self` has not.
    #[must_use]
    pub fn merge(mut self, later: Kubeconfig) -> Kubeconfig {
        self.api_version = self.api_version.or(later.api_version);
        self.kind = self.kind.or(later.kind);
        self.current_context = self.current_context.filter(|name| !name.is_empty()).or(later.current_context);
        add_missing(&mut self.clusters, later.clusters, |entry| &entry.name);
        add_missing(&mut self.contexts, later.contexts, |entry| &entry.name);
        add_missing(&mut self.users, later.users, |entry| &entry.name);
        self
    }

    fn resolve_paths(&mut self, folder: &Path) {
        let resolve = |path: &mut Option<PathBuf>| {
            if let Some(path) = path.as_mut().filter(|path| !path.as_os_str().is_empty() && path.is_relative()) {
                *path = folder.join(&path);
            }
        };
        for cluster in self.clusters.iter_mut().filter_map(|entry| entry.cluster.as_mut()) {
            resolve(&mut cluster.certificate_authority);
        }
        for user in self.users.iter_mut().filter_map(|entry| entry.user.as_mut()) {
            resolve(&mut user.client_certificate);
            resolve(&mut user.client_key);
            resolve(&mut user.token_file);
            if let Some(exec) = &mut user.exec
                && exec.command.contains(std::path::MAIN_SEPARATOR)
                && Path::new(&exec.command).is_relative()
            {
                exec.command = folder.join(&exec.command).to_string_lossy().into_owned();
            }
        }
    }
}

fn add_missing<T>(entries: &mut Vec<T>, later: Vec<T>, name: fn(&T) -> &String) {
    for entry in later {
        if !entries.iter().any(|known| name(known) == name(&entry)) {
            entries.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_wins() {
        let first = Kubeconfig::from_yaml(
            "current-context: a\nclusters: [{name: c, cluster: {server: 'https://one'}}]\ncontexts:\nusers: null\n",
        )
        .unwrap();
        let second = Kubeconfig::from_yaml(
            "current-context: b\nclusters: [{name: c, cluster: {server: 'https://two'}}, {name: d}]\nusers: [{name: u, user: {token: t, tokenFile: f, as: x}}]\n",
        )
        .unwrap();
        let merged = first.merge(second);
        assert_eq!(merged.current_context.as_deref(), Some("a"));
        assert_eq!(merged.clusters[0].cluster.as_ref().unwrap().server.as_deref(), Some("https://one"));
        assert_eq!(merged.clusters.len(), 2);
        let user = merged.users[0].user.as_ref().unwrap();
        assert_eq!(user.impersonate.as_deref(), Some("x"));
        assert_eq!(user.token.as_ref().unwrap().reveal(), "t");
        assert!(!format!("{user:?}").contains("\"t\""), "secrets stay out of logs");
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let mut config = Kubeconfig::from_yaml(
            "users: [{name: u, user: {client-key: k.pem, exec: {command: ./login, apiVersion: v1}}}, {name: v, user: {client-key: /k.pem, exec: {command: aws}}}]",
        )
        .unwrap();
        config.resolve_paths(Path::new("/etc/kube"));
        let user = |idx: usize| config.users[idx].user.as_ref().unwrap();
        assert_eq!(user(0).client_key.as_deref(), Some(Path::new("/etc/kube/k.pem")));
        assert_eq!(user(0).exec.as_ref().unwrap().command, "/etc/kube/./login");
        assert_eq!(user(1).client_key.as_deref(), Some(Path::new("/k.pem")));
        assert_eq!(user(1).exec.as_ref().unwrap().command, "aws");
    }
}
