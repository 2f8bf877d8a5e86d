//! `PodSecurity`: the pod security standards, by the labels of namespaces.
//!
//! What would go to the audit log is not told: there is none.
//!
//! Follows: pod-security-admission/admission/admission.go (v0.35).

mod baseline;
mod checks;
mod policy;
mod restricted;
#[cfg(test)]
mod tests;

pub use policy::{Level, Policy, Standard, Version};

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use async_trait::async_trait;
use checks::{Pod, details, evaluate, reasons};
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Value};
use pintle_auth::Lookup;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many pods are looked at when a namespace asks for more (pods). What is left out is told to the client.
pub const EXISTING_PODS_MAX: usize = 3000;

/// What no policy is for.
#[derive(Clone, Debug, Default)]
pub struct Exemptions {
    /// Users by name.
    pub users: Vec<String>,
    /// Namespaces by name.
    pub namespaces: Vec<String>,
    /// Runtime classes by name.
    pub runtime_classes: Vec<String>,
}

/// The plugin.
#[derive(Debug)]
pub struct PodSecurity {
    /// Where namespaces and pods are.
    pub lookup: Arc<dyn Lookup>,
    /// What a namespace without labels asks for.
    pub defaults: Policy,
    /// What no policy is for.
    pub exemptions: Exemptions,
}

/// Where a resource keeps the pods that it will make.
const TEMPLATES: [(&str, &str, &str); 8] = [
    ("", "replicationcontrollers", "spec.template"),
    ("", "podtemplates", "template"),
    ("apps", "replicasets", "spec.template"),
    ("apps", "deployments", "spec.template"),
    ("apps", "statefulsets", "spec.template"),
    ("apps", "daemonsets", "spec.template"),
    ("batch", "jobs", "spec.template"),
    ("batch", "cronjobs", "spec.jobTemplate.spec.template"),
];

/// Subresources of pods that cannot change the spec.
const IGNORED_SUBRESOURCES: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

fn template_path(attributes: &Attributes<'_>) -> Option<&'static str> {
    TEMPLATES.iter().find(|(group, resource, _)| attributes.is_on(group, resource)).map(|(_, _, path)| *path)
}

fn is_about_pod_specs(attributes: &Attributes<'_>) -> bool {
    attributes.is_about("", "pods") && !IGNORED_SUBRESOURCES.contains(&attributes.subresource)
}

#[async_trait]
impl Plugin for PodSecurity {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        let is_namespace = attributes.is_on("", "namespaces");
        attributes.is_write() && (is_namespace || is_about_pod_specs(attributes) || template_path(attributes).is_some())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(object) = object else { return Ok(()) };
        if attributes.is_on("", "namespaces") {
            return self.validate_namespace(attributes, object).await;
        }
        let is_exempt = |list: &[String], name: &str| list.iter().any(|own| own == name);
        if is_exempt(&self.exemptions.namespaces, attributes.namespace)
            || is_exempt(&self.exemptions.users, &attributes.user.name)
        {
            return Ok(());
        }
        match template_path(attributes) {
            Some(path) => {
                self.warn_of_template(attributes, object.at(path)).await;
                Ok(())
            }
            None => self.validate_pod(attributes, object).await,
        }
    }
}

impl PodSecurity {
    /// The labels of the namespace of the operation.
    async fn namespace(&self, attributes: &Attributes<'_>) -> Option<Arc<Value>> {
        match self.lookup.get("", "namespaces", "", attributes.namespace).await {
            Some(namespace) => Some(namespace),
            None => self.lookup.get_live("", "namespaces", "", attributes.namespace).await.ok().flatten(),
        }
    }

    async fn validate_pod(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<()> {
        let Some(namespace) = self.namespace(attributes).await else {
            let why = format!("failed to lookup namespace {}", go_quote(attributes.namespace));
            return Err(Box::new(Status::internal(why)));
        };
        let (policy, errors) = Policy::of_labels(&namespace.metadata()["labels"], &self.defaults);
        if errors.is_empty() && policy.is_fully_privileged() || self.has_exempt_runtime(&pod["spec"]) {
            return Ok(());
        }
        let old = attributes.old.filter(|_| attributes.operation == Operation::Update);
        if old.is_some_and(|old| !is_significant(pod, old)) {
            return Ok(());
        }
        let pod_view = Pod { metadata: pod.metadata(), spec: &pod["spec"] };
        let violations = evaluate(policy.enforce, pod_view);
        if !violations.is_empty() {
            let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, details(&violations));
            let resource = attributes.resource.group_resource();
            return Err(Box::new(Status::forbidden(&resource, request_name(attributes, pod), why)));
        }
        warn(attributes, policy.warn, pod_view);
        Ok(())
    }

    async fn warn_of_template(&self, attributes: &Attributes<'_>, template: &Value) {
        if template.is_null() || self.has_exempt_runtime(&template["spec"]) {
            return;
        }
        let Some(namespace) = self.namespace(attributes).await else { return };
        let (policy, _) = Policy::of_labels(&namespace.metadata()["labels"], &self.defaults);
        warn(attributes, policy.warn, Pod { metadata: &template["metadata"], spec: &template["spec"] });
    }

    fn has_exempt_runtime(&self, spec: &Value) -> bool {
        let class = spec["runtimeClassName"].str_or_empty();
        !class.is_empty() && self.exemptions.runtime_classes.iter().any(|own| own == class)
    }

    async fn validate_namespace(&self, attributes: &Attributes<'_>, namespace: &Value) -> Result<()> {
        let labels = &namespace.metadata()["labels"];
        let (policy, errors) = Policy::of_labels(labels, &self.defaults);
        let old = attributes.old.filter(|_| attributes.operation == Operation::Update);
        let old = old.map(|old| Policy::of_labels(&old.metadata()["labels"], &self.defaults));
        if !errors.is_empty() && old.as_ref().is_none_or(|(_, old_errors)| *old_errors != errors) {
            let name = request_name(attributes, namespace);
            return Err(Box::new(Status::invalid(&attributes.kind.group_kind(), name, &errors)));
        }
        let is_stricter = match &old {
            None => true,
            Some((old, _)) => is_stricter(policy.enforce, old.enforce),
        };
        if !is_stricter {
            return Ok(());
        }
        if self.exemptions.namespaces.iter().any(|own| own == namespace.name()) {
            if !policy.is_fully_privileged() && !policy.is_equivalent(&self.defaults) {
                attributes.warn(format!(
                    "namespace {} is exempt from Pod Security, and the policy ({}) will be ignored",
                    go_quote(namespace.name()),
                    policy.explicit_modes(labels)
                ));
            }
        } else if old.is_some() {
            let pods = self.lookup.list("", "pods", namespace.name()).await;
            self.warn_of_pods(attributes, namespace.name(), policy.enforce, &pods);
        }
        Ok(())
    }

    /// Warns of the pods that are there already, those with the same faults together.
    fn warn_of_pods(&self, attributes: &Attributes<'_>, namespace: &str, standard: Standard, pods: &[Arc<Value>]) {
        let pods = self.by_priority(pods);
        let mut by_reason: BTreeMap<String, (&str, usize)> = BTreeMap::new();
        for pod in pods.iter().take(EXISTING_PODS_MAX) {
            let violations = evaluate(standard, Pod { metadata: pod.metadata(), spec: &pod["spec"] });
            if !violations.is_empty() {
                let (first, count) = by_reason.entry(reasons(&violations)).or_insert_with(|| (pod.name(), 0));
                *first = (*first).min(pod.name());
                *count += 1;
            }
        }
        if pods.len() > EXISTING_PODS_MAX {
            attributes.warn(format!(
                "new PodSecurity enforce level only checked against the first {EXISTING_PODS_MAX} of {} existing pods",
                pods.len()
            ));
        }
        if !by_reason.is_empty() {
            attributes.warn(format!(
                "existing pods in namespace {} violate the new PodSecurity enforce level \"{standard}\"",
                go_quote(namespace)
            ));
        }
        let texts: BTreeSet<String> = by_reason
            .iter()
            .map(|(reason, (pod, count))| match count {
                1 => format!("{pod}: {reason}"),
                2 => format!("{pod} (and 1 other pod): {reason}"),
                count => format!("{pod} (and {} other pods): {reason}", count - 1),
            })
            .collect();
        texts.into_iter().for_each(|text| attributes.warn(text));
    }

    /// The pods to look at: one of every controller first.
    fn by_priority<'a>(&self, pods: &'a [Arc<Value>]) -> Vec<&'a Value> {
        let mut controllers: BTreeSet<&str> = BTreeSet::new();
        let (mut first, mut others) = (Vec::new(), Vec::new());
        for pod in pods.iter().filter(|pod| !self.has_exempt_runtime(&pod["spec"])) {
            let owners = pod.metadata()["ownerReferences"].items();
            let controller = owners.iter().find(|owner| owner["controller"].is_true());
            match controller {
                Some(owner) if !controllers.insert(owner["uid"].str_or_empty()) => others.push(&**pod),
                _ => first.push(&**pod),
            }
        }
        first.append(&mut others);
        first
    }
}

/// Whether pods that passed before may fail now.
fn is_stricter(new: Standard, old: Standard) -> bool {
    new != old && new.level != Level::Privileged && (new.version != old.version || new.level > old.level)
}

fn warn(attributes: &Attributes<'_>, standard: Standard, pod: Pod<'_>) {
    let violations = evaluate(standard, pod);
    if !violations.is_empty() {
        attributes.warn(format!("would violate PodSecurity \"{standard}\": {}", details(&violations)));
    }
}

/// The name that the request gives: one that the server made up does not count.
fn request_name<'a>(attributes: &Attributes<'a>, object: &'a Value) -> &'a str {
    let is_made_up = attributes.operation == Operation::Create && object.metadata().has("generateName");
    if attributes.name.is_empty() && !is_made_up { object.name() } else { attributes.name }
}

/// Whether an update of a pod can change what the checks say.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let (spec, old) = (&pod["spec"], &old["spec"]);
    for field in ["containers", "initContainers"] {
        let (new, old) = (spec[field].items(), old[field].items());
        if new.len() != old.len() || new.iter().zip(old).any(|(new, old)| new["image"] != old["image"]) {
            return true;
        }
    }
    spec["ephemeralContainers"].items().iter().any(|container| {
        let before = old["ephemeralContainers"].items().iter().find(|other| other["name"] == container["name"]);
        before.is_none_or(|before| before["image"] != container["image"])
    })
}
