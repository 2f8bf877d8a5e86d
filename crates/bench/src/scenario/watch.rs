//! Watches: the same events to many watchers, flat out and paced, and to each watcher only its own.

use super::{Scale, Scenario, Session, Sweep};
use crate::bodies::{Mark, Template};
use crate::drive::{Source, closed_loop, timetable};
use crate::lab::{CONFIG_MAPS, Lab};
use crate::link::{Call, Link};
use crate::random::Random;
use crate::tally::{Fault, Round};
use crate::watchers::{Check, Seen, Watchers};
use anyhow::{Context, Result};
use async_trait::async_trait;
use http::Method;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Events that writers may be ahead of the average watcher: flat out means as fast as watchers get them.
const AHEAD_EVENTS_MAX: u64 = 50;
/// Time for the last events of a round to arrive; what is missing then is lost.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(20);
/// Clients that write where each watcher has its own object.
const OWN_OBJECT_CLIENTS: usize = 16;

/// Who gets what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// Everybody gets everything, as fast as it goes.
    FanOut,
    /// Everybody gets everything, so many events a second.
    Paced,
    /// Everybody watches one object by name.
    Own,
}

pub(super) fn scenarios() -> Vec<Scenario> {
    let scenario = |name, unit, what, open| Scenario { name, unit, what, sweep: Sweep::Watchers, is_timed: true, open };
    vec![
        scenario("watch-fan-out", "deliveries", "all events to all watchers, flat out", |lab, scale| {
            Box::pin(open(lab, scale, Pattern::FanOut))
        }),
        scenario("watch-latency", "deliveries", "write to watcher, at --rate events a second", |lab, scale| {
            Box::pin(open(lab, scale, Pattern::Paced))
        }),
        scenario("watch-own", "writes", "each watcher on an object of its own, flat out", |lab, scale| {
            Box::pin(open(lab, scale, Pattern::Own))
        }),
    ]
}

async fn open(lab: Arc<Lab>, scale: Scale, pattern: Pattern) -> Result<Box<dyn Session>> {
    let namespace = lab.namespace("watch").await?;
    let n_writers = lab.settings.load.writers;
    let (n_objects, n_clients) = match pattern {
        Pattern::FanOut | Pattern::Paced => (n_writers, n_writers),
        Pattern::Own => (scale.watchers, OWN_OBJECT_CLIENTS.min(scale.watchers)),
    };
    lab.clear(&CONFIG_MAPS, &namespace).await?;
    let links = lab.dialer.links(n_clients).await?;
    let mut writers: Vec<Writer> = Vec::new();
    let mut link = links[0].clone();
    for idx in 0..n_objects {
        let name = format!("watched-{idx}");
        let body = (CONFIG_MAPS.body)(&name, idx);
        let create =
            Call::new(Method::POST, &CONFIG_MAPS.collection(&namespace))?.with_body("application/json", body.clone());
        link.count(&create).await.context("cannot make an object to watch")?;
        let call =
            Call::new(Method::PUT, &CONFIG_MAPS.item(&namespace, &name))?.with_body("application/json", body.clone());
        // objects that only their own watcher sees share a number: it expects a sequence of its own anyway
        let writer = u32::try_from(idx % 10_000)?;
        let object = Written { call, template: Template::new(body), mark: Mark { writer, sequence: 0, nanos: 0 } };
        match writers.get_mut(idx % n_clients) {
            Some(writer) => writer.objects.push(object),
            None => writers.push(Writer {
                objects: vec![object],
                random: Random::new(lab.settings.load.seed, idx as u64),
                lab: lab.clone(),
                budget: None,
            }),
        }
    }
    let path = CONFIG_MAPS.collection(&namespace);
    let watched = |idx| match pattern {
        Pattern::FanOut | Pattern::Paced => format!("{path}?watch=1"),
        Pattern::Own => format!("{path}?watch=1&fieldSelector=metadata.name%3Dwatched-{idx}"),
    };
    let watchers = Watchers::open(&lab, &path, (0..scale.watchers).map(watched).collect(), Check::Every).await?;
    Ok(Box::new(Watch { lab, namespace, pattern, links, writers, watchers, n_watchers: scale.watchers as u64 }))
}

struct Watch {
    lab: Arc<Lab>,
    namespace: String,
    pattern: Pattern,
    links: Vec<Link>,
    writers: Vec<Writer>,
    watchers: Watchers,
    n_watchers: u64,
}

/// Writes some objects, each with a sequence of its own.
struct Writer {
    objects: Vec<Written>,
    random: Random,
    lab: Arc<Lab>,
    /// How many writes are still allowed, where the watchers' progress limits them.
    budget: Option<u64>,
}

struct Written {
    call: Call,
    template: Template,
    mark: Mark,
}

impl Source for Writer {
    fn next(&mut self) -> Option<Call> {
        if let Some(budget) = &mut self.budget {
            *budget = budget.checked_sub(1)?;
        }
        let idx = self.random.below(self.objects.len());
        let object = &mut self.objects[idx];
        object.mark.sequence += 1;
        object.mark.nanos = self.lab.nanos();
        Some(Call { body: object.template.with(object.mark), ..object.call.clone() })
    }
}

impl Watch {
    /// Writes until the span is over, a burst at a time, waiting for the watchers between two bursts.
    async fn flat_out(&mut self, span: Duration) -> Result<(Round, u64)> {
        let begun = Instant::now();
        let delivered_before = self.watchers.seen.n_deliveries();
        let (mut writes, mut n_written) = (Round::default(), 0);
        let burst = (AHEAD_EVENTS_MAX / 2).div_ceil(self.writers.len() as u64);
        while begun.elapsed() < span {
            let mut writers = std::mem::take(&mut self.writers);
            writers.iter_mut().for_each(|writer| writer.budget = Some(burst));
            let (round, writers) = closed_loop(&self.links, writers, span, &Arc::default()).await?;
            self.writers = writers;
            n_written += round.n_operations;
            writes.merge(&round);
            let needed = n_written.saturating_sub(AHEAD_EVENTS_MAX / 2) * self.n_watchers;
            if !arrived(&self.watchers.seen, delivered_before + needed).await {
                break;
            }
        }
        Ok((writes, n_written * self.n_watchers))
    }

    async fn paced(&mut self, span: Duration) -> Result<(Round, u64)> {
        let n_writers = self.writers.len();
        let period = Duration::from_secs_f64(n_writers as f64 / self.lab.settings.load.rate);
        let begun = Instant::now();
        let mut tasks = Vec::new();
        for (idx, mut writer) in std::mem::take(&mut self.writers).into_iter().enumerate() {
            writer.budget = None;
            let first = begun + period.mul_f64(idx as f64 / n_writers as f64);
            let link = self.links[idx].clone();
            tasks.push(tokio::spawn(timetable(link, writer, first, period, begun + span, Arc::default())));
        }
        let mut writes = Round::default();
        for task in tasks {
            let (round, writer) = task.await.context("a writer ended early")?;
            writes.merge(&round);
            self.writers.push(writer);
        }
        let n_expected = writes.n_operations * self.n_watchers;
        Ok((writes, n_expected))
    }

    async fn own(&mut self, span: Duration) -> Result<(Round, u64)> {
        let (round, writers) =
            closed_loop(&self.links, std::mem::take(&mut self.writers), span, &Arc::default()).await?;
        self.writers = writers;
        let n_expected = round.n_operations;
        Ok((round, n_expected))
    }
}

/// Waits until so many deliveries are there; `false` when they are not in time.
async fn arrived(seen: &Seen, n_deliveries: u64) -> bool {
    let deadline = Instant::now() + ARRIVAL_TIMEOUT;
    loop {
        let progress = seen.progress.notified();
        if seen.n_deliveries() >= n_deliveries {
            return true;
        }
        if timeout(deadline.saturating_duration_since(Instant::now()), progress).await.is_err() {
            return seen.n_deliveries() >= n_deliveries;
        }
    }
}

#[async_trait]
impl Session for Watch {
    async fn round(&mut self, span: Duration) -> Result<Round> {
        let begun = Instant::now();
        let before = self.watchers.seen.n_deliveries();
        let (writes, n_expected) = match self.pattern {
            Pattern::FanOut => self.flat_out(span).await?,
            Pattern::Paced => self.paced(span).await?,
            Pattern::Own => self.own(span).await?,
        };
        arrived(&self.watchers.seen, before + n_expected).await;
        let n_arrived = self.watchers.seen.n_deliveries() - before;
        let (latency, mut faults) = self.watchers.seen.take();
        faults.merge(&writes.faults);
        if n_arrived < n_expected {
            faults.add_many(
                Fault::new("missing delivery", "some events had not arrived in time"),
                n_expected - n_arrived,
            );
        }
        let elapsed = begun.elapsed();
        let n_operations = if self.pattern == Pattern::Own { writes.n_operations } else { n_arrived };
        let figures = vec![("writes/s", writes.n_operations as f64 / elapsed.as_secs_f64())];
        Ok(Round { elapsed, n_operations, n_bytes: writes.n_bytes, latency, faults, figures })
    }

    async fn close(self: Box<Self>) -> Result<()> {
        let Watch { lab, namespace, watchers, .. } = *self;
        drop(watchers);
        lab.clear(&CONFIG_MAPS, &namespace).await
    }
}
