//! The authorizer as expressions see it: they build a question step by step and ask it.

use std::fmt::Debug;

/// Answers questions of permission. The user is the one whose request the expression is about.
pub trait Authorizer: Debug {
    /// The answer to a question.
    fn authorize(&self, question: &Question) -> Answer;
}

/// Whether somebody may do something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// Who, if it is a service account (namespace, name) and not the one who makes the request.
    pub service_account: Option<(String, String)>,
    /// What would be done.
    pub verb: String,
    /// The path, if the question is not about a resource.
    pub path: Option<String>,
    /// The resource.
    pub resource: Resource,
}

/// The resource of a [`Question`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members are those of requests to authorizers")]
pub struct Resource {
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is allowed.
    pub is_allowed: bool,
    /// Why.
    pub reason: String,
    /// Why the question could not be answered.
    pub error: Option<String>,
}

/// A value of the authorizer's library.
#[derive(Debug, Clone)]
pub enum Authz<'v> {
    /// The authorizer, and the service account that is asked about.
    Authorizer(&'v dyn Authorizer, Option<(String, String)>),
    /// A question about a path.
    Path(&'v dyn Authorizer, Question),
    /// A question about a group.
    Group(&'v dyn Authorizer, Question),
    /// A question about a resource.
    Resource(&'v dyn Authorizer, Question),
    /// An answer.
    Decision(Answer),
}

impl Authz<'_> {
    /// The name of the value's type.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Authorizer(..) => "kubernetes.authorization.Authorizer",
            Self::Path(..) => "kubernetes.authorization.PathCheck",
            Self::Group(..) => "kubernetes.authorization.GroupCheck",
            Self::Resource(..) => "kubernetes.authorization.ResourceCheck",
            Self::Decision(_) => "kubernetes.authorization.Decision",
        }
    }
}
