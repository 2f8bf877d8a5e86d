//! Tokens of service accounts: their signature, their claims, and whether what they are bound to is still there.
//!
//! Follows: pkg/serviceaccount/{jwt,claims,legacy}.go (v1.35).

use super::{Authenticated, TokenAuthenticator, intersection, is_same_secret};
use crate::token::{Compact, ISSUER_LEGACY, LEEWAY_SECONDS, VerifyKey};
use crate::{Lookup, user};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{GroupResource, Status, Str, Value};
use pintle_kinds::UserInfo;
use std::sync::Arc;

/// The tokens of these issuers and keys.
#[derive(Debug)]
pub struct ServiceAccountTokens {
    /// `--service-account-issuer`: whose tokens are accepted. The first issues new ones.
    pub issuers: Vec<Str>,
    /// `--service-account-key-file`: the keys that may have signed them.
    pub keys: Vec<VerifyKey>,
    /// The audiences of this server.
    pub api_audiences: Vec<Str>,
    /// Where accounts, pods, secrets and nodes are.
    pub lookup: Arc<dyn Lookup>,
    /// For the time.
    pub env: Env,
}

/// What a token of old dies with, in upstream's words.
const LEGACY_INVALID: &str = "Token has been invalidated";
/// What a token dies with, in upstream's words.
const INVALID: &str = "service account token has been invalidated";

#[async_trait]
impl TokenAuthenticator for ServiceAccountTokens {
    async fn authenticate_token(&self, token: &str, audiences: &[Str]) -> Result<Option<Authenticated>, String> {
        let Ok(parsed) = Compact::parse(token) else { return Ok(None) };
        let issuer = parsed.claims["iss"].str_or_empty();
        let is_legacy = issuer == ISSUER_LEGACY;
        if !is_legacy && !self.issuers.iter().any(|i| i == issuer) {
            return Ok(None);
        }
        if !parsed.key_id.is_empty() && !self.keys.iter().any(|key| key.id == parsed.key_id) {
            return Err("invalid signature, no keys found".to_owned());
        }
        parsed.verify(&self.keys).map_err(|error| error.to_string())?;
        let told = match &parsed.claims["aud"] {
            Value::String(audience) => vec![audience.clone()],
            list => list.items().iter().map(|v| Str::new(v.str_or_empty())).collect(),
        };
        let told = if told.is_empty() { self.api_audiences.clone() } else { told };
        let good_for = intersection(&told, audiences);
        if good_for.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted(&told),
                quoted(audiences)
            ));
        }
        let authenticated = if is_legacy {
            self.legacy_user(token, &parsed.claims).await?
        } else {
            Authenticated { user: self.user(&parsed.claims).await?, ..Authenticated::default() }
        };
        Ok(Some(Authenticated { audiences: good_for, ..authenticated }))
    }
}

/// A list as Go prints one of quoted strings.
fn quoted(list: &[Str]) -> String {
    let items: Vec<String> = list.iter().map(|item| go_quote(item)).collect();
    format!("[{}]", items.join(" "))
}

/// Name and uid of a reference in the claims; `None` when it is not there.
fn reference(claims: &Value, kind: &str) -> Option<(Str, Str)> {
    let reference = &claims["kubernetes.io"][kind];
    reference.as_object()?;
    Some((Str::new(reference["name"].str_or_empty()), Str::new(reference["uid"].str_or_empty())))
}

fn check_times(claims: &Value, now: Timestamp) -> Result<(), String> {
    let now = now.as_second();
    let is = |claim: &str, wrong: fn(i64, i64) -> bool| claims[claim].as_i64().is_some_and(|at| wrong(at, now));
    if is("nbf", |at, now| now + LEEWAY_SECONDS < at) {
        return Err("service account token is not valid yet".to_owned());
    }
    if is("exp", |at, now| now - LEEWAY_SECONDS > at) {
        return Err("service account token has expired".to_owned());
    }
    if is("iat", |at, now| now + LEEWAY_SECONDS < at) {
        return Err("service account token is issued in the future".to_owned());
    }
    Ok(())
}

impl ServiceAccountTokens {
    /// An object from memory, else as it is now: a token may be younger than the cache.
    async fn find(&self, resource: &str, namespace: &str, name: &str) -> Result<Arc<Value>, String> {
        if let Some(object) = self.lookup.get("", resource, namespace, name).await {
            return Ok(object);
        }
        match self.lookup.get_live("", resource, namespace, name).await {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err(Status::not_found(&GroupResource::new("", resource), name).message),
            Err(status) => Err(status.message),
        }
    }

    async fn user(&self, claims: &Value) -> Result<UserInfo, String> {
        let now = self.env.clock.now();
        check_times(claims, now)?;
        let namespace = claims["kubernetes.io"]["namespace"].str_or_empty();
        let is_gone = |object: &Value| {
            object.deletion_timestamp().is_some_and(|at| at.as_second() < now.as_second() - LEEWAY_SECONDS)
        };

        let (name, uid) = reference(claims, "serviceaccount").unwrap_or_default();
        let account = self.find("serviceaccounts", namespace, &name).await?;
        if account.uid() != uid {
            return Err(format!("service account UID ({}) does not match claim ({uid})", account.uid()));
        }
        if is_gone(&account) {
            return Err(format!("service account {namespace}/{name} has been deleted"));
        }
        let (secret, pod, node) = (reference(claims, "secret"), reference(claims, "pod"), reference(claims, "node"));
        let bound = [
            ("secrets", namespace, "secret", &secret),
            ("pods", namespace, "pod", &pod),
            // the node of a pod-bound token is told and not looked at
            ("nodes", "", "node", if pod.is_none() { &node } else { &None }),
        ];
        for (resource, namespace, kind, reference) in bound {
            let Some((name, uid)) = reference else { continue };
            let object = self.find(resource, namespace, name).await.map_err(|_| INVALID.to_owned())?;
            if object.uid() != uid {
                return Err(format!(
                    "{kind} UID ({}) does not match service account {kind} ref claim ({uid})",
                    object.uid()
                ));
            }
            if is_gone(&object) {
                return Err(INVALID.to_owned());
            }
        }
        Ok(UserInfo {
            name: user::service_account_name(namespace, &name),
            uid,
            groups: user::service_account_groups(namespace),
            extra: extra(claims, pod, node),
        })
    }

    /// The user of a token that lives in a secret.
    async fn legacy_user(&self, token: &str, claims: &Value) -> Result<Authenticated, String> {
        let claim = |short: &str| claims[&*format!("kubernetes.io/serviceaccount/{short}")].str_or_empty();
        let subject = claims["sub"].str_or_empty();
        let (namespace, secret_name) = (claim("namespace"), claim("secret.name"));
        let (name, uid) = (claim("service-account.name"), claim("service-account.uid"));
        for (value, text) in [
            (subject, "sub claim is missing"),
            (namespace, "namespace claim is missing"),
            (secret_name, "secretName claim is missing"),
            (name, "serviceAccountName claim is missing"),
            (uid, "serviceAccountUID claim is missing"),
        ] {
            if value.is_empty() {
                return Err(text.to_owned());
            }
        }
        if user::split_service_account(subject) != Some((namespace, name)) {
            return Err("sub claim is invalid".to_owned());
        }
        let secret = self.find("secrets", namespace, secret_name).await.map_err(|_| LEGACY_INVALID.to_owned())?;
        if secret.is_terminating() {
            return Err(LEGACY_INVALID.to_owned());
        }
        let kept = STANDARD.decode(secret["data"]["token"].str_or_empty()).unwrap_or_default();
        if !is_same_secret(&kept, token.as_bytes()) {
            return Err("Token does not match server's copy".to_owned());
        }
        let account = self.find("serviceaccounts", namespace, name).await?;
        if account.is_terminating() {
            return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
        }
        if account.uid() != uid {
            return Err(format!("ServiceAccount UID ({}) does not match claim ({uid})", account.uid()));
        }
        if secret.label("kubernetes.io/legacy-token-invalid-since").is_some_and(|since| !since.is_empty()) {
            return Err(format!(
                "the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked \
                 invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
                 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token"
            ));
        }
        let is_generated = account["secrets"].items().iter().any(|r| r["name"].str_or_empty() == secret.name());
        let warning = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of \
                       auto-generated secret-based tokens.";
        let user = UserInfo {
            name: user::service_account_name(namespace, name),
            uid: Str::new(uid),
            groups: user::service_account_groups(namespace),
            extra: Vec::new(),
        };
        let warnings = if is_generated { vec![warning.to_owned()] } else { Vec::new() };
        Ok(Authenticated { user, audiences: Vec::new(), warnings })
    }
}

/// What a token tells beside its user, sorted by key.
fn extra(claims: &Value, pod: Option<(Str, Str)>, node: Option<(Str, Str)>) -> Vec<(Str, Vec<Str>)> {
    let mut extra = Vec::new();
    let id = claims["jti"].str_or_empty();
    if !id.is_empty() {
        extra.push(user::extra(user::CREDENTIAL_ID, format!("JTI={id}")));
    }
    if let Some((name, uid)) = node.filter(|(name, _)| !name.is_empty()) {
        extra.push(user::extra(user::NODE_NAME, name));
        if !uid.is_empty() {
            extra.push(user::extra(user::NODE_UID, uid));
        }
    }
    if let Some((name, uid)) = pod.filter(|(name, uid)| !name.is_empty() && !uid.is_empty()) {
        extra.push(user::extra(user::POD_NAME, name));
        extra.push(user::extra(user::POD_UID, uid));
    }
    extra
}
