//! The reflector's I/O: performs what the state machine asks for.

use super::step::{Do, Failure, Input, Machine, StoreAction};
use crate::ObjectName;
use crate::backoff::BackoffConfig;
use crate::lister_watcher::ListerWatcher;
use crate::store::{Item, Store};
use futures_util::StreamExt as _;
use parking_lot::RwLock;
use pintle_apimachinery::Status;
use pintle_apimachinery::env::Env;
use pintle_client::Error;
use pintle_client::options::ListOptions;
use pintle_client::watch::{BoxWatch, Event};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A watch is given up when it lasts so much longer than it asked for: the server is gone without a word.
const WATCH_OVERTIME: Duration = Duration::from_secs(30);

/// How long a full queue is waited for at a time before it is looked at again.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(10);

/// Hears of every failed list and watch. The reflector goes on by itself.
pub type WatchErrorHandler = Arc<dyn Fn(&Error) + Send + Sync>;

/// How a reflector behaves.
#[derive(Clone)]
pub struct ReflectorConfig {
    /// For messages.
    pub name: String,
    /// Whether to ask for lists as watches where the server can.
    pub uses_watch_list: bool,
    /// Objects in one page of a list; 0 asks for all at once, which servers answer from their cache.
    pub page_size: u32,
    /// How often the store is told to tell everything again; `None` for never.
    pub resync_period: Option<Duration>,
    /// Pauses after failures.
    pub backoff: BackoffConfig,
    /// Hears of failures; without one they are logged.
    pub on_error: Option<WatchErrorHandler>,
    /// Dice.
    pub env: Env,
}

impl std::fmt::Debug for ReflectorConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReflectorConfig")
            .field("name", &self.name)
            .field("uses_watch_list", &self.uses_watch_list)
            .field("page_size", &self.page_size)
            .field("resync_period", &self.resync_period)
            .finish_non_exhaustive()
    }
}

impl Default for ReflectorConfig {
    fn default() -> ReflectorConfig {
        ReflectorConfig {
            name: String::new(),
            uses_watch_list: true,
            page_size: 0,
            resync_period: None,
            backoff: BackoffConfig::REFLECTOR,
            on_error: None,
            env: Env::system(),
        }
    }
}

/// Keeps a store equal to what a [`ListerWatcher`] shows.
///
/// It lists, then watches from the list's version; when the version is too old it lists again; whatever fails is tried
/// again, with pauses. The store sees a subsequence of each object's states, in order.
pub struct Reflector<T> {
    source: Arc<dyn ListerWatcher<T>>,
    store: Arc<dyn Store<T>>,
    config: ReflectorConfig,
    last_version: Arc<RwLock<String>>,
}

impl<T> std::fmt::Debug for Reflector<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reflector").field("config", &self.config).finish_non_exhaustive()
    }
}

/// One run: the machine and what it works on.
struct Run<'a, T> {
    reflector: &'a Reflector<T>,
    machine: Machine,
    /// Objects of a list that is not complete yet.
    buffer: BTreeMap<ObjectName, T>,
    watch: Option<OpenWatch<T>>,
}

struct OpenWatch<T> {
    events: BoxWatch<T>,
    give_up_at: Instant,
}

impl<T: Item> Reflector<T> {
    /// A reflector from `source` into `store`.
    pub fn new(source: Arc<dyn ListerWatcher<T>>, store: Arc<dyn Store<T>>, config: ReflectorConfig) -> Reflector<T> {
        Reflector { source, store, config, last_version: Arc::default() }
    }

    /// The version up to which the store was told.
    pub fn last_sync_resource_version(&self) -> String {
        self.last_version.read().clone()
    }

    /// Runs until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow() => {}
            () = self.resync() => {}
        }
    }

    /// Tells the store to tell everything again, from time to time.
    async fn resync(&self) {
        let Some(period) = self.config.resync_period.filter(|period| !period.is_zero()) else {
            return std::future::pending().await;
        };
        let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.store.resync();
        }
    }

    async fn follow(&self) {
        let uses_watch_list = self.config.uses_watch_list && self.source.supports_watch_list();
        let ids = Arc::clone(&self.config.env.ids);
        let machine = Machine::new(uses_watch_list, self.config.page_size, self.config.backoff, ids);
        let mut run = Run { reflector: self, machine, buffer: BTreeMap::new(), watch: None };
        let mut input = Input::Ready;
        let mut change = None;
        loop {
            let step = run.machine.step(input, Instant::now());
            run.put(step.store, change.take());
            (input, change) = run.perform(step.then).await;
        }
    }

    fn report(&self, error: &Error) {
        match &self.config.on_error {
            Some(handler) => handler(error),
            None => {
                let text = pintle_client::error::chain_text(error);
                tracing::warn!(reflector = self.config.name, error = text, "list or watch failed");
            }
        }
    }
}

/// The change that an input tells of.
enum Change<T> {
    Added(T),
    Updated(T),
    Deleted(T),
}

impl<T: Item> Run<'_, T> {
    fn put(&mut self, action: StoreAction, change: Option<Change<T>>) {
        let store = &self.reflector.store;
        match action {
            StoreAction::None => {}
            StoreAction::ClearBuffer => self.buffer.clear(),
            StoreAction::Buffer => match change {
                Some(Change::Added(object) | Change::Updated(object)) => {
                    let object = store.held(object);
                    self.buffer.insert(object.object_name(), object);
                }
                Some(Change::Deleted(object)) => {
                    self.buffer.remove(&object.object_name());
                }
                None => {}
            },
            StoreAction::Apply => {
                match change {
                    Some(Change::Added(object)) => store.add(object),
                    Some(Change::Updated(object)) => store.update(object),
                    Some(Change::Deleted(object)) => store.delete(object),
                    None => {}
                }
                self.publish_version();
            }
            StoreAction::Replace => {
                let objects = std::mem::take(&mut self.buffer).into_values().collect();
                store.replace(objects, self.machine.last_version());
                self.publish_version();
            }
            StoreAction::Bookmark => {
                store.bookmark(self.machine.last_version());
                self.publish_version();
            }
        }
    }

    fn publish_version(&self) {
        self.machine.last_version().clone_into(&mut self.reflector.last_version.write());
    }

    async fn perform(&mut self, what: Do) -> (Input, Option<Change<T>>) {
        match what {
            Do::List(options) => (self.list(&options).await, None),
            Do::Watch(options) => (self.open(&options).await, None),
            Do::Read => self.read().await,
            Do::Wait(pause) => {
                self.watch = None;
                tokio::time::sleep(pause).await;
                (Input::Ready, None)
            }
        }
    }

    async fn list(&mut self, options: &ListOptions) -> Input {
        self.watch = None;
        let (store, buffer) = (&self.reflector.store, &mut self.buffer);
        let mut on_item = |object: T| {
            let object = store.held(object);
            buffer.insert(object.object_name(), object);
        };
        match self.reflector.source.list(options, &mut on_item).await {
            Ok(metadata) => Input::Listed {
                resource_version: metadata.resource_version.unwrap_or_default(),
                continue_token: metadata.continue_.unwrap_or_default(),
            },
            Err(error) => {
                self.reflector.report(&error);
                Input::ListFailed(Failure::of(&error))
            }
        }
    }

    async fn open(&mut self, options: &ListOptions) -> Input {
        self.watch = None;
        match self.reflector.source.watch(options).await {
            Ok(events) => {
                let asked = Duration::from_secs(options.timeout_seconds.unwrap_or(u32::MAX).into());
                self.watch = Some(OpenWatch { events, give_up_at: Instant::now() + asked + WATCH_OVERTIME });
                Input::WatchOpened
            }
            Err(error) => {
                self.reflector.report(&error);
                Input::WatchFailed(Failure::of(&error))
            }
        }
    }

    async fn read(&mut self) -> (Input, Option<Change<T>>) {
        while !self.reflector.store.has_room() {
            tokio::time::sleep(FULL_QUEUE_PAUSE).await;
        }
        let Some(watch) = &mut self.watch else { return (Input::WatchClosed, None) };
        match tokio::time::timeout_at(watch.give_up_at, watch.events.next()).await {
            Ok(Some(event)) => self.heard(event),
            Ok(None) | Err(_) => {
                self.watch = None;
                (Input::WatchClosed, None)
            }
        }
    }

    fn heard(&mut self, event: Event<T>) -> (Input, Option<Change<T>>) {
        let version = |object: &T| Input::Changed { resource_version: object.resource_version().to_owned() };
        match event {
            Event::Added(object) => (version(&object), Some(Change::Added(object))),
            Event::Modified(object) => (version(&object), Some(Change::Updated(object))),
            Event::Deleted(object) => (version(&object), Some(Change::Deleted(object))),
            Event::Bookmark(bookmark) => {
                let pintle_client::watch::Bookmark { resource_version, is_initial_events_end } = bookmark;
                (Input::Bookmark { resource_version, is_initial_events_end }, None)
            }
            Event::Error(status) => {
                self.watch = None;
                (self.erred(status), None)
            }
        }
    }

    fn erred(&self, status: Box<Status>) -> Input {
        let error = Error::Api(status);
        self.reflector.report(&error);
        Input::WatchErred(Failure::of(&error))
    }
}
