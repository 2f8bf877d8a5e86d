//! Feeds: indexes in memory kept at what the store holds, by a list and a watch of the store itself.

use crate::allocate::ServicePools;
use crate::catalog::Catalog;
use crate::resource::Resource;
use futures_util::StreamExt;
use futures_util::future::join_all;
use pintle_apimachinery::{GroupResource, Value};
use pintle_auth::authz::node::Nodes;
use pintle_auth::authz::rbac::Rbac;
use pintle_storage::{At, Event, ListRequest, StorageError, WatchItem, WatchRequest, WatchStream};
use std::sync::Arc;
use std::time::Duration;

/// Pause before a broken feed is opened again.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// What a feed keeps up to date. `resource` is the plural.
pub trait Sink: Send + Sync {
    /// All objects there are.
    fn replace(&self, resource: &str, objects: &[Value]);
    /// One changed. Both are in the stored form.
    fn change(&self, resource: &str, names: (&str, &str), object: Option<&Value>, previous: Option<&Value>);
}

impl Sink for Rbac {
    fn replace(&self, resource: &str, objects: &[Value]) {
        Rbac::replace(self, resource, objects);
    }

    fn change(
        &self,
        resource: &str,
        (namespace, name): (&str, &str),
        object: Option<&Value>,
        _previous: Option<&Value>,
    ) {
        match object {
            Some(object) => self.put(resource, object),
            None => self.remove(resource, namespace, name),
        }
    }
}

impl Sink for Nodes {
    fn replace(&self, resource: &str, objects: &[Value]) {
        Nodes::replace(self, resource, objects);
    }

    fn change(
        &self,
        resource: &str,
        (namespace, name): (&str, &str),
        object: Option<&Value>,
        _previous: Option<&Value>,
    ) {
        match object {
            Some(object) => self.put(resource, object),
            None => self.remove(resource, namespace, name),
        }
    }
}

impl Sink for ServicePools {
    fn replace(&self, _resource: &str, objects: &[Value]) {
        objects.iter().for_each(|service| self.note(service));
    }

    fn change(&self, _resource: &str, _names: (&str, &str), object: Option<&Value>, previous: Option<&Value>) {
        // An address that is freed here and taken by another service meanwhile is claimed in the store all the same.
        if let Some(previous) = previous {
            self.forget(previous);
        }
        if let Some(service) = object {
            self.note(service);
        }
    }
}

/// The resources whose objects say who may do what.
pub const RBAC_RESOURCES: &[(&str, &str)] = &[
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
];

/// Where service addresses are seen.
pub const SERVICES: &[(&str, &str)] = &[("", "services")];

/// Fills `sink` from these resources and keeps it up to date, in a task that ends with the runtime. Returns when the
/// sink holds all that there is.
pub async fn feed(catalog: &Catalog, resources: &[(&str, &'static str)], sink: Arc<dyn Sink>) {
    let mut feeds = Vec::new();
    for (group, name) in resources {
        if let Some(resource) = catalog.served().of_group_resource(&GroupResource::new(group, name)).cloned() {
            feeds.push(Feed { resource, name, sink: sink.clone() });
        }
    }
    let streams = join_all(feeds.iter().map(Feed::fill)).await;
    for (feed, stream) in feeds.into_iter().zip(streams) {
        tokio::spawn(async move { feed.follow(stream).await });
    }
}

struct Feed {
    resource: Arc<Resource>,
    name: &'static str,
    sink: Arc<dyn Sink>,
}

impl Feed {
    /// Puts all that there is into the sink; the watch that goes on from there.
    async fn fill(&self) -> WatchStream {
        loop {
            match self.try_fill().await {
                Ok(stream) => return stream,
                Err(why) => {
                    tracing::warn!(resource = self.name, %why, "cannot read the store; trying again");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn try_fill(&self) -> Result<WatchStream, StorageError> {
        let storage = &self.resource.store.storage;
        let prefix = self.resource.store.root.clone();
        let request = ListRequest { prefix: prefix.clone(), start: None, limit: 0, at: At::Latest };
        let listing = storage.list(request).await?;
        let objects: Vec<Value> =
            listing.records.iter().filter_map(|record| crate::foreign::read(&record.value).ok()).collect();
        self.sink.replace(self.name, &objects);
        storage.watch(WatchRequest { prefix, since: listing.revision, filter: None, progress: false }).await
    }

    async fn follow(&self, mut stream: WatchStream) {
        loop {
            match stream.next().await {
                Some(Ok(WatchItem::Events(events))) => events.iter().for_each(|event| self.change(event)),
                Some(Ok(WatchItem::Progress(_))) => {}
                Some(Err(why)) => {
                    tracing::warn!(resource = self.name, %why, "a watch of the store broke; reading it again");
                    stream = self.fill().await;
                }
                None => stream = self.fill().await,
            }
        }
    }

    fn change(&self, event: &Event) {
        let read = |record: &Option<Arc<pintle_storage::Record>>| {
            record.as_ref().and_then(|record| crate::foreign::read(&record.value).ok())
        };
        let (object, previous) = (read(&event.record), read(&event.previous));
        let names = self.resource.store.names(&event.key);
        self.sink.change(self.name, names, object.as_ref(), previous.as_ref());
    }
}
