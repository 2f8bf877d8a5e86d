//! MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

use super::{set_rule_defaults, set_selector_defaults};
use crate::prepare::{raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::Value;

/// The strategy of webhook configurations.
#[derive(Debug)]
pub struct WebhookConfiguration {
    /// Whether these are MutatingWebhookConfigurations.
    pub is_mutating: bool,
}

impl UpdateStrategy for WebhookConfiguration {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["webhooks"]);
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW.any_finalizers()
    }
}

impl Strategy for WebhookConfiguration {
    fn set_defaults(&self, object: &mut Value) {
        for webhook in object.get_mut("webhooks").map_or(&mut [][..], Value::items_mut) {
            webhook.set_default("failurePolicy", "Fail");
            set_selector_defaults(webhook);
            webhook.set_default("timeoutSeconds", 10);
            if self.is_mutating {
                webhook.set_default("reinvocationPolicy", "Never");
            }
            if let Some(service) = webhook.at_mut("clientConfig.service").filter(|service| !service.is_null()) {
                service.set_default("port", 443);
            }
            set_rule_defaults(webhook.get_mut("rules"));
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
