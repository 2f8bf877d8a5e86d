//! Where the CEL expressions inside built-in objects are checked.
//!
//! Missing: the compiler. Until it is here, every expression that is not empty passes; what it will need to know of each
//! is collected already.

use super::At;
use pintle_apimachinery::{ErrorList, Value};

/// What an expression may speak of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'a> {
    /// Whether it is about a device (`device`) instead of a request.
    pub is_device: bool,
    /// Whether there is `params`.
    pub has_params: bool,
    /// Whether there is `authorizer`.
    pub has_authorizer: bool,
    /// The variables declared before, each with `name` and `expression`.
    pub variables: &'a [Value],
}

/// What an expression must evaluate to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A boolean.
    Bool,
    /// A string.
    Text,
    /// A string or null.
    TextOrNull,
    /// Anything.
    Any,
}

/// An expression and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Expression<'a> {
    /// What is compiled.
    pub text: &'a str,
    /// What messages show.
    pub shown: &'a str,
    /// What it must evaluate to.
    pub wanted: Wanted,
    /// What it may speak of.
    pub scope: Scope<'a>,
    /// Whether the old object held the same one: that may use what new ones may not yet.
    pub is_stored: bool,
}

/// Checks the expression at a place.
pub fn validate(at: &At<'_>, expression: &Expression<'_>, errors: &mut ErrorList) {
    let _ = (at, expression, errors);
}
