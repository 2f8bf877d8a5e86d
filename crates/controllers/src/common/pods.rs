//! Pods: their state, their order of value, and how controllers make and delete them.

use super::after_seconds;
use jiff::Timestamp;
use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::{ObjectReference, Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use pintle_client::{Api, Client, Object, Result};
use pintle_informer::record::{EventRecorder, EventType, Recorder as _};
use std::cmp::Ordering;
use std::sync::Arc;

/// A pod's phase, or `""`.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// A condition of a pod.
pub(crate) fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == type_)
}

/// Whether the pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when the pod is ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether the pod has been ready for so many seconds.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    if !is_ready(pod) {
        return false;
    }
    min_ready_seconds == 0
        || ready_since(pod).is_some_and(|since| after_seconds(since, i64::from(min_ready_seconds)) <= now)
}

/// When a pod that is ready but not yet available will be.
pub(crate) fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    ready_since(pod).map(|since| after_seconds(since, i64::from(min_ready_seconds)))
}

/// Whether the pod has ended, well or not.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the pod runs or will run.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !pod.is_terminating()
}

/// The order in which pods are given up when there are too many: the first goes first. Unassigned before assigned,
/// pending before running, not ready before ready, crowded nodes first, younger first.
///
/// `rank` is the number of related pods on the pod's node.
pub(crate) fn compare_for_deletion(a: (&Pod, usize), b: (&Pod, usize), now: Timestamp) -> Ordering {
    let ((a, a_rank), (b, b_rank)) = (a, b);
    let is_assigned =
        |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref().is_some_and(|n| !n.is_empty()));
    let phase_rank = |pod: &Pod| match phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let cost = |pod: &Pod| -> i32 {
        let annotations = pod.metadata.annotations.as_ref();
        let text = annotations.and_then(|a| a.get("controller.kubernetes.io/pod-deletion-cost"));
        text.and_then(|text| text.parse().ok()).unwrap_or_default()
    };
    let restarts = |pod: &Pod| -> i32 {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        statuses.into_iter().flatten().map(|status| status.restart_count).max().unwrap_or_default()
    };
    is_assigned(a)
        .cmp(&is_assigned(b))
        .then_with(|| phase_rank(a).cmp(&phase_rank(b)))
        .then_with(|| is_ready(a).cmp(&is_ready(b)))
        .then_with(|| cost(a).cmp(&cost(b)))
        .then_with(|| b_rank.cmp(&a_rank))
        .then_with(|| {
            let is_both_ready = is_ready(a) && is_ready(b);
            if is_both_ready { by_age(a, b, ready_since, now) } else { Ordering::Equal }
        })
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| by_age(a, b, |pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0), now))
}

/// The younger first. Ages of the same binary logarithm count as equal, and the uid decides, so that it is not always
/// the pods of the newest node that go. A time that is missing counts as youngest.
fn by_age(a: &Pod, b: &Pod, time: impl Fn(&Pod) -> Option<Timestamp>, now: Timestamp) -> Ordering {
    let rank = |at: Timestamp| {
        let nanoseconds = now.as_nanosecond() - at.as_nanosecond();
        u128::try_from(nanoseconds).ok().and_then(u128::checked_ilog2).map_or(-1, i64::from)
    };
    match (time(a), time(b)) {
        (a, b) if a == b => Ordering::Equal,
        (Some(at_a), Some(at_b)) => rank(at_a).cmp(&rank(at_b)).then_with(|| a.uid().cmp(b.uid())),
        (None, _) => Ordering::Less,
        (_, None) => Ordering::Greater,
    }
}

/// The prefix of the names of an owner's pods.
pub(crate) fn name_prefix(owner: &str) -> String {
    // upstream leaves the dash out when the prefix with it would be no valid name
    let prefix = format!("{owner}-");
    if pintle_apimachinery::names::dns1123_subdomain(&pintle_apimachinery::names::mask_trailing_dash(&prefix))
        .is_empty()
    {
        prefix
    } else {
        owner.to_owned()
    }
}

/// The pod that a template describes, under an owner.
pub(crate) fn pod_from_template(template: &PodTemplateSpec, owner: &OwnerReference, namespace: &str) -> Pod {
    let meta = template.metadata.as_ref();
    Pod {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            labels: meta.and_then(|meta| meta.labels.clone()),
            annotations: meta.and_then(|meta| meta.annotations.clone()),
            finalizers: meta.and_then(|meta| meta.finalizers.clone()),
            generate_name: Some(name_prefix(&owner.name)),
            owner_references: Some(vec![owner.clone()]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// Makes and deletes pods on behalf of owners, and tells of it by events.
#[derive(Clone, Debug)]
pub(crate) struct PodControl {
    pods: Api<Pod>,
    events: Arc<EventRecorder>,
}

impl PodControl {
    pub(crate) fn new(client: &Client, events: EventRecorder) -> PodControl {
        PodControl { pods: Api::all(client), events: Arc::new(events) }
    }

    /// Makes a pod.
    ///
    /// # Errors
    /// The server's.
    pub(crate) async fn create<O: Object + Resource>(&self, pod: &Pod, owner: &O) -> Result<Pod> {
        match self.pods.create(pod).await {
            Ok(made) => {
                self.event(owner, EventType::Normal, "SuccessfulCreate", &format!("Created pod: {}", made.name()));
                Ok(made)
            }
            Err(error) => {
                if !error.is_namespace_terminating() {
                    self.event(
                        owner,
                        EventType::Warning,
                        "FailedCreate",
                        &format!("Error creating: {}", text_of(&error)),
                    );
                }
                Err(error)
            }
        }
    }

    /// Deletes a pod. That it is gone already is no failure, but is said.
    ///
    /// # Errors
    /// The server's.
    pub(crate) async fn delete<O: Object + Resource>(&self, pod: &Pod, owner: &O) -> Result<bool> {
        let name = pod.name();
        match self.pods.in_namespace(pod.namespace()).delete(name).await {
            Ok(_) => {
                self.event(owner, EventType::Normal, "SuccessfulDelete", &format!("Deleted pod: {name}"));
                Ok(true)
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => {
                self.event(owner, EventType::Warning, "FailedDelete", &format!("Error deleting: {}", text_of(&error)));
                Err(error)
            }
        }
    }

    /// Records an event about an owner.
    pub(crate) fn event<O: Object + Resource>(&self, owner: &O, event_type: EventType, reason: &str, message: &str) {
        self.events.event(&about(owner), event_type, reason, message);
    }

    /// The pods of a namespace.
    pub(crate) fn api(&self, namespace: &str) -> Api<Pod> {
        self.pods.in_namespace(namespace)
    }
}

/// What an event about an object is about.
pub(crate) fn about<O: Object + Resource>(object: &O) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(O::API_VERSION.to_owned()),
        kind: Some(O::KIND.to_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// An error as events and conditions tell it: the server's own words if it has spoken.
pub(crate) fn text_of(error: &pintle_client::Error) -> String {
    error.status().map_or_else(|| pintle_client::error::chain_text(error), |status| status.message.to_string())
}
