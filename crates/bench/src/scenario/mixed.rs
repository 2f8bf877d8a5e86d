//! What a cluster asks of its API server: the heartbeats of nodes, and with them pods that come and go under the eyes of
//! informers. By a timetable: what matters is what it costs.

use super::{Scale, Scenario, Session, Sweep};
use crate::bodies::{self, Mark, Template};
use crate::drive::{Source, timetable};
use crate::lab::{LEASES, Lab, PODS};
use crate::link::{Call, Link};
use crate::random::Random;
use crate::tally::{Fault, Round, text_behind};
use crate::watchers::{Check, Watchers};
use anyhow::{Context, Result};
use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Nodes that share a connection: real ones have one each, which would make this about handshakes.
const NODES_PER_CONNECTION: usize = 50;
/// Pods that live at a time: each is created, said to run one step later, and deleted this many steps after that.
const LIFE_STEPS: usize = 20;

pub(super) fn scenarios() -> Vec<Scenario> {
    let scenario =
        |name, what, open| Scenario { name, unit: "operations", what, sweep: Sweep::Nodes, is_timed: true, open };
    vec![
        scenario("heartbeats", "leases of nodes, renewed every --heartbeat-seconds", |lab, scale| {
            Box::pin(open(lab, scale, false))
        }),
        scenario(
            "mixed-cluster",
            "heartbeats, --pods-per-second that come and go, --informers on all pods",
            |lab, scale| Box::pin(open(lab, scale, true)),
        ),
    ]
}

async fn open(lab: Arc<Lab>, scale: Scale, has_pods: bool) -> Result<Box<dyn Session>> {
    let namespace = lab.namespace("nodes").await?;
    lab.clear(&LEASES, &namespace).await?;
    let links = lab.dialer.links(scale.nodes.div_ceil(NODES_PER_CONNECTION)).await?;
    let nodes = Arc::new(parking_lot::Mutex::new((0..scale.nodes).collect::<VecDeque<usize>>()));
    let mut tasks = JoinSet::new();
    for mut link in links.iter().cloned() {
        let (nodes, namespace) = (nodes.clone(), namespace.clone());
        tasks.spawn(async move {
            let mut made = Vec::new();
            loop {
                let Some(idx) = nodes.lock().pop_front() else { return Ok::<_, anyhow::Error>(made) };
                made.push((idx, Node::register(&mut link, &namespace, idx).await?));
            }
        });
    }
    let mut nodes = Vec::new();
    while let Some(made) = tasks.join_next().await {
        nodes.extend(made.context("a node ended early")??);
    }
    nodes.sort_by_key(|(idx, _)| *idx);
    let nodes = nodes.into_iter().map(|(_, node)| node).collect();
    let pods = if has_pods { Some(Pods::open(&lab, &namespace).await?) } else { None };
    Ok(Box::new(Cluster { lab, namespace, links, nodes, pods }))
}

struct Cluster {
    lab: Arc<Lab>,
    namespace: String,
    links: Vec<Link>,
    nodes: Vec<Node>,
    pods: Option<Pods>,
}

/// Renews one lease, with the version that the last answer gave.
struct Node {
    call: Call,
    text: String,
    version: String,
    mark: Mark,
}

/// Stands for the version in a lease's text.
const VERSION: &str = "@version@";

impl Node {
    async fn register(link: &mut Link, namespace: &str, idx: usize) -> Result<Node> {
        let name = format!("node-{idx}");
        let create = Call::new(Method::POST, &LEASES.collection(namespace))?;
        let stored = link.fetch(&create.with_body("application/json", bodies::lease(&name))).await?;
        let version = text_behind(&stored, b"\"resourceVersion\":\"").context("a lease without version")?;
        let text = String::from_utf8_lossy(&bodies::update_of(&stored)?).into_owned();
        let text = text.replacen("\"metadata\":{", &format!("\"metadata\":{{\"resourceVersion\":\"{VERSION}\","), 1);
        let call = Call::new(Method::PUT, &LEASES.item(namespace, &name))?.with_body("application/json", Bytes::new());
        Ok(Node { call, text, version, mark: Mark::default() })
    }
}

impl Source for Node {
    fn next(&mut self) -> Option<Call> {
        self.mark.sequence += 1;
        let body = Template::new(self.text.replace(VERSION, &self.version)).with(self.mark);
        Some(Call { body, ..self.call.clone() })
    }

    fn wants_answers(&self) -> bool {
        true
    }

    fn answered(&mut self, answer: &[u8]) {
        if let Some(version) = text_behind(answer, b"\"resourceVersion\":\"") {
            self.version = version;
        }
    }
}

/// Pods that come and go, and who watches them.
struct Pods {
    namespace: String,
    link: Link,
    informers: Watchers,
    /// Taken while a round runs.
    churn: Option<Churn>,
}

impl Pods {
    async fn open(lab: &Arc<Lab>, namespace: &str) -> Result<Pods> {
        lab.clear(&PODS, namespace).await?;
        let path = PODS.collection(namespace);
        let watched = vec![format!("{path}?watch=1"); lab.settings.load.informers];
        let informers = Watchers::open(lab, &path, watched, Check::Added).await?;
        let churn = Churn {
            lab: lab.clone(),
            namespace: namespace.to_owned(),
            templates: PODS.templates(),
            mark: Mark::default(),
            then: None,
            alive: VecDeque::new(),
        };
        Ok(Pods { namespace: namespace.to_owned(), link: lab.dialer.link().await?, informers, churn: Some(churn) })
    }
}

/// One step creates a pod, reports the last one as running and deletes the oldest.
struct Churn {
    lab: Arc<Lab>,
    namespace: String,
    templates: Arc<[Template]>,
    mark: Mark,
    then: Option<Step>,
    alive: VecDeque<String>,
}

enum Step {
    Report,
    Delete,
}

impl Source for Churn {
    fn next(&mut self) -> Option<Call> {
        self.mark.sequence += 1;
        self.mark.nanos = self.lab.nanos();
        let name = bodies::name(self.mark.writer, self.mark.sequence);
        let variant = usize::try_from(self.mark.sequence).unwrap_or_default() % self.templates.len();
        let body = self.templates[variant].with(self.mark);
        self.alive.push_back(name);
        self.then = Some(Step::Report);
        let path = PODS.collection(&self.namespace).parse().ok()?;
        Some(Call { path, ..Call::new(Method::POST, "/").ok()?.with_body("application/json", body) })
    }

    fn more(&mut self) -> Option<Call> {
        match self.then.take()? {
            Step::Report => {
                self.then = Some(Step::Delete);
                let path = format!("{}/status", PODS.item(&self.namespace, self.alive.back()?));
                let patch = Call::new(Method::PATCH, &path).ok()?;
                Some(patch.with_body("application/strategic-merge-patch+json", bodies::pod_status()))
            }
            Step::Delete => {
                if self.alive.len() <= LIFE_STEPS {
                    return None;
                }
                let oldest = self.alive.pop_front()?;
                Call::new(Method::DELETE, &format!("{}?gracePeriodSeconds=0", PODS.item(&self.namespace, &oldest))).ok()
            }
        }
    }
}

#[async_trait]
impl Session for Cluster {
    async fn round(&mut self, span: Duration) -> Result<Round> {
        let begun = Instant::now();
        let end = begun + span;
        let period = self.lab.settings.heartbeat;
        let mut random = Random::new(self.lab.settings.load.seed, 0);
        let mut tasks = Vec::with_capacity(self.nodes.len());
        for (idx, node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            let first = begun + period.mul_f64(random.fraction());
            let link = self.links[idx / NODES_PER_CONNECTION].clone();
            tasks.push(tokio::spawn(timetable(link, node, first, period, end, self.lab.live.clone())));
        }
        let mut sum = Round::default();
        if let Some(pods) = &mut self.pods
            && let Some(churn) = pods.churn.take()
        {
            let period = Duration::from_secs_f64(1.0 / self.lab.settings.load.pods_per_second);
            let (round, churn) = timetable(pods.link.clone(), churn, begun, period, end, self.lab.live.clone()).await;
            pods.churn = Some(churn);
            sum.merge(&round);
            let (latency, faults) = pods.informers.seen.take();
            sum.figures.push(("pods/s", round.n_operations as f64 / span.as_secs_f64()));
            sum.figures.push(("informer p99 ms", latency.quantile(990).as_secs_f64() * 1e3));
            sum.faults.merge(&faults);
        }
        for task in tasks {
            let (round, node) = task.await.context("a node ended early")?;
            sum.merge(&round);
            self.nodes.push(node);
        }
        if sum.n_operations == 0 {
            sum.faults.add(Fault::new("nothing due", "the round was shorter than all heartbeats' time"));
        }
        sum.elapsed = begun.elapsed();
        Ok(sum)
    }

    async fn close(self: Box<Self>) -> Result<()> {
        if let Some(pods) = &self.pods {
            self.lab.clear(&PODS, &pods.namespace).await?;
        }
        self.lab.clear(&LEASES, &self.namespace).await
    }
}
