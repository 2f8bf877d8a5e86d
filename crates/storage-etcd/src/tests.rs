//! Tests over a real etcd.

mod compaction;
mod failover;
mod server;
mod tls;

use crate::{EtcdStore, Options};
use pintle_storage::conformance::{PREFIX, Subject};
use pintle_storage::{Key, NewValue, Storage, storage_conformance};
use pintle_watchcache::WatchCache;
use server::Server;
use std::sync::Arc;

/// A store on a member of its own.
async fn etcd() -> Option<Subject> {
    let server = Server::start().await?;
    let store = server.store();
    Some(Subject { keep: Box::new(server), ..Subject::from(store) })
}

/// A watch cache over such a store.
async fn cached() -> Option<Subject> {
    let Subject { store, keep } = etcd().await?;
    let cache = WatchCache::over(store, PREFIX.into(), pintle_watchcache::Options::default());
    Some(Subject { keep, ..Subject::from(cache as Arc<dyn Storage>) })
}

storage_conformance!(conformance, etcd(), if_there);
storage_conformance!(conformance_of_a_cache, cached(), if_there);

fn key(name: &str) -> Key {
    Key::new(format!("{PREFIX}{name}"))
}

fn value(text: &str) -> NewValue {
    NewValue { bytes: text.to_owned().into(), ..NewValue::default() }
}

fn store_on(endpoints: &[String]) -> EtcdStore {
    let options = Options { endpoints: endpoints.to_vec(), ..Options::default() };
    EtcdStore::new(&options).expect("good endpoints")
}
