//! One server under measurement: connections to it, the namespaces that the run makes in it, objects put there
//! beforehand.

use crate::bodies::{self, Mark, Template};
use crate::link::{Call, Dialer, Link};
use crate::options::Settings;
use crate::process::Processes;
use crate::server::Recipe;
use crate::tally::{Fault, Live, text_behind};
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::Method;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::Instant;

/// Connections that put objects there and clear them away, unmeasured.
const FILL_CLIENTS: usize = 16;
/// Attempts to clear a collection, each of which a server may break off after its own time limit.
const CLEAR_ATTEMPTS_MAX: usize = 20;

/// A kind of object that load is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) prefix: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) body: fn(&str, usize) -> Bytes,
}

/// Small objects without much machinery.
pub(crate) const CONFIG_MAPS: Kind = Kind { prefix: "/api/v1", plural: "configmaps", body: bodies::config_map };
/// The objects that clusters are made of.
pub(crate) const PODS: Kind = Kind { prefix: "/api/v1", plural: "pods", body: bodies::pod };
/// The objects that are written most.
pub(crate) const LEASES: Kind =
    Kind { prefix: "/apis/coordination.k8s.io/v1", plural: "leases", body: |name, _| bodies::lease(name) };

impl Kind {
    pub(crate) fn collection(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.prefix, self.plural)
    }

    pub(crate) fn item(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }

    /// Bodies of objects to be created, which differ like real ones.
    pub(crate) fn templates(&self) -> Arc<[Template]> {
        /// Different objects; names and marks differ in any case.
        const VARIANTS: usize = 100;
        (0..VARIANTS).map(|idx| Template::new((self.body)(bodies::NAME, idx))).collect()
    }
}

/// A server under measurement.
#[derive(Debug)]
pub(crate) struct Lab {
    /// What reports call it.
    pub(crate) label: String,
    pub(crate) dialer: Dialer,
    pub(crate) processes: Processes,
    /// How another one like it is started, if that is known.
    pub(crate) recipe: Option<Recipe>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) live: Arc<Live>,
    /// For data of servers that scenarios start themselves.
    pub(crate) work_dir: PathBuf,
    /// Marks and schedules count from here.
    pub(crate) origin: Instant,
    namespaces: Mutex<BTreeSet<String>>,
    /// Pods in the namespace for reading, once they are there.
    n_readable_pods: tokio::sync::Mutex<usize>,
}

impl Lab {
    pub(crate) fn new(
        label: String,
        dialer: Dialer,
        processes: Processes,
        recipe: Option<Recipe>,
        settings: Arc<Settings>,
        work_dir: PathBuf,
    ) -> Lab {
        Lab {
            label,
            dialer,
            processes,
            recipe,
            settings,
            live: Arc::default(),
            work_dir,
            origin: Instant::now(),
            namespaces: Mutex::default(),
            n_readable_pods: tokio::sync::Mutex::default(),
        }
    }

    /// Nanoseconds since the run began.
    pub(crate) fn nanos(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The namespace of this name, made if this run has not made it yet.
    pub(crate) async fn namespace(&self, name: &str) -> Result<String> {
        let name = format!("bench-{}-{name}", self.settings.run_id);
        if !self.namespaces.lock().insert(name.clone()) {
            return Ok(name);
        }
        let mut link = self.dialer.link().await?;
        let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        create(&mut link, "/api/v1/namespaces", namespace.to_string().into())
            .await
            .context("cannot make a namespace")?;
        // pods need it where service accounts are checked, and a controller may or may not make it
        let account =
            serde_json::json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let path = format!("/api/v1/namespaces/{name}/serviceaccounts");
        create(&mut link, &path, account.to_string().into()).await.context("cannot make a service account")?;
        Ok(name)
    }

    /// Deletes the namespaces that the run made, with everything in them.
    pub(crate) async fn leave(&self) -> Result<()> {
        let names = std::mem::take(&mut *self.namespaces.lock());
        let mut link = self.dialer.link().await?;
        for name in names {
            for kind in [PODS, CONFIG_MAPS, LEASES] {
                self.clear(&kind, &name).await?;
            }
            link.count(&Call::new(Method::DELETE, &format!("/api/v1/namespaces/{name}"))?).await?;
        }
        Ok(())
    }

    /// Creates the objects of writer `writer` with these numbers.
    pub(crate) async fn fill(
        &self,
        kind: &Kind,
        namespace: &str,
        writer: u32,
        numbers: std::ops::Range<usize>,
    ) -> Result<()> {
        let path = kind.collection(namespace);
        let templates = kind.templates();
        let queue = Arc::new(Mutex::new(numbers));
        let mut tasks = tokio::task::JoinSet::new();
        for mut link in self.dialer.links(FILL_CLIENTS).await? {
            let (queue, templates, path) = (queue.clone(), templates.clone(), path.clone());
            tasks.spawn(async move {
                loop {
                    let Some(number) = queue.lock().next() else { return Ok::<(), anyhow::Error>(()) };
                    let mark = Mark { writer, sequence: number as u64, nanos: 0 };
                    create(&mut link, &path, templates[number % templates.len()].with(mark)).await?;
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.context("a task ended early")?.with_context(|| format!("cannot create {}", kind.plural))?;
        }
        Ok(())
    }

    /// A namespace with so many pods, kept for all scenarios that only read them.
    pub(crate) async fn readable_pods(&self, n: usize) -> Result<String> {
        let namespace = self.namespace("read").await?;
        let mut present = self.n_readable_pods.lock().await;
        if *present > n {
            self.clear(&PODS, &namespace).await?;
            *present = 0;
        }
        self.fill(&PODS, &namespace, 0, *present..n).await?;
        *present = n;
        let found = self.count(&PODS, &namespace).await?;
        if found != n {
            bail!("{} has {found} pods where {n} were made", self.label);
        }
        Ok(namespace)
    }

    /// How many objects are there, asked with a page of one.
    async fn count(&self, kind: &Kind, namespace: &str) -> Result<usize> {
        let mut link = self.dialer.link().await?;
        let page = link.fetch(&Call::get(&format!("{}?limit=1", kind.collection(namespace)))?).await?;
        let list: serde_json::Value = serde_json::from_slice(&page).context("a list that is no JSON")?;
        let n_here = list["items"].as_array().map_or(0, Vec::len);
        let remaining = list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
        Ok(n_here + usize::try_from(remaining)?)
    }

    /// Removes all objects of a kind.
    pub(crate) async fn clear(&self, kind: &Kind, namespace: &str) -> Result<()> {
        let path = kind.collection(namespace);
        let call = Call::new(Method::DELETE, &format!("{path}?gracePeriodSeconds=0"))?;
        let mut last = None;
        for _ in 0..CLEAR_ATTEMPTS_MAX {
            let mut link = self.dialer.link().await?;
            // a server that runs out of time has removed some: what counts is what is left
            last = link.count(&call).await.err();
            if self.count(kind, namespace).await? == 0 {
                return Ok(());
            }
        }
        bail!(
            "cannot remove all {} from {namespace}: {}",
            kind.plural,
            last.map_or_else(String::new, |fault| fault.to_string())
        )
    }

    /// The version that a collection has now.
    pub(crate) async fn version(&self, link: &mut Link, path: &str) -> Result<String> {
        let list = link.fetch(&Call::get(&format!("{path}?limit=1"))?).await?;
        text_behind(&list, b"\"resourceVersion\":\"").context("a list without resourceVersion")
    }
}

/// Creates an object that may be there already.
async fn create(link: &mut Link, path: &str, body: Bytes) -> Result<()> {
    let call = Call::new(Method::POST, path)?.with_body("application/json", body);
    match link.count(&call).await {
        Err(Fault { kind, .. }) if kind == "409" => Ok(()),
        outcome => Ok(outcome.map(|_| ())?),
    }
}
