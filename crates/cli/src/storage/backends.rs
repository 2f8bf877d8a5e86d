//! The back ends: the embedded store or an etcd, and other etcds for some resources.

use super::Home;
use crate::exit::Failure;
use crate::flags::StorageFlags;
use anyhow::{Context, Result};
use pintle_apimachinery::GroupResource;
use pintle_apimachinery::env::Env;
use pintle_storage::Storage;
use pintle_storage_embedded::{EmbeddedStore, Options};
use pintle_storage_etcd::{EtcdStore, TlsFiles};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a server waits for its etcd when it starts. Then it gives up.
const ETCD_START_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause before etcd is asked again whether it is there.
const ETCD_RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Where objects lie. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Backends {
    main: Arc<dyn Storage>,
    /// Resources that lie elsewhere.
    others: BTreeMap<GroupResource, Arc<dyn Storage>>,
}

impl Backends {
    /// Opens what the flags name.
    pub(crate) async fn open(flags: &StorageFlags, home: &Home, env: &Env) -> Result<Backends> {
        let uses_etcd = uses_etcd(flags)?;
        let overrides = parse_overrides(&flags.etcd_servers_overrides)?;
        let mut stores: BTreeMap<Vec<String>, Arc<dyn Storage>> = BTreeMap::new();
        let main: Arc<dyn Storage> = match home {
            Home::OfRole(directory) => embedded(&directory.join("store"), flags, env)?,
            Home::Own(directory) if !uses_etcd => embedded(&directory.join("store"), flags, env)?,
            Home::Own(_) => {
                let store = etcd(flags, &flags.etcd_servers).await.context("--etcd-servers")?;
                stores.insert(flags.etcd_servers.clone(), store.clone());
                store
            }
        };
        let mut others = BTreeMap::new();
        for (resource, servers) in overrides {
            // Resources with the same servers share connections and compaction.
            let store = match stores.get(&servers) {
                Some(store) => store.clone(),
                None => {
                    let store = etcd(flags, &servers).await.context("--etcd-servers-overrides")?;
                    stores.entry(servers).or_insert(store).clone()
                }
            };
            others.insert(resource, store);
        }
        Ok(Backends { main, others })
    }

    /// The back end of everything that has no other.
    pub(crate) fn main(&self) -> &Arc<dyn Storage> {
        &self.main
    }

    /// The back end of a resource.
    pub(crate) fn of(&self, resource: &GroupResource) -> &Arc<dyn Storage> {
        self.others.get(resource).unwrap_or(&self.main)
    }

    /// Whether all of them can serve.
    ///
    /// # Errors
    /// Why one cannot.
    pub(crate) async fn health(&self) -> Result<(), String> {
        for backend in std::iter::once(&self.main).chain(self.others.values()) {
            backend.health().await.map_err(|why| why.to_string())?;
        }
        Ok(())
    }
}

/// Whether objects lie in an etcd.
fn uses_etcd(flags: &StorageFlags) -> Result<bool> {
    let has_servers = !flags.etcd_servers.is_empty();
    let usage = |text: String| Err(Failure::Usage(text).into());
    match flags.storage_backend.as_deref() {
        None => Ok(has_servers),
        Some("embedded") if has_servers => {
            usage("--storage-backend=embedded and --etcd-servers exclude each other: leave one of them out".to_owned())
        }
        Some("embedded") => Ok(false),
        Some("etcd3") if has_servers => Ok(true),
        Some("etcd3") => usage("--storage-backend=etcd3 needs the addresses of the cluster: --etcd-servers=URL,...".to_owned()),
        Some("etcd2") => usage(
            "--storage-backend=etcd2: no supported etcd speaks the v2 API any more. Leave the flag out for the embedded store, or use etcd3 with --etcd-servers".to_owned(),
        ),
        Some(other) => usage(format!("--storage-backend={other}: there is no such back end; use embedded or etcd3")),
    }
}

/// Reads `group/resource#URL;URL`.
fn parse_overrides(texts: &[String]) -> Result<Vec<(GroupResource, Vec<String>)>> {
    let parse = |text: &String| {
        let (resource, servers) = text.split_once('#')?;
        let (group, resource) = resource.split_once('/')?;
        let servers: Vec<String> = servers.split(';').filter(|url| !url.is_empty()).map(str::to_owned).collect();
        (!resource.is_empty() && !servers.is_empty()).then(|| (GroupResource::new(group, resource), servers))
    };
    let wrong = |text: &String| {
        let example = "write it as group/resource#URL;URL, with nothing before the slash for the core group";
        Failure::Usage(format!("--etcd-servers-overrides={text}: {example}"))
    };
    texts.iter().filter(|text| !text.is_empty()).map(|text| parse(text).ok_or_else(|| wrong(text).into())).collect()
}

fn embedded(directory: &Path, flags: &StorageFlags, env: &Env) -> Result<Arc<dyn Storage>> {
    let options = Options { history_time: flags.history_time, ..Options::default() };
    let store = EmbeddedStore::open(directory, options, env.clone())
        .with_context(|| format!("cannot open the store in {}", directory.display()))?;
    Ok(Arc::new(store))
}

/// An etcd, when it answers.
async fn etcd(flags: &StorageFlags, servers: &[String]) -> Result<Arc<dyn Storage>> {
    let tls = TlsFiles {
        ca: flags.etcd_cafile.clone(),
        certificate: flags.etcd_certfile.clone(),
        key: flags.etcd_keyfile.clone(),
    };
    let options = pintle_storage_etcd::Options { endpoints: servers.to_vec(), tls };
    let store = EtcdStore::new(&options)?;
    let deadline = Instant::now() + ETCD_START_TIMEOUT;
    let mut is_told = false;
    while let Err(why) = store.health().await {
        if Instant::now() >= deadline {
            return Err(why).with_context(|| format!("etcd at {} cannot be used", servers.join(",")));
        }
        if !std::mem::replace(&mut is_told, true) {
            tracing::info!(servers = servers.join(","), %why, "waiting for etcd");
        }
        tokio::time::sleep(ETCD_RETRY_PAUSE).await;
    }
    store.start_compactor(flags.etcd_compaction_interval);
    Ok(Arc::new(store))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides() {
        let parse = |text: &str| parse_overrides(&[text.to_owned()]);
        let servers = vec!["http://a:1".to_owned(), "http://b:2".to_owned()];
        let events = (GroupResource::new("", "events"), servers.clone());
        assert_eq!(parse("/events#http://a:1;http://b:2").expect("good"), [events]);
        let leases = (GroupResource::new("coordination.k8s.io", "leases"), servers);
        assert_eq!(parse("coordination.k8s.io/leases#http://a:1;http://b:2").expect("good"), [leases]);
        for bad in ["events", "events#http://a:1", "/events", "/#http://a:1", "/events#"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
