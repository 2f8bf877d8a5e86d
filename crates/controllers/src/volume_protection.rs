//! Keeps volumes and claims that are in use from going away: takes their protection finalizers off when they are not.
//!
//! Follows: kubernetes/pkg/controller/volume/{pvcprotection,pvprotection} (v1.35).

use crate::context::{Context, synced};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use pintle_apimachinery::Str;
use pintle_client::{Api, Client, Object, Result};
use pintle_informer::handler::{enqueue, enqueue_by};
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// The index of pods by the claims that they use.
const BY_CLAIM: &str = "pvc-protection.claim";

/// The claims that a pod uses: those it names, and those of its ephemeral volumes.
fn claims_of(pod: &Pod) -> Vec<ObjectName> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let names = volumes.filter_map(|volume| {
        let named = volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.clone());
        named.or_else(|| volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.name(), volume.name)))
    });
    names.map(|name| ObjectName::new(pod.namespace(), name)).collect()
}

/// The same, of a pod that need not be decoded if it has no volumes.
fn claims_of_cached(pod: &Cached<Pod>) -> Vec<ObjectName> {
    let has_volumes = pod.value_at(&["spec", "volumes"]).is_some();
    let object = has_volumes.then(|| pod.object().ok()).flatten();
    object.map(|pod| claims_of(&pod)).unwrap_or_default()
}

/// Starts the controller of claims.
pub(crate) fn start_claims(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("pvcprotection");
    let (claims, pods) = (ctx.factory.informer::<PersistentVolumeClaim>(), ctx.factory.informer::<Pod>());
    pods.add_index(BY_CLAIM, |pod| {
        claims_of_cached(pod).into_iter().map(|claim| Str::new(claim.to_string())).collect()
    });
    claims.add_event_handler(enqueue(&queue));
    pods.add_event_handler(enqueue_by(&queue, |pod: &Cached<Pod>| claims_of_cached(pod)));
    let (client, listers) = (ctx.client_of("pvc-protection-controller"), (claims.lister(), pods.lister()));
    ctx.work(queue, 1, synced!(claims, pods), move |name| {
        sync_claim(client.clone(), listers.0.clone(), listers.1.clone(), name)
    });
}

async fn sync_claim(
    client: Client,
    claims: Lister<Cached<PersistentVolumeClaim>>,
    pods: Lister<Cached<Pod>>,
    name: ObjectName,
) -> Result<Action> {
    let Some(claim) = claims.get_by_key(&name) else { return Ok(Action::Done) };
    let is_used = || {
        let users = pods.by_index(BY_CLAIM, &name.to_string()).unwrap_or_default();
        // a pod without a node may still get one
        users.iter().any(|pod| {
            let has_node = pod.text_at(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty());
            let phase = pod.text_at(&["status", "phase"]).unwrap_or_default().into_owned();
            has_node && !matches!(phase.as_str(), "Succeeded" | "Failed")
        })
    };
    protect(&Api::namespaced(&client, &name.namespace), &claim, CLAIM_FINALIZER, is_used).await
}

/// Starts the controller of volumes.
pub(crate) fn start_volumes(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("pvprotection");
    let volumes = ctx.factory.informer::<PersistentVolume>();
    volumes.add_event_handler(enqueue(&queue));
    let (client, lister) = (ctx.client_of("pv-protection-controller"), volumes.lister());
    ctx.work(queue, 1, synced!(volumes), move |name| sync_volume(client.clone(), lister.clone(), name));
}

async fn sync_volume(client: Client, volumes: Lister<Cached<PersistentVolume>>, name: ObjectName) -> Result<Action> {
    let Some(volume) = volumes.get_by_key(&name) else { return Ok(Action::Done) };
    let is_used = || volume.text_at(&["status", "phase"]).as_deref() == Some("Bound");
    protect(&Api::all(&client), &volume, VOLUME_FINALIZER, is_used).await
}

/// Adds the finalizer to what lacks it, and takes it off what is going away and unused.
async fn protect<K: Object>(
    api: &Api<K>,
    cached: &Cached<K>,
    finalizer: &str,
    is_used: impl FnOnce() -> bool,
) -> Result<Action> {
    let mut object = cached.to_owned_object()?;
    let finalizers = object.meta_mut().finalizers.get_or_insert_default();
    let has_finalizer = finalizers.iter().any(|known| known == finalizer);
    match (cached.is_terminating(), has_finalizer) {
        (true, true) if !is_used() => finalizers.retain(|known| known != finalizer),
        (false, false) => finalizers.push(finalizer.to_owned()),
        _ => return Ok(Action::Done),
    }
    match api.update(&object).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Action::Done),
    }
}
