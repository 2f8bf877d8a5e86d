//! Rules: which operations on which resources a webhook or a policy is for.
//!
//! Follows: apiserver/pkg/admission/plugin/webhook/predicates/rules (v0.35).

use crate::attributes::{Attributes, Operation};
use pintle_apimachinery::{GroupVersionResource, Str, Value};

/// Kinds that say what admission does: no webhook and no policy is asked about them, lest nobody can undo a mistake.
const EXEMPT_KINDS: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Whether the operation is about what admission itself is configured with.
pub(crate) fn is_exempt(attributes: &Attributes<'_>) -> bool {
    let kind = attributes.kind;
    kind.group == "admissionregistration.k8s.io" && EXEMPT_KINDS.contains(&kind.kind.as_str())
}

/// The namespace of the operation: for a namespace that one itself.
pub(crate) fn namespace_of<'a>(attributes: &Attributes<'a>) -> &'a str {
    if attributes.is_about("", "namespaces") { attributes.name } else { attributes.namespace }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Namespaced,
    Cluster,
    /// One that does not exist.
    None,
}

/// A rule, read.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    operations: Vec<Str>,
    groups: Vec<Str>,
    versions: Vec<Str>,
    /// With their subresources.
    resources: Vec<(Str, Str)>,
    scope: Scope,
    /// Of policies: only these objects.
    names: Vec<Str>,
}

/// What a rule is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub operation: Operation,
    pub resource: &'a GroupVersionResource,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl<'a> Subject<'a> {
    /// The operation as it came in.
    pub(crate) fn of(attributes: &Attributes<'a>) -> Subject<'a> {
        Subject {
            operation: attributes.operation,
            resource: attributes.resource,
            subresource: attributes.subresource,
            namespace: namespace_of(attributes),
            name: attributes.name,
        }
    }
}

impl Rule {
    pub(crate) fn read(rule: &Value) -> Rule {
        let list = |field: &str| rule[field].items().iter().map(|item| Str::new(item.str_or_empty())).collect();
        let resources = rule["resources"].items().iter().map(|item| {
            let text = item.str_or_empty();
            let (resource, subresource) = text.split_once('/').unwrap_or((text, ""));
            (Str::new(resource), Str::new(subresource))
        });
        Rule {
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: resources.collect(),
            scope: match rule["scope"].as_str() {
                None | Some("*") => Scope::All,
                Some("Namespaced") => Scope::Namespaced,
                Some("Cluster") => Scope::Cluster,
                Some(_) => Scope::None,
            },
            names: list("resourceNames"),
        }
    }

    pub(crate) fn matches(&self, subject: Subject<'_>) -> bool {
        let has = |list: &[Str], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        self.is_in_scope(subject)
            && has(&self.operations, subject.operation.as_str())
            && has(&self.groups, &subject.resource.group)
            && has(&self.versions, &subject.resource.version)
            && self.resources.iter().any(|(resource, subresource)| {
                (resource == "*" || *resource == subject.resource.resource)
                    && (subresource == "*" || subresource == subject.subresource)
            })
            && (self.names.is_empty() || self.names.iter().any(|name| name == subject.name))
    }

    fn is_in_scope(&self, subject: Subject<'_>) -> bool {
        let is_namespace_itself = subject.resource.group.is_empty() && subject.resource.resource == "namespaces";
        let is_in_cluster = is_namespace_itself || subject.namespace.is_empty();
        match self.scope {
            Scope::All => true,
            Scope::Namespaced => !is_in_cluster,
            Scope::Cluster => is_in_cluster,
            Scope::None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn rules_match() {
        let matches = |rule: Value, resource: (&str, &str, &str), subresource: &str, namespace: &str| {
            let resource = GroupVersionResource::new(resource.0, resource.1, resource.2);
            let subject =
                Subject { operation: Operation::Update, resource: &resource, subresource, namespace, name: "a" };
            Rule::read(&rule).matches(subject)
        };
        let rule = |changes: &[(&str, Value)]| {
            let mut rule = json!({
                "operations": ["CREATE", "UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
            });
            for (key, value) in changes {
                rule.set(key, value.clone());
            }
            rule
        };
        let deployments = ("apps", "v1", "deployments");
        assert!(matches(rule(&[]), deployments, "", "ns"));
        assert!(!matches(rule(&[]), deployments, "scale", "ns"));
        assert!(matches(rule(&[("resources", json!(["*/*"]))]), deployments, "scale", "ns"));
        assert!(!matches(rule(&[("resources", json!(["*"]))]), deployments, "scale", "ns"));
        assert!(matches(rule(&[("resources", json!(["deployments/*"]))]), deployments, "scale", "ns"));
        assert!(matches(rule(&[("resources", json!(["deployments/*"]))]), deployments, "", "ns"));
        assert!(!matches(rule(&[("operations", json!(["DELETE"]))]), deployments, "", "ns"));
        assert!(matches(rule(&[("operations", json!(["*"]))]), deployments, "", "ns"));
        assert!(!matches(rule(&[("apiVersions", json!(["v2"]))]), deployments, "", "ns"));
        assert!(!matches(rule(&[("scope", json!("Cluster"))]), deployments, "", "ns"));
        assert!(matches(rule(&[("scope", json!("Namespaced"))]), deployments, "", "ns"));
        let core = |scope: &str| {
            rule(&[("scope", json!(scope)), ("apiGroups", json!([""])), ("resources", json!(["namespaces"]))])
        };
        assert!(matches(core("Cluster"), ("", "v1", "namespaces"), "", "ns"));
        assert!(!matches(core("Namespaced"), ("", "v1", "namespaces"), "", "ns"));
        assert!(!matches(rule(&[("resourceNames", json!(["b"]))]), deployments, "", "ns"));
    }
}
