//! One kind of request at a time, by clients that each wait for their answer: create, get, update, patch, apply, delete.

use super::{Scale, Scenario, Session, Sweep};
use crate::bodies::{self, Mark, Template};
use crate::drive::{Source, closed_loop};
use crate::lab::{CONFIG_MAPS, Kind, LEASES, Lab, PODS};
use crate::link::{Call, Link};
use crate::random::Random;
use crate::tally::{Round, text_behind};
use anyhow::{Context, Result};
use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use std::sync::Arc;
use std::time::Duration;

/// Objects of each client where objects are changed or read.
const OBJECTS_PER_CLIENT: usize = 4;
/// Objects that a round of deletions may use up, for each client.
const DELETIONS_PER_CLIENT: usize = 100;

/// What is asked.
#[derive(Clone, Copy, Debug)]
enum Verb {
    Create,
    Get {
        accept: &'static str,
    },
    Put,
    /// Of an object whose update must carry its version.
    PutVersioned,
    Patch {
        content_type: &'static str,
        body: fn() -> Bytes,
    },
    Apply,
    Delete,
}

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

macro_rules! scenario {
    ($name:literal, $what:literal, $kind:expr, $verb:expr) => {
        Scenario {
            name: $name,
            unit: "requests",
            what: $what,
            sweep: Sweep::Clients,
            is_timed: true,
            open: |lab, scale| Box::pin(open(lab, scale, $name, $kind, $verb)),
        }
    };
}

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario!("create-configmaps", "ConfigMaps of 1 KB", CONFIG_MAPS, Verb::Create),
        scenario!("create-pods", "pods of 2.5 KB", PODS, Verb::Create),
        scenario!("get-pods", "one pod as JSON", PODS, Verb::Get { accept: JSON }),
        scenario!("get-pods-protobuf", "one pod as protobuf", PODS, Verb::Get { accept: PROTOBUF }),
        scenario!("update-pods", "PUT of a whole pod", PODS, Verb::Put),
        scenario!(
            "merge-patch-pods",
            "JSON merge patch of an annotation",
            PODS,
            Verb::Patch { content_type: MERGE, body: bodies::mark_patch }
        ),
        scenario!(
            "strategic-patch-pods",
            "strategic merge patch of an annotation",
            PODS,
            Verb::Patch { content_type: STRATEGIC, body: bodies::mark_patch }
        ),
        scenario!("apply-pods", "server-side apply of a whole pod", PODS, Verb::Apply),
        scenario!("update-leases", "PUT of a node's lease, with its version", LEASES, Verb::PutVersioned),
        scenario!(
            "merge-patch-leases",
            "JSON merge patch of a node's lease",
            LEASES,
            Verb::Patch { content_type: MERGE, body: bodies::lease_patch }
        ),
        scenario!("delete-configmaps", "ConfigMaps by name", CONFIG_MAPS, Verb::Delete),
        scenario!("delete-pods", "pods by name, without grace period", PODS, Verb::Delete),
    ]
}

async fn open(lab: Arc<Lab>, scale: Scale, name: &str, kind: Kind, verb: Verb) -> Result<Box<dyn Session>> {
    let namespace = lab.namespace(name).await?;
    let links = lab.dialer.links(scale.clients).await?;
    let mut session =
        Requests { sources: Vec::new(), namespace, links, kind, verb, n_clients: scale.clients, n_rounds: 0, lab };
    if matches!(verb, Verb::Get { .. } | Verb::Put | Verb::PutVersioned | Verb::Patch { .. } | Verb::Apply) {
        for client in 0..scale.clients {
            session.change_source(client).await?;
        }
    }
    Ok(Box::new(session))
}

struct Requests {
    lab: Arc<Lab>,
    namespace: String,
    links: Vec<Link>,
    kind: Kind,
    verb: Verb,
    n_clients: usize,
    n_rounds: u64,
    sources: Vec<Client>,
}

/// The requests of one client.
enum Client {
    Create { call: Call, templates: Arc<[Template]>, mark: Mark },
    Change { objects: Vec<Object>, random: Random, mark: Mark, current: usize, is_versioned: bool },
    Delete { calls: std::vec::IntoIter<Call> },
}

/// An object that a client asks for or changes.
struct Object {
    call: Call,
    template: Template,
    /// Text of the body around the version, and the version, where updates must carry one.
    versioned: Option<(String, String)>,
}

impl Source for Client {
    fn next(&mut self) -> Option<Call> {
        match self {
            Client::Create { call, templates, mark } => {
                mark.sequence += 1;
                let variant = usize::try_from(mark.sequence).unwrap_or_default() % templates.len();
                Some(Call { body: templates[variant].with(*mark), ..call.clone() })
            }
            Client::Change { objects, random, mark, current, .. } => {
                mark.sequence += 1;
                *current = random.below(objects.len());
                let object = &objects[*current];
                let body = match &object.versioned {
                    Some((text, version)) => Template::new(text.replace(VERSION, version)).with(*mark),
                    None => object.template.with(*mark),
                };
                Some(Call { body, ..object.call.clone() })
            }
            Client::Delete { calls } => calls.next(),
        }
    }

    fn wants_answers(&self) -> bool {
        matches!(self, Client::Change { is_versioned: true, .. })
    }

    fn answered(&mut self, answer: &[u8]) {
        if let Client::Change { objects, current, .. } = self
            && let Some((_, version)) = &mut objects[*current].versioned
            && let Some(next) = text_behind(answer, b"\"resourceVersion\":\"")
        {
            *version = next;
        }
    }
}

/// Stands for the version in bodies that carry one.
const VERSION: &str = "@version@";

impl Requests {
    fn mark(&self, client: usize) -> Mark {
        // clients are limited to what marks can tell apart
        Mark { writer: u32::try_from(client).unwrap_or_default(), sequence: 0, nanos: self.lab.nanos() }
    }

    /// Creates the objects of a client and prepares its requests on them.
    async fn change_source(&mut self, client: usize) -> Result<()> {
        let collection = self.kind.collection(&self.namespace);
        let link = &mut self.links[client];
        let mut objects = Vec::with_capacity(OBJECTS_PER_CLIENT);
        for idx in 0..OBJECTS_PER_CLIENT {
            let name = format!("object-{client}-{idx}");
            let body = (self.kind.body)(&name, client * OBJECTS_PER_CLIENT + idx);
            let path = self.kind.item(&self.namespace, &name);
            let apply = |body: &Bytes| {
                let path = format!("{path}?fieldManager=bench&force=true");
                Ok::<_, anyhow::Error>(Call::new(Method::PATCH, &path)?.with_body(APPLY, body.clone()))
            };
            let made = match self.verb {
                Verb::Apply => apply(&body)?,
                _ => Call::new(Method::POST, &collection)?.with_body(JSON, body.clone()),
            };
            let stored = link.fetch(&made).await.with_context(|| format!("cannot make {}", self.kind.plural))?;
            objects.push(match self.verb {
                Verb::Get { accept } => object(Call::get(&path)?.accepting(accept), Bytes::new()),
                Verb::Patch { content_type, body } => {
                    let call = Call::new(Method::PATCH, &path)?.with_body(content_type, Bytes::new());
                    object(call, body())
                }
                Verb::Apply => object(apply(&body)?, body),
                Verb::PutVersioned => {
                    let version =
                        text_behind(&stored, b"\"resourceVersion\":\"").context("an object without version")?;
                    let text = String::from_utf8_lossy(&bodies::update_of(&stored)?).into_owned();
                    let text = text.replacen(
                        "\"metadata\":{",
                        &format!("\"metadata\":{{\"resourceVersion\":\"{VERSION}\","),
                        1,
                    );
                    let call = Call::new(Method::PUT, &path)?.with_body(JSON, Bytes::new());
                    Object { versioned: Some((text, version)), ..object(call, Bytes::new()) }
                }
                Verb::Put | Verb::Create | Verb::Delete => {
                    object(Call::new(Method::PUT, &path)?.with_body(JSON, Bytes::new()), bodies::update_of(&stored)?)
                }
            });
        }
        let random = Random::new(self.lab.settings.load.seed, client as u64);
        let is_versioned = matches!(self.verb, Verb::PutVersioned);
        let mark = self.mark(client);
        self.sources.push(Client::Change { objects, random, mark, current: 0, is_versioned });
        Ok(())
    }
}

fn object(call: Call, body: Bytes) -> Object {
    Object { call, template: Template::new(body), versioned: None }
}

#[async_trait]
impl Session for Requests {
    async fn ready(&mut self) -> Result<()> {
        self.n_rounds += 1;
        match self.verb {
            Verb::Create => {
                self.lab.clear(&self.kind, &self.namespace).await?;
                if self.sources.is_empty() {
                    let call =
                        Call::new(Method::POST, &self.kind.collection(&self.namespace))?.with_body(JSON, Bytes::new());
                    let templates = self.kind.templates();
                    let marks: Vec<Mark> = (0..self.n_clients).map(|client| self.mark(client)).collect();
                    let client = |mark| Client::Create { call: call.clone(), templates: templates.clone(), mark };
                    self.sources = marks.into_iter().map(client).collect();
                }
            }
            Verb::Delete => {
                self.lab.clear(&self.kind, &self.namespace).await?;
                self.sources.clear();
                let n = self.n_clients * DELETIONS_PER_CLIENT;
                self.lab.fill(&self.kind, &self.namespace, 0, 0..n).await?;
                for client in 0..self.n_clients {
                    let mine = client * DELETIONS_PER_CLIENT..(client + 1) * DELETIONS_PER_CLIENT;
                    let path = |number| self.kind.item(&self.namespace, &bodies::name(0, number as u64));
                    let calls =
                        mine.map(|number| Call::new(Method::DELETE, &format!("{}?gracePeriodSeconds=0", path(number))));
                    self.sources.push(Client::Delete { calls: calls.collect::<Result<Vec<_>>>()?.into_iter() });
                }
            }
            Verb::Get { .. } | Verb::Put | Verb::PutVersioned | Verb::Patch { .. } | Verb::Apply => {}
        }
        Ok(())
    }

    async fn round(&mut self, span: Duration) -> Result<Round> {
        let (round, sources) =
            closed_loop(&self.links, std::mem::take(&mut self.sources), span, &self.lab.live).await?;
        self.sources = sources;
        Ok(round)
    }

    async fn close(self: Box<Self>) -> Result<()> {
        self.lab.clear(&self.kind, &self.namespace).await
    }
}
