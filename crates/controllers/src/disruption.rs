//! Tells in the status of disruption budgets how many pods may be evicted.
//!
//! Follows: kubernetes/pkg/controller/disruption (v1.35).

use crate::common::intstr::scaled;
use crate::common::pods::{about, is_finished, is_ready, text_of};
use crate::common::selector::selector_of_optional;
use crate::common::{after_seconds, until};
use crate::context::{Context, synced};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::time::floor_second;
use pintle_apimachinery::{GroupKind, GroupVersion};
use pintle_client::discovery::RestMapper;
use pintle_client::{Api, Client, DynamicObject, Error, Object as _, Result};
use pintle_informer::handler::{enqueue, enqueue_by};
use pintle_informer::record::{EventRecorder, EventType, Recorder as _};
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Budgets worked on at once.
const WORKERS: usize = 2;

/// An eviction that was allowed counts for so long; then its pod is taken for alive again.
const DELETION_TIMEOUT_SECONDS: i64 = 120;

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("disruption");
    let (budgets, pods) = (ctx.factory.informer::<PodDisruptionBudget>(), ctx.factory.informer::<Pod>());
    budgets.add_event_handler(enqueue(&queue));
    let lister = budgets.lister();
    pods.add_event_handler(enqueue_by(&queue, move |pod: &Cached<Pod>| {
        let selects = |budget: &Cached<PodDisruptionBudget>| {
            let object = budget.object().ok();
            let selector = object.and_then(|budget| selector_of_optional(budget.spec.as_ref()?.selector.as_ref()));
            selector.is_some_and(|selector| selector.matches(pod))
        };
        let selecting = lister.namespace(pod.namespace()).list().into_iter().filter(selects);
        selecting.map(|budget| budget.object_name()).collect::<Vec<_>>()
    }));
    let controller = Arc::new(DisruptionController {
        client: ctx.client_of("disruption-controller"),
        mapper: ctx.mapper.clone(),
        events: ctx.recorder("controllermanager"),
        budgets: budgets.lister(),
        pods: pods.lister(),
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(budgets, pods), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
}

struct DisruptionController {
    client: Client,
    mapper: RestMapper,
    events: EventRecorder,
    budgets: Lister<Cached<PodDisruptionBudget>>,
    pods: Lister<Cached<Pod>>,
    env: Env,
}

impl DisruptionController {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(cached) = self.budgets.get_by_key(name) else { return Ok(Action::Done) };
        let budget = cached.object()?;
        let selector = selector_of_optional(budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()));
        let Some(selector) = selector else { return Ok(Action::Done) };
        let now = self.env.clock.now();
        let pods = self.pods.namespace(&name.namespace).select(&selector);
        let pods: std::result::Result<Vec<Arc<Pod>>, _> = pods.iter().map(Cached::object).collect();
        let pods: Vec<Arc<Pod>> = pods?.into_iter().filter(|pod| !is_finished(pod)).collect();
        if pods.is_empty() {
            self.events.event(&about(budget.as_ref()), EventType::Normal, "NoPods", "No matching pods found");
        }
        let (status, wait) = match self.expected(&budget, &pods).await {
            Ok((expected, desired)) => status(&budget, &pods, expected, desired, now),
            Err(error) => {
                let message = format!("Failed to calculate the number of expected pods: {}", text_of(&error));
                self.events.event(
                    &about(budget.as_ref()),
                    EventType::Warning,
                    "CalculateExpectedPodCountFailed",
                    &message,
                );
                (failed_status(&budget, &text_of(&error), now), None)
            }
        };
        if budget.status.as_ref() != Some(&status) {
            let changed = PodDisruptionBudget { status: Some(status), ..PodDisruptionBudget::clone(&budget) };
            match Api::<PodDisruptionBudget>::namespaced(&self.client, &name.namespace).update_status(&changed).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        Ok(wait.map_or(Action::Done, |at| Action::RequeueAfter(until(now, at))))
    }

    /// How many pods there should be, and how many of them must be healthy.
    async fn expected(&self, budget: &PodDisruptionBudget, pods: &[Arc<Pod>]) -> Result<(i32, i32)> {
        let Some(spec) = &budget.spec else { return Ok((0, 0)) };
        if let Some(most) = &spec.max_unavailable {
            let expected = self.scale(pods).await?;
            return Ok((expected, (expected - scaled(most, expected, true).unwrap_or_default()).max(0)));
        }
        match &spec.min_available {
            Some(IntOrString::Int(least)) => Ok((i32::try_from(pods.len()).unwrap_or(i32::MAX), *least)),
            Some(least) => {
                let expected = self.scale(pods).await?;
                Ok((expected, scaled(least, expected, true).unwrap_or_default()))
            }
            None => Ok((0, 0)),
        }
    }

    /// The sum of the replicas that the pods' controllers want.
    async fn scale(&self, pods: &[Arc<Pod>]) -> Result<i32> {
        let mut owners: BTreeMap<String, (OwnerReference, String)> = BTreeMap::new();
        for pod in pods {
            if let Some(owner) = crate::common::owner::controller_of(&pod.metadata) {
                owners.insert(owner.uid.clone(), (owner.clone(), pod.namespace().to_owned()));
            }
        }
        let mut scales: BTreeMap<String, i32> = BTreeMap::new();
        for (owner, namespace) in owners.into_values() {
            let (uid, replicas) = self.scale_of(&owner, &namespace).await?;
            scales.insert(uid, replicas);
        }
        Ok(scales.into_values().sum())
    }

    /// The replicas of a controller; of a ReplicaSet under a deployment, those of the deployment.
    async fn scale_of(&self, owner: &OwnerReference, namespace: &str) -> Result<(String, i32)> {
        let mut owner = owner.clone();
        if owner.kind == "ReplicaSet" {
            let set = self.object(&owner, namespace).await?;
            if let Some(deployment) = crate::common::owner::controller_of(&set.metadata) {
                owner = deployment.clone();
            }
        }
        let object = self.object(&owner, namespace).await?;
        let replicas = object.pointer("/spec/replicas").and_then(serde_json::Value::as_i64);
        match replicas.and_then(|replicas| i32::try_from(replicas).ok()) {
            Some(replicas) => Ok((owner.uid, replicas)),
            None => Err(Error::InvalidRequest(format!("{} does not implement the scale subresource", owner.kind))),
        }
    }

    async fn object(&self, owner: &OwnerReference, namespace: &str) -> Result<DynamicObject> {
        let version = GroupVersion::parse(&owner.api_version).unwrap_or_else(|| GroupVersion::new("", ""));
        let kind = GroupKind::new(&version.group, &owner.kind);
        let resource = self.mapper.rest_mapping(&kind, &[&version.version]).await;
        let resource = resource.map_err(|error| Error::InvalidRequest(error.to_string()))?;
        Api::dynamic(&self.client, &resource, namespace).get(&owner.name).await
    }
}

/// The status, and when an eviction that is under way has taken too long. Pure.
fn status(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    expected: i32,
    desired: i32,
    now: Timestamp,
) -> (PodDisruptionBudgetStatus, Option<Timestamp>) {
    let known = budget.status.clone().unwrap_or_default();
    let mut disrupted = known.disrupted_pods.unwrap_or_default();
    let ends_at = |time: &Time| after_seconds(time.0, DELETION_TIMEOUT_SECONDS);
    let is_alive = |name: &str| pods.iter().any(|pod| pod.name() == name && !pod.is_terminating());
    disrupted.retain(|name, time| is_alive(name) && ends_at(time) >= now);
    let wait = disrupted.values().map(ends_at).min();
    let is_healthy = |pod: &&Arc<Pod>| !pod.is_terminating() && is_ready(pod) && !disrupted.contains_key(pod.name());
    let healthy = i32::try_from(pods.iter().filter(is_healthy).count()).unwrap_or(i32::MAX);
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let condition = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let generation = budget.metadata.generation;
    let status = PodDisruptionBudgetStatus {
        current_healthy: healthy,
        desired_healthy: desired,
        expected_pods: expected,
        disruptions_allowed: allowed,
        disrupted_pods: Some(disrupted).filter(|disrupted| !disrupted.is_empty()),
        observed_generation: generation,
        conditions: Some(with_condition(known.conditions, condition, "", generation, now)),
    };
    (status, wait)
}

fn failed_status(budget: &PodDisruptionBudget, message: &str, now: Timestamp) -> PodDisruptionBudgetStatus {
    let known = budget.status.clone().unwrap_or_default();
    let (observed, conditions) = (known.observed_generation, known.conditions.clone());
    PodDisruptionBudgetStatus {
        disruptions_allowed: 0,
        conditions: Some(with_condition(conditions, ("False", "SyncFailed"), message, observed, now)),
        ..known
    }
}

fn with_condition(
    known: Option<Vec<Condition>>,
    (status, reason): (&str, &str),
    message: &str,
    observed_generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = known.unwrap_or_default();
    let at = conditions.iter().position(|condition| condition.type_ == "DisruptionAllowed");
    let old = at.map(|at| conditions.remove(at));
    let since = old.filter(|old| old.status == status).map(|old| old.last_transition_time);
    conditions.insert(
        at.unwrap_or(conditions.len()),
        Condition {
            type_: "DisruptionAllowed".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation,
            last_transition_time: since.unwrap_or_else(|| Time(floor_second(now))),
        },
    );
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_may_be_evicted() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let pod = |name: &str, ready: &str| -> Arc<Pod> {
            let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]});
            Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).unwrap())
        };
        let pods = [pod("a", "True"), pod("b", "True"), pod("c", "False"), pod("d", "True")];
        let budget: PodDisruptionBudget = serde_json::from_value(json!({"metadata": {"generation": 2}, "status": {
            "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
            "disruptedPods": {"a": at(1000).to_string(), "b": at(100).to_string(), "gone": at(1000).to_string()},
        }}))
        .unwrap();
        let (status, wait) = status(&budget, &pods, 4, 1, at(1001));
        assert_eq!(wait, Some(at(1120)));
        expect_test::expect![[r#"{"conditions":[{"lastTransitionTime":"1970-01-01T00:16:41Z","message":"","observedGeneration":2,"reason":"SufficientPods","status":"True","type":"DisruptionAllowed"}],"currentHealthy":2,"desiredHealthy":1,"disruptedPods":{"a":"1970-01-01T00:16:40Z"},"disruptionsAllowed":1,"expectedPods":4,"observedGeneration":2}"#]]
            .assert_eq(&serde_json::to_string(&status).unwrap());
    }
}
