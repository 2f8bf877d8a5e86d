//! [`FakeServer`]: requests in, answers out.

use super::log::{bookmark, frame};
use super::reaction::{Action, Reaction};
use super::route::Route;
use super::tracker::{Selection, Tracker, scale_of};
use crate::client::Client;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::resource::{ApiResource, Object};
use crate::transport::{Body, Transport};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::{Metadata, Resource};
use parking_lot::Mutex;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::{Status, Str, Value, value};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

type Reactor = Arc<dyn Fn(&Action) -> Reaction + Send + Sync>;

/// A server in memory. Cheap to clone; all clones are the same server.
#[derive(Clone)]
pub struct FakeServer {
    shared: Arc<Shared>,
}

struct Shared {
    tracker: Mutex<Tracker>,
    /// Wakes watches: the revision, and how often all watches were cut.
    changed: watch::Sender<(u64, u64)>,
    reactors: Mutex<Vec<(String, String, Reactor)>>,
    actions: Mutex<Vec<Action>>,
    env: Env,
}

impl std::fmt::Debug for FakeServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeServer").field("revision", &self.shared.tracker.lock().revision).finish_non_exhaustive()
    }
}

impl Default for FakeServer {
    fn default() -> FakeServer {
        FakeServer::new()
    }
}

impl FakeServer {
    /// An empty server; its clock stands still and its uids are the same in every run.
    pub fn new() -> FakeServer {
        FakeServer::with_env(Env::seeded(1))
    }

    /// An empty server with this clock and these dice.
    pub fn with_env(env: Env) -> FakeServer {
        let shared = Shared {
            tracker: Mutex::new(Tracker::new(env.clone())),
            changed: watch::Sender::new((0, 0)),
            reactors: Mutex::default(),
            actions: Mutex::default(),
            env,
        };
        FakeServer { shared: Arc::new(shared) }
    }

    /// A client of this server.
    #[expect(clippy::missing_panics_doc, reason = "it cannot: what is parsed are constants")]
    pub fn client(&self) -> Client {
        let config = Config::new("http://fake").map(|config| Config { env: self.shared.env.clone(), ..config });
        let client = config.map_err(Error::from).and_then(|c| Client::with_transport(c, Arc::new(self.clone())));
        client.expect("the address and the user agent are constants that parse")
    }

    /// Puts an object in as it is, status included.
    pub fn add<K: Object + Resource + Metadata>(&self, object: &K)
    where
        K::Scope: 'static,
    {
        if let Ok(bytes) = serde_json::to_vec(object)
            && let Ok(value) = value::parse(&bytes)
        {
            self.add_value(&ApiResource::of::<K>(), value);
        }
    }

    /// Puts an object of a resource known at run time in as it is.
    pub fn add_value(&self, resource: &ApiResource, object: Value) {
        let route = Route {
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.plural.clone(),
            ..Route::default()
        };
        self.change(|tracker| tracker.seed(&route, object));
    }

    /// Lets `reactor` answer requests of a verb (`*` for all) on a resource (`pods`, `pods/status`, `*` for all). The
    /// reactor added last is asked first; the server answers if all pass.
    pub fn react(&self, verb: &str, resource: &str, reactor: impl Fn(&Action) -> Reaction + Send + Sync + 'static) {
        self.shared.reactors.lock().push((verb.to_owned(), resource.to_owned(), Arc::new(reactor)));
    }

    /// Takes all reactors away.
    pub fn clear_reactors(&self) {
        self.shared.reactors.lock().clear();
    }

    /// The requests so far.
    pub fn actions(&self) -> Vec<Action> {
        self.shared.actions.lock().clone()
    }

    /// Takes the requests so far out: those that change something, one a line, for transcripts.
    pub fn take_writes(&self) -> Vec<String> {
        let actions = std::mem::take(&mut *self.shared.actions.lock());
        let is_write = |action: &&Action| !matches!(action.verb, "get" | "list" | "watch");
        actions.iter().filter(is_write).map(Action::to_string).collect()
    }

    /// Breaks the connection of every watch.
    pub fn disconnect_watches(&self) {
        self.shared.changed.send_modify(|(_, n_cut)| *n_cut += 1);
    }

    /// Forgets what happened so far, as a server does that was restarted: a watch from an older version gets `Expired`,
    /// also one that is open and behind.
    pub fn compact(&self) {
        self.shared.tracker.lock().compact();
    }

    /// The version of the last change.
    pub fn resource_version(&self) -> String {
        self.shared.tracker.lock().revision.to_string()
    }

    fn change<T>(&self, f: impl FnOnce(&mut Tracker) -> T) -> T {
        let mut tracker = self.shared.tracker.lock();
        let result = f(&mut tracker);
        let revision = tracker.revision;
        drop(tracker);
        self.shared.changed.send_modify(|state| state.0 = revision);
        result
    }

    fn answer(&self, request: &Request<Bytes>) -> Result<Response<Body>> {
        let Some(route) = Route::read(request.method(), request.uri()) else {
            return self.other_path(request.uri().path());
        };
        let action = Action::of(&route, request.body());
        self.shared.actions.lock().push(action.clone());
        match self.reaction(&action) {
            Reaction::Pass => {}
            Reaction::Answer(value) => return respond(200, &value),
            Reaction::Fail(status) => return respond(status.code, &status.to_value()),
            Reaction::Disconnect => {
                let source = "the fake server was told to disconnect".into();
                return Err(Error::Connection { server: "fake".to_owned(), source });
            }
        }
        if route.verb == "watch" {
            return match self.watch(&route) {
                Ok(body) => Ok(Response::new(body)),
                Err(status) => respond(status.code, &status.to_value()),
            };
        }
        let content_type = request.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match self.perform(&route, content_type.unwrap_or_default(), request.body()) {
            Ok(value) => respond(if route.verb == "create" { 201 } else { 200 }, &value),
            Err(status) => respond(status.code, &status.to_value()),
        }
    }

    fn reaction(&self, action: &Action) -> Reaction {
        let reactors = self.shared.reactors.lock().clone();
        let matching = reactors.iter().rev().filter(|(verb, resource, _)| action.matches(verb, resource));
        let mut reactions = matching.map(|(_, _, reactor)| reactor(action));
        reactions.find(|reaction| !matches!(reaction, Reaction::Pass)).unwrap_or(Reaction::Pass)
    }

    fn perform(&self, route: &Route, content_type: &str, body: &Bytes) -> Result<Value, Box<Status>> {
        let parsed = || super::patch::parse(body);
        let scaled =
            |object: Arc<Value>| if route.subresource == "scale" { scale_of(&object) } else { object.as_ref().clone() };
        self.change(|tracker| match route.verb {
            "get" => tracker.get(route).map(scaled),
            "list" => tracker.list(route),
            "create" if route.subresource == "binding" => bind(tracker, route, &parsed()?),
            "create" if route.subresource == "eviction" => tracker.delete(route, &parsed()?["deleteOptions"]),
            "create" if !route.subresource.is_empty() => parsed(),
            "create" => tracker.create(route, parsed()?).map(scaled),
            "update" => tracker.update(route, parsed()?).map(scaled),
            "patch" => tracker.patch(route, content_type, body).map(scaled),
            "delete" => tracker.delete(route, &value::parse(body).unwrap_or_default()),
            _ => tracker.delete_collection(route, &value::parse(body).unwrap_or_default()),
        })
    }

    fn other_path(&self, path: &str) -> Result<Response<Body>> {
        match path {
            "/healthz" | "/livez" | "/readyz" => Ok(Response::new(Body::from_bytes("ok"))),
            "/version" => {
                respond(200, &pintle_apimachinery::json!({ "major": "1", "minor": "35", "gitVersion": "v1.35.0" }))
            }
            _ => respond(404, &Status::not_found_path().to_value()),
        }
    }

    /// The frames of a watch, as they come.
    fn watch(&self, route: &Route) -> Result<Body, Box<Status>> {
        let selection = Selection::of(route)?;
        let tracker = self.shared.tracker.lock();
        let from = route.query.get("resourceVersion");
        let from: u64 = if from.is_empty() {
            0
        } else {
            from.parse().map_err(|_| Box::new(Status::bad_request("resourceVersion: Invalid value")))?
        };
        let wants_initial = route.query.is_true("sendInitialEvents") || from == 0;
        let mut ready = VecDeque::new();
        let mut position = from;
        if wants_initial {
            position = tracker.revision;
            let objects = tracker.find(route).map(|collection| collection.objects.iter());
            let selected = objects.into_iter().flatten().filter(|(key, object)| selection.matches(key, object));
            ready.extend(selected.map(|(_, object)| frame("ADDED", object)));
            if route.query.is_true("sendInitialEvents") && route.query.is_true("allowWatchBookmarks") {
                let (api_version, kind) = tracker.types(route);
                ready.push_back(bookmark(&api_version, &kind, tracker.revision, true));
            }
        } else if let Some(collection) = tracker.find(route) {
            collection.log.after(from).map_err(Box::new)?;
        }
        drop(tracker);
        let changed = self.shared.changed.subscribe();
        let n_cut = changed.borrow().1;
        let state = WatchState {
            server: self.clone(),
            route: route.clone(),
            selection,
            position,
            ready,
            changed,
            n_cut,
            is_ended: false,
        };
        Ok(Body::from_stream(futures_util::stream::unfold(state, |mut state| async move {
            state.next().await.map(|frame| (frame, state))
        })))
    }
}

/// Where a watch stands.
struct WatchState {
    server: FakeServer,
    route: Route,
    selection: Selection,
    /// The revision up to which it was told.
    position: u64,
    ready: VecDeque<Bytes>,
    changed: watch::Receiver<(u64, u64)>,
    n_cut: u64,
    is_ended: bool,
}

impl WatchState {
    async fn next(&mut self) -> Option<Result<Bytes, crate::error::BoxError>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(Ok(frame));
            }
            if self.is_ended {
                return None;
            }
            if self.changed.borrow_and_update().1 != self.n_cut {
                self.is_ended = true;
                return Some(Err("the fake server cut its watches".into()));
            }
            if self.read_log() {
                continue;
            }
            // the server is part of this state: its end of the channel cannot go away
            let _ = self.changed.changed().await;
        }
    }

    /// Reads the next change; whether there was one.
    fn read_log(&mut self) -> bool {
        let tracker = self.server.shared.tracker.lock();
        let Some(collection) = tracker.find(&self.route) else { return false };
        match collection.log.after(self.position) {
            Ok(None) => false,
            Ok(Some(change)) => {
                self.position = change.revision;
                self.ready.extend(change.frame(&self.selection));
                true
            }
            Err(status) => {
                self.ready.push_back(frame("ERROR", &status.to_value()));
                self.is_ended = true;
                true
            }
        }
    }
}

impl Transport for FakeServer {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, Error>> {
        Box::pin(async move { self.answer(&request) })
    }
}

/// Sets a pod's node.
fn bind(tracker: &mut Tracker, route: &Route, binding: &Value) -> Result<Value, Box<Status>> {
    let pods = Route { subresource: Str::default(), ..route.clone() };
    let mut pod = tracker.get(&pods)?.as_ref().clone();
    let node = pod["spec"]["nodeName"].str_or_empty();
    if !node.is_empty() {
        let why = format!("pod {} is already assigned to node {node:?}", route.name);
        return Err(Box::new(Status::conflict(
            &pintle_apimachinery::GroupResource::new("", "pods/binding"),
            &route.name,
            why,
        )));
    }
    pod.make("spec").set("nodeName", binding["target"]["name"].clone());
    tracker.update(&pods, pod)?;
    Ok(Status { code: 201, ..Status::success(None) }.to_value())
}

fn respond(code: u16, value: &Value) -> Result<Response<Body>> {
    let mut response = Response::new(Body::from_bytes(value.to_json()));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    Ok(response)
}

#[cfg(test)]
mod tests;
