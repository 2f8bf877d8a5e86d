//! `--authorization-mode=Node`: what a node may do. It reads what the pods on it need, and of itself writes what
//! `NodeRestriction` lets through.
//!
//! Follows: plugin/pkg/auth/authorizer/node (v1.35).

mod relations;
#[cfg(test)]
mod tests;

use super::rbac::Rule;
use super::{Attributes, Authorizer, RuleSet, Verdict};
use crate::bootstrap;
use crate::user;
use parking_lot::RwLock;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Str, Value};
use pintle_kinds::UserInfo;
pub use relations::RESOURCES;
use relations::{Kind, Relations};
use tokio::sync::watch;

const NODE_LEASES: &str = "kube-node-lease";

/// The authorizer. What nodes are related to, comes in through [`Nodes::put`], [`Nodes::remove`] and
/// [`Nodes::replace`], from the resources of [`RESOURCES`].
#[derive(Debug)]
pub struct Nodes {
    relations: RwLock<Relations>,
    /// What all nodes may, whatever is on them.
    rules: Vec<Rule>,
    /// Whether a node has been here yet.
    is_used: watch::Sender<bool>,
}

impl Default for Nodes {
    fn default() -> Nodes {
        Nodes::new()
    }
}

impl Nodes {
    /// Without any relations.
    pub fn new() -> Nodes {
        let policy = bootstrap::policy();
        let role = policy.iter().find(|seed| seed.resource == "clusterroles" && seed.object.name() == "system:node");
        let rules = role.map(|seed| Rule::list_from(&seed.object)).unwrap_or_default();
        Nodes { relations: RwLock::default(), rules, is_used: watch::Sender::new(false) }
    }

    /// Waits for the first request of a node. Whoever feeds the relations may put it off until then: a node asks
    /// for itself first, and only much later for what its pods need.
    pub async fn first_request(&self) {
        // the sender lives as long as self, so that waiting cannot fail
        let _ = self.is_used.subscribe().wait_for(|is_used| *is_used).await;
    }

    /// Takes in an object of `resource` as it is now.
    pub fn put(&self, resource: &str, object: &Value) {
        self.relations.write().put(resource, object);
    }

    /// Forgets an object.
    pub fn remove(&self, resource: &str, namespace: &str, name: &str) {
        self.relations.write().remove(resource, namespace, name);
    }

    /// Takes in all objects of `resource` instead of those it had.
    pub fn replace(&self, resource: &str, objects: &[Value]) {
        let mut relations = self.relations.write();
        relations.clear(resource);
        for object in objects {
            relations.put(resource, object);
        }
    }

    fn related(&self, node: &str, kind: Kind, request: &Attributes<'_>) -> Verdict {
        if request.name.is_empty() {
            return Verdict::no_opinion("No Object name found");
        }
        if self.relations.read().is_related(kind, request.namespace, request.name, node) {
            Verdict::allow("")
        } else {
            Verdict::no_opinion(format!("no relationship found between node '{node}' and this object"))
        }
    }

    fn get(&self, node: &str, kind: Kind, request: &Attributes<'_>) -> Verdict {
        if request.verb != "get" {
            return Verdict::no_opinion("can only get individual resources of this type");
        }
        if !request.subresource.is_empty() {
            return Verdict::no_opinion("cannot get subresource");
        }
        self.related(node, kind, request)
    }

    fn read(&self, node: &str, kind: Kind, request: &Attributes<'_>) -> Verdict {
        if !matches!(request.verb, "get" | "list" | "watch") {
            return Verdict::no_opinion("can only read resources of this type");
        }
        if !request.subresource.is_empty() {
            return Verdict::no_opinion("cannot read subresource");
        }
        if request.namespace.is_empty() {
            return Verdict::no_opinion("can only read namespaced object of this type");
        }
        self.related(node, kind, request)
    }

    fn claim(&self, node: &str, request: &Attributes<'_>) -> Verdict {
        match (request.subresource, request.verb) {
            ("status", "update" | "patch") => self.related(node, Kind::Claim, request),
            ("status", _) => Verdict::no_opinion("can only get/update/patch this type"),
            _ => self.get(node, Kind::Claim, request),
        }
    }

    fn service_account(&self, node: &str, request: &Attributes<'_>) -> Verdict {
        if request.verb == "get" && request.subresource.is_empty() {
            return self.read(node, Kind::ServiceAccount, request);
        }
        if request.verb != "create" || request.name.is_empty() {
            return Verdict::no_opinion("can only create tokens for individual service accounts");
        }
        if request.subresource != "token" {
            return Verdict::no_opinion("can only create token subresource of serviceaccount");
        }
        self.related(node, Kind::ServiceAccount, request)
    }

    fn resource_slice(&self, node: &str, request: &Attributes<'_>) -> Verdict {
        if !request.subresource.is_empty() {
            return Verdict::no_opinion("cannot authorize ResourceSlice subresources");
        }
        match request.verb {
            "create" => Verdict::allow(""),
            "get" | "update" | "patch" | "delete" => self.related(node, Kind::Slice, request),
            "watch" | "list" | "deletecollection" if selects_node(request, node) => Verdict::allow(""),
            "watch" | "list" | "deletecollection" => {
                Verdict::no_opinion("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => Verdict::no_opinion(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn pod(&self, node: &str, request: &Attributes<'_>) -> Verdict {
        match (request.subresource, request.verb) {
            ("", "get") => self.get(node, Kind::Pod, request),
            ("", "list" | "watch") if selects_node(request, node) => Verdict::allow(""),
            ("", "list" | "watch") if !request.name.is_empty() => self.related(node, Kind::Pod, request),
            ("", "list" | "watch") => Verdict::no_opinion("can only list/watch pods with spec.nodeName field selector"),
            // that these are pods of its own is up to NodeRestriction
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Verdict::allow(""),
            _ => Verdict::no_opinion(""),
        }
    }

    fn resource(&self, node: &str, request: &Attributes<'_>) -> Option<Verdict> {
        Some(match (request.group, request.resource) {
            ("", "secrets") => self.read(node, Kind::Secret, request),
            ("", "configmaps") => self.read(node, Kind::ConfigMap, request),
            ("", "persistentvolumeclaims") => self.claim(node, request),
            ("", "persistentvolumes") => self.get(node, Kind::Volume, request),
            ("resource.k8s.io", "resourceclaims") => self.get(node, Kind::ResourceClaim, request),
            ("storage.k8s.io", "volumeattachments") => self.get(node, Kind::Attachment, request),
            ("", "serviceaccounts") => self.service_account(node, request),
            ("coordination.k8s.io", "leases") => lease(node, request),
            ("storage.k8s.io", "csinodes") => csi_node(node, request),
            ("resource.k8s.io", "resourceslices") => self.resource_slice(node, request),
            ("", "nodes") => own_node(node, request),
            ("", "pods") => self.pod(node, request),
            ("certificates.k8s.io", "podcertificaterequests") => Verdict::no_opinion(""),
            _ => return None,
        })
    }
}

/// Whether the request is for the objects of this node only.
fn selects_node(request: &Attributes<'_>, node: &str) -> bool {
    request.field_selector.is_some_and(|selector| selector.requires_exact("spec.nodeName") == Some(node))
}

fn lease(node: &str, request: &Attributes<'_>) -> Verdict {
    if !matches!(request.verb, "get" | "create" | "update" | "patch" | "delete") {
        return Verdict::no_opinion("can only get, create, update, patch, or delete a node lease");
    }
    if request.namespace != NODE_LEASES {
        let namespace = go_quote(NODE_LEASES);
        return Verdict::no_opinion(format!("can only access leases in the {namespace} system namespace"));
    }
    if request.verb != "create" && request.name != node {
        return Verdict::no_opinion("can only access node lease with the same name as the requesting node");
    }
    Verdict::allow("")
}

fn csi_node(node: &str, request: &Attributes<'_>) -> Verdict {
    if !matches!(request.verb, "get" | "create" | "update" | "patch" | "delete") {
        return Verdict::no_opinion("can only get, create, update, patch, or delete a CSINode");
    }
    if !request.subresource.is_empty() {
        return Verdict::no_opinion("cannot authorize CSINode subresources");
    }
    if request.verb != "create" && request.name != node {
        return Verdict::no_opinion("can only access CSINode with the same name as the requesting node");
    }
    Verdict::allow("")
}

fn own_node(node: &str, request: &Attributes<'_>) -> Verdict {
    match (request.subresource, request.verb) {
        // that it is its own, is up to NodeRestriction
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Verdict::allow(""),
        ("", "get" | "list" | "watch") => match request.name {
            "" => Verdict::no_opinion(format!("node '{node}' cannot read all nodes, only its own Node object")),
            own if own == node => Verdict::allow(""),
            other => Verdict::no_opinion(format!("node '{node}' cannot read '{other}', only its own Node object")),
        },
        _ => Verdict::no_opinion(""),
    }
}

impl Authorizer for Nodes {
    fn authorize(&self, request: &Attributes<'_>) -> Verdict {
        let Some(node) = user::node_name(request.user) else { return Verdict::no_opinion("") };
        if node.is_empty() {
            return Verdict::no_opinion(format!("unknown node for user {}", go_quote(&request.user.name)));
        }
        self.is_used.send_if_modified(|is_used| !std::mem::replace(is_used, true));
        if request.is_resource_request
            && let Some(verdict) = self.resource(node, request)
        {
            return verdict;
        }
        if self.rules.iter().any(|rule| rule.allows(request)) { Verdict::allow("") } else { Verdict::no_opinion("") }
    }

    fn rules_for(&self, user: &UserInfo, _namespace: &str) -> RuleSet {
        if user::node_name(user).is_none() {
            return RuleSet::default();
        }
        let why = "node authorizer does not support user rule resolution".to_owned();
        RuleSet { is_incomplete: true, errors: vec![why], ..RuleSet::default() }
    }
}

/// A place in the API.
type Place = (Kind, Str, Str);
