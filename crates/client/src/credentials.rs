//! Credentials that may change while the client lives: tokens in files, credential plugins.

use crate::config::{Auth, ClientCertificate, Config, Secret};
use crate::error::{Error, Result};
use crate::exec_plugin::{self, Issued};
use base64::Engine as _;
use http::HeaderValue;
use jiff::Timestamp;
use pintle_apimachinery::env::Env;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// A token file is read again after this long, as client-go does: renewals show within a minute.
pub(crate) const TOKEN_FILE_TTL: Duration = Duration::from_secs(60);

/// What goes with one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credential {
    pub(crate) authorization: Option<HeaderValue>,
    /// A certificate that a plugin issued.
    pub(crate) certificate: Option<ClientCertificate>,
    /// Changes with `certificate`; 0 before there is any.
    pub(crate) certificate_version: u64,
}

/// Where credentials come from, and the last ones.
#[derive(Debug)]
pub(crate) struct Credentials {
    source: Source,
    env: Env,
    last: tokio::sync::Mutex<Option<Last>>,
    /// Set when the server refused the last ones.
    is_refused: AtomicBool,
}

#[derive(Debug)]
enum Source {
    Fixed(Option<HeaderValue>),
    Invalid(String),
    TokenFile(PathBuf),
    Exec(Box<exec_plugin::Plugin>),
}

#[derive(Debug)]
struct Last {
    credential: Credential,
    read_at: Instant,
    expires_at: Option<Timestamp>,
}

impl Credentials {
    pub(crate) fn new(config: &Config) -> Credentials {
        let fixed = |header: Result<HeaderValue>| match header {
            Ok(header) => Source::Fixed(Some(header)),
            Err(error) => Source::Invalid(error.to_string()),
        };
        let source = match &config.auth {
            Auth::None => Source::Fixed(None),
            Auth::Token(token) => fixed(bearer(token.reveal())),
            Auth::TokenFile(path) => Source::TokenFile(path.clone()),
            Auth::Basic { username, password } => fixed(basic(username, password)),
            Auth::Exec(exec) => Source::Exec(Box::new(exec_plugin::Plugin::new(exec, config))),
        };
        let last = tokio::sync::Mutex::new(None);
        Credentials { source, env: config.env.clone(), last, is_refused: AtomicBool::new(false) }
    }

    /// The credentials to use now; reads or asks for new ones when the last are stale.
    pub(crate) async fn current(&self) -> Result<Credential> {
        match &self.source {
            Source::Fixed(authorization) => {
                Ok(Credential { authorization: authorization.clone(), ..Credential::default() })
            }
            Source::Invalid(why) => Err(Error::InvalidRequest(why.clone())),
            Source::TokenFile(path) => self.file_token(path).await,
            Source::Exec(plugin) => self.plugin_credential(plugin).await,
        }
    }

    /// Told that the server does not accept `_refused`: whether asking again can give others.
    pub(crate) fn renew(&self, _refused: &Credential) -> bool {
        let can_change = matches!(self.source, Source::TokenFile(_) | Source::Exec(_));
        if can_change {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        can_change
    }

    async fn file_token(&self, path: &Path) -> Result<Credential> {
        let mut last = self.last.lock().await;
        let is_refused = self.is_refused.swap(false, Ordering::Relaxed);
        if let Some(last) = last.as_ref().filter(|last| !is_refused && last.read_at.elapsed() < TOKEN_FILE_TTL) {
            return Ok(last.credential.clone());
        }
        let read = read_token(path).await;
        let credential = match (read, last.as_ref()) {
            (Ok(header), _) => Credential { authorization: Some(header), ..Credential::default() },
            // a file that is just being replaced: the old token may still do
            (Err(_), Some(last)) => last.credential.clone(),
            (Err(error), None) => return Err(error),
        };
        *last = Some(Last { credential: credential.clone(), read_at: Instant::now(), expires_at: None });
        Ok(credential)
    }

    async fn plugin_credential(&self, plugin: &exec_plugin::Plugin) -> Result<Credential> {
        let mut last = self.last.lock().await;
        let is_refused = self.is_refused.swap(false, Ordering::Relaxed);
        let is_good = |last: &&Last| !is_refused && last.expires_at.is_none_or(|at| self.env.clock.now() < at);
        if let Some(last) = last.as_ref().filter(is_good) {
            return Ok(last.credential.clone());
        }
        let Issued { token, certificate, expires_at } = plugin.run().await?;
        let authorization = token.as_ref().map(|token| bearer(token.reveal())).transpose()?;
        let before = last.as_ref().map(|last| &last.credential);
        let version = before.map_or(0, |before| before.certificate_version);
        let is_same =
            before.is_some_and(|before| before.certificate == certificate) || (version == 0 && certificate.is_none());
        let certificate_version = if is_same { version } else { version + 1 };
        let credential = Credential { authorization, certificate, certificate_version };
        *last = Some(Last { credential: credential.clone(), read_at: Instant::now(), expires_at });
        Ok(credential)
    }
}

async fn read_token(path: &Path) -> Result<HeaderValue> {
    let failed = |source| Error::Credentials { from: path.display().to_string(), source };
    let text = tokio::fs::read_to_string(path).await.map_err(|source| failed(Box::new(source)))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(failed("the file is empty".into()));
    }
    bearer(token)
}

fn bearer(token: &str) -> Result<HeaderValue> {
    header(format!("Bearer {token}"))
}

fn basic(username: &str, password: &Secret) -> Result<HeaderValue> {
    let pair = format!("{username}:{}", password.reveal());
    header(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair)))
}

fn header(text: String) -> Result<HeaderValue> {
    let mut header = HeaderValue::try_from(text)
        .map_err(|_| Error::InvalidRequest("the token holds characters that no header may".to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
}
