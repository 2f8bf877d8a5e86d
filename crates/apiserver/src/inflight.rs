//! How many requests are served at once, and for how long: `--max-requests-inflight`,
//! `--max-mutating-requests-inflight`, `--request-timeout`.
//!
//! Watches and other long-running requests are not counted, nor are those of `system:masters` and health checks: an
//! administrator gets through to a server that is overloaded.

use crate::request_info::RequestInfo;
use pintle_apimachinery::Status;
use pintle_apimachinery::status::Result;
use pintle_auth::UserInfo;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests of one sort that may wait for their turn, for each that is served; further ones get 429 at once.
const WAITING_PER_SERVED_MAX: usize = 8;
/// A request waits for its turn for this part of the request time-out, then it gets 429.
const WAIT_PART: u32 = 4;
/// Seconds after which a client should try again.
const RETRY_AFTER_SECONDS: i32 = 1;

/// The limits of one server.
#[derive(Debug)]
pub struct Inflight {
    reading: Option<Turns>,
    mutating: Option<Turns>,
    /// How long a request may take; longer ones get 504, and what they wrote is unknown to the client.
    pub request_timeout: Duration,
}

impl Inflight {
    /// Limits for requests that read and for those that write; 0 means none.
    pub fn new(reading: usize, mutating: usize, request_timeout: Duration) -> Inflight {
        let turns = |n: usize| (n > 0).then(|| Turns::new(n.min(Semaphore::MAX_PERMITS / WAITING_PER_SERVED_MAX / 2)));
        Inflight { reading: turns(reading), mutating: turns(mutating), request_timeout }
    }

    /// Waits for a request's turn, which lasts until what is returned is dropped.
    ///
    /// # Errors
    /// 429 when too many wait already, or the turn does not come in time.
    pub(crate) async fn turn(&self, info: &RequestInfo, user: &UserInfo) -> Result<Option<Turn>> {
        if info.is_long_running() || is_exempt(info, user) {
            return Ok(None);
        }
        let turns = if info.is_read_only() { &self.reading } else { &self.mutating };
        match turns {
            Some(turns) => turns.take(self.request_timeout / WAIT_PART).await.map(Some),
            None => Ok(None),
        }
    }
}

fn is_exempt(info: &RequestInfo, user: &UserInfo) -> bool {
    let is_probe = !info.is_resource && matches!(info.path.split('/').nth(1), Some("healthz" | "livez" | "readyz"));
    is_probe || user.groups.iter().any(|group| group == "system:masters")
}

/// A request's turn.
#[derive(Debug)]
pub(crate) struct Turn {
    _served: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Turns {
    /// Places of requests that are served or wait.
    places: Arc<Semaphore>,
    served: Arc<Semaphore>,
}

impl Turns {
    fn new(served: usize) -> Turns {
        let places = served * (1 + WAITING_PER_SERVED_MAX);
        Turns { places: Arc::new(Semaphore::new(places)), served: Arc::new(Semaphore::new(served)) }
    }

    async fn take(&self, patience: Duration) -> Result<Turn> {
        let refused = || {
            let message = "too many requests, please try again later";
            Box::new(Status::too_many_requests(message, RETRY_AFTER_SECONDS))
        };
        let place = self.places.clone().try_acquire_owned().map_err(|_| refused())?;
        let served = self.served.clone();
        let served = match served.try_acquire_owned() {
            Ok(served) => served,
            Err(_) => match tokio::time::timeout(patience, self.served.clone().acquire_owned()).await {
                Ok(Ok(served)) => served,
                Ok(Err(_)) | Err(_) => return Err(refused()),
            },
        };
        Ok(Turn { _served: served, _place: place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use pintle_apimachinery::Str;

    fn user(group: &'static str) -> UserInfo {
        UserInfo { name: Str::const_new("jane"), groups: vec![Str::const_new(group)], ..UserInfo::default() }
    }

    fn info(method: &Method, path: &str, query: &str) -> RequestInfo {
        RequestInfo::of(method, path, query)
    }

    #[tokio::test(start_paused = true)]
    async fn requests_take_turns_wait_and_are_refused() {
        let limits = Arc::new(Inflight::new(1, 1, Duration::from_secs(60)));
        let read = info(&Method::GET, "/api/v1/namespaces/a/pods/b", "");
        let someone = user("dev");
        let first = limits.turn(&read, &someone).await.expect("a turn").expect("it is counted");

        // a second one waits, and gives up
        let why = limits.turn(&read, &someone).await.expect_err("no turn comes");
        assert_eq!((why.code, why.details.as_ref().map(|d| d.retry_after_seconds)), (429, Some(1)));

        // or gets the turn when the first is done
        let waiting = tokio::spawn({
            let (limits, read, someone) = (limits.clone(), read.clone(), someone.clone());
            async move { limits.turn(&read, &someone).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.expect("it ran"));

        // writers have turns of their own
        let _first = limits.turn(&read, &someone).await.expect("a turn");
        let write = info(&Method::POST, "/api/v1/namespaces/a/pods", "");
        assert!(limits.turn(&write, &someone).await.expect("a turn").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_not_counted() {
        let limits = Inflight::new(1, 1, Duration::from_secs(60));
        let (someone, admin) = (user("dev"), user("system:masters"));
        let read = info(&Method::GET, "/api/v1/pods", "");
        let watch = info(&Method::GET, "/api/v1/pods", "watch=true");
        let log = info(&Method::GET, "/api/v1/namespaces/a/pods/b/log", "");
        let probe = info(&Method::GET, "/readyz/etcd", "");
        for (info, user) in [(&read, &admin), (&watch, &someone), (&log, &someone), (&probe, &someone)] {
            assert!(limits.turn(info, user).await.expect("a turn").is_none(), "{info:?}");
        }
        assert!(limits.turn(&read, &someone).await.expect("a turn").is_some());
        assert!(Inflight::new(0, 0, Duration::from_secs(60)).turn(&read, &someone).await.expect("a turn").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_has_an_end() {
        let limits = Arc::new(Inflight::new(1, 1, Duration::from_secs(60)));
        let read = info(&Method::GET, "/api/v1/pods", "");
        let someone = user("dev");
        let _first = limits.turn(&read, &someone).await.expect("a turn");
        let waiting: Vec<_> = (0..WAITING_PER_SERVED_MAX)
            .map(|_| {
                let (limits, read, someone) = (limits.clone(), read.clone(), someone.clone());
                tokio::spawn(async move { limits.turn(&read, &someone).await.map(drop) })
            })
            .collect();
        tokio::task::yield_now().await;
        let began = tokio::time::Instant::now();
        assert!(limits.turn(&read, &someone).await.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO, "refused without waiting");
        for waiting in waiting {
            assert!(waiting.await.expect("it ran").is_err());
        }
    }
}
