//! Bootstrap tokens: secrets of type `bootstrap.kubernetes.io/token` in `kube-system`.
//!
//! Follows: plugin/pkg/auth/authenticator/token/bootstrap (v1.35).

use super::{Authenticated, TokenAuthenticator, is_same_secret};
use crate::Lookup;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Str, Value};
use pintle_kinds::UserInfo;
use std::collections::BTreeSet;
use std::sync::Arc;

/// `--enable-bootstrap-token-auth`.
#[derive(Debug)]
pub struct BootstrapTokens {
    /// Where the secrets are.
    pub lookup: Arc<dyn Lookup>,
    /// For the time.
    pub env: Env,
}

/// The group of everybody who comes with a bootstrap token.
const GROUP: &str = "system:bootstrappers";

fn is_token_part(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// A value of a secret's data, decoded; empty when it is not there.
fn data(secret: &Value, key: &str) -> String {
    let decoded = STANDARD.decode(secret["data"][key].str_or_empty()).unwrap_or_default();
    String::from_utf8(decoded).unwrap_or_default()
}

impl BootstrapTokens {
    fn user(&self, secret: &Value, id: &str, token_secret: &str) -> Result<UserInfo, &'static str> {
        if secret.is_terminating() {
            return Err("is deleted and awaiting removal");
        }
        if secret["type"].str_or_empty() != "bootstrap.kubernetes.io/token" {
            return Err("has invalid type, expected bootstrap.kubernetes.io/token");
        }
        if !is_same_secret(data(secret, "token-secret").as_bytes(), token_secret.as_bytes()) {
            return Err("has invalid value for key token-secret");
        }
        if data(secret, "token-id") != id {
            return Err("has invalid value for key token-id");
        }
        let expiration = data(secret, "expiration");
        let is_expired = !expiration.is_empty()
            && expiration.parse::<Timestamp>().map_or(true, |at| at.as_second() <= self.env.clock.now().as_second());
        if is_expired {
            return Err("has expired");
        }
        if data(secret, "usage-bootstrap-authentication") != "true" {
            return Err("not marked usage-bootstrap-authentication=true");
        }
        let groups = groups(&data(secret, "auth-extra-groups")).ok_or("has invalid value for key auth-extra-groups")?;
        Ok(UserInfo { name: compact_str::format_compact!("system:bootstrap:{id}"), groups, ..UserInfo::default() })
    }
}

/// The groups of a token: everybody's and the extra ones, each once, sorted. `None` when one may not be given.
fn groups(extra: &str) -> Option<Vec<Str>> {
    let mut groups = BTreeSet::from([Str::const_new(GROUP)]);
    for group in extra.split(',').map(str::trim).filter(|group| !group.is_empty()) {
        let rest = group.strip_prefix("system:bootstrappers:")?;
        let is_valid = (1..=256).contains(&rest.len())
            && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b':' || b == b'-')
            && rest.ends_with(|c: char| c.is_ascii_alphanumeric());
        if !is_valid {
            return None;
        }
        groups.insert(Str::new(group));
    }
    Some(groups.into_iter().collect())
}

#[async_trait]
impl TokenAuthenticator for BootstrapTokens {
    async fn authenticate_token(&self, token: &str, _: &[Str]) -> Result<Option<Authenticated>, String> {
        let Some((id, token_secret)) = token.split_once('.') else { return Ok(None) };
        if !is_token_part(id, 6) || !is_token_part(token_secret, 16) {
            return Ok(None);
        }
        let name = format!("bootstrap-token-{id}");
        let Some(secret) = self.lookup.get("", "secrets", "kube-system", &name).await else { return Ok(None) };
        match self.user(&secret, id, token_secret) {
            Ok(user) => Ok(Some(Authenticated { user, ..Authenticated::default() })),
            Err(why) => {
                tracing::debug!(secret = name, "bootstrap secret matching bearer token {why}");
                Ok(None)
            }
        }
    }
}
