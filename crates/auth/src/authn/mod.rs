//! Authentication: from the headers and the client certificate of a request to its user.
//!
//! Follows: pkg/kubeapiserver/authenticator/config.go (v1.35), apiserver/pkg/authentication (v0.35): the union of all
//! ways, in upstream's order, and the texts of its errors, which TokenReview shows.

mod bearer;
mod bootstrap_token;
mod cache;
mod front_proxy;
mod peer;
mod service_account;
#[cfg(test)]
mod tests;
mod token_file;

pub use bootstrap_token::BootstrapTokens;
pub use cache::{TOKEN_CACHE_ENTRIES_MAX, TOKEN_CACHE_TTL_SECONDS};
pub use front_proxy::FrontProxy;
pub(crate) use front_proxy::unescape_key;
pub use peer::{ClientCa, PeerCertificate};
pub use service_account::ServiceAccountTokens;
pub use token_file::TokenFile;

use crate::user;
use async_trait::async_trait;
use cache::TokenCache;
use http::HeaderMap;
use pintle_apimachinery::Str;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::field::aggregate;
use pintle_kinds::UserInfo;
use std::fmt;
use std::sync::Arc;

/// What a request shows of its sender.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The client certificate of the connection, if one came.
    pub peer: Option<&'a PeerCertificate>,
}

/// Who a request comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Authenticated {
    /// The user.
    pub user: UserInfo,
    /// Those of the audiences asked for that the credential is good for; empty when it knows of none.
    pub audiences: Vec<Str>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// Credentials were given and none of them is good. The texts are those of every authenticator that tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthnError {
    /// Every error, in order.
    pub errors: Vec<String>,
}

impl fmt::Display for AuthnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&aggregate(&self.errors))
    }
}

impl std::error::Error for AuthnError {}

/// One kind of bearer tokens.
#[async_trait]
pub trait TokenAuthenticator: Send + Sync + fmt::Debug {
    /// Whose token it is. `None` when it is not one of this kind. `audiences` are those the token shall be good for,
    /// never empty.
    ///
    /// # Errors
    /// Why a token of this kind is not good.
    async fn authenticate_token(&self, token: &str, audiences: &[Str]) -> Result<Option<Authenticated>, String>;
}

/// What a server accepts as credentials.
#[derive(Debug, Default)]
pub struct Config {
    /// A token of the server's own for calling itself; its user is [`user::apiserver`].
    pub loopback_token: Option<String>,
    /// `--requestheader-*`.
    pub front_proxy: Option<FrontProxy>,
    /// `--client-ca-file`.
    pub client_ca: Option<ClientCa>,
    /// Kinds of bearer tokens, in order: token file, service accounts, bootstrap tokens, OIDC.
    pub tokens: Vec<Arc<dyn TokenAuthenticator>>,
    /// `--anonymous-auth`.
    pub is_anonymous_allowed: bool,
    /// `--api-audiences`: what a token must be good for to be used here. Never empty.
    pub api_audiences: Vec<Str>,
}

/// Finds out who sends a request.
#[derive(Debug)]
pub struct Authenticator {
    config: Config,
    cache: TokenCache,
    env: Env,
}

/// What upstream says to a bearer token that nobody knows.
const INVALID_BEARER_TOKEN: &str = "invalid bearer token";

impl Authenticator {
    /// The authenticator of this configuration.
    pub fn new(config: Config, env: Env) -> Authenticator {
        Authenticator { config, cache: TokenCache::default(), env }
    }

    /// The audiences of this server.
    pub fn api_audiences(&self) -> &[Str] {
        &self.config.api_audiences
    }

    /// Who sends the request. `None` when it has no credentials and anonymous requests are not allowed.
    ///
    /// # Errors
    /// [`AuthnError`] when it has credentials and none is good: 401.
    pub async fn authenticate(&self, request: &RequestParts<'_>) -> Result<Option<Authenticated>, AuthnError> {
        self.authenticate_for(request, &self.config.api_audiences).await
    }

    /// As [`Authenticator::authenticate`], for the audiences that a TokenReview asks about.
    ///
    /// # Errors
    /// As there.
    pub async fn authenticate_for(
        &self,
        request: &RequestParts<'_>,
        audiences: &[Str],
    ) -> Result<Option<Authenticated>, AuthnError> {
        let mut errors = Vec::new();
        let token = bearer::token(request.headers);
        if let Some(token) = token {
            let is_own = |own: &String| is_same_secret(own.as_bytes(), token.as_bytes());
            if self.config.loopback_token.as_ref().is_some_and(is_own)
                && let Some(audiences) = self.agnostic_audiences(audiences)
            {
                return Ok(Some(Authenticated { user: user::apiserver(), audiences, warnings: Vec::new() }));
            }
            // clients know the text, which upstream gives for the server's own token even where none is configured
            errors.push(INVALID_BEARER_TOKEN.to_owned());
        }
        match self.first_good(request, token, audiences, &mut errors).await {
            Some(authenticated) => Ok(Some(authenticated)),
            None if !errors.is_empty() => Err(AuthnError { errors }),
            None if self.config.is_anonymous_allowed => {
                let audiences = self.config.api_audiences.clone();
                Ok(Some(Authenticated { user: user::anonymous(), audiences, warnings: Vec::new() }))
            }
            None => Ok(None),
        }
    }

    async fn first_good(
        &self,
        request: &RequestParts<'_>,
        token: Option<&str>,
        audiences: &[Str],
        errors: &mut Vec<String>,
    ) -> Option<Authenticated> {
        let now = self.env.clock.now();
        if let (Some(proxy), Some(peer)) = (&self.config.front_proxy, request.peer)
            && let Some(audiences) = self.agnostic_audiences(audiences)
        {
            match proxy.authenticate(request.headers, peer, now) {
                Ok(Some(user)) => return Some(with_group(Authenticated { user, audiences, warnings: Vec::new() })),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if let (Some(ca), Some(peer)) = (&self.config.client_ca, request.peer) {
            match ca.authenticate(peer, now) {
                Ok(Some(user)) => return Some(with_group(Authenticated { user, ..Authenticated::default() })),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if self.config.tokens.is_empty() {
            return None;
        }
        if let Some(token) = token {
            match self.token(token, audiences).await {
                Ok(authenticated) => return Some(with_group(authenticated)),
                Err(error) => errors.push(error),
            }
        }
        match bearer::websocket_token(request.headers) {
            Ok(Some(token)) => match self.token(&token, audiences).await {
                Ok(authenticated) => return Some(with_group(authenticated)),
                Err(error) => errors.push(error),
            },
            Ok(None) => {}
            Err(error) => errors.push(error.to_owned()),
        }
        None
    }

    /// Whose bearer token it is.
    async fn token(&self, token: &str, audiences: &[Str]) -> Result<Authenticated, String> {
        let now = self.env.clock.now();
        let key = self.cache.key(token, audiences);
        if let Some(authenticated) = self.cache.get(&key, now) {
            return Ok(authenticated);
        }
        let mut errors = Vec::new();
        for kind in &self.config.tokens {
            match kind.authenticate_token(token, audiences).await {
                Ok(Some(authenticated)) => {
                    self.cache.put(key, &authenticated, now);
                    return Ok(authenticated);
                }
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Err(INVALID_BEARER_TOKEN.to_owned()) } else { Err(aggregate(&errors)) }
    }

    /// Which of the audiences a credential that knows of none is good for: those of this server. `None` when there
    /// are none among them.
    fn agnostic_audiences(&self, audiences: &[Str]) -> Option<Vec<Str>> {
        let both = intersection(&self.config.api_audiences, audiences);
        (!both.is_empty()).then_some(both)
    }
}

/// Those of `ours` that are among `theirs`.
fn intersection(ours: &[Str], theirs: &[Str]) -> Vec<Str> {
    ours.iter().filter(|audience| theirs.contains(audience)).cloned().collect()
}

/// Whether two secrets are the same. Compares digests, so that the time it takes tells nothing about how much of a guess
/// was right.
fn is_same_secret(a: &[u8], b: &[u8]) -> bool {
    let digest = |secret| ring::digest::digest(&ring::digest::SHA256, secret);
    digest(a).as_ref() == digest(b).as_ref()
}

/// With `system:authenticated`, unless the user says otherwise.
fn with_group(mut authenticated: Authenticated) -> Authenticated {
    let user = &mut authenticated.user;
    let is_told = user.groups.iter().any(|g| g == user::AUTHENTICATED || g == user::UNAUTHENTICATED);
    if user.name != user::ANONYMOUS && !is_told {
        user.groups.push(Str::const_new(user::AUTHENTICATED));
    }
    authenticated
}

/// Kinds of tokens that know of no audience: good for this server's.
#[derive(Debug)]
pub struct AudienceAgnostic<T> {
    /// The kind.
    pub tokens: T,
    /// The audiences of this server.
    pub api_audiences: Vec<Str>,
}

#[async_trait]
impl<T: TokenAuthenticator> TokenAuthenticator for AudienceAgnostic<T> {
    async fn authenticate_token(&self, token: &str, audiences: &[Str]) -> Result<Option<Authenticated>, String> {
        let both = intersection(&self.api_audiences, audiences);
        if both.is_empty() {
            return Ok(None);
        }
        let found = self.tokens.authenticate_token(token, audiences).await?;
        Ok(found.map(|authenticated| Authenticated { audiences: both, ..authenticated }))
    }
}
