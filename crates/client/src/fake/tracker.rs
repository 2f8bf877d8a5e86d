//! The objects, and what the verbs do to them.

use super::log::{Change, Log, Objects};
use super::patch;
use super::route::Route;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::fieldselector::FieldSelector;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::Meta as _;
use pintle_apimachinery::status::{Details, Result};
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{Status, Str, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Namespace and name.
pub(super) type Key = (Str, Str);

/// Which objects a request is about.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    namespace: Str,
    labels: Selector,
    fields: FieldSelector,
}

impl Selection {
    pub(super) fn of(route: &Route) -> Result<Selection> {
        let bad = |why: String| Box::new(Status::bad_request(why));
        Ok(Selection {
            namespace: route.namespace.clone(),
            labels: Selector::parse(route.query.get("labelSelector")).map_err(bad)?,
            fields: FieldSelector::parse(route.query.get("fieldSelector")).map_err(bad)?,
        })
    }

    pub(super) fn matches(&self, key: &Key, object: &Value) -> bool {
        (self.namespace.is_empty() || self.namespace == key.0)
            && self.labels.matches(&object["metadata"]["labels"])
            && self.fields.matches(|path| field(object, path))
    }
}

/// The text of any field, as selectors compare it.
fn field<'a>(object: &'a Value, path: &str) -> Cow<'a, str> {
    match object.at(path) {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_json_string()),
    }
}

/// The objects of one resource.
#[derive(Debug, Default)]
pub(super) struct Collection {
    pub(super) objects: Objects,
    pub(super) log: Log,
    pub(super) api_version: Str,
    pub(super) kind: Str,
    /// What was there at the versions of which somebody may want a further page.
    pages: BTreeMap<u64, Arc<Objects>>,
}

/// What a continue token says.
struct PageStart {
    revision: u64,
    after: Key,
}

impl PageStart {
    fn read(token: &str) -> Result<Option<PageStart>> {
        if token.is_empty() {
            return Ok(None);
        }
        let mut parts = token.splitn(3, '/');
        let mut read = || Some((parts.next()?.parse().ok()?, Str::new(parts.next()?), Str::new(parts.next()?)));
        let (revision, namespace, name) =
            read().ok_or_else(|| Box::new(Status::bad_request("invalid continue token")))?;
        Ok(Some(PageStart { revision, after: (namespace, name) }))
    }
}

/// All objects.
#[derive(Debug)]
pub(super) struct Tracker {
    collections: BTreeMap<(Str, Str), Collection>,
    pub(super) revision: u64,
    env: Env,
}

impl Tracker {
    pub(super) fn new(env: Env) -> Tracker {
        // never 0 on the wire: "0" means any version
        Tracker { collections: BTreeMap::new(), revision: 1, env }
    }

    pub(super) fn collection(&mut self, route: &Route) -> &mut Collection {
        self.collections.entry((route.group.clone(), route.resource.clone())).or_default()
    }

    pub(super) fn find(&self, route: &Route) -> Option<&Collection> {
        self.collections.get(&(route.group.clone(), route.resource.clone()))
    }

    /// Forgets what happened so far: watches from older versions are too old.
    pub(super) fn compact(&mut self) {
        let revision = self.revision;
        for collection in self.collections.values_mut() {
            collection.log.compact(revision);
            collection.pages.clear();
        }
    }

    pub(super) fn get(&self, route: &Route) -> Result<Arc<Value>> {
        let found = self.find(route).and_then(|c| c.objects.get(&key(route)));
        found.cloned().ok_or_else(|| Box::new(Status::not_found(&route.group_resource(), &route.name)))
    }

    /// Puts an object in as it is.
    pub(super) fn seed(&mut self, route: &Route, mut object: Value) {
        self.complete(&mut object);
        let key = (Str::new(object.namespace()), Str::new(object.name()));
        self.commit(route, key, Some(object));
    }

    pub(super) fn create(&mut self, route: &Route, mut object: Value) -> Result<Arc<Value>> {
        let resource = route.group_resource();
        if !route.namespace.is_empty() {
            match object.namespace() {
                "" => object.make("metadata").set("namespace", route.namespace.as_str()),
                named if named == route.namespace => {}
                _ => {
                    let why = "the namespace of the provided object does not match the namespace sent on the request";
                    return Err(Box::new(Status::bad_request(why)));
                }
            }
        }
        if object.name().is_empty() {
            let prefix = object.metadata()["generateName"].str_or_empty().to_owned();
            if prefix.is_empty() {
                let why = "name or generateName is required";
                return Err(Box::new(Status::failure(
                    422,
                    "Invalid",
                    format!("{resource} \"\" is invalid: metadata.name: Required value: {why}"),
                )));
            }
            let name = format!("{prefix}{}", self.env.ids.name_suffix(5));
            object.make("metadata").set("name", name);
        }
        let key = (Str::new(object.namespace()), Str::new(object.name()));
        if self.find(route).is_some_and(|c| c.objects.contains_key(&key)) {
            return Err(Box::new(Status::already_exists(&resource, &key.1)));
        }
        if !object.resource_version().is_empty() {
            return Err(Box::new(Status::plain_error("resourceVersion should not be set on objects to be created")));
        }
        object.make("metadata").remove("uid");
        self.complete(&mut object);
        Ok(self.commit(route, key, Some(object)))
    }

    /// Gives an object what the server owns.
    fn complete(&mut self, object: &mut Value) {
        let uid = self.env.ids.uid();
        let now = time_value(self.env.clock.now());
        let metadata = object.make("metadata");
        metadata.set_default("uid", Value::String(uid));
        metadata.set_default("creationTimestamp", now);
        if object.has("spec") {
            object.make("metadata").set_default("generation", 1_i64);
        }
    }

    pub(super) fn update(&mut self, route: &Route, object: Value) -> Result<Arc<Value>> {
        let live = self.get(route)?;
        if object.name() != route.name {
            let why = format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                object.name(),
                route.name
            );
            return Err(Box::new(Status::bad_request(why)));
        }
        self.replace(route, &live, object)
    }

    pub(super) fn patch(&mut self, route: &Route, content_type: &str, body: &[u8]) -> Result<Arc<Value>> {
        let live = match self.get(route) {
            Ok(live) => live,
            Err(status) if content_type.starts_with("application/apply-patch") && status.is("NotFound") => {
                let mut object = patch::parse(body)?;
                object.make("metadata").set("name", route.name.as_str());
                return self.create(route, object);
            }
            Err(status) => return Err(status),
        };
        let base = if route.subresource == "scale" { scale_of(&live) } else { live.as_ref().clone() };
        let mut patched = patch::apply(content_type, base, body)?;
        if patched.resource_version().is_empty() {
            patched.make("metadata").set("resourceVersion", live.resource_version());
        }
        self.replace(route, &live, patched)
    }

    /// Commits the new state of an object, after the subresource's part of it.
    fn replace(&mut self, route: &Route, live: &Arc<Value>, wanted: Value) -> Result<Arc<Value>> {
        let resource = route.group_resource();
        let version = wanted.resource_version();
        if !version.is_empty() && version != live.resource_version() {
            return Err(Box::new(Status::stale(&resource, &route.name)));
        }
        if !wanted.uid().is_empty() && wanted.uid() != live.uid() {
            let why = format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {}",
                wanted.uid(),
                live.uid()
            );
            return Err(Box::new(Status::conflict(&resource, &route.name, why)));
        }
        let mut object = match route.subresource.as_str() {
            "status" => {
                let mut object = live.as_ref().clone();
                object.set("status", wanted["status"].clone());
                object
            }
            "scale" => {
                let mut object = live.as_ref().clone();
                object.make("spec").set("replicas", wanted["spec"]["replicas"].clone());
                object
            }
            _ => {
                let mut object = wanted;
                match &live["status"] {
                    Value::Null => drop(object.remove("status")),
                    status => object.set("status", status.clone()),
                }
                object
            }
        };
        let metadata = object.make("metadata");
        for owned in [
            "uid",
            "creationTimestamp",
            "generation",
            "resourceVersion",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            match &live["metadata"][owned] {
                Value::Null => drop(metadata.remove(owned)),
                value => metadata.set(owned, value.clone()),
            }
        }
        if object == **live {
            return Ok(Arc::clone(live));
        }
        if object["spec"] != live["spec"] {
            let generation = live.generation() + 1;
            object.make("metadata").set("generation", generation);
        }
        let is_finished = object.is_terminating() && object.finalizers().next().is_none();
        if is_finished {
            self.commit(route, key(route), None);
            return Ok(Arc::new(object));
        }
        Ok(self.commit(route, key(route), Some(object)))
    }

    /// Deletes an object, or marks it when finalizers hold it: gives the answer.
    pub(super) fn delete(&mut self, route: &Route, options: &Value) -> Result<Value> {
        let live = self.get(route)?;
        let resource = route.group_resource();
        for (field, name, actual) in
            [("uid", "UID", live.uid()), ("resourceVersion", "ResourceVersion", live.resource_version())]
        {
            let wanted = options["preconditions"][field].str_or_empty();
            if !wanted.is_empty() && wanted != actual {
                let why =
                    format!("Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {actual}");
                return Err(Box::new(Status::conflict(&resource, &route.name, why)));
            }
        }
        let mut object = live.as_ref().clone();
        let held_by = match options["propagationPolicy"].as_str() {
            Some("Orphan") => Some(pintle_apimachinery::meta::well_known::FINALIZER_ORPHAN),
            Some("Foreground") => Some(pintle_apimachinery::meta::well_known::FINALIZER_FOREGROUND),
            _ => None,
        };
        if let Some(finalizer) = held_by {
            pintle_apimachinery::meta::add_finalizer(&mut object, finalizer);
        }
        if object.finalizers().next().is_none() {
            self.commit(route, key(route), None);
            let details = Details {
                name: route.name.to_string(),
                group: route.group.clone(),
                kind: route.resource.clone(),
                uid: Str::new(live.uid()),
                ..Details::default()
            };
            return Ok(Status::success(Some(details)).to_value());
        }
        if !object.is_terminating() {
            let now = time_value(self.env.clock.now());
            object.make("metadata").set("deletionTimestamp", now);
            object.make("metadata").set("deletionGracePeriodSeconds", 0_i64);
        }
        if object == *live {
            return Ok(object);
        }
        Ok(self.commit(route, key(route), Some(object)).as_ref().clone())
    }

    pub(super) fn delete_collection(&mut self, route: &Route, options: &Value) -> Result<Value> {
        let selection = Selection::of(route)?;
        let keys: Vec<Key> = self.selected(route, &selection).map(|(key, _)| key.clone()).collect();
        for (namespace, name) in keys {
            self.delete(&Route { namespace, name, ..route.clone() }, options)?;
        }
        Ok(Status::success(None).to_value())
    }

    fn selected<'a>(
        &'a self,
        route: &Route,
        selection: &'a Selection,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> + use<'a> {
        let objects = self.find(route).map(|collection| collection.objects.iter());
        objects.into_iter().flatten().filter(|(key, object)| selection.matches(key, object))
    }

    /// A list, or a page of it. All pages are of the version of the first.
    pub(super) fn list(&mut self, route: &Route) -> Result<Value> {
        let selection = Selection::of(route)?;
        let limit: usize = route.query.get("limit").parse().ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let start = PageStart::read(route.query.get("continue"))?;
        let (revision, objects) = match &start {
            Some(start) => {
                let pages = self.find(route).and_then(|collection| collection.pages.get(&start.revision));
                let too_old = "The provided continue parameter is too old to display a consistent list result.";
                (start.revision, Arc::clone(pages.ok_or_else(|| Box::new(Status::expired(too_old)))?))
            }
            None => self.state_for(route, limit)?,
        };
        let mut selected = objects
            .iter()
            .filter(|(key, object)| selection.matches(key, object))
            .filter(|(key, _)| start.as_ref().is_none_or(|start| **key > start.after))
            .peekable();
        let mut items = Vec::new();
        let mut last = None;
        while let Some((key, object)) = selected.next_if(|_| items.len() < limit) {
            items.push(object.as_ref().clone());
            last = Some(key);
        }
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if let (Some(_), Some((namespace, name))) = (selected.peek(), last) {
            metadata.set("continue", format!("{revision}/{namespace}/{name}"));
            metadata.set("remainingItemCount", i64::try_from(selected.count()).unwrap_or_default());
            self.collection(route).pages.insert(revision, Arc::clone(&objects));
        }
        let (api_version, kind) = self.types(route);
        let items: Value = items.into_iter().collect();
        Ok(json!({ "apiVersion": api_version, "kind": format!("{kind}List"), "metadata": metadata, "items": items }))
    }

    /// The state that a list shows, and its revision: the newest one, or the very one that was asked for.
    fn state_for(&self, route: &Route, limit: usize) -> Result<(u64, Arc<Objects>)> {
        let mut objects = self.find(route).map(|collection| collection.objects.clone()).unwrap_or_default();
        let wanted = match route.query.get("resourceVersion") {
            "" | "0" => None,
            text => {
                Some(text.parse::<u64>().map_err(|_| Box::new(Status::bad_request("resourceVersion: Invalid value")))?)
            }
        };
        // as the real server: with a limit, a version is exact unless the request says otherwise
        let is_exact = match route.query.get("resourceVersionMatch") {
            "" => limit != usize::MAX,
            how => how == "Exact",
        };
        match wanted {
            Some(wanted) if wanted > self.revision => {
                let why = format!("Too large resource version: {wanted}, current: {}", self.revision);
                let cause = "Too large resource version";
                Err(Box::new(Status::timeout(why, 1).with_cause("ResourceVersionTooLarge", cause, "")))
            }
            Some(wanted) if is_exact => {
                if let Some(collection) = self.find(route) {
                    collection.log.undo(wanted, &mut objects);
                }
                Ok((wanted, Arc::new(objects)))
            }
            Some(_) | None => Ok((self.revision, Arc::new(objects))),
        }
    }

    /// The collection's version and kind, as its objects said.
    pub(super) fn types(&self, route: &Route) -> (Str, Str) {
        let known = self.find(route).filter(|collection| !collection.kind.is_empty());
        known.map_or_else(
            || {
                let api_version = if route.group.is_empty() {
                    route.version.clone()
                } else {
                    format!("{}/{}", route.group, route.version).into()
                };
                (api_version, Str::new("Object"))
            },
            |collection| (collection.api_version.clone(), collection.kind.clone()),
        )
    }

    /// Stores the new state of an object (`None`: deleted) as the next revision.
    fn commit(&mut self, route: &Route, key: Key, object: Option<Value>) -> Arc<Value> {
        self.revision += 1;
        let revision = self.revision;
        let collection = self.collection(route);
        let old = collection.objects.remove(&key);
        let new = object.map(|mut object| {
            object.make("metadata").set("resourceVersion", revision.to_string());
            collection.api_version = Str::new(object.api_version());
            collection.kind = Str::new(object.kind());
            Arc::new(object)
        });
        if let Some(new) = &new {
            collection.objects.insert(key.clone(), Arc::clone(new));
        }
        let result = new.clone().or_else(|| old.clone()).unwrap_or_default();
        collection.log.push(Change { revision, key, old, new });
        result
    }
}

/// The `Scale` of an object with `spec.replicas`.
pub(super) fn scale_of(object: &Value) -> Value {
    let meta = object.metadata();
    json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {
            "name": meta["name"].clone(), "namespace": meta["namespace"].clone(), "uid": meta["uid"].clone(),
            "resourceVersion": meta["resourceVersion"].clone(), "creationTimestamp": meta["creationTimestamp"].clone(),
        },
        "spec": { "replicas": object["spec"]["replicas"].clone() },
        "status": { "replicas": object["status"]["replicas"].as_i64().unwrap_or_default() },
    })
}

fn key(route: &Route) -> Key {
    (route.namespace.clone(), route.name.clone())
}
