//! Calling webhooks, as plugins see it.

use async_trait::async_trait;
use pintle_apimachinery::Value;
use std::time::Duration;

/// Sends requests to webhooks.
#[async_trait]
pub trait Caller: Send + Sync + std::fmt::Debug {
    /// Posts `body` to the webhook that `client_config` (`url` or `service`, and `caBundle`) is about, telling it
    /// that it has `timeout`, and gives its answer.
    ///
    /// # Errors
    /// What went wrong, in upstream's words.
    async fn call(&self, client_config: &Value, body: Value, timeout: Option<Duration>) -> Result<Value, CallError>;
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The webhook cannot be called at all.
    #[error("could not get REST client: {0}")]
    Unusable(String),
    /// It was called and gave no answer that can be read.
    #[error("failed to call webhook: {0}")]
    Failed(String),
}
