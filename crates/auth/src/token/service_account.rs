//! The claims of a service account's token, and who issues them.
//!
//! Follows: pkg/serviceaccount/{claims,jwt}.go (v1.35).

use super::jws;
use super::keys::{KeyError, SigningKey};
use crate::user;
use jiff::Timestamp;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Object, Str, Value, json};
use std::sync::Arc;

/// The issuer of tokens that live in secrets.
pub const ISSUER_LEGACY: &str = "kubernetes/serviceaccount";

/// A pod-bound token asked for this many seconds is meant to be extended: clients of old did not reload tokens.
pub const WARN_ONLY_EXPIRATION_SECONDS: i64 = 60 * 60 + 7;

/// How long such an extended token really lives, in seconds.
pub const EXPIRATION_EXTENSION_SECONDS: i64 = 24 * 365 * 60 * 60;

/// How far clocks may be apart, in seconds.
pub const LEEWAY_SECONDS: i64 = 60;

/// What a token dies with.
#[derive(Clone, Copy, Debug)]
pub enum BoundTo<'a> {
    /// Nothing but its account and its expiry.
    Nothing,
    /// A pod, and the node it runs on if it is known.
    Pod(&'a Value, Option<&'a Value>),
    /// A secret.
    Secret(&'a Value),
    /// A node.
    Node(&'a Value),
}

/// What a new token shall say.
#[derive(Clone, Debug)]
pub struct Claims<'a> {
    /// The ServiceAccount.
    pub account: &'a Value,
    /// What it is bound to.
    pub bound_to: BoundTo<'a>,
    /// For whom it is.
    pub audiences: &'a [Str],
    /// How long it lives.
    pub expiration_seconds: i64,
    /// When its use is worth a warning; 0 for never.
    pub warn_after_seconds: i64,
    /// Its own id.
    pub id: Str,
    /// Now.
    pub now: Timestamp,
}

/// Signs tokens in the name of an issuer.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// The issuer's URL.
    pub url: Str,
    /// The key.
    pub key: Arc<SigningKey>,
}

impl Issuer {
    /// A token with these claims.
    ///
    /// # Errors
    /// [`KeyError`] when the key refuses to sign.
    pub fn issue(&self, claims: &Claims<'_>) -> Result<String, KeyError> {
        let mut body = claims.to_value();
        body.set("iss", self.url.as_str());
        jws::sign(&self.key, &body)
    }
}

fn reference(object: &Value) -> Value {
    let members = [("name", object.name()), ("uid", object.uid())];
    Value::Object(members.into_iter().filter(|(_, text)| !text.is_empty()).collect::<Object>())
}

impl Claims<'_> {
    fn to_value(&self) -> Value {
        let now = self.now.as_second();
        let mut private = json!({
            "namespace": self.account.namespace(),
            "serviceaccount": reference(self.account),
        });
        match self.bound_to {
            BoundTo::Nothing => {}
            BoundTo::Pod(pod, node) => {
                private.set("pod", reference(pod));
                if let Some(node) = node {
                    private.set("node", reference(node));
                }
            }
            BoundTo::Secret(secret) => private.set("secret", reference(secret)),
            BoundTo::Node(node) => private.set("node", reference(node)),
        }
        if self.warn_after_seconds != 0 {
            private.set("warnafter", now + self.warn_after_seconds);
        }
        let mut body = json!({
            "aud": self.audiences.to_vec(),
            "exp": now + self.expiration_seconds,
            "iat": now,
            "nbf": now,
            "sub": user::service_account_name(self.account.namespace(), self.account.name()),
            "kubernetes.io": private,
        });
        if !self.id.is_empty() {
            body.set("jti", &self.id);
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::keys::tests::fresh_pem;
    use expect_test::expect;

    #[test]
    fn claims_of_a_pods_token() {
        let account = json!({"metadata": {"namespace": "ns", "name": "robot", "uid": "u1"}});
        let pod = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "u2"}});
        let node = json!({"metadata": {"name": "n"}});
        let claims = Claims {
            account: &account,
            bound_to: BoundTo::Pod(&pod, Some(&node)),
            audiences: &[Str::new("a")],
            expiration_seconds: 600,
            warn_after_seconds: 60,
            id: Str::new("j"),
            now: Timestamp::from_second(1000).unwrap(),
        };
        let issuer =
            Issuer { url: Str::new("https://x"), key: Arc::new(SigningKey::from_pem(fresh_pem().as_bytes()).unwrap()) };
        let token = issuer.issue(&claims).unwrap();
        let parsed = jws::Compact::parse(&token).unwrap();
        parsed.verify(std::slice::from_ref(&issuer.key.public)).unwrap();
        expect![[r#"{"aud":["a"],"exp":1600,"iat":1000,"iss":"https://x","jti":"j","kubernetes.io":{"namespace":"ns","node":{"name":"n"},"pod":{"name":"p","uid":"u2"},"serviceaccount":{"name":"robot","uid":"u1"},"warnafter":1060},"nbf":1000,"sub":"system:serviceaccount:ns:robot"}"#]]
            .assert_eq(&parsed.claims.to_json_string());
    }
}
