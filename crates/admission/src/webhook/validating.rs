//! `ValidatingAdmissionWebhook`: others may refuse the operation. They are asked all at once.
//!
//! Follows: apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go (v0.35).

use super::dispatch::Webhooks;
use super::hook::Source;
use crate::attributes::Attributes;
use crate::chain::Plugin;
use crate::matching::{Pair, is_exempt};
use async_trait::async_trait;
use futures_util::future::join_all;
use pintle_apimachinery::Value;
use pintle_apimachinery::status::Result;

/// The plugin.
#[derive(Debug)]
pub struct ValidatingAdmissionWebhook {
    webhooks: Webhooks,
    source: Source,
}

impl ValidatingAdmissionWebhook {
    /// The plugin over these.
    pub fn new(webhooks: Webhooks) -> ValidatingAdmissionWebhook {
        let source =
            Source::new("validatingwebhookconfigurations", webhooks.lookup.clone(), webhooks.expressions.clone());
        ValidatingAdmissionWebhook { webhooks, source }
    }
}

#[async_trait]
impl Plugin for ValidatingAdmissionWebhook {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        !is_exempt(attributes)
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let mut calls = Vec::new();
        for hook in self.source.hooks().await {
            if let Some(form) = self.webhooks.form(&hook, attributes, object).await? {
                let pair = Pair::read(&*self.webhooks.forms, attributes, object, &form).await?;
                calls.push((hook, form, pair));
            }
        }
        let asked = calls.iter().map(|(hook, form, pair)| async move {
            match self.webhooks.ask(hook, attributes, form, pair, false).await {
                Ok(_) => Ok(()),
                Err(failure) => failure.judge(hook),
            }
        });
        join_all(asked).await.into_iter().collect()
    }
}
