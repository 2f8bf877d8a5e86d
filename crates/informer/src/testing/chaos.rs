//! [`ChaosSource`]: a source that fails as networks and servers do.

use crate::lister_watcher::{ListerWatcher, OnItem};
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use pintle_apimachinery::Status;
use pintle_apimachinery::env::IdSource;
use pintle_client::options::ListOptions;
use pintle_client::watch::{BoxWatch, Event, Watch};
use pintle_client::{Error, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// How often things fail, in percent.
#[derive(Clone, Copy, Debug)]
pub struct ChaosConfig {
    /// A request is answered with an error.
    pub refused_percent: u64,
    /// A request is answered late, by up to two seconds.
    pub late_percent: u64,
    /// A watch ends without a word before an event.
    pub cut_percent: u64,
    /// A watch ends with an error before an event.
    pub erred_percent: u64,
    /// An event of a watch comes late, by up to two seconds.
    pub slow_event_percent: u64,
}

impl ChaosConfig {
    /// Everything happens, and often.
    pub const ROUGH: ChaosConfig =
        ChaosConfig { refused_percent: 25, late_percent: 20, cut_percent: 4, erred_percent: 4, slow_event_percent: 5 };
}

/// Passes requests on to another source and lets some of them fail. Cheap to clone.
pub struct ChaosSource<L> {
    source: Arc<L>,
    config: ChaosConfig,
    dice: Arc<dyn IdSource>,
    is_calm: Arc<AtomicBool>,
}

impl<L> Clone for ChaosSource<L> {
    fn clone(&self) -> ChaosSource<L> {
        ChaosSource {
            source: Arc::clone(&self.source),
            config: self.config,
            dice: Arc::clone(&self.dice),
            is_calm: Arc::clone(&self.is_calm),
        }
    }
}

impl<L> std::fmt::Debug for ChaosSource<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChaosSource").field("config", &self.config).finish_non_exhaustive()
    }
}

impl<L> ChaosSource<L> {
    /// Lets requests to `source` fail as the dice fall.
    pub fn new(source: L, config: ChaosConfig, dice: Arc<dyn IdSource>) -> ChaosSource<L> {
        ChaosSource { source: Arc::new(source), config, dice, is_calm: Arc::default() }
    }

    /// Nothing fails any more.
    pub fn calm(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    fn happens(&self, percent: u64) -> bool {
        !self.is_calm.load(Ordering::Relaxed) && self.dice.random_u64() % 100 < percent
    }

    fn some_time(&self) -> Duration {
        Duration::from_millis(self.dice.random_u64() % 2000)
    }

    fn status(&self) -> Status {
        match self.dice.random_u64() % 5 {
            0 => Status::expired("too old resource version"),
            1 => Status::internal("chaos"),
            2 => Status::too_many_requests("chaos", 1),
            3 => Status::timeout("Too large resource version: chaos", 1).with_cause(
                "ResourceVersionTooLarge",
                "Too large resource version",
                "",
            ),
            _ => Status::unavailable("chaos"),
        }
    }

    async fn before_a_request(&self) -> Result<()> {
        if self.happens(self.config.late_percent) {
            tokio::time::sleep(self.some_time()).await;
        }
        if !self.happens(self.config.refused_percent) {
            return Ok(());
        }
        if self.dice.random_u64().is_multiple_of(3) {
            return Err(Error::Connect { server: "chaos".to_owned(), source: "connection refused".into() });
        }
        Err(Error::from(self.status()))
    }
}

impl<T: Send + 'static, L: ListerWatcher<T>> ListerWatcher<T> for ChaosSource<L> {
    fn list<'a>(&'a self, options: &'a ListOptions, on_item: OnItem<'a, T>) -> BoxFuture<'a, Result<ListMeta>> {
        Box::pin(async move {
            self.before_a_request().await?;
            let metadata = self.source.list(options, on_item).await?;
            if self.happens(self.config.cut_percent) {
                // the objects came, the end of the list did not
                return Err(Error::Connection { server: "chaos".to_owned(), source: "reset".into() });
            }
            Ok(metadata)
        })
    }

    fn watch<'a>(&'a self, options: &'a ListOptions) -> BoxFuture<'a, Result<BoxWatch<T>>> {
        Box::pin(async move {
            self.before_a_request().await?;
            let watch = self.source.watch(options).await?;
            let chaos = ChaosSource { source: Arc::clone(&self.source), ..self.clone() };
            let stream = futures_util::stream::unfold(Some((watch, chaos)), |state| async move {
                let (mut watch, chaos) = state?;
                let event = watch.next().await?;
                if chaos.happens(chaos.config.slow_event_percent) {
                    tokio::time::sleep(chaos.some_time()).await;
                }
                if chaos.happens(chaos.config.cut_percent) {
                    return None;
                }
                if chaos.happens(chaos.config.erred_percent) {
                    return Some((Event::Error(Box::new(chaos.status())), None));
                }
                Some((event, Some((watch, chaos))))
            });
            let boxed: BoxWatch<T> = Box::new(ChaosWatch { stream: Some(stream.boxed()) });
            Ok(boxed)
        })
    }

    fn supports_watch_list(&self) -> bool {
        self.source.supports_watch_list()
    }
}

struct ChaosWatch<T> {
    stream: Option<futures_util::stream::BoxStream<'static, Event<T>>>,
}

impl<T> Stream for ChaosWatch<T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        match &mut self.stream {
            Some(stream) => stream.poll_next_unpin(cx),
            None => Poll::Ready(None),
        }
    }
}

impl<T> Watch<T> for ChaosWatch<T> {
    fn stop(&mut self) {
        self.stream = None;
    }
}
