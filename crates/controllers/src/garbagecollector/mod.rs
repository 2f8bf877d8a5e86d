//! Deletes objects whose owners are gone, and lets owners go whose dependents are gone or orphaned.
//!
//! Every resource that can be listed, watched and deleted is watched for its metadata; a graph of owners and dependents
//! is kept; what may have to go is put into a queue, looked up on the server, and deleted or not.
//!
//! Follows: kubernetes/pkg/controller/garbagecollector (v1.35). Differs: which resources there are is not polled but
//! looked up when a CustomResourceDefinition or an APIService changes.

mod absent;
mod graph;
mod monitor;
mod worker;

use crate::context::{Context, quieted};
use graph::{Graph, Identity};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use monitor::{Monitor, Sink};
use parking_lot::Mutex;
use pintle_apimachinery::Str;
use pintle_client::discovery::Discovery;
use pintle_client::{ApiResource, Client, PartialObjectMetadata};
use pintle_informer::Cached;
use pintle_informer::handler::enqueue_by;
use pintle_informer::workqueue::{Action, WorkQueue, run_workers};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use worker::Worker;

/// Objects looked at, deleted or orphaned at once.
const WORKERS: usize = 20;

/// After a change of what the server serves, further changes are waited for so long: definitions come in groups.
const DISCOVERY_PAUSE: Duration = Duration::from_millis(300);

/// A discovery that failed, or found a version that could not be asked, is repeated after this long.
const DISCOVERY_RETRY: Duration = Duration::from_secs(10);

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// Whether the object is to be deleted.
    Delete { uid: Str, is_virtual: bool },
    /// Take the object out of its dependents' references.
    Orphan { uid: Str },
    /// Tell that an owner is in another namespace.
    Tell { dependent: Box<Identity>, owner: Str },
}

type GarbageQueue = WorkQueue<Item>;

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let client = ctx.client_of("generic-garbage-collector");
    let sink = Sink { graph: Arc::new(Mutex::new(Graph::default())), queue: WorkQueue::new("garbage_collector") };
    let changes = WorkQueue::<()>::new("garbage_collector_discovery");
    // metadata alone tells that there is a change
    let crds = metadata_informer::<CustomResourceDefinition>(ctx);
    let services = metadata_informer::<APIService>(ctx);
    for informer in [&crds, &services] {
        informer.add_event_handler(enqueue_by(&changes, |_: &Cached<PartialObjectMetadata>| Some(())));
    }
    let monitors =
        Arc::new(Monitors { ctx: ctx.clone(), client: client.clone(), sink: sink.clone(), running: Mutex::default() });
    let worker = Arc::new(Worker::new(ctx, client, sink));
    ctx.spawn(async move {
        changes.add(());
        while let Some(item) = changes.get().await {
            drop(item);
            tokio::time::sleep(DISCOVERY_PAUSE).await;
            let is_complete = monitors.refresh().await;
            if !is_complete {
                changes.add_after((), DISCOVERY_RETRY);
            }
            if !worker.is_started() {
                monitors.synced().await;
                worker.start();
            }
        }
    });
}

fn metadata_informer<K>(ctx: &Context) -> pintle_informer::SharedInformer<PartialObjectMetadata>
where
    K: k8s_openapi::Resource,
    K::Scope: 'static,
{
    let api = pintle_client::Api::metadata(&ctx.client, Arc::new(ApiResource::of::<K>()), "");
    ctx.private_informer(pintle_informer::ListWatch::new(api))
}

/// The monitors of all resources.
struct Monitors {
    ctx: Context,
    client: Client,
    sink: Sink,
    running: Mutex<BTreeMap<ApiResource, Monitor>>,
}

/// Resources whose objects nobody owns in earnest and that change all the time.
fn is_ignored(resource: &ApiResource) -> bool {
    resource.plural == "events" && (resource.group.is_empty() || resource.group == "events.k8s.io")
}

impl Monitors {
    /// Sees to it that exactly the resources that the server has are watched. Whether the server told all of them.
    async fn refresh(&self) -> bool {
        let discovery = match Discovery::run(&self.client).await {
            Ok(discovery) => discovery,
            Err(error) => {
                tracing::warn!(%error, "the garbage collector cannot discover resources");
                return false;
            }
        };
        let is_wanted = |verbs: &dyn Fn(&str) -> bool| ["delete", "list", "watch"].into_iter().all(verbs);
        let wanted: Vec<ApiResource> = discovery
            .preferred_resources()
            .filter(|resource| is_wanted(&|verb| resource.has_verb(verb)) && !is_ignored(&resource.resource))
            .map(|resource| resource.resource.clone())
            .collect();
        let stale: Vec<(Str, Str)> = discovery
            .groups
            .iter()
            .flat_map(|group| {
                group.versions.iter().filter(|v| v.is_stale).map(|v| (group.name.clone(), v.version.clone()))
            })
            .collect();
        let mut running = self.running.lock();
        // what cannot be asked for now may still be there
        let is_stale =
            |resource: &ApiResource| stale.iter().any(|(g, v)| *g == resource.group && *v == resource.version);
        running.retain(|resource, _| wanted.contains(resource) || is_stale(resource));
        for resource in wanted {
            running
                .entry(resource)
                .or_insert_with_key(|resource| Monitor::start(&self.ctx, &self.client, resource, &self.sink));
        }
        stale.is_empty()
    }

    /// Waits until the first lists of all monitors are in the graph.
    async fn synced(&self) {
        let waits: Vec<_> = self.running.lock().values().map(Monitor::synced).collect();
        futures_util::future::join_all(waits).await;
        tracing::debug!(n_objects = self.sink.graph.lock().len(), "the garbage collector knows what there is");
    }
}

impl Worker {
    /// Starts the workers, once.
    fn start(self: &Arc<Worker>) {
        self.mark_started();
        let (worker, queue, stop) = (Arc::clone(self), self.queue().clone(), self.stop().clone());
        tokio::spawn(async move {
            let work = run_workers(&queue, WORKERS, move |item| {
                let worker = Arc::clone(&worker);
                async move { quieted(&item, worker.work(item.clone()).await.map(|()| Action::Done)) }
            });
            stop.run_until_cancelled(work).await;
        });
    }
}
