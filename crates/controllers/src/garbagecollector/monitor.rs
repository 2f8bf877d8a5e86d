//! Monitors: one metadata-only watch for each resource, straight into the graph. No cache is kept beside it.

use super::graph::{Effect, Graph, Identity, Owner, Seen};
use super::{GarbageQueue, Item};
use crate::context::Context;
use parking_lot::Mutex;
use pintle_apimachinery::Str;
use pintle_apimachinery::meta::well_known::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN};
use pintle_client::{Api, ApiResource, Client, PartialObjectMetadata};
use pintle_informer::reflector::{Reflector, ReflectorConfig};
use pintle_informer::store::Store;
use pintle_informer::{Cached, CancellationToken, ListWatch};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

/// An object in a monitor's watch.
type Metadata = Cached<PartialObjectMetadata>;

/// What the monitors share.
#[derive(Clone)]
pub(super) struct Sink {
    pub(super) graph: Arc<Mutex<Graph>>,
    pub(super) queue: GarbageQueue,
}

impl Sink {
    /// Puts what a change of the graph asks for into the queue.
    pub(super) fn perform(&self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::AttemptToDelete { uid, is_virtual } => self.queue.add(Item::Delete { uid, is_virtual }),
                Effect::AttemptToDeleteLater { uid } => {
                    self.queue.add_rate_limited(Item::Delete { uid, is_virtual: true });
                }
                Effect::AttemptToOrphan { uid } => self.queue.add(Item::Orphan { uid }),
                Effect::OwnerInOtherNamespace { dependent, owner } => {
                    self.queue.add(Item::Tell { dependent: Box::new(dependent), owner: owner.uid });
                }
            }
        }
    }
}

/// The watch of one resource. Dropping it ends it, and its objects leave the graph.
pub(super) struct Monitor {
    stop: CancellationToken,
    feed: Arc<Feed>,
}

impl Monitor {
    /// Starts to watch.
    pub(super) fn start(ctx: &Context, client: &Client, resource: &ApiResource, sink: &Sink) -> Monitor {
        let feed = Arc::new(Feed {
            resource: resource.clone(),
            sink: sink.clone(),
            uids: Mutex::default(),
            synced: watch::Sender::new(false),
        });
        let source = ListWatch::new(Api::metadata(client, Arc::new(resource.clone()), ""));
        let config =
            ReflectorConfig { name: resource.gvr().to_string(), env: ctx.env().clone(), ..ReflectorConfig::default() };
        let store: Arc<dyn Store<Metadata>> = Arc::<Feed>::clone(&feed);
        let reflector = Reflector::new(Arc::new(source), store, config);
        let stop = ctx.stop().child_token();
        let until = stop.clone();
        tokio::spawn(async move { reflector.run(until).await });
        Monitor { stop, feed }
    }

    /// Waits until the first list is in the graph.
    pub(super) fn synced(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut synced = self.feed.synced.subscribe();
        async move {
            // an ended monitor is waited for no longer
            let _ = synced.wait_for(|is_synced| *is_synced).await;
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop.cancel();
        // its resource is not served any more: nobody will tell of the ends of its objects
        for uid in std::mem::take(&mut *self.feed.uids.lock()) {
            let effects = self.feed.sink.graph.lock().gone(&uid);
            self.feed.sink.perform(effects);
        }
        self.feed.synced.send_replace(true);
    }
}

/// Takes in what the reflector brings.
struct Feed {
    resource: ApiResource,
    sink: Sink,
    /// The objects of this resource that are in the graph.
    uids: Mutex<BTreeSet<Str>>,
    synced: watch::Sender<bool>,
}

impl Feed {
    fn seen(&self, object: &Metadata) {
        let mut graph = self.sink.graph.lock();
        let seen = self.read(object, &mut graph);
        let effects = graph.seen(seen);
        drop(graph);
        self.sink.perform(effects);
    }

    fn gone(&self, uid: &str) {
        let effects = self.sink.graph.lock().gone(uid);
        self.sink.perform(effects);
    }

    fn read(&self, object: &Metadata, graph: &mut Graph) -> Seen {
        let (owners, finalizers) = facts(object);
        let owners = owners.into_iter().map(|(api_version, kind, name, uid, blocks)| Owner {
            kind: graph.kind(&api_version, &kind),
            name,
            uid,
            blocks,
        });
        let owners = owners.collect();
        let identity = Identity {
            kind: graph.kind(&self.resource.api_version(), &self.resource.kind),
            namespace: Str::new(object.namespace()),
            name: Str::new(object.name()),
            uid: Str::new(object.uid()),
        };
        Seen {
            identity,
            owners,
            is_terminating: object.is_terminating(),
            has_orphan_finalizer: finalizers.iter().any(|f| f == FINALIZER_ORPHAN),
            has_foreground_finalizer: finalizers.iter().any(|f| f == FINALIZER_FOREGROUND),
        }
    }
}

type OwnerFacts = (String, String, Str, Str, bool);

/// Owners and finalizers; most objects have neither, and then nothing is decoded.
fn facts(object: &Metadata) -> (Vec<OwnerFacts>, Vec<String>) {
    let is_plain = object.owner_refs().next().is_none() && object.value_at(&["metadata", "finalizers"]).is_none();
    let decoded = if is_plain { None } else { object.object().ok() };
    let Some(decoded) = decoded else { return Default::default() };
    let meta = &decoded.metadata;
    let owners = meta.owner_references.iter().flatten().map(|owner| {
        let blocks = owner.block_owner_deletion.unwrap_or_default();
        (owner.api_version.clone(), owner.kind.clone(), Str::new(&owner.name), Str::new(&owner.uid), blocks)
    });
    (owners.collect(), meta.finalizers.clone().unwrap_or_default())
}

impl Store<Metadata> for Feed {
    fn add(&self, object: Metadata) {
        self.uids.lock().insert(Str::new(object.uid()));
        self.seen(&object);
    }

    fn update(&self, object: Metadata) {
        self.add(object);
    }

    fn delete(&self, object: Metadata) {
        self.uids.lock().remove(object.uid());
        self.gone(object.uid());
    }

    fn replace(&self, objects: Vec<Metadata>, _resource_version: &str) {
        let now: BTreeSet<Str> = objects.iter().map(|object| Str::new(object.uid())).collect();
        let before = std::mem::replace(&mut *self.uids.lock(), now.clone());
        for uid in before.difference(&now) {
            self.gone(uid);
        }
        for object in &objects {
            self.seen(object);
        }
        self.synced.send_replace(true);
    }
}
