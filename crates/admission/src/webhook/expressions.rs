//! Expressions as admission sees them: somebody else's language, compiled once and evaluated for every operation.

use crate::attributes::Attributes;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Value};
use std::sync::Arc;

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
}

/// The language.
pub trait Expressions: Send + Sync + std::fmt::Debug {
    /// Compiles match conditions, which are expressions that say yes or no.
    fn conditions(&self, expressions: &[&str]) -> Arc<dyn Conditions>;
}

/// Match conditions, compiled.
pub trait Conditions: Send + Sync + std::fmt::Debug {
    /// What each of them says, in order.
    ///
    /// # Errors
    /// One text when the whole could not be evaluated (its budget is spent); of each condition why it says nothing.
    fn evaluate(&self, input: Input<'_>) -> Result<Vec<Result<bool, String>>, String>;
}

/// No language at all: every condition fails, so that the failure policy decides.
#[derive(Debug)]
pub struct NoExpressions;

impl Expressions for NoExpressions {
    fn conditions(&self, _expressions: &[&str]) -> Arc<dyn Conditions> {
        Arc::new(NoExpressions)
    }
}

impl Conditions for NoExpressions {
    fn evaluate(&self, _input: Input<'_>) -> Result<Vec<Result<bool, String>>, String> {
        Err("expressions are not available here".to_owned())
    }
}
