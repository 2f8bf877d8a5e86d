//! [`SharedInformerFactory`]: one informer for each kind, shared by everybody in a program.

use super::{SharedInformer, SharedInformerOptions};
use crate::lister_watcher::{ListWatch, TransformFunc};
use k8s_openapi::{Metadata, Resource};
use parking_lot::Mutex;
use pintle_client::{Api, ApiResource, Client, DynamicObject, Object, ObjectScope};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Makes informers, one for each kind, and runs them. Cheap to clone.
#[derive(Clone)]
pub struct SharedInformerFactory {
    shared: Arc<FactoryShared>,
}

struct FactoryShared {
    client: Client,
    namespace: String,
    options: SharedInformerOptions,
    informers: Mutex<BTreeMap<(ApiResource, TypeId), Entry>>,
}

struct Entry {
    /// A `SharedInformer<K>` of the `K` in the key.
    informer: Box<dyn Any + Send>,
    /// The same, without its type.
    run: Arc<dyn Run>,
    task: Option<JoinHandle<()>>,
}

/// An informer of any kind.
trait Run: Send + Sync {
    fn run(self: Arc<Self>, stop: CancellationToken) -> futures_util::future::BoxFuture<'static, ()>;
    fn synced(self: Arc<Self>) -> futures_util::future::BoxFuture<'static, ()>;
}

impl<K: Object> Run for SharedInformer<K> {
    fn run(self: Arc<Self>, stop: CancellationToken) -> futures_util::future::BoxFuture<'static, ()> {
        Box::pin(async move { SharedInformer::run(&self, stop).await })
    }

    fn synced(self: Arc<Self>) -> futures_util::future::BoxFuture<'static, ()> {
        Box::pin(async move { SharedInformer::synced(&self).await })
    }
}

impl std::fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let informers = self.shared.informers.lock();
        f.debug_list().entries(informers.keys().map(|(resource, _)| resource.gvr().to_string())).finish()
    }
}

impl SharedInformerFactory {
    /// A factory for all namespaces.
    pub fn new(client: &Client) -> SharedInformerFactory {
        SharedInformerFactory::with_options(client, "", SharedInformerOptions::default())
    }

    /// A factory for one namespace (empty for all), whose informers behave as told.
    pub fn with_options(client: &Client, namespace: &str, options: SharedInformerOptions) -> SharedInformerFactory {
        let namespace = namespace.to_owned();
        let shared = FactoryShared { client: client.clone(), namespace, options, informers: Mutex::default() };
        SharedInformerFactory { shared: Arc::new(shared) }
    }

    /// A factory whose handlers are shown every object again after each `period`.
    pub fn with_resync(client: &Client, period: Duration) -> SharedInformerFactory {
        let options = SharedInformerOptions { resync_period: Some(period), ..SharedInformerOptions::default() };
        SharedInformerFactory::with_options(client, "", options)
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// The informer of a kind: the same one for everybody who asks.
    pub fn informer<K: Object + Resource + Metadata>(&self) -> SharedInformer<K>
    where
        K::Scope: ObjectScope,
    {
        self.informer_of(&ApiResource::of::<K>(), |list_watch| list_watch)
    }

    /// As [`informer`](SharedInformerFactory::informer), with a transform if this is the first to ask.
    pub fn informer_with_transform<K: Object + Resource + Metadata>(
        &self,
        transform: TransformFunc<K>,
    ) -> SharedInformer<K>
    where
        K::Scope: ObjectScope,
    {
        self.informer_of(&ApiResource::of::<K>(), |list_watch| list_watch.transform(transform))
    }

    /// The informer of a resource known at run time.
    pub fn dynamic(&self, resource: &ApiResource) -> SharedInformer<DynamicObject> {
        self.informer_of(resource, |list_watch| list_watch)
    }

    /// The informer of `resource` read as `K`; `configure` restricts or changes what it sees if this is the first to
    /// ask.
    pub fn informer_of<K: Object>(
        &self,
        resource: &ApiResource,
        configure: impl FnOnce(ListWatch<K>) -> ListWatch<K>,
    ) -> SharedInformer<K> {
        let mut informers = self.shared.informers.lock();
        let key = (resource.clone(), TypeId::of::<K>());
        if let Some(informer) = informers.get(&key).and_then(|entry| entry.informer.downcast_ref::<SharedInformer<K>>())
        {
            return informer.clone();
        }
        let api = Api::of_resource(&self.shared.client, Arc::new(resource.clone()), &self.shared.namespace);
        let mut options = self.shared.options.clone();
        options.reflector.name = resource.gvr().to_string();
        options.reflector.env = self.shared.client.env().clone();
        let informer = SharedInformer::with_options(configure(ListWatch::new(api)), options);
        let entry = Entry { informer: Box::new(informer.clone()), run: Arc::new(informer.clone()), task: None };
        informers.insert(key, entry);
        informer
    }

    /// Starts the informers that are not started yet. They run until `stop`.
    pub fn start(&self, stop: &CancellationToken) {
        for entry in self.shared.informers.lock().values_mut().filter(|entry| entry.task.is_none()) {
            entry.task = Some(tokio::spawn(Arc::clone(&entry.run).run(stop.clone())));
        }
    }

    /// Waits until the caches of all informers asked for so far hold the first list.
    pub async fn wait_for_cache_sync(&self) {
        let informers: Vec<Arc<dyn Run>> =
            self.shared.informers.lock().values().map(|entry| Arc::clone(&entry.run)).collect();
        for informer in informers {
            informer.synced().await;
        }
    }

    /// Waits until the informers have ended, after their `stop`.
    pub async fn shutdown(&self) {
        let tasks: Vec<JoinHandle<()>> =
            self.shared.informers.lock().values_mut().filter_map(|entry| entry.task.take()).collect();
        for task in tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "an informer ended badly");
            }
        }
    }
}
