//! `ValidatingAdmissionPolicy`: rules that objects of the API state as expressions.
//!
//! What would go to the audit log is not told: there is none. The annotations are evaluated all the same, because one
//! that fails refuses the operation.
//!
//! Follows: apiserver/pkg/admission/plugin/policy (v0.35).

mod decide;
mod params;
mod source;
#[cfg(test)]
mod tests;

pub use decide::MESSAGE_BYTES_MAX;

use crate::attributes::Attributes;
use crate::chain::Plugin;
use crate::errors::forbidden;
use crate::expressions::{Expressions, Input};
use crate::matching::{Forms, Pair, is_exempt, namespace, namespace_of};
use async_trait::async_trait;
use decide::{Decision, decide};
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, Status, Value};
use pintle_auth::Lookup;
use source::{Binding, Hook, Policy, Source};
use std::sync::Arc;

/// Reviews, which policies see nothing of: they could lock everybody out.
const EXCLUDED_RESOURCES: [(&str, &str); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// The plugin.
#[derive(Debug)]
pub struct ValidatingAdmissionPolicy {
    lookup: Arc<dyn Lookup>,
    forms: Arc<dyn Forms>,
    source: Source,
}

/// Why an operation is refused: by which policy and binding.
struct Denial {
    policy: Arc<Policy>,
    binding: Option<Arc<Binding>>,
    decision: Decision,
}

/// What a policy sees of an operation.
struct View {
    pair: Pair,
    namespace: Option<Value>,
}

impl ValidatingAdmissionPolicy {
    /// Policies, bindings and parameters come from `lookup`; `expressions` is their language.
    pub fn new(
        lookup: Arc<dyn Lookup>,
        forms: Arc<dyn Forms>,
        expressions: Arc<dyn Expressions>,
    ) -> ValidatingAdmissionPolicy {
        let source = Source::new(lookup.clone(), expressions);
        ValidatingAdmissionPolicy { lookup, forms, source }
    }

    /// What a policy and its bindings have against the operation.
    async fn judge(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        denials: &mut Vec<Denial>,
    ) -> Result<()> {
        let policy = &hook.policy;
        let form = match policy.matching(&*self.lookup, &*self.forms, attributes, object).await {
            Ok(None) => return Ok(()),
            Ok(Some(form)) => form,
            Err(why) => {
                denials.extend(misconfigured(policy, None, why));
                return Ok(());
            }
        };
        if let Some(kind) = policy.param_kind.as_ref().filter(|kind| self.forms.resource_of(kind).is_none()) {
            let why = format!("failed to find resource referenced by paramKind: '{kind}'");
            denials.extend(misconfigured(policy, None, why));
            return Ok(());
        }
        let mut view = None;
        for binding in &hook.bindings {
            match self.is_bound(binding, attributes, object).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    denials.extend(misconfigured(policy, Some(binding), why));
                    continue;
                }
            }
            let params = match self.params(policy, binding, namespace_of(attributes)).await {
                Ok(params) => params,
                Err(why) => {
                    denials.extend(misconfigured(policy, Some(binding), why));
                    continue;
                }
            };
            if view.is_none() && !params.is_empty() {
                match Pair::read(&*self.forms, attributes, object, &form).await {
                    Ok(pair) => view = Some(View { pair, namespace: self.namespace(attributes).await? }),
                    Err(status) => {
                        let why = format!("failed to convert object version: {}", status.message);
                        denials.extend(misconfigured(policy, Some(binding), why));
                        continue;
                    }
                }
            }
            let Some(view) = &view else { continue };
            for params in &params {
                let input = Input {
                    attributes,
                    resource: &form.resource,
                    kind: &form.kind,
                    object: view.pair.object.as_ref(),
                    old: view.pair.old.as_ref(),
                    params: params.as_ref(),
                    namespace: view.namespace.as_ref(),
                };
                enforce(policy, binding, attributes, decide(policy, input), denials);
            }
        }
        Ok(())
    }

    async fn is_bound(
        &self,
        binding: &Binding,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<bool, String> {
        match &binding.constraints {
            None => Ok(true),
            Some(constraints) => {
                let form = constraints.matching(&*self.lookup, &*self.forms, attributes, object).await?;
                Ok(form.is_some())
            }
        }
    }

    /// The namespace of the object as expressions see it.
    async fn namespace(&self, attributes: &Attributes<'_>) -> Result<Option<Value>> {
        let name = namespace_of(attributes);
        if name.is_empty() || *attributes.kind == GroupVersionKind::new("", "v1", "Namespace") {
            return Ok(None);
        }
        Ok(Some(shown_namespace(&*namespace(&*self.lookup, name).await?)))
    }
}

/// Without what is nobody's business.
fn shown_namespace(namespace: &Value) -> Value {
    let mut shown = namespace.clone();
    if let Some(metadata) = shown.get_mut("metadata") {
        for field in ["managedFields", "ownerReferences", "selfLink"] {
            metadata.remove(field);
        }
    }
    for field in ["apiVersion", "kind"] {
        shown.remove(field);
    }
    shown
}

/// The denial when a policy or binding cannot be used, unless failures are ignored.
fn misconfigured(policy: &Arc<Policy>, binding: Option<&Arc<Binding>>, why: String) -> Option<Denial> {
    let what = if binding.is_some() { "binding" } else { "policy" };
    let decision = Decision { message: format!("failed to configure {what}: {why}"), reason: None };
    (!policy.is_failure_ignored).then(|| Denial { policy: policy.clone(), binding: binding.cloned(), decision })
}

/// Does with the decisions what the binding says.
fn enforce(
    policy: &Arc<Policy>,
    binding: &Arc<Binding>,
    attributes: &Attributes<'_>,
    decisions: decide::Decisions,
    denials: &mut Vec<Denial>,
) {
    let denial = |decision| Denial { policy: policy.clone(), binding: Some(binding.clone()), decision };
    for decision in decisions.validations {
        for action in &binding.actions {
            match action.as_str() {
                "Deny" => denials.push(denial(decision.clone())),
                "Warn" => attributes.warn(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                    policy.name, binding.name, decision.message
                )),
                _ => {}
            }
        }
    }
    denials.extend(decisions.annotations.into_iter().map(denial));
}

/// The answer to the client: what the first denial says.
fn refusal(attributes: &Attributes<'_>, object: Option<&Value>, denial: &Denial) -> Box<Status> {
    let policy = &denial.policy.name;
    let bound = denial.binding.as_ref().map(|b| format!(" with binding '{}'", b.name)).unwrap_or_default();
    let message = format!("ValidatingAdmissionPolicy '{policy}'{bound} denied request: {}", denial.decision.message);
    let mut status = *forbidden(attributes, object, &message);
    let reason = denial.decision.reason.as_deref().unwrap_or("Invalid");
    status.code = match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    status.reason = reason.into();
    Box::new(status.with_cause("", message, ""))
}

#[async_trait]
impl Plugin for ValidatingAdmissionPolicy {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        !is_exempt(attributes)
            && !EXCLUDED_RESOURCES.iter().any(|(group, resource)| attributes.is_about(group, resource))
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let mut denials = Vec::new();
        for hook in self.source.hooks().await {
            self.judge(&hook, attributes, object, &mut denials).await?;
        }
        match denials.first() {
            None => Ok(()),
            Some(first) => Err(refusal(attributes, object, first)),
        }
    }
}
