//! `MutatingAdmissionWebhook`: others may change the object, one after the other.
//!
//! Follows: apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go (v0.35).

use super::dispatch::{Failure, Webhooks};
use super::hook::{Hook, Source};
use crate::attributes::Attributes;
use crate::chain::{Plugin, Rounds};
use crate::matching::{Form, Pair, in_form, is_exempt};
use async_trait::async_trait;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Str, Value, value};
use pintle_patch::{Patch, PatchType};
use std::collections::BTreeSet;

/// The plugin.
#[derive(Debug)]
pub struct MutatingAdmissionWebhook {
    webhooks: Webhooks,
    source: Source,
}

/// What webhooks remember between the rounds of one operation.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The object as the last webhook left it.
    output: Option<Value>,
    /// Webhooks that were asked and want to be asked again when the object changes after them.
    asked: BTreeSet<Str>,
    /// Those to ask in the second round.
    again: BTreeSet<Str>,
}

impl Memory {
    fn object_changed(&mut self) {
        self.again.append(&mut self.asked);
    }
}

impl MutatingAdmissionWebhook {
    /// The plugin over these.
    pub fn new(webhooks: Webhooks) -> MutatingAdmissionWebhook {
        let source =
            Source::new("mutatingwebhookconfigurations", webhooks.lookup.clone(), webhooks.expressions.clone());
        MutatingAdmissionWebhook { webhooks, source }
    }

    /// Asks a webhook and does what it says; whether that changed the object.
    async fn ask(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        form: &Form,
        object: &mut Value,
    ) -> Result<bool, Failure> {
        let present = (!object.is_null()).then_some(&*object);
        let pair = Pair::read(&*self.webhooks.forms, attributes, present, form).await.map_err(Failure::Refusal)?;
        let Some(patch) = self.webhooks.ask(hook, attributes, form, &pair, true).await? else { return Ok(false) };
        let undecodable = |why: &str| Failure::Call(format!("received undecodable patch in webhook response: {why}"));
        let is_empty = value::parse(&patch).is_ok_and(|list| list.items().is_empty());
        let patch = pintle_patch::decode(PatchType::Json, &patch, false).map_err(|why| undecodable(&why.message))?;
        if is_empty {
            return Ok(false);
        }
        let refused = |why: String| Failure::Refusal(Box::new(Status::internal(why)));
        let Some(before) = &pair.object else {
            let name = go_quote(&hook.name);
            return Err(refused(format!(
                "admission webhook {name} attempted to modify the object, which is not supported for this operation"
            )));
        };
        let Patch::Json(patch) = patch.patch else { return Err(undecodable("it is no JSON patch")) };
        let patched = patch.apply(before).map_err(|status| refused(status.message))?;
        let after = self.webhooks.forms.read(&form.kind, patched).map_err(refused)?;
        if after == *before {
            return Ok(false);
        }
        let after = in_form(&*self.webhooks.forms, Some(&after), &form.kind, attributes.kind).await;
        *object = after.map_err(Failure::Refusal)?.unwrap_or_default();
        Ok(true)
    }
}

#[async_trait]
impl Plugin for MutatingAdmissionWebhook {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        !is_exempt(attributes)
    }

    async fn mutate_in_round(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        rounds: &mut Rounds,
    ) -> Result<()> {
        let hooks = self.source.hooks().await;
        if hooks.is_empty() {
            return Ok(());
        }
        if rounds.is_second && rounds.webhooks.output.as_ref() != Some(&*object) {
            rounds.webhooks.object_changed();
        }
        for hook in hooks {
            let present = (!object.is_null()).then_some(&*object);
            let Some(form) = self.webhooks.form(&hook, attributes, present).await? else { continue };
            if rounds.is_second && !rounds.webhooks.again.contains(&hook.id) {
                continue;
            }
            let outcome = self.ask(&hook, attributes, &form, object).await;
            if matches!(outcome, Ok(true)) {
                rounds.webhooks.object_changed();
                rounds.is_second_needed = true;
            }
            if hook.is_reinvoked {
                rounds.webhooks.asked.insert(hook.id.clone());
            }
            if let Err(failure) = outcome {
                failure.judge(&hook)?;
            }
        }
        rounds.webhooks.output = Some(object.clone());
        Ok(())
    }
}
