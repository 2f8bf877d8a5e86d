//! What a test sees of the requests, and what it may answer.

use super::route::Route;
use bytes::Bytes;
use pintle_apimachinery::{Status, Str, Value, value};

/// A request that the server got.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// The group; empty for the core group.
    pub group: Str,
    /// The plural name of the resource.
    pub resource: Str,
    /// The subresource, or `""`.
    pub subresource: Str,
    /// The namespace, or `""`.
    pub namespace: Str,
    /// The object's name, or `""`.
    pub name: Str,
    /// The body; `Null` when there is none or it is no JSON.
    pub body: Value,
}

impl Action {
    pub(super) fn of(route: &Route, body: &Bytes) -> Action {
        Action {
            verb: route.verb,
            group: route.group.clone(),
            resource: route.resource.clone(),
            subresource: route.subresource.clone(),
            namespace: route.namespace.clone(),
            name: route.name.clone(),
            body: value::parse(body).unwrap_or(Value::Null),
        }
    }

    /// Whether the action is of this verb on this resource (`pods`, or `pods/status`).
    pub fn matches(&self, verb: &str, resource: &str) -> bool {
        let (plain, sub) = resource.split_once('/').unwrap_or((resource, ""));
        (verb == "*" || verb == self.verb) && (plain == "*" || plain == self.resource && sub == self.subresource)
    }
}

impl std::fmt::Display for Action {
    /// `create pods default/web-0`, `patch pods/status default/web-0`, `list nodes`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        match (self.namespace.is_empty(), self.name.is_empty()) {
            (true, true) => Ok(()),
            (false, true) => write!(f, " {}/", self.namespace),
            (true, false) => write!(f, " {}", self.name),
            (false, false) => write!(f, " {}/{}", self.namespace, self.name),
        }
    }
}

/// What a reactor says to a request.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// The server shall answer as usual.
    Pass,
    /// This object is the answer.
    Answer(Value),
    /// This failure is the answer.
    Fail(Box<Status>),
    /// No answer: the connection breaks. The request has no effect.
    Disconnect,
}

impl Reaction {
    /// A failure with code, reason and message.
    pub fn fail(code: u16, reason: &str, message: &str) -> Reaction {
        Reaction::Fail(Box::new(Status::failure(code, reason, message)))
    }
}
