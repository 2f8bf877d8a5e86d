//! The back end and the watch caches over it, from flags.

mod backends;
mod caches;

pub(crate) use self::backends::Backends;
use self::caches::Caches;
use crate::flags::{DEFAULT_DATA_DIR, StorageFlags};
use anyhow::Result;
use pintle_apimachinery::GroupResource;
use pintle_registry::StorageFactory;
use pintle_registry::fields::Fields;
use pintle_storage::{Key, Storage};
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

/// Gives every resource its back end, under a watch cache where it has one.
#[derive(Debug)]
pub(crate) struct Factory {
    backends: Backends,
    caches: Caches,
}

impl Factory {
    pub(crate) fn new(backends: Backends, flags: &StorageFlags) -> Result<Factory> {
        Ok(Factory { backends, caches: Caches::new(flags.watch_cache, &flags.watch_cache_sizes)? })
    }
}

impl StorageFactory for Factory {
    fn storage(&self, resource: &GroupResource, root: &Key, fields: &Fields) -> Arc<dyn Storage> {
        self.caches.over(self.backends.of(resource).clone(), resource, root, fields)
    }

    fn forget(&self, resource: &GroupResource) {
        self.caches.end(resource);
    }
}
