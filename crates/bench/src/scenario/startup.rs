//! Start to ready, on an empty directory, with the memory of a server that idles afterwards.

use super::{Scale, Scenario, Session, Sweep};
use crate::lab::Lab;
use crate::process::Usage;
use crate::tally::{Fault, Round};
use anyhow::Result;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// A server that is ready is left alone this long before its memory is read.
const IDLE_SPAN: Duration = Duration::from_secs(3);

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![Scenario {
        name: "startup",
        unit: "starts",
        what: "start to ready on an empty directory, idle memory",
        sweep: Sweep::Nothing,
        is_timed: false,
        open: |lab, scale| Box::pin(open(lab, scale)),
    }]
}

async fn open(lab: Arc<Lab>, _scale: Scale) -> Result<Box<dyn Session>> {
    Ok(Box::new(Startup { lab, n_starts: 0, usage: Usage::default() }))
}

struct Startup {
    lab: Arc<Lab>,
    n_starts: usize,
    usage: Usage,
}

#[async_trait]
impl Session for Startup {
    async fn round(&mut self, _span: Duration) -> Result<Round> {
        let mut round = Round::default();
        let Some(recipe) = &self.lab.recipe else {
            round.faults.add(Fault::new("not started here", "only servers that the run starts itself can be measured"));
            return Ok(round);
        };
        self.n_starts += 1;
        let directory = self.lab.work_dir.join(format!("startup-{}", self.n_starts));
        let running = recipe.start(&directory).await?;
        let at_ready = running.processes().usage()?;
        round.elapsed = running.ready_after;
        round.count(Ok(0), running.ready_after);
        self.lab.live.add(true);
        tokio::time::sleep(IDLE_SPAN).await;
        let idle = running.processes().usage()?;
        self.usage = Usage { cpu: at_ready.cpu, ..idle };
        round.figures.push(("idle MB", idle.resident_bytes as f64 / 1e6));
        running.stop().await?;
        std::fs::remove_dir_all(&directory)?;
        Ok(round)
    }

    fn own_usage(&self) -> Option<Usage> {
        Some(self.usage)
    }
}
