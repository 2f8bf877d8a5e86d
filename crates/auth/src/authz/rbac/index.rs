//! The roles and bindings of the cluster in memory, and the rules of each user made from them.
//!
//! A user's rules are resolved once and kept until a role or binding changes, so that a decision is one map lookup and
//! a walk over the rules that the user really has.

use super::GROUP;
use super::rule::Rule;
use crate::authz::{Attributes, Authorizer, RuleSet, Verdict};
use crate::user;
use indexmap::{Equivalent, IndexMap};
use parking_lot::RwLock;
use pintle_apimachinery::field::{aggregate, go_quote};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{GroupResource, Status, Str, Value};
use pintle_kinds::UserInfo;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Users whose resolved rules are kept. At the limit all are forgotten and resolved again when they come back.
pub const RESOLVED_USERS_MAX: usize = 8192;

/// Namespaces whose rules are kept for one user. At the limit that user's are forgotten.
pub const RESOLVED_NAMESPACES_MAX: usize = 4096;

type Rules = Arc<[Arc<Rule>]>;

/// Roles and bindings, and the authorizer over them.
#[derive(Debug, Default)]
pub struct Rbac {
    objects: RwLock<Objects>,
    /// Grows with every change of `objects`; resolved rules of another version are stale.
    version: AtomicU64,
    resolved: RwLock<IndexMap<Identity, Arc<Resolved>>>,
}

#[derive(Debug, Default)]
struct Objects {
    /// By namespace, then name.
    roles: BTreeMap<Str, BTreeMap<Str, Rules>>,
    cluster_roles: BTreeMap<Str, Rules>,
    /// By namespace, then name. Never an empty inner map.
    role_bindings: BTreeMap<Str, BTreeMap<Str, Arc<Binding>>>,
    cluster_role_bindings: BTreeMap<Str, Arc<Binding>>,
}

/// A binding, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
struct Binding {
    name: Str,
    /// Empty for a ClusterRoleBinding.
    namespace: Str,
    role_kind: Str,
    role_name: Str,
    subjects: Vec<Subject>,
}

#[derive(Debug, PartialEq, Eq)]
struct Subject {
    kind: Str,
    name: Str,
    /// Of service accounts; empty for the binding's own.
    namespace: Str,
}

/// What tells users with different rules apart.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    name: Str,
    groups: Vec<Str>,
}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.groups.hash(state);
    }
}

/// [`Identity`] by reference.
#[derive(Debug)]
struct Identified<'a>(&'a UserInfo);

impl Hash for Identified<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
        self.0.groups.hash(state);
    }
}

impl Equivalent<Identity> for Identified<'_> {
    fn equivalent(&self, key: &Identity) -> bool {
        self.0.name == key.name && self.0.groups == key.groups
    }
}

/// The rules of one user at one version.
#[derive(Debug)]
struct Resolved {
    version: u64,
    cluster: Grants,
    namespaces: RwLock<BTreeMap<Str, Arc<Grants>>>,
}

/// Rules with the bindings they come from.
#[derive(Debug, Default)]
struct Grants {
    bindings: Vec<Grant>,
    /// One text for each role that a binding names and that is not there.
    errors: Vec<Missing>,
}

#[derive(Debug)]
struct Grant {
    rules: Rules,
    /// What an allowed request is told.
    reason: String,
}

/// A role that a binding names and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) kind: Str,
    pub(super) name: Str,
}

impl Missing {
    /// As upstream's caches name it.
    fn cached_text(&self) -> String {
        match self.kind.as_str() {
            "Role" | "ClusterRole" => {
                Status::not_found(&GroupResource::new(GROUP, self.kind.to_lowercase()), &self.name).message
            }
            other => format!("unsupported role reference kind: {}", go_quote(other)),
        }
    }

    /// As upstream's storage names it when it is read for a request about `resource`.
    pub(super) fn live(&self, resource: &str) -> Status {
        match self.kind.as_str() {
            "Role" | "ClusterRole" => Status::not_found(&GroupResource::new(GROUP, resource), &self.name),
            other => Status::plain_error(format!("unsupported role reference kind: {}", go_quote(other))),
        }
    }
}

impl Rbac {
    /// No roles and no bindings.
    pub fn new() -> Rbac {
        Rbac::default()
    }

    /// Takes in a created or changed object of `resource` (`roles`, `clusterroles`, `rolebindings`,
    /// `clusterrolebindings`; others are ignored).
    pub fn put(&self, resource: &str, object: &Value) {
        let mut objects = self.objects.write();
        if objects.put(resource, object) {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Drops an object.
    pub fn remove(&self, resource: &str, namespace: &str, name: &str) {
        let mut objects = self.objects.write();
        objects.remove(resource, namespace, name);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Drops every object of a resource and takes in these instead.
    pub fn replace<'a>(&self, resource: &str, list: impl IntoIterator<Item = &'a Value>) {
        let mut objects = self.objects.write();
        match resource {
            "roles" => objects.roles.clear(),
            "clusterroles" => objects.cluster_roles.clear(),
            "rolebindings" => objects.role_bindings.clear(),
            "clusterrolebindings" => objects.cluster_role_bindings.clear(),
            _ => return,
        }
        for object in list {
            objects.put(resource, object);
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The rules of the role that a binding in `namespace` (empty for a ClusterRoleBinding) names.
    pub(super) fn role_rules(&self, kind: &str, name: &str, namespace: &str) -> Result<Vec<Rule>, Missing> {
        let objects = self.objects.read();
        let rules = objects.role(kind, name, namespace);
        let rules = rules.ok_or_else(|| Missing { kind: Str::new(kind), name: Str::new(name) })?;
        Ok(rules.iter().map(|rule| Rule::clone(rule)).collect())
    }

    /// Every rule of the user in the namespace (with those of the whole cluster), and every role that was missing.
    pub(super) fn user_rules(&self, user: &UserInfo, namespace: &str) -> (Vec<Arc<Rule>>, Vec<Missing>) {
        let resolved = self.resolve(user);
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        let mut collect = |grants: &Grants| {
            rules.extend(grants.bindings.iter().flat_map(|grant| grant.rules.iter().cloned()));
            missing.extend(grants.errors.iter().cloned());
        };
        collect(&resolved.cluster);
        if !namespace.is_empty() {
            collect(&self.namespaced(&resolved, user, namespace));
        }
        (rules, missing)
    }

    fn resolve(&self, user: &UserInfo) -> Arc<Resolved> {
        let version = self.version.load(Ordering::Acquire);
        if let Some(resolved) = self.resolved.read().get(&Identified(user))
            && resolved.version == version
        {
            return Arc::clone(resolved);
        }
        let objects = self.objects.read();
        // under the lock the version stands still
        let version = self.version.load(Ordering::Acquire);
        let cluster = objects.grants(objects.cluster_role_bindings.values(), user);
        drop(objects);
        let resolved = Arc::new(Resolved { version, cluster, namespaces: RwLock::default() });
        let identity = Identity { name: user.name.clone(), groups: user.groups.clone() };
        let mut kept = self.resolved.write();
        if kept.len() >= RESOLVED_USERS_MAX {
            kept.clear();
        }
        kept.insert(identity, Arc::clone(&resolved));
        resolved
    }

    fn namespaced(&self, resolved: &Resolved, user: &UserInfo, namespace: &str) -> Arc<Grants> {
        if let Some(grants) = resolved.namespaces.read().get(namespace) {
            return Arc::clone(grants);
        }
        let objects = self.objects.read();
        let grants = match objects.role_bindings.get(namespace) {
            Some(bindings) => Arc::new(objects.grants(bindings.values(), user)),
            None => Arc::new(Grants::default()),
        };
        // what was resolved meanwhile from newer objects is not kept under the older version
        if self.version.load(Ordering::Acquire) == resolved.version {
            let mut kept = resolved.namespaces.write();
            if kept.len() >= RESOLVED_NAMESPACES_MAX {
                kept.clear();
            }
            kept.insert(Str::new(namespace), Arc::clone(&grants));
        }
        grants
    }
}

impl Authorizer for Rbac {
    fn authorize(&self, attributes: &Attributes<'_>) -> Verdict {
        let resolved = self.resolve(attributes.user);
        if let Some(reason) = resolved.cluster.allow(attributes) {
            return Verdict::allow(reason);
        }
        let namespaced = match attributes.namespace {
            "" => None,
            namespace => Some(self.namespaced(&resolved, attributes.user, namespace)),
        };
        if let Some(reason) = namespaced.as_ref().and_then(|grants| grants.allow(attributes)) {
            return Verdict::allow(reason);
        }
        let errors: Vec<String> = resolved
            .cluster
            .errors
            .iter()
            .chain(namespaced.iter().flat_map(|grants| &grants.errors))
            .map(Missing::cached_text)
            .collect();
        if errors.is_empty() {
            return Verdict::no_opinion("");
        }
        Verdict::no_opinion(format!("RBAC: {}", aggregate(&errors)))
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet {
        let (rules, missing) = self.user_rules(user, namespace);
        let errors: Vec<String> = missing.iter().map(Missing::cached_text).collect();
        let errors = if errors.is_empty() { errors } else { vec![aggregate(&errors)] };
        RuleSet { rules, is_incomplete: false, errors }
    }
}

impl Grants {
    fn allow(&self, attributes: &Attributes<'_>) -> Option<&str> {
        let grant = self.bindings.iter().find(|grant| grant.rules.iter().any(|rule| rule.allows(attributes)))?;
        Some(&grant.reason)
    }
}

impl Objects {
    /// Whether anything changed.
    fn put(&mut self, resource: &str, object: &Value) -> bool {
        let (namespace, name) = (Str::new(object.namespace()), Str::new(object.name()));
        let rules = || Rule::list_from(object).into_iter().map(Arc::new).collect::<Rules>();
        match resource {
            "roles" => put_in(self.roles.entry(namespace).or_default(), name, rules()),
            "clusterroles" => put_in(&mut self.cluster_roles, name, rules()),
            "rolebindings" => {
                put_in(self.role_bindings.entry(namespace).or_default(), name, Arc::new(Binding::from_value(object)))
            }
            "clusterrolebindings" => {
                put_in(&mut self.cluster_role_bindings, name, Arc::new(Binding::from_value(object)))
            }
            _ => false,
        }
    }

    fn remove(&mut self, resource: &str, namespace: &str, name: &str) {
        match resource {
            "roles" => remove_from(&mut self.roles, namespace, name),
            "clusterroles" => drop(self.cluster_roles.remove(name)),
            "rolebindings" => remove_from(&mut self.role_bindings, namespace, name),
            "clusterrolebindings" => drop(self.cluster_role_bindings.remove(name)),
            _ => {}
        }
    }

    fn role(&self, kind: &str, name: &str, namespace: &str) -> Option<&Rules> {
        match kind {
            "Role" => self.roles.get(namespace)?.get(name),
            "ClusterRole" => self.cluster_roles.get(name),
            _ => None,
        }
    }

    fn grants<'a>(&self, bindings: impl Iterator<Item = &'a Arc<Binding>>, user: &UserInfo) -> Grants {
        let mut grants = Grants::default();
        for binding in bindings {
            let Some(subject) = binding.subjects.iter().find(|s| s.is(user, &binding.namespace)) else { continue };
            match self.role(&binding.role_kind, &binding.role_name, &binding.namespace) {
                Some(rules) => {
                    grants.bindings.push(Grant { rules: Arc::clone(rules), reason: binding.reason(subject) });
                }
                None => {
                    grants.errors.push(Missing { kind: binding.role_kind.clone(), name: binding.role_name.clone() });
                }
            }
        }
        grants
    }
}

fn put_in<T: PartialEq>(map: &mut BTreeMap<Str, T>, name: Str, item: T) -> bool {
    if map.get(&name) == Some(&item) {
        return false;
    }
    map.insert(name, item);
    true
}

fn remove_from<T>(map: &mut BTreeMap<Str, BTreeMap<Str, T>>, namespace: &str, name: &str) {
    if let Some(inner) = map.get_mut(namespace) {
        inner.remove(name);
        if inner.is_empty() {
            map.remove(namespace);
        }
    }
}

impl Binding {
    fn from_value(object: &Value) -> Binding {
        let text = |value: &Value| Str::new(value.str_or_empty());
        let role = &object["roleRef"];
        Binding {
            name: Str::new(object.name()),
            namespace: Str::new(object.namespace()),
            role_kind: text(&role["kind"]),
            role_name: text(&role["name"]),
            subjects: object["subjects"]
                .items()
                .iter()
                .map(|s| Subject { kind: text(&s["kind"]), name: text(&s["name"]), namespace: text(&s["namespace"]) })
                .collect(),
        }
    }

    fn reason(&self, subject: &Subject) -> String {
        let (kind, name) = match self.namespace.as_str() {
            "" => ("ClusterRoleBinding", self.name.to_string()),
            namespace => ("RoleBinding", format!("{}/{namespace}", self.name)),
        };
        let who = match (subject.kind.as_str(), subject.namespace.as_str()) {
            ("ServiceAccount", "") => format!("{}/{}", subject.name, self.namespace),
            ("ServiceAccount", namespace) => format!("{}/{namespace}", subject.name),
            _ => subject.name.to_string(),
        };
        format!(
            "RBAC: allowed by {kind} {} of {} {} to {} {}",
            go_quote(&name),
            self.role_kind,
            go_quote(&self.role_name),
            subject.kind,
            go_quote(&who)
        )
    }
}

impl Subject {
    /// Whether the user is meant, in a binding of this namespace.
    fn is(&self, user: &UserInfo, binding_namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.name == self.name,
            "Group" => user::is_member(user, &self.name),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { binding_namespace } else { &self.namespace };
                !namespace.is_empty() && user::is_service_account(&user.name, namespace, &self.name)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
