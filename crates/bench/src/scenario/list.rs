//! LIST of many pods, in every form that clients ask for. One operation is one whole list, however many pages it has.

use super::{Scale, Scenario, Session, Sweep};
use crate::drive::{Source, closed_loop};
use crate::lab::{Lab, PODS};
use crate::link::{Call, Link};
use crate::tally::{Round, text_behind};
use anyhow::Result;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// A way to ask for pods.
#[derive(Clone, Copy, Debug)]
struct Form {
    query: &'static str,
    accept: &'static str,
    gzip: bool,
}

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

macro_rules! scenario {
    ($name:literal, $what:literal, $query:literal, $accept:expr, $gzip:literal) => {
        Scenario {
            name: $name,
            unit: "lists",
            what: $what,
            sweep: Sweep::ListsOfObjects,
            is_timed: true,
            open: |lab, scale| Box::pin(open(lab, scale, Form { query: $query, accept: $accept, gzip: $gzip })),
        }
    };
}

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario!("list-json", "all pods as JSON, consistent read", "", JSON, false),
        scenario!("list-rv0", "all pods as JSON, resourceVersion=0", "?resourceVersion=0", JSON, false),
        scenario!("list-protobuf", "all pods as protobuf", "", PROTOBUF, false),
        scenario!("list-table", "all pods as kubectl's table", "", TABLE, false),
        scenario!("list-pages", "all pods in pages of 500", "?limit=500", JSON, false),
        scenario!("list-selector", "one pod in a hundred, by label", "?labelSelector=bucket%3D7", JSON, false),
        scenario!("list-gzip", "all pods as compressed JSON", "", JSON, true),
    ]
}

async fn open(lab: Arc<Lab>, scale: Scale, form: Form) -> Result<Box<dyn Session>> {
    let namespace = lab.readable_pods(scale.objects).await?;
    let links = lab.dialer.links(scale.clients).await?;
    let path = PODS.collection(&namespace);
    let call = Call { gzip: form.gzip, ..Call::get(&format!("{path}{}", form.query))?.accepting(form.accept) };
    let is_paged = form.query.contains("limit=");
    let lister = Lister { call, is_paged, next: None };
    Ok(Box::new(Lists { sources: vec![lister; scale.clients], lab, links }))
}

struct Lists {
    lab: Arc<Lab>,
    links: Vec<Link>,
    sources: Vec<Lister>,
}

#[derive(Clone)]
struct Lister {
    call: Call,
    is_paged: bool,
    next: Option<Call>,
}

impl Source for Lister {
    fn next(&mut self) -> Option<Call> {
        Some(self.call.clone())
    }

    fn wants_answers(&self) -> bool {
        self.is_paged
    }

    fn answered(&mut self, answer: &[u8]) {
        /// Bytes in which a list's metadata lie, before its items.
        const METADATA_BYTES_MAX: usize = 4096;
        let metadata = &answer[..answer.len().min(METADATA_BYTES_MAX)];
        self.next = text_behind(metadata, b"\"continue\":\"").and_then(|token| {
            let path = format!("{}&continue={token}", self.call.path);
            Some(Call { path: path.parse().ok()?, ..self.call.clone() })
        });
    }

    fn more(&mut self) -> Option<Call> {
        self.next.take()
    }
}

#[async_trait]
impl Session for Lists {
    async fn round(&mut self, span: Duration) -> Result<Round> {
        let (mut round, sources) =
            closed_loop(&self.links, std::mem::take(&mut self.sources), span, &self.lab.live).await?;
        self.sources = sources;
        if round.n_operations > 0 {
            round.figures.push(("MB each", round.n_bytes as f64 / 1e6 / round.n_operations as f64));
        }
        Ok(round)
    }
}
