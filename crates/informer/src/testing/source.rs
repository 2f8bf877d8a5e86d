//! [`FakeControllerSource`]: objects in memory that can be listed and watched.

use crate::lister_watcher::{ListerWatcher, OnItem};
use crate::{Cached, ObjectName};
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use parking_lot::Mutex;
use pintle_apimachinery::Status;
use pintle_client::options::ListOptions;
use pintle_client::watch::{Bookmark, BoxWatch, Event, Watch};
use pintle_client::{Error, Object, Result};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;

/// A source of objects for informers under test: what is added, modified and deleted here is listed and watched
/// there. Cheap to clone; all clones are the same source.
///
/// Versions are counted here, one for each change. The methods that end in `_drop_watch` change the state without
/// telling the watches, as if the connection had broken just then.
#[derive(Debug)]
pub struct FakeControllerSource<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    /// Wakes watches: the version, and how often all watches were cut.
    changed: watch::Sender<(u64, u64)>,
}

#[derive(Debug)]
struct State<K> {
    objects: BTreeMap<ObjectName, Cached<K>>,
    /// All changes, oldest first; the version of each is its index plus one. `None`: not told to watches.
    changes: Vec<(Change<K>, bool)>,
    /// Changes up to this version are forgotten.
    compacted: u64,
    supports_watch_list: bool,
}

#[derive(Debug)]
enum Change<K> {
    Added(Cached<K>),
    Modified(Cached<K>),
    Deleted(Cached<K>),
}

impl<K> Clone for FakeControllerSource<K> {
    fn clone(&self) -> FakeControllerSource<K> {
        FakeControllerSource { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Object> Default for FakeControllerSource<K> {
    fn default() -> FakeControllerSource<K> {
        FakeControllerSource::new()
    }
}

impl<K: Object> FakeControllerSource<K> {
    /// A source without objects.
    pub fn new() -> FakeControllerSource<K> {
        let state = State { objects: BTreeMap::new(), changes: Vec::new(), compacted: 0, supports_watch_list: true };
        let shared = Shared { state: Mutex::new(state), changed: watch::Sender::new((0, 0)) };
        FakeControllerSource { shared: Arc::new(shared) }
    }

    /// Whether a watch may begin with what is there; otherwise informers list.
    pub fn set_watch_list(&self, is_supported: bool) {
        self.shared.state.lock().supports_watch_list = is_supported;
    }

    /// Adds an object, or replaces it.
    pub fn add(&self, object: K) -> Option<Cached<K>> {
        self.put(object, true)
    }

    /// Changes an object, or adds it.
    pub fn modify(&self, object: K) -> Option<Cached<K>> {
        self.put(object, true)
    }

    /// Deletes the object of this name.
    pub fn delete(&self, name: &ObjectName) {
        self.take(name, true);
    }

    /// Adds or changes an object; open watches do not hear of it.
    pub fn modify_drop_watch(&self, object: K) -> Option<Cached<K>> {
        self.put(object, false)
    }

    /// Deletes an object; open watches do not hear of it.
    pub fn delete_drop_watch(&self, name: &ObjectName) {
        self.take(name, false);
    }

    /// Ends all watches.
    pub fn reset_watch(&self) {
        self.shared.changed.send_modify(|(_, n_cut)| *n_cut += 1);
    }

    /// Forgets what happened so far: watches from older versions are too old, also those open and behind.
    pub fn compact(&self) {
        let mut state = self.shared.state.lock();
        state.compacted = state.version();
    }

    /// The version of the last change.
    pub fn resource_version(&self) -> u64 {
        self.shared.state.lock().version()
    }

    /// What is there.
    pub fn objects(&self) -> Vec<Cached<K>> {
        self.shared.state.lock().objects.values().cloned().collect()
    }

    fn put(&self, mut object: K, is_told: bool) -> Option<Cached<K>> {
        let mut state = self.shared.state.lock();
        object.meta_mut().resource_version = Some((state.version() + 1).to_string());
        let cached = Cached::of(&object).ok()?;
        let is_new = state.objects.insert(cached.object_name(), cached.clone()).is_none();
        let change = if is_new { Change::Added(cached.clone()) } else { Change::Modified(cached.clone()) };
        state.changes.push((change, is_told));
        self.tell(state.version());
        Some(cached)
    }

    fn take(&self, name: &ObjectName, is_told: bool) {
        let mut state = self.shared.state.lock();
        let Some(last) = state.objects.remove(name) else { return };
        let version = (state.version() + 1).to_string();
        // a deletion shows the last content at the version of the deletion
        let last = last.to_owned_object().ok().and_then(|mut object| {
            object.meta_mut().resource_version = Some(version);
            Cached::of(&object).ok()
        });
        if let Some(last) = last {
            state.changes.push((Change::Deleted(last), is_told));
        }
        self.tell(state.version());
    }

    fn tell(&self, version: u64) {
        self.shared.changed.send_modify(|state| state.0 = version);
    }

    fn too_old(version: u64, oldest: u64) -> Error {
        Error::from(Status::expired(format!("too old resource version: {version} ({oldest})")))
    }
}

impl<K> State<K> {
    fn version(&self) -> u64 {
        self.changes.len() as u64
    }
}

impl<K: Object> ListerWatcher<Cached<K>> for FakeControllerSource<K> {
    fn list<'a>(
        &'a self,
        _options: &'a ListOptions,
        on_item: OnItem<'a, Cached<K>>,
    ) -> BoxFuture<'a, Result<ListMeta>> {
        Box::pin(async move {
            let state = self.shared.state.lock();
            state.objects.values().cloned().for_each(on_item);
            Ok(ListMeta { resource_version: Some(state.version().to_string()), ..ListMeta::default() })
        })
    }

    fn watch<'a>(&'a self, options: &'a ListOptions) -> BoxFuture<'a, Result<BoxWatch<Cached<K>>>> {
        Box::pin(async move {
            let state = self.shared.state.lock();
            let mut initial = Vec::new();
            let mut position: u64 = options.resource_version.parse().unwrap_or_default();
            if options.send_initial_events == Some(true) {
                if !state.supports_watch_list {
                    return Err(Error::from(Status::failure(422, "Invalid", "sendInitialEvents is forbidden")));
                }
                position = state.version();
                initial.extend(state.objects.values().cloned().map(Event::Added));
                let resource_version = position.to_string();
                initial.push(Event::Bookmark(Bookmark { resource_version, is_initial_events_end: true }));
            } else if position < state.compacted {
                return Err(FakeControllerSource::<K>::too_old(position, state.compacted));
            }
            drop(state);
            let changed = self.shared.changed.subscribe();
            let n_cut = changed.borrow().1;
            let changes = Changes { source: self.clone(), position, initial: initial.into_iter(), changed, n_cut };
            let stream = futures_util::stream::unfold(changes, |mut changes| async move {
                changes.next().await.map(|event| (event, changes))
            });
            let boxed: BoxWatch<Cached<K>> = Box::new(SourceWatch { stream: Some(stream.boxed()) });
            Ok(boxed)
        })
    }
}

/// Where a watch stands.
struct Changes<K> {
    source: FakeControllerSource<K>,
    position: u64,
    initial: std::vec::IntoIter<Event<Cached<K>>>,
    changed: watch::Receiver<(u64, u64)>,
    n_cut: u64,
}

impl<K: Object> Changes<K> {
    async fn next(&mut self) -> Option<Event<Cached<K>>> {
        if let Some(event) = self.initial.next() {
            return Some(event);
        }
        loop {
            if self.changed.borrow_and_update().1 != self.n_cut {
                return None;
            }
            if let Some(event) = self.read() {
                return Some(event);
            }
            // the source is part of this state: its end of the channel cannot go away
            let _ = self.changed.changed().await;
        }
    }

    fn read(&mut self) -> Option<Event<Cached<K>>> {
        let state = self.source.shared.state.lock();
        if self.position < state.compacted {
            let status = Status::expired(format!("too old resource version: {} ({})", self.position, state.compacted));
            self.position = u64::MAX;
            return Some(Event::Error(Box::new(status)));
        }
        while let Some((change, is_told)) = usize::try_from(self.position).ok().and_then(|idx| state.changes.get(idx)) {
            self.position += 1;
            if *is_told {
                return Some(match change {
                    Change::Added(object) => Event::Added(object.clone()),
                    Change::Modified(object) => Event::Modified(object.clone()),
                    Change::Deleted(object) => Event::Deleted(object.clone()),
                });
            }
        }
        None
    }
}

struct SourceWatch<K> {
    stream: Option<futures_util::stream::BoxStream<'static, Event<Cached<K>>>>,
}

impl<K: Object> Stream for SourceWatch<K> {
    type Item = Event<Cached<K>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.stream {
            Some(stream) => stream.poll_next_unpin(cx),
            None => Poll::Ready(None),
        }
    }
}

impl<K: Object> Watch<Cached<K>> for SourceWatch<K> {
    fn stop(&mut self) {
        self.stream = None;
    }
}
