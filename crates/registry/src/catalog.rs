//! All that is served: built-in resources from the kind catalogue, custom ones as definitions come and go.

use crate::fields::Fields;
use crate::resource::{Definition, Discovery, Resource, Store, StrategyRef};
use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use pintle_apimachinery::{GroupResource, GroupVersionKind, GroupVersionResource, Str};
use pintle_kinds::convert::stored_kind;
use pintle_storage::{Key, Storage};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What the keys of all objects begin with, unless the operator says otherwise.
pub const DEFAULT_PREFIX: &str = "/registry";

/// Gives each resource its storage: its watch cache, or the back end itself.
pub trait StorageFactory: Send + Sync + std::fmt::Debug {
    /// The storage of the keys under `root`. `fields` are what the resource lets be selected.
    fn storage(&self, resource: &GroupResource, root: &Key, fields: &Fields) -> Arc<dyn Storage>;

    /// The resource is not served any more.
    fn forget(&self, resource: &GroupResource);
}

/// What is served at one moment.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// By group, version and plural.
    resources: BTreeMap<(Str, Str, Str), Arc<Resource>>,
    documents: Documents,
}

/// Documents about what is served, made at most once. A copy, which is about to serve something else, has none.
#[derive(Debug, Default)]
struct Documents(Mutex<Vec<(u32, Bytes)>>);

impl Clone for Documents {
    fn clone(&self) -> Documents {
        Documents::default()
    }
}

impl Served {
    /// The document `key` about what is served now, made by `make` when it is first asked for.
    ///
    /// # Errors
    /// What `make` answers.
    pub fn document<E>(&self, key: u32, make: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        if let Some((_, made)) = self.documents.0.lock().iter().find(|(own, _)| *own == key) {
            return Ok(made.clone());
        }
        let made = make()?;
        let mut documents = self.documents.0.lock();
        if !documents.iter().any(|(own, _)| *own == key) {
            documents.push((key, made.clone()));
        }
        Ok(made)
    }

    /// The resource of this name.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        // the key type borrows as a whole only, and its parts are short enough to be copied without allocation
        self.resources.get(&(Str::new(group), Str::new(version), Str::new(plural)))
    }

    /// All resources.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// The resources of one group and version.
    pub fn group_version<'s>(&'s self, group: &'s str, version: &'s str) -> impl Iterator<Item = &'s Arc<Resource>> {
        self.resources.values().filter(move |r| r.gvr.group == group && r.gvr.version == version)
    }

    /// A version of the resource of this kind.
    pub fn of_kind(&self, kind: &GroupVersionKind) -> Option<&Arc<Resource>> {
        self.resources.values().find(|r| r.kind == *kind)
    }

    /// Some version of a resource, of custom ones the stored one if it is served.
    pub fn of_group_resource(&self, resource: &GroupResource) -> Option<&Arc<Resource>> {
        let mut versions =
            self.resources.values().filter(|r| r.gvr.group == resource.group && r.gvr.resource == resource.resource);
        let first = versions.next()?;
        if first.is_stored_form() {
            return Some(first);
        }
        Some(versions.find(|r| r.is_stored_form()).unwrap_or(first))
    }
}

/// The registry of what is served.
#[derive(Debug)]
pub struct Catalog {
    served: ArcSwap<Served>,
    factory: Arc<dyn StorageFactory>,
    prefix: String,
    event_ttl: Duration,
}

impl Catalog {
    /// The catalogue of all built-in resources over this storage. `prefix` is what all keys begin with;
    /// events are kept for `event_ttl`.
    pub fn new(factory: Arc<dyn StorageFactory>, prefix: &str, event_ttl: Duration) -> Catalog {
        let prefix = prefix.trim_end_matches('/').to_owned();
        let catalog = Catalog { served: ArcSwap::default(), factory, prefix, event_ttl };
        catalog.served.store(Arc::new(catalog.builtin()));
        catalog
    }

    /// What is served now.
    pub fn served(&self) -> arc_swap::Guard<Arc<Served>> {
        self.served.load()
    }

    /// What all keys begin with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Where storage comes from.
    pub fn factory(&self) -> &Arc<dyn StorageFactory> {
        &self.factory
    }

    /// Replaces the resources of a custom resource by these (none: it is not served any more).
    pub fn set_custom(&self, resource: &GroupResource, versions: Vec<Arc<Resource>>) {
        self.served.rcu(|served| {
            let mut next = Served::clone(served);
            next.resources.retain(|_, r| r.gvr.group != resource.group || r.gvr.resource != resource.resource);
            for version in &versions {
                next.resources.insert(key(&version.gvr), version.clone());
            }
            next
        });
    }

    fn builtin(&self) -> Served {
        let mut served = Served::default();
        let mut stores: BTreeMap<GroupResource, Arc<Store>> = BTreeMap::new();
        for row in pintle_schema::resources().iter().filter(|r| r.subresource.is_empty() && is_stored(r)) {
            let own = GroupResource::new(row.group, row.plural);
            let home = home_of(&own);
            let store = stores.entry(home.clone()).or_insert_with(|| self.store(&home)).clone();
            let resource = Arc::new(builtin_resource(row, &own, store));
            served.resources.insert(key(&resource.gvr), resource);
        }
        served
    }

    fn store(&self, home: &GroupResource) -> Arc<Store> {
        let strategy = strategy_of(home);
        let fields = Fields::Table(strategy.selectable_fields());
        let root = Key::new(format!("{}/{}/", self.prefix, key_folder(home)));
        let storage = self.factory.storage(home, &root, &fields);
        let ttl = (home.resource == "events").then_some(self.event_ttl);
        let service_pools = std::sync::OnceLock::new();
        Arc::new(Store { group_resource: home.clone(), storage, root, fields, ttl, service_pools })
    }
}

fn key(gvr: &GroupVersionResource) -> (Str, Str, Str) {
    (gvr.group.clone(), gvr.version.clone(), gvr.resource.clone())
}

/// The strategy of a built-in resource.
fn strategy_of(resource: &GroupResource) -> &'static dyn pintle_kinds::Strategy {
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => &pintle_apiextensions::DefinitionStrategy,
        (group, plural) => pintle_kinds::strategy_for(group, plural),
    }
}

/// Whether objects of the resource lie in the store (reviews, bindings and component statuses do not).
fn is_stored(row: &pintle_schema::Resource) -> bool {
    row.verbs.contains(&"watch")
}

/// The resource under whose name the objects lie: events of both groups are the same objects.
fn home_of(resource: &GroupResource) -> GroupResource {
    if resource.group == "events.k8s.io" { GroupResource::new("", "events") } else { resource.clone() }
}

/// The folder of a resource's keys, as upstream lays it out.
fn key_folder(resource: &GroupResource) -> String {
    match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        ("apiregistration.k8s.io" | "apiextensions.k8s.io", plural) => format!("{}/{plural}", resource.group),
        (_, plural) => plural.to_owned(),
    }
}

fn builtin_resource(row: &pintle_schema::Resource, own: &GroupResource, store: Arc<Store>) -> Resource {
    let kind = GroupVersionKind::new(row.group, row.version, row.kind);
    let stored_kind = stored_kind(&kind);
    let id = pintle_schema::kind(row.group, row.version, row.kind).map(|k| k.id);
    let subresources: Vec<Str> = pintle_schema::resources()
        .iter()
        .filter(|r| {
            r.group == row.group && r.version == row.version && r.plural == row.plural && !r.subresource.is_empty()
        })
        .map(|r| Str::const_new(r.subresource))
        .collect();
    let strategy = strategy_of(own);
    Resource {
        reset_fields: crate::resource::reset_sets(strategy, &subresources),
        gvr: GroupVersionResource::new(row.group, row.version, row.plural),
        group_resource: own.clone(),
        list_kind: compact_str::format_compact!("{}List", row.kind),
        is_namespaced: row.is_namespaced,
        strategy_kind: stored_kind.clone(),
        stored_kind,
        strategy: StrategyRef::Static(strategy),
        definition: Definition::Builtin(id.unwrap_or(pintle_schema::TypeId(0))),
        store,
        verbs: row.verbs.iter().map(|v| Str::const_new(v)).collect(),
        subresources,
        discovery: Discovery {
            singular: Str::const_new(row.singular),
            short_names: row.short_names.iter().map(|s| Str::const_new(s)).collect(),
            categories: row.categories.iter().map(|c| Str::const_new(c)).collect(),
            storage_version_hash: Str::const_new(row.storage_version_hash),
        },
        kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_resource_has_a_type_and_a_folder_of_its_own() {
        let mut folders = std::collections::BTreeSet::new();
        let mut homes = std::collections::BTreeSet::new();
        for row in pintle_schema::resources().iter().filter(|r| r.subresource.is_empty() && is_stored(r)) {
            assert!(pintle_schema::kind(row.group, row.version, row.kind).is_some(), "{}", row.kind);
            let home = home_of(&GroupResource::new(row.group, row.plural));
            if homes.insert(home.clone()) {
                assert!(folders.insert(key_folder(&home)), "{home}");
            }
        }
        assert_eq!(folders.len(), 56);
    }
}
