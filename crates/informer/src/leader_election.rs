//! Leader election: of several copies of a program, one works.
//!
//! The copies agree through a `Lease`. Whoever holds it renews it; when it was not renewed for its duration, another
//! may take it. Time is measured from when a copy *saw* the lease change, on its own monotonic clock, so clocks may
//! differ; only their rates may not.
//!
//! Follows: client-go tools/leaderelection (v0.35). Differs: what the leader does is a future, dropped when the lease
//! is lost.

use crate::backoff::jittered;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use parking_lot::Mutex;
use pintle_client::{Api, Client, Error, Object as _, Result};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Pauses between tries to become the leader are prolonged by up to so many times themselves.
const JITTER_FACTOR: f64 = 1.2;

/// Which lease, who we are, and how quickly things happen.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderElectionConfig {
    /// The lease's namespace.
    pub namespace: String,
    /// The lease's name.
    pub name: String,
    /// Our name among the copies.
    pub identity: String,
    /// Labels for the lease.
    pub labels: BTreeMap<String, String>,
    /// Others take the lease when they have not seen it change for this long.
    pub lease_duration: Duration,
    /// The leader gives up when it could not renew for this long.
    pub renew_deadline: Duration,
    /// How often the lease is renewed, or tried for.
    pub retry_period: Duration,
    /// Give the lease back when told to stop, so that the next leader need not wait.
    pub release_on_cancel: bool,
}

impl LeaderElectionConfig {
    /// The usual times: 15 s, 10 s and 2 s; the lease is given back.
    pub fn new(namespace: &str, name: &str, identity: &str) -> LeaderElectionConfig {
        LeaderElectionConfig {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            labels: BTreeMap::new(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_cancel: true,
        }
    }

    fn check(&self) -> Result<()> {
        let fault = if self.identity.is_empty() {
            "Lock identity is empty"
        } else if self.retry_period.is_zero() {
            "retryPeriod must be greater than zero"
        } else if self.lease_duration <= self.renew_deadline {
            "leaseDuration must be greater than renewDeadline"
        } else if self.renew_deadline <= self.retry_period.mul_f64(JITTER_FACTOR) {
            "renewDeadline must be greater than retryPeriod*JitterFactor"
        } else {
            return Ok(());
        };
        Err(Error::InvalidRequest(fault.to_owned()))
    }
}

/// How leading ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Led<T> {
    /// It was told to stop before or while leading.
    Stopped,
    /// Somebody else may lead now. What the leader did was broken off.
    Lost,
    /// What the leader did came to its end.
    Finished(T),
}

/// Tries to become the leader, and then leads. Several may run in one program, for different leases.
#[derive(Debug)]
pub struct LeaderElector {
    api: Api<Lease>,
    config: LeaderElectionConfig,
    observed: Mutex<Observed>,
    leader: watch::Sender<String>,
}

/// The lease as last seen or written.
#[derive(Clone, Debug, Default)]
struct Observed {
    lease: Option<Lease>,
    /// When its spec was first seen like this.
    at: Option<Instant>,
}

impl Observed {
    fn spec(&self) -> Option<&LeaseSpec> {
        self.lease.as_ref()?.spec.as_ref()
    }

    fn holder(&self) -> &str {
        self.spec().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
    }

    fn is_valid(&self, now: Instant) -> bool {
        let seconds = self.spec().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
        let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        self.at.is_some_and(|at| at + duration > now)
    }

    /// Takes in a lease just read: the time counts only when its spec is another one.
    fn see(&mut self, lease: Lease, now: Instant) {
        if self.lease.as_ref().map(|known| &known.spec) != Some(&lease.spec) {
            self.at = Some(now);
        }
        self.lease = Some(lease);
    }

    /// Takes in a lease just written.
    fn wrote(&mut self, lease: Lease, now: Instant) {
        *self = Observed { lease: Some(lease), at: Some(now) };
    }

    /// The lease to write in order to hold it; `None` while somebody else holds it.
    fn claim(&self, config: &LeaderElectionConfig, now: Instant, time: &MicroTime) -> Option<Lease> {
        let is_ours = self.holder() == config.identity;
        if !self.holder().is_empty() && !is_ours && self.is_valid(now) {
            return None;
        }
        let mut lease = self.lease.clone().unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(config.name.clone()),
                namespace: Some(config.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        if !config.labels.is_empty() {
            lease.metadata.labels.get_or_insert_default().extend(config.labels.clone());
        }
        let old = lease.spec.take().unwrap_or_default();
        let transitions = old.lease_transitions.unwrap_or_default();
        let is_new = self.lease.is_none();
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(config.identity.clone()),
            lease_duration_seconds: i32::try_from(config.lease_duration.as_secs()).ok(),
            renew_time: Some(time.clone()),
            acquire_time: if is_ours { old.acquire_time } else { Some(time.clone()) },
            lease_transitions: Some(if is_ours || is_new { transitions } else { transitions.saturating_add(1) }),
            preferred_holder: old.preferred_holder,
            strategy: old.strategy,
        });
        Some(lease)
    }
}

impl LeaderElector {
    /// An elector that has not tried anything yet.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when the times contradict each other or the identity is empty.
    pub fn new(client: &Client, config: LeaderElectionConfig) -> Result<LeaderElector> {
        config.check()?;
        let api = Api::namespaced(client, &config.namespace);
        Ok(LeaderElector { api, config, observed: Mutex::default(), leader: watch::Sender::new(String::new()) })
    }

    /// Who leads, as far as is known; empty when nobody does.
    pub fn leader(&self) -> String {
        self.leader.borrow().clone()
    }

    /// Whether we lead.
    pub fn is_leader(&self) -> bool {
        *self.leader.borrow() == self.config.identity
    }

    /// Follows who leads.
    pub fn leaders(&self) -> watch::Receiver<String> {
        self.leader.subscribe()
    }

    /// Waits until the lease is ours, then runs `lead` until it ends, the lease is lost or `stop`. In the last two
    /// cases the future that `lead` gave is dropped.
    pub async fn run<F, Fut>(&self, stop: CancellationToken, lead: F) -> Led<Fut::Output>
    where
        F: FnOnce() -> Fut,
        Fut: Future,
    {
        if stop.run_until_cancelled(self.acquire()).await.is_none() {
            return Led::Stopped;
        }
        tracing::info!(lease = self.config.name, identity = self.config.identity, "became leader");
        let led = tokio::select! {
            biased;
            () = stop.cancelled() => Led::Stopped,
            () = self.renew() => Led::Lost,
            result = lead() => Led::Finished(result),
        };
        tracing::info!(lease = self.config.name, identity = self.config.identity, "stopped leading");
        if self.config.release_on_cancel {
            self.release().await;
        }
        self.leader.send_if_modified(|leader| {
            let was_us = *leader == self.config.identity;
            if was_us {
                leader.clear();
            }
            was_us
        });
        led
    }

    /// Tries until the lease is ours.
    async fn acquire(&self) {
        while !self.try_acquire_or_renew().await {
            let ids = &self.api.client().env().ids;
            tokio::time::sleep(jittered(self.config.retry_period, JITTER_FACTOR, ids.as_ref())).await;
        }
    }

    /// Renews until that was impossible for too long.
    async fn renew(&self) {
        loop {
            tokio::time::sleep(self.config.retry_period).await;
            let renewing = async {
                while !self.try_acquire_or_renew().await {
                    tokio::time::sleep(self.config.retry_period).await;
                }
            };
            if tokio::time::timeout(self.config.renew_deadline, renewing).await.is_err() {
                return;
            }
        }
    }

    async fn try_acquire_or_renew(&self) -> bool {
        let result = self.attempt().await;
        self.report_leader();
        match result {
            Ok(is_ours) => is_ours,
            Err(error) => {
                let text = pintle_client::error::chain_text(&error);
                tracing::debug!(lease = self.config.name, error = text, "the lease could not be read or written");
                false
            }
        }
    }

    async fn attempt(&self) -> Result<bool> {
        // the leader usually finds the lease as it left it
        let renewal = {
            let observed = self.observed.lock();
            let now = Instant::now();
            let holds = observed.holder() == self.config.identity && observed.is_valid(now);
            if holds { observed.claim(&self.config, now, &self.time()) } else { None }
        };
        if let Some(lease) = renewal
            && let Ok(written) = self.api.update(&lease).await
        {
            self.observed.lock().wrote(written, Instant::now());
            return Ok(true);
        }
        let found = self.api.get_opt(&self.config.name).await?;
        let claim = {
            let mut observed = self.observed.lock();
            let now = Instant::now();
            match found {
                Some(lease) => observed.see(lease, now),
                None => *observed = Observed::default(),
            }
            observed.claim(&self.config, now, &self.time())
        };
        let Some(lease) = claim else { return Ok(false) };
        let written = if lease.resource_version().is_empty() {
            self.api.create(&lease).await?
        } else {
            self.api.update(&lease).await?
        };
        self.observed.lock().wrote(written, Instant::now());
        Ok(true)
    }

    /// Gives the lease back if it is ours.
    async fn release(&self) {
        let ours = {
            let observed = self.observed.lock();
            observed.lease.clone().filter(|_| observed.holder() == self.config.identity)
        };
        let Some(mut lease) = ours else { return };
        let time = self.time();
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(time.clone());
            spec.acquire_time = Some(time);
        }
        match tokio::time::timeout(self.config.renew_deadline, self.api.update(&lease).into_future()).await {
            Ok(Ok(written)) => self.observed.lock().wrote(written, Instant::now()),
            Ok(Err(error)) => tracing::info!(lease = self.config.name, %error, "the lease could not be given back"),
            Err(_) => tracing::info!(lease = self.config.name, "the lease could not be given back in time"),
        }
    }

    fn report_leader(&self) {
        let holder = self.observed.lock().holder().to_owned();
        self.leader.send_if_modified(|leader| {
            let is_other = *leader != holder;
            if is_other {
                *leader = holder;
            }
            is_other
        });
    }

    fn time(&self) -> MicroTime {
        MicroTime(self.api.client().env().clock.now())
    }
}

#[cfg(test)]
mod tests;
