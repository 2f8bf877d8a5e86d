//! What mutating and validating webhooks have in common: who is called, with which form of the object, and what an
//! answer means.
//!
//! Follows: apiserver/pkg/admission/plugin/webhook/generic/webhook.go (v0.35).

use super::call::{CallError, Caller};
use super::expressions::{Expressions, Input};
use super::forms::Forms;
use super::hook::Hook;
use super::review;
use super::rules::{Subject, namespace_of};
use crate::attributes::Attributes;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::field::{aggregate, go_quote};
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, GroupVersionKind, GroupVersionResource, Status, Value};
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

/// The form in which a webhook wants an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub resource: GroupVersionResource,
    pub kind: GroupVersionKind,
}

/// An object before and after, in one form.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub object: Option<Value>,
    pub old: Option<Value>,
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
        let in_namespace = self.is_namespace_selected(hook, attributes, object).await;
        let of_object = is_object_selected(hook, attributes, object);
        if matches!(in_namespace, Ok(false)) || matches!(of_object, Ok(false)) {
            return Ok(None);
        }
        let Some(form) = self.matching_form(hook, attributes) else { return Ok(None) };
        in_namespace?;
        of_object?;
        if hook.has_conditions && !self.do_conditions_hold(hook, attributes, object, &form).await? {
            return Ok(None);
        }
        Ok(Some(form))
    }

    fn matching_form(&self, hook: &Hook, attributes: &Attributes<'_>) -> Option<Form> {
        let subject = Subject::of(attributes);
        if hook.rules.iter().any(|rule| rule.matches(subject)) {
            return Some(Form { resource: attributes.resource.clone(), kind: attributes.kind.clone() });
        }
        if !hook.is_equivalent {
            return None;
        }
        let equivalents = self.forms.equivalents(attributes.resource, attributes.subresource);
        let mut others = hook.rules.iter().flat_map(|rule| {
            let others = equivalents.iter().filter(|(resource, _)| resource != attributes.resource);
            others.filter(move |(resource, _)| rule.matches(Subject { resource, ..subject }))
        });
        others.next().map(|(resource, kind)| Form { resource: resource.clone(), kind: kind.clone() })
    }

    async fn is_namespace_selected(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool> {
        let namespace = namespace_of(attributes);
        let is_namespace_itself = attributes.resource.resource == "namespaces";
        if namespace.is_empty() && !is_namespace_itself {
            return Ok(true);
        }
        let selector = selector(&hook.namespaces)?;
        if selector.is_everything() {
            return Ok(true);
        }
        if is_namespace_itself && attributes.subresource.is_empty() && attributes.is_write() {
            return Ok(object.is_some_and(|object| selector.matches(&object.metadata()["labels"])));
        }
        let found = match self.lookup.get("", "namespaces", "", namespace).await {
            Some(found) => Some(found),
            None => self.lookup.get_live("", "namespaces", "", namespace).await?,
        };
        let found =
            found.ok_or_else(|| Box::new(Status::not_found(&GroupResource::new("", "namespaces"), namespace)))?;
        Ok(selector.matches(&found.metadata()["labels"]))
    }

    async fn do_conditions_hold(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        form: &Form,
    ) -> Result<bool> {
        let pair = self.pair(attributes, object, form).await?;
        let input = Input {
            attributes,
            resource: &form.resource,
            kind: &form.kind,
            object: pair.object.as_ref(),
            old: pair.old.as_ref(),
        };
        let answers = hook.conditions.evaluate(input);
        let errors = match answers {
            Ok(answers) => {
                if answers.contains(&Ok(false)) {
                    return Ok(false);
                }
                answers.into_iter().filter_map(Result::err).collect()
            }
            Err(why) => vec![why],
        };
        if errors.is_empty() {
            return Ok(true);
        }
        if hook.is_failure_ignored {
            return Ok(false);
        }
        let resource = attributes.resource.group_resource();
        Err(Box::new(Status::forbidden(&resource, attributes.name, aggregate(&errors))))
    }

    /// The objects of the operation in this form.
    pub(super) async fn pair(&self, attributes: &Attributes<'_>, object: Option<&Value>, form: &Form) -> Result<Pair> {
        Ok(Pair {
            object: self.in_form(object, attributes.kind, &form.kind).await?,
            old: self.in_form(attributes.old, attributes.kind, &form.kind).await?,
        })
    }

    async fn in_form(
        &self,
        object: Option<&Value>,
        from: &GroupVersionKind,
        to: &GroupVersionKind,
    ) -> Result<Option<Value>> {
        let Some(object) = object else { return Ok(None) };
        if from == to {
            return Ok(Some(object.clone()));
        }
        let mut converted = self.forms.convert(object.clone(), from, to).await?;
        converted.set("apiVersion", to.api_version());
        converted.set("kind", to.kind.clone());
        Ok(Some(converted))
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

fn selector(selector: &Result<Selector, String>) -> Result<&Selector> {
    selector.as_ref().map_err(|why| Box::new(Status::internal(why)))
}

fn is_object_selected(hook: &Hook, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<bool> {
    let selector = selector(&hook.objects)?;
    let is_selected = |object: Option<&Value>| object.is_some_and(|o| selector.matches(&o.metadata()["labels"]));
    Ok(selector.is_everything() || is_selected(object) || is_selected(attributes.old))
}
