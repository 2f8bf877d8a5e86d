//! `TokenRequest`: a token for a service account (`serviceaccounts/token`).
//!
//! Follows: pkg/registry/core/serviceaccount/storage/token.go (v1.35).

use crate::Lookup;
use crate::token::{BoundTo, Claims, EXPIRATION_EXTENSION_SECONDS, Issuer, WARN_ONLY_EXPIRATION_SECONDS};
use pintle_apimachinery::env::Env;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{
    ErrorList, FieldError, GroupKind, GroupResource, GroupVersion, Path, Status, Str, Value, json, time,
};
use std::sync::Arc;

/// A token may not live shorter than so many seconds.
pub const TOKEN_LIFETIME_SECONDS_MIN: i64 = 10 * 60;
/// A token may not live longer than so many seconds.
pub const TOKEN_LIFETIME_SECONDS_MAX: i64 = 1 << 32;

/// Issues tokens on request.
#[derive(Debug)]
pub struct TokenRequests {
    /// Who issues.
    pub issuer: Issuer,
    /// The audiences of this server: whom a token is for when the request does not say.
    pub api_audiences: Vec<Str>,
    /// `--service-account-max-token-expiration` in seconds; 0 for no limit of its own.
    pub max_expiration_seconds: i64,
    /// `--service-account-extend-token-expiration`.
    pub extends_expiration: bool,
    /// Where accounts, pods, secrets and nodes are.
    pub lookup: Arc<dyn Lookup>,
    /// For the time and the tokens' ids.
    pub env: Env,
}

/// A request that is found good, its account read; to be answered after admission.
#[derive(Debug)]
pub struct TokenRequest {
    /// The request with everything filled in that the answer will show.
    pub object: Value,
    account: Arc<Value>,
}

/// The answer to a token request.
#[derive(Debug)]
pub struct TokenResponse {
    /// The TokenRequest with its status.
    pub object: Value,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

impl TokenRequests {
    /// Checks a request for the account `namespace/name`, fills in what it leaves open.
    ///
    /// # Errors
    /// 404 when there is no such account, 422 or 409 when the request is at odds with it or asks for too much.
    pub async fn validate(&self, mut object: Value, namespace: &str, name: &str) -> Result<TokenRequest> {
        let kind = GroupKind::new("authentication.k8s.io", "TokenRequest");
        for (field, given, wanted, what) in
            [("name", object.name(), name, "name"), ("namespace", object.namespace(), namespace, "namespace")]
        {
            if !given.is_empty() && given != wanted {
                let text = format!("must match the service account {what} if specified");
                let error = FieldError::invalid(&Path::new("metadata").child(field), given, text);
                return Err(Box::new(Status::invalid(&kind, name, &vec![error])));
            }
        }
        let account = self.find("serviceaccounts", namespace, name).await?;
        if !object.uid().is_empty() && object.uid() != account.uid() {
            let text = format!(
                "the UID in the token request ({}) does not match the UID of the service account ({})",
                object.uid(),
                account.uid()
            );
            return Err(conflict("authentication.k8s.io", "TokenRequest", name, text));
        }
        if object["spec"]["audiences"].is_empty() {
            object["spec"].set("audiences", self.api_audiences.clone());
        }
        object["spec"].set_default("expirationSeconds", 3600i64);
        for (field, value) in [("name", account.name()), ("namespace", account.namespace()), ("uid", account.uid())] {
            object.make("metadata").set(field, value);
        }
        object["metadata"].set("creationTimestamp", time::time_value(self.env.clock.now()));
        object.remove("status");
        let errors = validate_expiration(&object["spec"]["expirationSeconds"]);
        if !errors.is_empty() {
            return Err(Box::new(Status::invalid(&kind, "", &errors)));
        }
        Ok(TokenRequest { object, account })
    }

    /// Issues the token.
    ///
    /// # Errors
    /// 400, 404 or 409 when what it shall be bound to is not there or not the account's, 500 when it cannot be signed.
    pub async fn answer(&self, request: TokenRequest) -> Result<TokenResponse> {
        let TokenRequest { mut object, account } = request;
        let bound = self.bound(&object["spec"]["boundObjectRef"], &account).await?;
        let mut warnings = Vec::new();
        let mut lifetime_seconds = object["spec"]["expirationSeconds"].as_i64().unwrap_or_default();
        if self.max_expiration_seconds > 0 && lifetime_seconds > self.max_expiration_seconds {
            warnings.push(format!(
                "requested expiration of {lifetime_seconds} seconds shortened to {} seconds",
                self.max_expiration_seconds
            ));
            lifetime_seconds = self.max_expiration_seconds;
            object["spec"].set("expirationSeconds", lifetime_seconds);
        }
        let audiences: Vec<Str> =
            object["spec"]["audiences"].items().iter().map(|v| Str::new(v.str_or_empty())).collect();
        let is_extended = self.extends_expiration
            && matches!(bound, Bound::Pod(..))
            && lifetime_seconds == WARN_ONLY_EXPIRATION_SECONDS
            && audiences.iter().all(|audience| self.api_audiences.contains(audience));
        let now = self.env.clock.now();
        let claims = Claims {
            account: &account,
            bound_to: bound.as_claim(),
            audiences: &audiences,
            expiration_seconds: if is_extended { EXPIRATION_EXTENSION_SECONDS } else { lifetime_seconds },
            warn_after_seconds: if is_extended { lifetime_seconds } else { 0 },
            id: self.env.ids.uid(),
            now,
        };
        let token = self
            .issuer
            .issue(&claims)
            .map_err(|error| Box::new(Status::internal(format!("failed to generate token: {error}"))))?;
        let until = now.checked_add(jiff::SignedDuration::from_secs(lifetime_seconds)).unwrap_or(now);
        object.set("status", json!({"token": token, "expirationTimestamp": time::time_value(until)}));
        Ok(TokenResponse { object, warnings })
    }

    /// An object as it is now.
    async fn find(&self, resource: &str, namespace: &str, name: &str) -> Result<Arc<Value>> {
        let found = self.lookup.get_live("", resource, namespace, name).await?;
        found.ok_or_else(|| Box::new(Status::not_found(&GroupResource::new("", resource), name)))
    }

    async fn bound(&self, reference: &Value, account: &Value) -> Result<Bound> {
        if reference.is_null() {
            return Ok(Bound::Nothing);
        }
        let text = |field: &str| reference[field].str_or_empty();
        let version = GroupVersion::parse(text("apiVersion")).unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let (bound, uid) = match (version.group.as_str(), kind) {
            ("", "Pod") => {
                let pod = self.find("pods", account.namespace(), name).await?;
                if pod["spec"]["serviceAccountName"].str_or_empty() != account.name() {
                    return Err(Box::new(Status::bad_request(format!(
                        "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                        pintle_apimachinery::field::go_quote(account.name())
                    ))));
                }
                let uid = Str::new(pod.uid());
                let node = self.node_of(&pod).await;
                (Bound::Pod(pod, node), uid)
            }
            ("", "Node") => {
                let node = self.find("nodes", "", name).await?;
                let uid = Str::new(node.uid());
                (Bound::Node(node), uid)
            }
            ("", "Secret") => {
                let secret = self.find("secrets", account.namespace(), name).await?;
                let uid = Str::new(secret.uid());
                (Bound::Secret(secret), uid)
            }
            _ => {
                let message = format!("cannot bind token to object of type {}", version.with_kind(kind));
                return Err(Box::new(Status::bad_request(message)));
            }
        };
        let wanted = text("uid");
        if !wanted.is_empty() && uid != wanted {
            let text = format!(
                "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might \
                 have been deleted and then recreated"
            );
            return Err(conflict("", kind, name, text));
        }
        Ok(bound)
    }

    /// The node that the pod runs on; by name alone when it is not there (any more).
    async fn node_of(&self, pod: &Value) -> Option<Arc<Value>> {
        let name = pod["spec"]["nodeName"].str_or_empty();
        if name.is_empty() {
            return None;
        }
        let found = self.lookup.get("", "nodes", "", name).await;
        Some(found.unwrap_or_else(|| Arc::new(json!({"metadata": {"name": name}}))))
    }
}

/// What the token is bound to, as it was found.
enum Bound {
    Nothing,
    Pod(Arc<Value>, Option<Arc<Value>>),
    Secret(Arc<Value>),
    Node(Arc<Value>),
}

impl Bound {
    fn as_claim(&self) -> BoundTo<'_> {
        match self {
            Bound::Nothing => BoundTo::Nothing,
            Bound::Pod(pod, node) => BoundTo::Pod(pod, node.as_deref()),
            Bound::Secret(secret) => BoundTo::Secret(secret),
            Bound::Node(node) => BoundTo::Node(node),
        }
    }
}

/// A conflict whose details name a kind, as upstream's do here.
fn conflict(group: &str, kind: &str, name: &str, text: String) -> Box<Status> {
    Box::new(Status::conflict(&GroupResource::new(group, kind), name, text))
}

fn validate_expiration(seconds: &Value) -> ErrorList {
    let path = Path::new("spec");
    let path = path.child("expirationSeconds");
    let seconds = seconds.as_i64().unwrap_or_default();
    let mut errors = ErrorList::new();
    if seconds < TOKEN_LIFETIME_SECONDS_MIN {
        errors.push(FieldError::invalid(&path, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > TOKEN_LIFETIME_SECONDS_MAX {
        errors.push(FieldError::invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
    errors
}

#[cfg(test)]
mod tests;
