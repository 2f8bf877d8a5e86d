//! What all requests share.

use crate::metrics::Metrics;
use pintle_apimachinery::env::Env;
use pintle_auth::authn::Authenticator;
use pintle_auth::authz::Chain;
use pintle_registry::{Catalog, World};
use std::sync::Arc;
use tokio::sync::watch;

/// The server's parts.
#[derive(Debug)]
pub struct State {
    /// Clock and dice.
    pub env: Env,
    /// What is served.
    pub catalog: Arc<Catalog>,
    /// What operations share.
    pub world: World,
    /// Who asks.
    pub authenticator: Authenticator,
    /// What they may.
    pub authorizer: Arc<Chain>,
    /// How many requests are served at once.
    pub inflight: crate::inflight::Inflight,
    /// What was counted.
    pub metrics: Metrics,
    /// The checks of `/readyz` and its sisters.
    pub health: crate::health::Health,
    /// Issues service account tokens.
    pub tokens: pintle_auth::review::TokenRequests,
    /// OpenID discovery.
    pub openid: crate::openid::OpenId,
    /// Reaches nodes' agents, pods and services.
    pub backends: crate::connect::Backends,
    /// Turns true when the server begins to stop: watches end then.
    pub stopping: watch::Receiver<bool>,
}
