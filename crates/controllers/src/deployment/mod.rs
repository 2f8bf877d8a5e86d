//! Rolls deployments out: ReplicaSets for each template, scaled against each other.
//!
//! Follows: kubernetes/pkg/controller/deployment (v1.35). Differs: a status that was just written is not written over
//! with an older version in the same round, so that rounds do not end in a conflict of their own making.

mod plan;
mod revision;
mod rollout;
mod status;

use crate::common::claim::Claimant;
use crate::common::owner::index_by_controller;
use crate::common::pods::{about, is_finished};
use crate::common::selector::selector_of;
use crate::context::{Context, synced};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use pintle_apimachinery::env::Env;
use pintle_client::{Api, Client, Object as _, Result};
use pintle_informer::handler::{enqueue, enqueue_by};
use pintle_informer::record::{EventRecorder, EventType, Recorder as _};
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};
use rollout::Rollout;
use std::sync::Arc;

/// Deployments worked on at once.
const WORKERS: usize = 5;

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("deployment");
    let deployments = ctx.factory.informer::<Deployment>();
    let (sets, pods) = (ctx.factory.informer::<ReplicaSet>(), ctx.factory.informer::<Pod>());
    index_by_controller(&pods);
    index_by_controller(&sets);
    deployments.add_event_handler(enqueue(&queue));
    let lister = deployments.lister();
    sets.add_event_handler(enqueue_by(&queue, move |set: &Cached<ReplicaSet>| deployments_of(&lister, set)));
    let (lister, owners) = (deployments.lister(), sets.lister());
    // a deployment that recreates waits for its last old pod to go
    pods.add_event_handler(enqueue_by(&queue, move |pod: &Cached<Pod>| recreating_of(&lister, &owners, pod)));
    let controller = Arc::new(DeploymentController {
        client: ctx.client_of("deployment-controller"),
        events: ctx.recorder("deployment-controller"),
        deployments: deployments.lister(),
        sets: sets.lister(),
        pods: pods.lister(),
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(deployments, sets, pods), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
}

/// The deployment that controls a set, or those that may adopt it.
fn deployments_of(deployments: &Lister<Cached<Deployment>>, set: &Cached<ReplicaSet>) -> Vec<ObjectName> {
    if let Some(owner) = set.controller_ref() {
        let is_deployment = owner.kind == "Deployment";
        return is_deployment.then(|| ObjectName::new(set.namespace(), &owner.name)).into_iter().collect();
    }
    let in_namespace = deployments.namespace(set.namespace()).list();
    let may_adopt = |deployment: &Cached<Deployment>| {
        let object = deployment.object().ok();
        let selector = object.and_then(|object| selector_of(&object.spec.as_ref()?.selector));
        selector.is_some_and(|selector| !selector.is_everything() && selector.matches(set))
    };
    in_namespace.into_iter().filter(may_adopt).map(|deployment| deployment.object_name()).collect()
}

/// The deployment of a pod, if it recreates.
fn recreating_of(
    deployments: &Lister<Cached<Deployment>>,
    sets: &Lister<Cached<ReplicaSet>>,
    pod: &Cached<Pod>,
) -> Option<ObjectName> {
    let owner = pod.controller_ref().filter(|owner| owner.kind == "ReplicaSet")?;
    let set = sets.namespace(pod.namespace()).get(&owner.name)?;
    let owner = set.controller_ref().filter(|owner| owner.kind == "Deployment")?;
    let deployment = deployments.namespace(pod.namespace()).get(&owner.name)?;
    let strategy = deployment.text_at(&["spec", "strategy", "type"]);
    (strategy.as_deref() == Some("Recreate")).then(|| deployment.object_name())
}

struct DeploymentController {
    client: Client,
    events: EventRecorder,
    deployments: Lister<Cached<Deployment>>,
    sets: Lister<Cached<ReplicaSet>>,
    pods: Lister<Cached<Pod>>,
    env: Env,
}

impl DeploymentController {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(cached) = self.deployments.get_by_key(name) else { return Ok(Action::Done) };
        let deployment = cached.to_owned_object()?;
        let Some(spec) = deployment.spec.as_ref() else { return Ok(Action::Done) };
        if spec.selector == LabelSelector::default() {
            let message = "This deployment is selecting all pods. A non-empty selector is required.";
            self.event(&deployment, EventType::Warning, "SelectingAll", message);
            return self.observe(deployment).await;
        }
        let Some(selector) = selector_of(&spec.selector) else { return Ok(Action::Done) };
        let sets = self
            .sets
            .namespace(deployment.namespace())
            .list_where(|set| set.controller_ref().is_none_or(|owner| owner.uid == deployment.uid()));
        let owners = Api::namespaced(&self.client, deployment.namespace());
        let api = Api::<ReplicaSet>::namespaced(&self.client, deployment.namespace());
        let claimed = Claimant::new(&deployment, owners, &selector).claim(sets, &api, |_| true).await?;
        let sets: std::result::Result<Vec<ReplicaSet>, _> = claimed.iter().map(Cached::to_owned_object).collect();
        // a round holds several objects across its requests
        Box::pin(Rollout::new(self, deployment, sets?).run()).await
    }

    /// Says that the deployment was seen.
    async fn observe(&self, mut deployment: Deployment) -> Result<Action> {
        let generation = deployment.metadata.generation;
        let status = deployment.status.get_or_insert_default();
        if status.observed_generation < generation {
            status.observed_generation = generation;
            Api::<Deployment>::namespaced(&self.client, deployment.namespace()).update_status(&deployment).await?;
        }
        Ok(Action::Done)
    }

    /// Whether pods of any set but the new one still run.
    fn has_old_pods(&self, sets: &[ReplicaSet], new: Option<&ReplicaSet>) -> bool {
        let old = sets.iter().filter(|set| new.is_none_or(|new| new.uid() != set.uid()));
        let pods =
            old.flat_map(|set| self.pods.by_index(crate::common::owner::BY_CONTROLLER, set.uid()).unwrap_or_default());
        pods.filter_map(|pod| pod.object().ok()).any(|pod| !is_finished(&pod))
    }

    fn event(&self, deployment: &Deployment, event_type: EventType, reason: &str, message: &str) {
        self.events.event(&about(deployment), event_type, reason, message);
    }
}
