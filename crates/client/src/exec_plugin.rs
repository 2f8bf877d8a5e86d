//! Credential plugins: programs that print an `ExecCredential` (`client.authentication.k8s.io`).
//!
//! Follows: client-go plugin/pkg/client/auth/exec (v0.35).

use crate::config::{ClientCertificate, Config, ExecConfig, Secret};
use crate::error::{BoxError, Error, Result};
use base64::Engine as _;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Read as _};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A plugin that takes longer is killed, unless it talks to the user.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(60);

/// What a plugin printed.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) token: Option<Secret>,
    pub(crate) certificate: Option<ClientCertificate>,
    /// When to ask again; without it, when the server refuses.
    pub(crate) expires_at: Option<Timestamp>,
}

/// A plugin, ready to run.
#[derive(Debug)]
pub(crate) struct Plugin {
    exec: ExecConfig,
    cluster: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    status: Option<ExecCredentialStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredentialStatus {
    expiration_timestamp: Option<Timestamp>,
    token: Option<Secret>,
    client_certificate_data: Option<String>,
    client_key_data: Option<Secret>,
}

impl Plugin {
    pub(crate) fn new(exec: &ExecConfig, config: &Config) -> Plugin {
        let mut cluster = json!({ "server": config.server.to_string().trim_end_matches('/') });
        if let Some(name) = &config.tls.server_name {
            cluster["tls-server-name"] = json!(name);
        }
        if config.tls.insecure_skip_verify {
            cluster["insecure-skip-tls-verify"] = json!(true);
        }
        if let Some(pem) = &config.tls.certificate_authority_pem {
            cluster["certificate-authority-data"] = json!(base64::engine::general_purpose::STANDARD.encode(pem));
        }
        Plugin { exec: exec.clone(), cluster }
    }

    /// Runs the program and reads what it prints.
    pub(crate) async fn run(&self) -> Result<Issued> {
        let issued = self.output().await.and_then(|printed| self.read(&printed));
        issued.map_err(|source| Error::Credentials { from: self.exec.command.clone(), source })
    }

    fn is_interactive(&self) -> Result<bool, BoxError> {
        let has_terminal = std::io::stdin().is_terminal();
        match self.exec.interactive_mode.as_deref() {
            Some("Never") => Ok(false),
            Some("Always") if !has_terminal => Err("standard input is unavailable, and the plugin needs it".into()),
            Some("Always") => Ok(true),
            Some("IfAvailable") | None => Ok(has_terminal),
            Some(other) => Err(format!("unknown interactiveMode {other:?}").into()),
        }
    }

    async fn output(&self) -> Result<Vec<u8>, BoxError> {
        let is_interactive = self.is_interactive()?;
        let mut spec = json!({ "interactive": is_interactive });
        if self.exec.provide_cluster_info {
            spec["cluster"] = self.cluster.clone();
        }
        let info = json!({ "apiVersion": self.exec.api_version, "kind": "ExecCredential", "spec": spec });
        let mut command = Command::new(&self.exec.command);
        command
            .args(self.exec.args.iter().flatten())
            .envs(self.exec.env.iter().flatten().map(|variable| (&variable.name, &variable.value)))
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            .stdin(if is_interactive { Stdio::inherit() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| self.missing(error))?;
        let mut stdout = child.stdout.take().ok_or("the plugin has no standard output")?;
        let reading = tokio::task::spawn_blocking(move || {
            let mut printed = Vec::new();
            stdout.read_to_end(&mut printed).map(|_| printed)
        });
        let printed = if is_interactive {
            reading.await??
        } else {
            let Ok(read) = tokio::time::timeout(PLUGIN_TIMEOUT, reading).await else {
                child.kill()?;
                child.wait()?;
                return Err(format!("the plugin did not end within {PLUGIN_TIMEOUT:?}").into());
            };
            read??
        };
        let status = tokio::task::spawn_blocking(move || child.wait()).await??;
        if status.success() { Ok(printed) } else { Err(format!("the plugin failed: {status}").into()) }
    }

    fn missing(&self, error: std::io::Error) -> BoxError {
        match self.exec.install_hint.as_ref().filter(|_| error.kind() == std::io::ErrorKind::NotFound) {
            Some(hint) => format!("executable {} not found\n\n{hint}", self.exec.command).into(),
            None => error.into(),
        }
    }

    fn read(&self, printed: &[u8]) -> Result<Issued, BoxError> {
        let credential: ExecCredential = serde_json::from_slice(printed)?;
        if credential.kind != "ExecCredential" {
            return Err(format!("the plugin printed a {:?} and no ExecCredential", credential.kind).into());
        }
        if credential.api_version != self.exec.api_version {
            let (wanted, got) = (&self.exec.api_version, &credential.api_version);
            return Err(format!("the plugin speaks {got:?}, the kubeconfig wants {wanted:?}").into());
        }
        let status = credential.status.ok_or("the plugin printed no status")?;
        let token = status.token.filter(|token| !token.reveal().is_empty());
        let certificate = match (status.client_certificate_data, status.client_key_data) {
            (Some(certificate_pem), Some(key_pem)) => Some(ClientCertificate { certificate_pem, key_pem }),
            (None, None) => None,
            _ => return Err("the plugin printed a certificate without its key or a key without its certificate".into()),
        };
        if token.is_none() && certificate.is_none() {
            return Err("the plugin printed neither a token nor a certificate".into());
        }
        Ok(Issued { token, certificate, expires_at: status.expiration_timestamp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ExecEnvVar;

    fn plugin(script: &str) -> Plugin {
        let exec = ExecConfig {
            api_version: "client.authentication.k8s.io/v1".to_owned(),
            command: "sh".to_owned(),
            args: Some(vec!["-c".to_owned(), script.to_owned()]),
            env: Some(vec![ExecEnvVar { name: "WHO".to_owned(), value: "me".to_owned() }]),
            provide_cluster_info: true,
            interactive_mode: Some("Never".to_owned()),
            install_hint: None,
        };
        Plugin::new(&exec, &Config::new("https://h:1").unwrap())
    }

    #[tokio::test]
    async fn the_plugin_is_told_and_heard() {
        let script = r#"case "$KUBERNETES_EXEC_INFO" in *'"server":"https://h:1"'*) ;; *) exit 3;; esac
            echo "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"for-$WHO\",\"expirationTimestamp\":\"2026-01-01T00:00:00Z\"}}""#;
        let issued = plugin(script).run().await.unwrap();
        assert_eq!(issued.token.unwrap().reveal(), "for-me");
        assert_eq!(issued.expires_at.unwrap().to_string(), "2026-01-01T00:00:00Z");
    }

    #[tokio::test]
    async fn failures_say_what_failed() {
        let mut text = String::new();
        for script in ["exit 7", "echo hello", r#"echo '{"kind":"ExecCredential","apiVersion":"v9","status":{}}'"#] {
            let error = plugin(script).run().await.unwrap_err();
            text += &format!("{}\n", crate::error::chain_text(&error));
        }
        expect_test::expect![[r#"
            cannot get credentials from sh: the plugin failed: exit status: 7
            cannot get credentials from sh: expected value at line 1 column 1
            cannot get credentials from sh: the plugin speaks "v9", the kubeconfig wants "client.authentication.k8s.io/v1"
        "#]]
        .assert_eq(&text);
    }
}
