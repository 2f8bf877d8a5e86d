//! What an object and a watcher cost in memory.

use super::{Scale, Scenario, Session, Sweep};
use crate::lab::{Lab, PODS};
use crate::link::{Call, Link};
use crate::process::Usage;
use crate::tally::{Fault, Round};
use anyhow::{Context, Result};
use async_trait::async_trait;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A server is left alone this long before its memory is read.
const SETTLE_SPAN: Duration = Duration::from_secs(3);
/// Lists at once whose peak is measured.
const LISTERS: usize = 8;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "memory-pods",
            unit: "pods",
            what: "memory of pods, and the peak while eight clients list them at once",
            sweep: Sweep::Objects,
            is_timed: false,
            open: |lab, scale| Box::pin(open(lab, scale, Subject::Pods)),
        },
        Scenario {
            name: "memory-watchers",
            unit: "watchers",
            what: "memory of watchers of a quiet collection",
            sweep: Sweep::Watchers,
            is_timed: false,
            open: |lab, scale| Box::pin(open(lab, scale, Subject::Watchers)),
        },
    ]
}

#[derive(Clone, Copy, Debug)]
enum Subject {
    Pods,
    Watchers,
}

async fn open(lab: Arc<Lab>, scale: Scale, subject: Subject) -> Result<Box<dyn Session>> {
    let namespace = lab.namespace("memory").await?;
    Ok(Box::new(Memory { lab, namespace, scale, subject }))
}

struct Memory {
    lab: Arc<Lab>,
    namespace: String,
    scale: Scale,
    subject: Subject,
}

impl Memory {
    async fn settled(&self) -> Result<Usage> {
        tokio::time::sleep(SETTLE_SPAN).await;
        self.lab.processes.usage()
    }

    async fn pods(&self, round: &mut Round) -> Result<()> {
        self.lab.clear(&PODS, &self.namespace).await?;
        let before = self.settled().await?;
        self.lab.fill(&PODS, &self.namespace, 0, 0..self.scale.objects).await?;
        let after = self.settled().await?;
        self.lab.processes.reset_peak();
        let call = Call::get(&PODS.collection(&self.namespace))?;
        let mut lists = tokio::task::JoinSet::new();
        for mut link in self.lab.dialer.links(LISTERS).await? {
            let call = call.clone();
            lists.spawn(async move { link.count(&call).await });
        }
        while let Some(listed) = lists.join_next().await {
            if let Err(fault) = listed.context("a list ended early")? {
                round.faults.add(fault);
            }
        }
        let peak = self.lab.processes.usage()?;
        round.n_operations = self.scale.objects as u64;
        let per_pod = signed_difference(after.resident_bytes, before.resident_bytes) / self.scale.objects as f64;
        round.figures.push(("KB each", per_pod / 1e3));
        round.figures.push(("MB with all", after.resident_bytes as f64 / 1e6));
        round.figures.push(("MB more while 8 list", signed_difference(peak.peak_bytes, after.resident_bytes) / 1e6));
        self.lab.clear(&PODS, &self.namespace).await
    }

    async fn watchers(&self, round: &mut Round) -> Result<()> {
        let before = self.settled().await?;
        let shared = self.lab.settings.load.watchers_per_connection;
        let links = self.lab.dialer.links(self.scale.watchers.div_ceil(shared)).await?;
        let path = PODS.collection(&self.namespace);
        let mut tasks = tokio::task::JoinSet::new();
        for idx in 0..self.scale.watchers {
            let call = Call::get(&format!("{path}?watch=1&resourceVersion=0"))?;
            let mut link: Link = links[idx / shared].clone();
            match link.open(&call).await {
                Ok(response) => {
                    round.n_operations += 1;
                    let mut body = response.into_body();
                    tasks.spawn(async move { while let Some(Ok(_)) = body.frame().await {} });
                }
                Err(fault) => round.faults.add(fault),
            }
        }
        let after = self.settled().await?;
        let each = signed_difference(after.resident_bytes, before.resident_bytes) / self.scale.watchers as f64;
        round.figures.push(("KB each", each / 1e3));
        if tasks.try_join_next().is_some() {
            round.faults.add(Fault::new("ended watch", "a watch ended while nothing happened"));
        }
        tasks.shutdown().await;
        Ok(())
    }
}

fn signed_difference(after: u64, before: u64) -> f64 {
    after as f64 - before as f64
}

#[async_trait]
impl Session for Memory {
    async fn round(&mut self, _span: Duration) -> Result<Round> {
        let begun = Instant::now();
        let mut round = Round::default();
        if self.lab.processes.is_empty() {
            round.faults.add(Fault::new("unknown processes", "memory needs --server-pid (and --peer-pid)"));
            return Ok(round);
        }
        match self.subject {
            Subject::Pods => self.pods(&mut round).await?,
            Subject::Watchers => self.watchers(&mut round).await?,
        }
        round.elapsed = begun.elapsed();
        Ok(round)
    }
}
