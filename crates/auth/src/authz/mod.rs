//! Authorization: what a request wants ([`Attributes`]), who decides ([`Authorizer`], [`Chain`]), and the 403 that a
//! denied request gets.
//!
//! Follows: apiserver/pkg/authorization (v0.35), pkg/kubeapiserver/authorizer (v1.35).

pub mod node;
pub mod rbac;

use crate::user;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::fieldselector::FieldSelector;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::{GroupResource, Status};
use pintle_kinds::UserInfo;
use std::sync::Arc;

/// What a request wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a UserInfo,
    /// The API verb (`list`, `deletecollection` ...), or the HTTP method in lower case for other paths.
    pub verb: &'a str,
    /// Whether it is about an object of the API (else about a path).
    pub is_resource_request: bool,
    /// API group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Resource.
    pub resource: &'a str,
    /// Subresource, empty for none.
    pub subresource: &'a str,
    /// Name of the object, empty for none. A list narrowed by `metadata.name=x` has that name.
    pub name: &'a str,
    /// Namespace, empty for cluster-wide requests. A request for a namespace itself has its name here, too.
    pub namespace: &'a str,
    /// The path, for requests that are not about an object.
    pub path: &'a str,
    /// The field selector of a list, watch or deletecollection, if it could be read.
    pub field_selector: Option<&'a FieldSelector>,
    /// The label selector, likewise.
    pub label_selector: Option<&'a Selector>,
}

impl<'a> Attributes<'a> {
    /// A request about an object or a collection.
    pub fn resource(user: &'a UserInfo, verb: &'a str, group: &'a str, resource: &'a str) -> Attributes<'a> {
        Attributes {
            user,
            verb,
            is_resource_request: true,
            group,
            version: "*",
            resource,
            subresource: "",
            name: "",
            namespace: "",
            path: "",
            field_selector: None,
            label_selector: None,
        }
    }

    /// A request about a path.
    pub fn path(user: &'a UserInfo, verb: &'a str, path: &'a str) -> Attributes<'a> {
        Attributes { is_resource_request: false, path, ..Attributes::resource(user, verb, "", "") }
    }

    /// With namespace and name.
    #[must_use]
    pub fn at(self, namespace: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes { namespace, name, ..self }
    }

    /// With a subresource.
    #[must_use]
    pub fn with_subresource(self, subresource: &'a str) -> Attributes<'a> {
        Attributes { subresource, ..self }
    }

    /// What upstream says to whom it refuses this.
    pub fn denial(&self) -> String {
        let (user, verb) = (go_quote(&self.user.name), self.verb);
        if !self.is_resource_request {
            return sanitized(&format!("User {user} cannot {verb} path {}", go_quote(self.path)));
        }
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        let resource = go_quote(&format!("{}{slash}{}", self.resource, self.subresource));
        let scope = match self.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {}", go_quote(namespace)),
        };
        sanitized(&format!(
            "User {user} cannot {verb} resource {resource} in API group {} {scope}",
            go_quote(self.group)
        ))
    }

    /// The 403 for this request; `reason` is what the authorizers said, empty for nothing.
    pub fn forbidden(&self, reason: &str) -> Status {
        let denial = self.denial();
        let why = if reason.is_empty() { denial } else { format!("{denial}: {reason}") };
        Status::forbidden(&GroupResource::new(self.group, self.resource), self.name, why)
    }
}

/// Nothing in an error may look like HTML.
fn sanitized(text: &str) -> String {
    if !text.contains(['&', '<', '>']) {
        return text.to_owned();
    }
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What an authorizer thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes, whatever others think.
    Allow,
    /// No, whatever others think.
    Deny,
    /// Ask the next one; nobody's opinion is a no.
    NoOpinion,
}

/// A decision with what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// Why; may be empty.
    pub reason: String,
    /// What went wrong while deciding; empty for nothing.
    pub error: String,
}

impl Verdict {
    /// Yes.
    pub fn allow(reason: impl Into<String>) -> Verdict {
        Verdict { decision: Decision::Allow, reason: reason.into(), error: String::new() }
    }

    /// No opinion.
    pub fn no_opinion(reason: impl Into<String>) -> Verdict {
        Verdict { decision: Decision::NoOpinion, reason: reason.into(), error: String::new() }
    }

    /// Whether the decision is yes.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

/// A rule that a user has, as rules reviews tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// Rules, each about resources or about paths.
    pub rules: Vec<Arc<rbac::Rule>>,
    /// Whether there may be more.
    pub is_incomplete: bool,
    /// What went wrong while resolving, in order.
    pub errors: Vec<String>,
}

/// Decides about requests.
pub trait Authorizer: Send + Sync + std::fmt::Debug {
    /// The verdict on one request. Called for every request: quick, and never waits.
    fn authorize(&self, attributes: &Attributes<'_>) -> Verdict;

    /// Every rule that the user has in the namespace, as far as this authorizer can tell.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet {
        let _ = (user, namespace);
        RuleSet::default()
    }
}

/// `--authorization-mode=AlwaysAllow`.
#[derive(Clone, Copy, Debug)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize(&self, _: &Attributes<'_>) -> Verdict {
        Verdict::allow("")
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> RuleSet {
        RuleSet { rules: rbac::full_authority().map(Arc::new).to_vec(), ..RuleSet::default() }
    }
}

/// `--authorization-mode=AlwaysDeny`.
#[derive(Clone, Copy, Debug)]
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize(&self, _: &Attributes<'_>) -> Verdict {
        Verdict::no_opinion("Everything is forbidden.")
    }
}

/// Members of `system:masters` may do everything. First in every chain.
#[derive(Clone, Copy, Debug)]
pub struct Masters;

impl Authorizer for Masters {
    fn authorize(&self, attributes: &Attributes<'_>) -> Verdict {
        if user::is_member(attributes.user, user::MASTERS) { Verdict::allow("") } else { Verdict::no_opinion("") }
    }
}

/// The authorizers of a server, asked in order until one has an opinion.
#[derive(Clone, Debug)]
pub struct Chain {
    links: Vec<Arc<dyn Authorizer>>,
}

impl Chain {
    /// `system:masters` first, then these.
    pub fn new(links: Vec<Arc<dyn Authorizer>>) -> Chain {
        let mut chain: Vec<Arc<dyn Authorizer>> = vec![Arc::new(Masters)];
        chain.extend(links);
        Chain { links: chain }
    }

    /// The chain of `--authorization-mode` with these modes. `available` are the authorizers of the modes that need
    /// one built for them (`RBAC`, `Node`), by their names.
    ///
    /// # Errors
    /// A text for the user when a mode is unknown, stands twice, or there is none.
    pub fn of_modes(modes: &[&str], available: &[(&str, Arc<dyn Authorizer>)]) -> Result<Chain, String> {
        if modes.is_empty() {
            return Err("at least one authorization-mode must be passed".to_owned());
        }
        let mut links: Vec<Arc<dyn Authorizer>> = Vec::new();
        for (idx, &mode) in modes.iter().enumerate() {
            if modes[..idx].contains(&mode) {
                return Err(format!("authorization-mode {} has mode specified more than once", go_quote(mode)));
            }
            links.push(match mode {
                "AlwaysAllow" => Arc::new(AlwaysAllow),
                "AlwaysDeny" => Arc::new(AlwaysDeny),
                _ => match available.iter().find(|(name, _)| *name == mode) {
                    Some((_, authorizer)) => Arc::clone(authorizer),
                    None => return Err(format!("authorization-mode {} is not a valid mode", go_quote(mode))),
                },
            });
        }
        Ok(Chain::new(links))
    }

    /// `Ok` when the request is allowed, else the 403 that it gets.
    ///
    /// # Errors
    /// The 403.
    pub fn check(&self, attributes: &Attributes<'_>) -> pintle_apimachinery::status::Result<()> {
        let verdict = self.authorize(attributes);
        if verdict.is_allowed() { Ok(()) } else { Err(Box::new(attributes.forbidden(&verdict.reason))) }
    }
}

impl Authorizer for Chain {
    fn authorize(&self, attributes: &Attributes<'_>) -> Verdict {
        let (mut reasons, mut errors) = (Vec::new(), Vec::new());
        for link in &self.links {
            let verdict = link.authorize(attributes);
            if verdict.decision != Decision::NoOpinion {
                return verdict;
            }
            if !verdict.reason.is_empty() {
                reasons.push(verdict.reason);
            }
            if !verdict.error.is_empty() {
                errors.push(verdict.error);
            }
        }
        let error = if errors.is_empty() { String::new() } else { pintle_apimachinery::field::aggregate(&errors) };
        Verdict { decision: Decision::NoOpinion, reason: reasons.join("\n"), error }
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet {
        let mut all = RuleSet::default();
        for link in &self.links {
            let set = link.rules_for(user, namespace);
            all.rules.extend(set.rules);
            all.is_incomplete |= set.is_incomplete;
            all.errors.extend(set.errors);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn denials() {
        let jane = user::named("jane", &[]);
        let texts = [
            Attributes::resource(&jane, "list", "", "pods").at("ns", ""),
            Attributes::resource(&jane, "get", "apps", "deployments").at("", "d").with_subresource("scale"),
            Attributes::path(&jane, "get", "/<x>"),
        ]
        .map(|a| a.forbidden("").message)
        .join("\n");
        expect![[r#"
            pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "ns"
            deployments.apps "d" is forbidden: User "jane" cannot get resource "deployments/scale" in API group "apps" at the cluster scope
            forbidden: User "jane" cannot get path "/&lt;x&gt;""#]]
        .assert_eq(&texts);
        let path = Attributes::path(&jane, "get", "/x").forbidden("because");
        expect![[r#"{"apiVersion":"v1","code":403,"details":{},"kind":"Status","message":"forbidden: User \"jane\" cannot get path \"/x\": because","metadata":{},"reason":"Forbidden","status":"Failure"}"#]]
            .assert_eq(&path.to_value().to_json_string());
    }

    #[test]
    fn chains_ask_until_somebody_has_an_opinion() {
        let chain = Chain::new(vec![Arc::new(AlwaysDeny), Arc::new(AlwaysDeny)]);
        let (jane, root) = (user::named("jane", &[]), user::named("root", &[user::MASTERS]));
        let verdict = chain.authorize(&Attributes::path(&jane, "get", "/"));
        assert_eq!(
            (verdict.decision, verdict.reason.as_str()),
            (Decision::NoOpinion, "Everything is forbidden.\nEverything is forbidden.")
        );
        assert_eq!(chain.authorize(&Attributes::path(&root, "get", "/")), Verdict::allow(""));
    }
}
