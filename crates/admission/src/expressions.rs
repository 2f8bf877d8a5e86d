//! Expressions as admission sees them: somebody else's language, compiled once and evaluated for every operation.

use crate::attributes::Attributes;
use pintle_apimachinery::field::aggregate;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Value};
use std::sync::Arc;

/// What the expressions of a policy may cost together, for one binding and parameter (steps of evaluation).
pub const POLICY_COST_MAX: u64 = 10_000_000;

/// What the match conditions of a webhook or policy may cost together (steps of evaluation).
pub const CONDITIONS_COST_MAX: u64 = 2_500_000;

/// What expressions may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The operation.
    pub attributes: &'a Attributes<'a>,
    /// The resource in the form that is asked for.
    pub resource: &'a GroupVersionResource,
    /// The kind in the form that is asked for.
    pub kind: &'a GroupVersionKind,
    /// The object in that form.
    pub object: Option<&'a Value>,
    /// The object before the operation, in that form.
    pub old: Option<&'a Value>,
    /// The parameters of a policy.
    pub params: Option<&'a Value>,
    /// The namespace of the object, for policies.
    pub namespace: Option<&'a Value>,
}

/// The language.
pub trait Expressions: Send + Sync + std::fmt::Debug {
    /// Compiles match conditions of a webhook, which are expressions that say yes or no.
    fn conditions(&self, expressions: &[&str]) -> Arc<dyn Conditions>;

    /// Compiles the expressions of a policy, given its `spec`.
    fn policy(&self, spec: &Value) -> Arc<dyn Program>;
}

/// Match conditions, compiled.
pub trait Conditions: Send + Sync + std::fmt::Debug {
    /// What each of them says, in order, for [`CONDITIONS_COST_MAX`] at most.
    ///
    /// # Errors
    /// One text when the whole could not be evaluated (its budget is spent); of each condition why it says nothing.
    fn evaluate(&self, input: Input<'_>) -> Result<Vec<Result<bool, String>>, String>;
}

/// Whether all conditions hold, given what each says. One that does not settles it; otherwise one that fails means no
/// when failures are ignored.
///
/// # Errors
/// What the conditions that fail say.
pub(crate) fn do_all_hold(
    answers: Result<Vec<Result<bool, String>>, String>,
    is_failure_ignored: bool,
) -> Result<bool, String> {
    let errors: Vec<String> = match answers {
        Ok(answers) => {
            if answers.contains(&Ok(false)) {
                return Ok(false);
            }
            answers.into_iter().filter_map(Result::err).collect()
        }
        Err(why) => vec![why],
    };
    match (errors.is_empty(), is_failure_ignored) {
        (true, _) => Ok(true),
        (false, true) => Ok(false),
        (false, false) => Err(aggregate(&errors)),
    }
}

/// The expressions of a policy that are evaluated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `matchConditions`
    Conditions,
    /// `validations[*].expression`
    Validations,
    /// `validations[*].messageExpression`, which know no authorizer
    Messages,
    /// `auditAnnotations[*].valueExpression`
    Annotations,
}

/// What an expression comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Yes or no.
    Bool(bool),
    /// A text.
    Text(String),
    /// Nothing.
    Null,
    /// A value of another type, which is named.
    Other(String),
}

/// What the expressions of a part come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// In order; `None` where there is no expression (validations without one for the message).
    pub outcomes: Vec<Option<Result<Outcome, String>>>,
    /// What is left of the budget.
    pub budget: u64,
}

/// A policy's expressions, compiled.
pub trait Program: Send + Sync + std::fmt::Debug {
    /// Evaluates a part for `budget` at most.
    ///
    /// # Errors
    /// One text when the whole could not be evaluated (its budget is spent).
    fn evaluate(&self, part: Part, input: Input<'_>, budget: u64) -> Result<Evaluated, String>;
}

/// No language at all: every condition fails, so that the failure policy decides.
#[derive(Debug)]
pub struct NoExpressions;

const UNAVAILABLE: &str = "expressions are not available here";

impl Expressions for NoExpressions {
    fn conditions(&self, _expressions: &[&str]) -> Arc<dyn Conditions> {
        Arc::new(NoExpressions)
    }

    fn policy(&self, _spec: &Value) -> Arc<dyn Program> {
        Arc::new(NoExpressions)
    }
}

impl Conditions for NoExpressions {
    fn evaluate(&self, _input: Input<'_>) -> Result<Vec<Result<bool, String>>, String> {
        Err(UNAVAILABLE.to_owned())
    }
}

impl Program for NoExpressions {
    fn evaluate(&self, _part: Part, _input: Input<'_>, _budget: u64) -> Result<Evaluated, String> {
        Err(UNAVAILABLE.to_owned())
    }
}
