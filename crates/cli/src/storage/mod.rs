//! The back end and the watch caches over it, from flags.

mod caches;

use self::caches::Caches;
use crate::flags::{DEFAULT_DATA_DIR, StorageFlags};
use anyhow::{Context, Result, bail};
use pintle_apimachinery::GroupResource;
use pintle_apimachinery::env::Env;
use pintle_registry::StorageFactory;
use pintle_registry::fields::Fields;
use pintle_storage::{Key, Storage};
use pintle_storage_embedded::{EmbeddedStore, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The data directory.
#[derive(Debug)]
pub(crate) enum Home {
    /// The one that the flags name.
    Own(PathBuf),
    /// That of the etcd role of this binary, to which `--etcd-servers` points.
    OfRole(PathBuf),
}

impl Home {
    /// The data directory of these flags.
    pub(crate) fn of(flags: &StorageFlags, data_dir: Option<&Path>) -> Home {
        match flags.etcd_servers.iter().find_map(|url| crate::etcd_role::directory_at(url)) {
            Some(directory) => Home::OfRole(directory),
            None => Home::Own(data_dir.unwrap_or_else(|| Path::new(DEFAULT_DATA_DIR)).to_owned()),
        }
    }

    /// Where it is.
    pub(crate) fn data_dir(&self) -> &Path {
        match self {
            Home::Own(directory) | Home::OfRole(directory) => directory,
        }
    }
}

/// Opens the back end.
pub(crate) fn open(flags: &StorageFlags, home: &Home, env: &Env) -> Result<Arc<dyn Storage>> {
    match flags.storage_backend.as_deref() {
        None | Some("embedded" | "etcd3") => {}
        Some("etcd2") => bail!(
            "--storage-backend=etcd2: no supported etcd speaks the v2 API any more. Leave the flag out for the embedded store, or use etcd3 with --etcd-servers"
        ),
        Some(other) => bail!("--storage-backend={other}: there is no such back end; use embedded or etcd3"),
    }
    if let Home::OfRole(directory) = home {
        return embedded(&directory.join("store"), env);
    }
    if !flags.etcd_servers.is_empty() || flags.storage_backend.as_deref() == Some("etcd3") {
        bail!("an external etcd is not supported yet");
    }
    embedded(&home.data_dir().join("store"), env)
}

fn embedded(directory: &Path, env: &Env) -> Result<Arc<dyn Storage>> {
    let store = EmbeddedStore::open(directory, Options::default(), env.clone())
        .with_context(|| format!("cannot open the store in {}", directory.display()))?;
    Ok(Arc::new(store))
}

/// Gives every resource its back end, under a watch cache where it has one.
#[derive(Debug)]
pub(crate) struct Factory {
    backend: Arc<dyn Storage>,
    caches: Caches,
}

impl Factory {
    pub(crate) fn new(backend: Arc<dyn Storage>, flags: &StorageFlags) -> Result<Factory> {
        Ok(Factory { backend, caches: Caches::new(flags.watch_cache, &flags.watch_cache_sizes)? })
    }
}

impl StorageFactory for Factory {
    fn storage(&self, resource: &GroupResource, root: &Key, fields: &Fields) -> Arc<dyn Storage> {
        self.caches.over(self.backend.clone(), resource, root, fields)
    }

    fn forget(&self, resource: &GroupResource) {
        self.caches.end(resource);
    }
}
