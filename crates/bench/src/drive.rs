//! Sends requests: as fast as answers come, or by a timetable that does not wait for them.

use crate::link::{Call, Link};
use crate::tally::{Fault, Live, Round};
use anyhow::{Context, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Makes the requests of one client.
pub(crate) trait Source: Send + 'static {
    /// The next request; `None` when there are no more.
    fn next(&mut self) -> Option<Call>;

    /// Whether [`Source::answered`] wants to see the answers: reading them costs a copy.
    fn wants_answers(&self) -> bool {
        false
    }

    /// What the server said to the last request.
    fn answered(&mut self, answer: &[u8]) {
        let _ = answer;
    }

    /// What has to be asked to go on with this operation, such as the next page: it counts as part of it.
    fn more(&mut self) -> Option<Call> {
        None
    }
}

/// Each client sends its next request when the last one is answered, until `span` has passed. Gives the sources back.
pub(crate) async fn closed_loop<S: Source>(
    links: &[Link],
    sources: Vec<S>,
    span: Duration,
    live: &Arc<Live>,
) -> Result<(Round, Vec<S>)> {
    let begun = Instant::now();
    let deadline = begun + span;
    let tasks: Vec<_> = sources
        .into_iter()
        .enumerate()
        .map(|(idx, source)| tokio::spawn(client(links[idx % links.len()].clone(), source, deadline, live.clone())))
        .collect();
    let (mut sum, mut sources) = (Round::default(), Vec::with_capacity(tasks.len()));
    for task in tasks {
        let (round, source) = task.await.context("a client ended early")?;
        sum.merge(&round);
        sources.push(source);
    }
    sum.elapsed = begun.elapsed();
    Ok((sum, sources))
}

async fn client<S: Source>(mut link: Link, mut source: S, deadline: Instant, live: Arc<Live>) -> (Round, S) {
    let mut round = Round::default();
    loop {
        let begun = Instant::now();
        if begun >= deadline {
            return (round, source);
        }
        let Some(call) = source.next() else { return (round, source) };
        let outcome = operation(&mut link, &mut source, call).await;
        let is_broken = matches!(&outcome, Err(Fault { kind, .. }) if kind == "connection");
        live.add(outcome.is_ok());
        round.count(outcome, begun.elapsed());
        if is_broken {
            // nothing more can be said of this connection
            return (round, source);
        }
    }
}

async fn operation<S: Source>(link: &mut Link, source: &mut S, call: Call) -> Result<u64, Fault> {
    let mut next = Some(call);
    let mut n_bytes = 0;
    while let Some(call) = next.take() {
        if source.wants_answers() {
            let answer = link.fetch(&call).await?;
            source.answered(&answer);
            n_bytes += answer.len() as u64;
        } else {
            n_bytes += link.count(&call).await?;
        }
        next = source.more();
    }
    Ok(n_bytes)
}

/// Sends a request every `period` from `first` on until `end`. One that has to wait for the answer to the last is late
/// from the time at which it was due, so that a slow server cannot hide its slowness.
pub(crate) async fn timetable<S: Source>(
    mut link: Link,
    mut source: S,
    first: Instant,
    period: Duration,
    end: Instant,
    live: Arc<Live>,
) -> (Round, S) {
    let mut round = Round::default();
    let mut due = first;
    while due < end {
        tokio::time::sleep_until(due).await;
        let Some(call) = source.next() else { break };
        let outcome = operation(&mut link, &mut source, call).await;
        live.add(outcome.is_ok());
        round.count(outcome, due.elapsed());
        due += period;
    }
    (round, source)
}
