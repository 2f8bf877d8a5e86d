//! [`Context`]: what every controller is given.

use crate::ControllerSelection;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pintle_apimachinery::env::Env;
use pintle_client::config::Impersonate;
use pintle_client::discovery::RestMapper;
use pintle_client::{Client, Object, Result};
use pintle_informer::record::{EventBroadcaster, EventRecorder};
use pintle_informer::workqueue::{Action, QueueItem, WorkQueue, run_workers};
use pintle_informer::{CancellationToken, ListWatch, SharedInformer, SharedInformerFactory};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// What the controllers are told from outside.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which controllers run.
    pub controllers: ControllerSelection,
    /// The certificates that vouch for the server, as PEM: they go into the ConfigMap `kube-root-ca.crt` of every
    /// namespace. `None`: that ConfigMap is not published.
    pub root_ca: Option<String>,
    /// Each controller acts as its own service account (`system:serviceaccount:kube-system:deployment-controller`), by
    /// impersonation. The client's user must be allowed to impersonate them and the server must have upstream's
    /// bootstrap roles. Off: every controller acts as the client's user, who must be allowed everything.
    pub use_service_account_credentials: bool,
}

/// What every controller is given: a client, shared informers, events, and where to run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Context {
    /// The client, as the user who runs the controllers.
    pub client: Client,
    /// One informer for each kind, for all controllers.
    pub factory: SharedInformerFactory,
    /// Resources by kind.
    pub mapper: RestMapper,
    /// What the controllers are told from outside.
    pub options: Arc<Options>,
    events: EventBroadcaster,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// What is to run once the informers have started.
    waiting: Arc<Mutex<Vec<Waiting>>>,
}

struct Waiting(BoxFuture<'static, ()>);

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

impl Context {
    /// A context in which nothing runs yet. What will run in it runs until `stop`.
    pub fn new(client: Client, factory: SharedInformerFactory, options: Options, stop: CancellationToken) -> Context {
        let events = EventBroadcaster::new(client.env().clone());
        Context {
            factory,
            mapper: RestMapper::new(&client),
            options: Arc::new(options),
            events,
            client,
            stop,
            tasks: TaskTracker::new(),
            waiting: Arc::default(),
        }
    }

    /// Clock and dice.
    pub(crate) fn env(&self) -> &Env {
        self.client.env()
    }

    /// The end.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// The client of one controller.
    pub(crate) fn client_of(&self, controller: &str) -> Client {
        if !self.options.use_service_account_credentials {
            return self.client.clone();
        }
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
        let impersonate = Impersonate {
            user: format!("system:serviceaccount:kube-system:{controller}"),
            groups: groups.map(str::to_owned).to_vec(),
            ..Impersonate::default()
        };
        match self.client.impersonating(&impersonate) {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(controller, %error, "a controller acts as the common user");
                self.client.clone()
            }
        }
    }

    /// A recorder of events in the name of one controller.
    pub(crate) fn recorder(&self, component: &str) -> EventRecorder {
        self.events.recorder(component)
    }

    /// Runs a task from when the informers start until the end.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.waiting.lock().push(Waiting(Box::pin(task)));
    }

    /// An informer of this context's own, which sees what `source` says: for what nobody else wants to see so.
    pub(crate) fn private_informer<K: Object>(&self, source: ListWatch<K>) -> SharedInformer<K> {
        let informer = SharedInformer::new(source);
        let (runner, stop) = (informer.clone(), self.stop.clone());
        self.spawn(async move { runner.run(stop).await });
        informer
    }

    /// Works through a queue once `synced` is done, with `n_workers` at once, until the end.
    pub(crate) fn work<T, F, Fut>(
        &self,
        queue: WorkQueue<T>,
        n_workers: usize,
        synced: impl Future<Output = ()> + Send + 'static,
        reconcile: F,
    ) where
        T: QueueItem,
        F: Fn(T) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<Action>> + Send,
    {
        self.spawn(async move {
            synced.await;
            let reconcile = move |item: T| {
                let work = reconcile(item.clone());
                async move { quieted(&item, work.await) }
            };
            run_workers(&queue, n_workers, reconcile).await;
        });
    }

    /// Starts the informers and everything that waits for them.
    pub(crate) fn start(&self) {
        self.events.start_recording_to_sink(&self.client, self.stop.clone());
        self.factory.start(&self.stop);
        for Waiting(task) in std::mem::take(&mut *self.waiting.lock()) {
            let stop = self.stop.clone();
            self.tasks.spawn(async move {
                stop.run_until_cancelled_owned(task).await;
            });
        }
    }

    /// Waits until everything has ended, after `stop`.
    pub(crate) async fn shutdown(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.factory.shutdown().await;
    }
}

/// An object that was written by somebody else in between is looked at again after this long: its new state should be
/// in the cache by then.
const CONFLICT_PAUSE: Duration = Duration::from_millis(50);

/// That an object has changed since it was read is no failure: it comes again soon, and nobody needs to be told.
pub(crate) fn quieted<T: QueueItem>(item: &T, result: Result<Action>) -> Result<Action> {
    match result {
        Err(error) if error.is_conflict() => {
            tracing::debug!(?item, %error, "it has changed meanwhile");
            Ok(Action::RequeueAfter(CONFLICT_PAUSE))
        }
        result => result,
    }
}

/// Waits until the caches of these informers hold the first list.
macro_rules! synced {
    ($($informer:ident),+ $(,)?) => {{
        $(let $informer = $informer.clone();)+
        async move {
            $($informer.synced().await;)+
        }
    }};
}

pub(crate) use synced;
