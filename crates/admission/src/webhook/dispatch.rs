//! What mutating and validating webhooks have in common: who is called, with which form of the object, and what an
//! answer means.
//!
//! Follows: apiserver/pkg/admission/plugin/webhook/generic/webhook.go (v0.35).

use super::call::{CallError, Caller};
use super::hook::Hook;
use super::review;
use crate::attributes::Attributes;
use crate::expressions::{Expressions, Input, do_all_hold};
use crate::matching::{Form, Forms, Pair, Selection, matching_form};
use pintle_apimachinery::env::Env;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Value};
use pintle_auth::Lookup;
use std::sync::Arc;

/// What calling webhooks needs.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// Where configurations and namespaces are.
    pub lookup: Arc<dyn Lookup>,
    /// The forms of objects.
    pub forms: Arc<dyn Forms>,
    /// The language of match conditions.
    pub expressions: Arc<dyn Expressions>,
    /// Calls them.
    pub caller: Arc<dyn Caller>,
    /// Dice.
    pub env: Env,
}

/// How a call ended other than well.
#[derive(Debug)]
pub(super) enum Failure {
    /// The webhook could not be asked: its failure policy decides.
    Call(String),
    /// The operation is refused.
    Refusal(Box<Status>),
}

impl Webhooks {
    /// The form in which `hook` is to be asked about the operation; `None` when it is not.
    pub(super) async fn form(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Form>> {
        let selection = hook.selectors.select(&*self.lookup, attributes, object).await;
        let Selection::Fits(is_told) = selection else { return Ok(None) };
        let form = matching_form(&*self.forms, &hook.rules, hook.is_equivalent, attributes);
        let Some(form) = form else { return Ok(None) };
        is_told?;
        if hook.has_conditions && !self.do_conditions_hold(hook, attributes, object, &form).await? {
            return Ok(None);
        }
        Ok(Some(form))
    }

    async fn do_conditions_hold(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        form: &Form,
    ) -> Result<bool> {
        let pair = Pair::read(&*self.forms, attributes, object, form).await?;
        let input = Input {
            attributes,
            resource: &form.resource,
            kind: &form.kind,
            object: pair.object.as_ref(),
            old: pair.old.as_ref(),
            params: None,
            namespace: None,
        };
        do_all_hold(hook.conditions.evaluate(input), hook.is_failure_ignored)
            .map_err(|why| Box::new(Status::forbidden(&attributes.resource.group_resource(), attributes.name, why)))
    }

    /// Asks a webhook. The patch of its answer, where there may be one.
    pub(super) async fn ask(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        form: &Form,
        pair: &Pair,
        may_patch: bool,
    ) -> Result<Option<Vec<u8>>, Failure> {
        if attributes.dry_run && !matches!(hook.side_effects.as_str(), "None" | "NoneOnDryRun") {
            let why = format!("admission webhook {} does not support dry run", go_quote(&hook.name));
            return Err(Failure::Refusal(Box::new(Status::bad_request(why))));
        }
        let Some(version) = hook.review_versions.iter().find(|version| matches!(version.as_str(), "v1" | "v1beta1"))
        else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(Failure::Call(why.to_owned()));
        };
        let uid = self.env.ids.uid();
        let body = review::request(version, &uid, attributes, form, pair);
        let answer = match self.caller.call(&hook.client_config, body, hook.timeout).await {
            Ok(answer) => answer,
            Err(error @ (CallError::Unusable(_) | CallError::Failed(_))) => {
                return Err(Failure::Call(error.to_string()));
            }
        };
        let answer = review::read(version, &uid, &answer, may_patch)
            .map_err(|why| Failure::Call(format!("received invalid webhook response: {why}")))?;
        for warning in answer.warnings {
            attributes.warn(warning);
        }
        if !answer.is_allowed {
            return Err(Failure::Refusal(Box::new(review::refusal(&hook.name, &answer.status))));
        }
        if answer.patch.is_some() && answer.patch_type != review::JSON_PATCH {
            return Err(Failure::Call(format!("unsupported patch type {}", go_quote(&answer.patch_type))));
        }
        Ok(answer.patch)
    }
}

impl Failure {
    /// What comes of it: nothing when the webhook's policy is to go on without it.
    pub(super) fn judge(self, hook: &Hook) -> Result<()> {
        match self {
            Failure::Refusal(status) => Err(status),
            Failure::Call(why) => {
                let why = format!("failed calling webhook {}: {why}", go_quote(&hook.name));
                if hook.is_failure_ignored {
                    tracing::warn!(configuration = %hook.configuration, "{why}; going on without it");
                    return Ok(());
                }
                Err(Box::new(Status::internal(why)))
            }
        }
    }
}
