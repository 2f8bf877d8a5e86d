//! The back end and the watch caches over it, from flags.

use crate::flags::StorageFlags;
use anyhow::{Context, Result, bail};
use pintle_apimachinery::GroupResource;
use pintle_apimachinery::env::Env;
use pintle_registry::StorageFactory;
use pintle_registry::fields::Fields;
use pintle_storage::{Key, Storage};
use pintle_storage_embedded::{EmbeddedStore, Options};
use std::path::Path;
use std::sync::Arc;

/// Opens the back end.
pub(crate) fn open(flags: &StorageFlags, data_dir: &Path, env: &Env) -> Result<Arc<dyn Storage>> {
    match flags.storage_backend.as_deref() {
        None | Some("embedded" | "etcd3") => {}
        Some("etcd2") => bail!(
            "--storage-backend=etcd2: no supported etcd speaks the v2 API any more. Leave the flag out for the embedded store, or use etcd3 with --etcd-servers"
        ),
        Some(other) => bail!("--storage-backend={other}: there is no such back end; use embedded or etcd3"),
    }
    if !flags.etcd_servers.is_empty() || flags.storage_backend.as_deref() == Some("etcd3") {
        bail!("an external etcd is not supported yet");
    }
    let directory = data_dir.join("store");
    let store = EmbeddedStore::open(&directory, Options::default(), env.clone())
        .with_context(|| format!("cannot open the store in {}", directory.display()))?;
    Ok(Arc::new(store))
}

/// Gives every resource the back end.
#[derive(Debug)]
pub(crate) struct Factory {
    backend: Arc<dyn Storage>,
}

impl Factory {
    pub(crate) fn new(backend: Arc<dyn Storage>, flags: &StorageFlags) -> Result<Factory> {
        let _ = flags;
        Ok(Factory { backend })
    }
}

impl StorageFactory for Factory {
    fn storage(&self, _resource: &GroupResource, _root: &Key, _fields: &Fields) -> Arc<dyn Storage> {
        self.backend.clone()
    }

    fn forget(&self, _resource: &GroupResource) {}
}
