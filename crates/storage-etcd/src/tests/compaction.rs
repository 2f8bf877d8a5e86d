//! Several servers that take turns in compacting.

use super::server::Server;
use super::{key, value};
use crate::cluster::Cluster;
use crate::compactor::{COMPACT_KEY, Seen, turn};
use crate::known::Known;
use crate::{EtcdStore, Options};
use pintle_storage::{At, Revision, Storage, StorageError};

/// One server's compactor, step by step.
struct Compactor {
    cluster: Cluster,
    known: Known,
    seen: Seen,
}

impl Compactor {
    fn over(server: &Server) -> Compactor {
        let options = Options { endpoints: vec![server.url.clone()], ..Options::default() };
        let cluster = Cluster::new(&options).expect("good options");
        Compactor { cluster, known: Known::default(), seen: Seen::default() }
    }

    async fn turn(&mut self) {
        self.seen = turn(&self.cluster, &self.known, self.seen).await.expect("etcd answers");
    }
}

async fn write(store: &EtcdStore, name: &str) -> Revision {
    store.create(key(name), value("x")).await.expect("it is new").revision
}

async fn is_readable(store: &EtcdStore, revision: Revision) -> bool {
    match store.get(&key("first"), At::Exact(revision)).await {
        Ok(_) => true,
        Err(StorageError::Expired { .. }) => false,
        Err(other) => unreachable!("{other}"),
    }
}

#[tokio::test]
async fn servers_take_turns() {
    let Some(server) = Server::start().await else { return };
    let store = server.store();
    let (mut one, mut two) = (Compactor::over(&server), Compactor::over(&server));
    let first = write(&store, "first").await;
    // The first turn of all only leaves a mark.
    one.turn().await;
    let second = write(&store, "second").await;
    assert!(is_readable(&store, first).await);
    // Whoever comes late sees that it is done, and does nothing.
    two.turn().await;
    assert!(is_readable(&store, first).await);
    // The next turn compacts to where the one before was.
    one.turn().await;
    assert!(!is_readable(&store, first).await && is_readable(&store, second).await);
    two.turn().await;
    assert_eq!(one.known.compacted(), two.known.compacted());
    // When the one who did it is gone, the other takes over.
    let third = write(&store, "third").await;
    two.turn().await;
    assert!(!is_readable(&store, second).await && is_readable(&store, third).await);
    let mark = store.get(&COMPACT_KEY.into(), At::Latest).await.expect("it is there").record.expect("it is there");
    assert_eq!(std::str::from_utf8(&mark.value), Ok(&*two.known.compacted().to_string()));
}

#[tokio::test]
async fn members_tell_their_state() {
    let Some(server) = Server::start().await else { return };
    let store = server.store();
    write(&store, "a").await;
    let members = store.members().await;
    let [Ok(member)] = members.as_slice() else { unreachable!("{members:?}") };
    assert!(member.is_leader && member.version.starts_with("3.") && member.db_bytes >= member.db_used_bytes);
    assert_eq!(member.revision, store.current_revision().await.expect("it answers"));
}
