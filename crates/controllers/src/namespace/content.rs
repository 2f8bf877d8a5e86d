//! Deleting what is in a namespace, and counting what remains.

use super::conditions::{Trouble, conditions_of};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition, Pod};
use pintle_apimachinery::GroupVersionResource;
use pintle_client::discovery::{DiscoveredResource, Discovery};
use pintle_client::options::ListOptions;
use pintle_client::{Api, Client, Error, Object as _, PartialObjectMetadata, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long content with finalizers is expected to need.
const FINALIZER_ESTIMATE: Duration = Duration::from_secs(15);

/// Objects listed at once when they must be deleted one by one or counted.
const PAGE_OBJECTS_MAX: u32 = 500;

/// What came of deleting the content of a namespace.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    discovery_failure: Option<String>,
    /// In the order of the resources.
    failures: Vec<Error>,
    estimate: Duration,
    n_remaining: BTreeMap<String, usize>,
    n_by_finalizer: BTreeMap<String, usize>,
    /// Pods are still there, so nothing else was touched.
    is_waiting_for_pods: bool,
}

/// What is left to do.
#[derive(Debug)]
pub(super) enum Remaining {
    Nothing,
    /// Something is still there and is expected to be gone after `estimate`.
    Content {
        estimate: Duration,
    },
    Failure(Error),
}

impl Outcome {
    fn add(&mut self, resource: &GroupVersionResource, result: Result<Left>) {
        match result {
            Err(error) => self.failures.push(error),
            Ok(left) => {
                self.estimate = self.estimate.max(left.estimate);
                if left.n_remaining > 0 {
                    let name = format!("{}.{}", resource.resource, resource.group);
                    *self.n_remaining.entry(name).or_default() += left.n_remaining;
                }
                for (finalizer, n) in left.n_by_finalizer {
                    *self.n_by_finalizer.entry(finalizer).or_default() += n;
                }
            }
        }
    }

    /// What the namespace's conditions are to say.
    pub(super) fn conditions(&self, now: Timestamp) -> Vec<NamespaceCondition> {
        conditions_of(&self.troubles(), now)
    }

    fn troubles(&self) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        let mut add = |type_, reason, message| troubles.push(Trouble { type_, reason, message });
        if let Some(message) = &self.discovery_failure {
            add("NamespaceDeletionDiscoveryFailure", "DiscoveryFailed", message.clone());
        }
        if !self.failures.is_empty() {
            let mut texts: Vec<String> = self.failures.iter().map(crate::common::pods::text_of).collect();
            texts.sort();
            let (n, texts) = (texts.len(), texts.join(", "));
            let message = format!("Failed to delete all resource types, {n} remaining: {texts}");
            add("NamespaceDeletionContentFailure", "ContentDeletionFailed", message);
        }
        if self.is_waiting_for_pods {
            // as upstream: what remains is counted only once the pods are gone
            return troubles;
        }
        if !self.n_remaining.is_empty() {
            let parts = self.n_remaining.iter().map(|(name, n)| format!("{name} has {n} resource instances"));
            let message = format!("Some resources are remaining: {}", join(parts));
            add("NamespaceContentRemaining", "SomeResourcesRemain", message);
        }
        if !self.n_by_finalizer.is_empty() {
            let parts = self.n_by_finalizer.iter().map(|(name, n)| format!("{name} in {n} resource instances"));
            let message = format!("Some content in the namespace has finalizers remaining: {}", join(parts));
            add("NamespaceFinalizersRemaining", "SomeFinalizersRemain", message);
        }
        troubles
    }

    /// What is left to do.
    pub(super) fn remaining(mut self) -> Remaining {
        if let Some(error) = self.failures.pop() {
            return Remaining::Failure(error);
        }
        if let Some(message) = self.discovery_failure {
            let status = pintle_apimachinery::Status::failure(503, "ServiceUnavailable", message);
            return Remaining::Failure(Error::from(status));
        }
        if self.n_remaining.is_empty() {
            return Remaining::Nothing;
        }
        Remaining::Content { estimate: self.estimate / 2 }
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    parts.sort();
    parts.join(", ")
}

/// What remains of one resource.
#[derive(Debug, Default)]
struct Left {
    estimate: Duration,
    n_remaining: usize,
    n_by_finalizer: BTreeMap<String, usize>,
}

/// Deletes everything in a namespace that can be deleted, pods before the rest.
pub(super) async fn remove_content(
    client: &Client,
    namespace: &Namespace,
    discovery: Result<Discovery>,
    now: Timestamp,
) -> Outcome {
    let mut outcome = Outcome::default();
    let discovery = match discovery {
        Ok(discovery) => discovery,
        Err(error) => {
            outcome.discovery_failure = Some(crate::common::pods::text_of(&error));
            return outcome;
        }
    };
    outcome.discovery_failure = stale_groups(&discovery);
    let resources: Vec<&DiscoveredResource> = discovery
        .preferred_resources()
        .filter(|resource| resource.resource.is_namespaced && resource.has_verb("delete"))
        .collect();
    let is_pods =
        |resource: &DiscoveredResource| resource.resource.group.is_empty() && resource.resource.plural == "pods";
    if let Some(pods) = resources.iter().find(|resource| is_pods(resource)) {
        let left = remove_pods(client, namespace, pods, now).await;
        outcome.add(&pods.resource.gvr(), left);
        if !outcome.n_remaining.is_empty() {
            outcome.is_waiting_for_pods = true;
            return outcome;
        }
    }
    for resource in resources.into_iter().filter(|resource| !is_pods(resource)) {
        let left = remove_all(client, namespace.name(), resource, Duration::ZERO).await;
        outcome.add(&resource.resource.gvr(), left);
    }
    outcome
}

/// The words of a discovery that is not complete.
fn stale_groups(discovery: &Discovery) -> Option<String> {
    let stale = discovery.groups.iter().flat_map(|group| {
        group
            .versions
            .iter()
            .filter(|version| version.is_stale)
            .map(|version| format!("{}/{}", group.name, version.version))
    });
    let stale: Vec<String> =
        stale.map(|version| format!("{version}: stale GroupVersion discovery: {version}")).collect();
    let list = format!("unable to retrieve the complete list of server APIs: {}", stale.join(", "));
    (!stale.is_empty()).then(|| format!("Discovery failed for some groups, {} failing: {list}", stale.len()))
}

/// Pods get their grace period before they count as stuck.
async fn remove_pods(
    client: &Client,
    namespace: &Namespace,
    pods: &DiscoveredResource,
    now: Timestamp,
) -> Result<Left> {
    let mut longest = 0;
    let count = |raw: &[u8]| {
        let pod: Pod = serde_json::from_slice(raw)
            .map_err(|source| Error::Decode { what: "Pod".to_owned(), source: source.into() })?;
        if !crate::common::pods::is_finished(&pod) {
            longest = longest.max(pod.spec.and_then(|spec| spec.termination_grace_period_seconds).unwrap_or_default());
        }
        Ok(())
    };
    Api::<Pod>::namespaced(client, namespace.name()).list_items(&ListOptions::default(), count).await?;
    let grace = Duration::from_secs(u64::try_from(longest).unwrap_or_default());
    let since =
        namespace.metadata.deletion_timestamp.as_ref().map_or(Duration::ZERO, |at| crate::common::until(at.0, now));
    remove_all(client, namespace.name(), pods, if since >= grace { Duration::ZERO } else { grace }).await
}

/// Deletes all objects of one resource in a namespace and counts those that are still there.
async fn remove_all(
    client: &Client,
    namespace: &str,
    resource: &DiscoveredResource,
    estimate: Duration,
) -> Result<Left> {
    let api = Api::metadata(client, Arc::new(resource.resource.clone()), namespace);
    let is_list = resource.has_verb("list");
    if is_list && is_empty(&api).await? {
        return Ok(Left::default());
    }
    let is_done = resource.has_verb("deletecollection") && delete_collection(&api).await?;
    if !is_done && is_list {
        delete_each(&api).await?;
    }
    if !is_list {
        return Ok(Left { estimate, ..Left::default() });
    }
    let mut left = Left { estimate, ..Left::default() };
    for object in list(&api).await? {
        left.n_remaining += 1;
        for finalizer in object.metadata.finalizers.into_iter().flatten() {
            *left.n_by_finalizer.entry(finalizer).or_default() += 1;
        }
    }
    if left.n_remaining == 0 {
        return Ok(Left::default());
    }
    if left.estimate.is_zero() {
        if left.n_by_finalizer.is_empty() {
            let gvr = resource.resource.gvr();
            let message = format!("unexpected items still remain in namespace: {namespace} for gvr: {gvr}");
            return Err(Error::from(pintle_apimachinery::Status::failure(500, "InternalError", message)));
        }
        left.estimate = FINALIZER_ESTIMATE;
    }
    Ok(left)
}

/// Whether the verb is not there or its resource is gone: then there is nothing to do.
fn is_unsupported(error: &Error) -> bool {
    error.is_method_not_supported() || error.is_not_found()
}

async fn is_empty(api: &Api<PartialObjectMetadata>) -> Result<bool> {
    match api.list().limit(1).await {
        Ok(list) => Ok(list.items.is_empty()),
        Err(error) if is_unsupported(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

async fn list(api: &Api<PartialObjectMetadata>) -> Result<Vec<PartialObjectMetadata>> {
    match api.list_all(ListOptions::default(), PAGE_OBJECTS_MAX).await {
        Ok(list) => Ok(list.items),
        Err(error) if is_unsupported(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

async fn delete_collection(api: &Api<PartialObjectMetadata>) -> Result<bool> {
    match api.delete_collection().propagation(pintle_client::options::PropagationPolicy::Background).await {
        Ok(()) => Ok(true),
        Err(error) if is_unsupported(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn delete_each(api: &Api<PartialObjectMetadata>) -> Result<()> {
    for object in list(api).await? {
        match api.delete(object.name()).background().await {
            Ok(_) => {}
            Err(error) if is_unsupported(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains_is_told() {
        let gvr = |group: &str, name: &str| GroupVersionResource::new(group, "v1", name);
        let mut outcome = Outcome::default();
        outcome.add(&gvr("", "pods"), Ok(Left::default()));
        let n_by_finalizer = BTreeMap::from([("example.org/keep".to_owned(), 2)]);
        let left = Left { estimate: FINALIZER_ESTIMATE, n_remaining: 2, n_by_finalizer };
        outcome.add(&gvr("", "configmaps"), Ok(left));
        let left = Left { estimate: Duration::from_secs(3), n_remaining: 1, ..Left::default() };
        outcome.add(&gvr("apps", "deployments"), Ok(left));
        let now = Timestamp::UNIX_EPOCH;
        let lines: Vec<String> = outcome
            .conditions(now)
            .iter()
            .map(|c| {
                format!("{} {} {}: {}", c.type_, c.status, c.reason.as_ref().unwrap(), c.message.as_ref().unwrap())
            })
            .collect();
        expect_test::expect![[r#"
            NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
            NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
            NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization
            NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: configmaps. has 2 resource instances, deployments.apps has 1 resource instances
            NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.org/keep in 2 resource instances"#]]
        .assert_eq(&lines.join("\n"));
        assert!(matches!(outcome.remaining(), Remaining::Content { .. }));
    }

    #[test]
    fn conditions_keep_the_time_of_their_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let namespace = Namespace::default();
        let told = super::super::conditions::with_conditions(&namespace, conditions_of(&[], at(1))).unwrap();
        assert!(super::super::conditions::with_conditions(&told, conditions_of(&[], at(2))).is_none());
        let trouble =
            Trouble { type_: "NamespaceContentRemaining", reason: "SomeResourcesRemain", message: "x".into() };
        let told =
            super::super::conditions::with_conditions(&told, conditions_of(std::slice::from_ref(&trouble), at(3)))
                .unwrap();
        let trouble = Trouble { message: "y".into(), ..trouble };
        let told = super::super::conditions::with_conditions(&told, conditions_of(&[trouble], at(4))).unwrap();
        let times: Vec<i64> = told
            .status
            .unwrap()
            .conditions
            .unwrap()
            .iter()
            .map(|c| c.last_transition_time.as_ref().unwrap().0.as_second())
            .collect();
        assert_eq!(times, [1, 1, 1, 3, 1]);
    }
}
