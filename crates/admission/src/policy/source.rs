//! Policies and their bindings, read once.

use crate::attributes::Attributes;
use crate::compiled::Compiled;
use crate::expressions::{Expressions, Program};
use crate::matching::{Form, Forms, Rule, Selection, Selectors, matching_form};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{GroupVersion, GroupVersionKind, Str, Value};
use pintle_auth::Lookup;
use std::sync::Arc;

const GROUP: &str = "admissionregistration.k8s.io";

/// Which operations something is for.
#[derive(Debug)]
pub(super) struct Constraints {
    /// Why it cannot be used.
    fault: Option<String>,
    selectors: Selectors,
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    is_equivalent: bool,
}

impl Constraints {
    fn read(constraints: &Value) -> Constraints {
        let rules = |field: &str| constraints[field].items().iter().map(Rule::read).collect();
        let is_missing = |what: &&str| constraints[format!("{what}Selector").as_str()].is_null();
        let missing = ["namespace", "object"]
            .into_iter()
            .find(is_missing)
            .map(|what| format!("a nil {what} selector was passed, please ensure selectors are initialized properly"));
        Constraints {
            fault: missing,
            selectors: Selectors::read(constraints),
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            is_equivalent: constraints["matchPolicy"].as_str() == Some("Equivalent"),
        }
    }

    /// The form in which the operation is meant; `None` when it is not.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub(super) async fn matching(
        &self,
        lookup: &dyn Lookup,
        forms: &dyn Forms,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Form>, String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let Selection::Fits(is_told) = self.selectors.select(lookup, attributes, object).await else {
            return Ok(None);
        };
        if matching_form(forms, &self.excluded, self.is_equivalent, attributes).is_some() {
            return Ok(None);
        }
        let form = if self.rules.is_empty() {
            Some(Form::of(attributes))
        } else {
            matching_form(forms, &self.rules, self.is_equivalent, attributes)
        };
        if form.is_some() {
            is_told.map_err(|status| status.message)?;
        }
        Ok(form)
    }
}

/// What a validation says besides its expression.
#[derive(Debug)]
pub(super) struct Validation {
    pub expression: String,
    pub message: String,
    pub reason: Option<Str>,
}

/// A policy.
#[derive(Debug)]
pub(super) struct Policy {
    pub name: Str,
    constraints: Option<Constraints>,
    pub is_failure_ignored: bool,
    pub param_kind: Option<GroupVersionKind>,
    pub has_conditions: bool,
    pub validations: Vec<Validation>,
    /// The expressions of audit annotations.
    pub annotations: Vec<String>,
    pub program: Arc<dyn Program>,
}

impl Policy {
    fn read(policy: &Value, expressions: &dyn Expressions) -> Policy {
        let spec = &policy["spec"];
        let text = |value: &Value| value.str_or_empty().trim().to_owned();
        let constraints = &spec["matchConstraints"];
        let version = GroupVersion::parse(spec["paramKind"]["apiVersion"].str_or_empty()).unwrap_or_default();
        Policy {
            name: Str::new(policy.name()),
            constraints: (!constraints.is_null()).then(|| Constraints::read(constraints)),
            is_failure_ignored: spec["failurePolicy"].as_str() == Some("Ignore"),
            param_kind: spec["paramKind"]["kind"].as_str().map(|kind| version.with_kind(kind)),
            has_conditions: !spec["matchConditions"].is_empty(),
            validations: spec["validations"]
                .items()
                .iter()
                .map(|validation| Validation {
                    expression: text(&validation["expression"]),
                    message: text(&validation["message"]),
                    reason: validation["reason"].as_str().map(Str::new),
                })
                .collect(),
            annotations: spec["auditAnnotations"]
                .items()
                .iter()
                .map(|annotation| annotation["valueExpression"].str_or_empty().to_owned())
                .collect(),
            program: expressions.policy(spec),
        }
    }

    /// The form in which the policy sees the operation; `None` when it does not.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub(super) async fn matching(
        &self,
        lookup: &dyn Lookup,
        forms: &dyn Forms,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Form>, String> {
        match &self.constraints {
            None => Err("policy contained no match constraints, a required field".to_owned()),
            Some(constraints) => constraints.matching(lookup, forms, attributes, object).await,
        }
    }
}

/// A binding.
#[derive(Debug)]
pub(super) struct Binding {
    pub name: Str,
    policy: Str,
    pub constraints: Option<Constraints>,
    /// `null` for none.
    pub param_ref: Value,
    pub actions: Vec<Str>,
}

impl Binding {
    fn read(binding: &Value) -> Binding {
        let spec = &binding["spec"];
        let constraints = &spec["matchResources"];
        Binding {
            name: Str::new(binding.name()),
            policy: Str::new(spec["policyName"].str_or_empty()),
            constraints: (!constraints.is_null()).then(|| Constraints::read(constraints)),
            param_ref: spec["paramRef"].clone(),
            actions: spec["validationActions"].items().iter().map(|a| Str::new(a.str_or_empty())).collect(),
        }
    }
}

/// A policy in force, with its bindings in the order of their names.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub policy: Arc<Policy>,
    pub bindings: Vec<Arc<Binding>>,
}

/// The policies that there are.
#[derive(Debug)]
pub(super) struct Source {
    policies: Compiled<Policy>,
    bindings: Compiled<Binding>,
    expressions: Arc<dyn Expressions>,
}

impl Source {
    pub(super) fn new(lookup: Arc<dyn Lookup>, expressions: Arc<dyn Expressions>) -> Source {
        Source {
            policies: Compiled::new(GROUP, "validatingadmissionpolicies", lookup.clone()),
            bindings: Compiled::new(GROUP, "validatingadmissionpolicybindings", lookup),
            expressions,
        }
    }

    /// The policies that are bound, in the order of their names.
    pub(super) async fn hooks(&self) -> Vec<Hook> {
        let bindings = self.bindings.all(Binding::read).await;
        if bindings.is_empty() {
            return Vec::new();
        }
        let policies = self.policies.all(|policy| Policy::read(policy, &*self.expressions)).await;
        let mut hooks = Vec::new();
        for policy in policies {
            let own = bindings.iter().filter(|binding| binding.policy == policy.name);
            let bindings: Vec<Arc<Binding>> = own.cloned().collect();
            if !bindings.is_empty() {
                hooks.push(Hook { policy, bindings });
            }
        }
        hooks
    }
}
