//! Forgetting old history, together with all other API servers over the same etcd. They agree by a key: whoever changes it
//! compacts, and all others see that and wait. The key and its meaning are upstream's, so that kube-apiservers may be among
//! them.
//!
//! The key's version counts compactions. Each server remembers the version it saw last; when a server's time has come and
//! the version is still that, it writes the key (with the revision it compacts to) and compacts to where the store stood
//! when it looked last. So history is kept for at least one interval and at most two.

use crate::cluster::{Cluster, Repeat};
use crate::convert::{from_wire, to_wire};
use crate::fault::Fault;
use crate::known::Known;
use crate::proto::{
    CompactionRequest, Compare, CompareResult, CompareTarget, Done, Op, PutRequest, RangeRequest, RequestOp,
    TargetValue, TxnRequest,
};
use bytes::Bytes;
use pintle_storage::Revision;
use std::sync::Weak;
use std::time::Duration;

/// The key by which servers agree.
pub(crate) const COMPACT_KEY: &str = "compact_rev_key";

/// What one server remembers between its turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The key's version.
    version: i64,
    /// Where the store stood.
    revision: Option<Revision>,
}

/// Compacts whenever an interval is over, as long as the store is there.
pub(crate) async fn run(cluster: Weak<Cluster>, known: Weak<Known>, interval: Duration) {
    let mut seen = Seen::default();
    loop {
        tokio::time::sleep(interval).await;
        let (Some(cluster), Some(known)) = (cluster.upgrade(), known.upgrade()) else { return };
        match turn(&cluster, &known, seen).await {
            Ok(next) => seen = next,
            Err(fault) => tracing::warn!(?fault, "etcd's history cannot be compacted; trying again later"),
        }
    }
}

/// One server's turn.
pub(crate) async fn turn(cluster: &Cluster, known: &Known, seen: Seen) -> Result<Seen, Fault> {
    let key = Bytes::from_static(COMPACT_KEY.as_bytes());
    let compare = Compare {
        result: CompareResult::Equal as i32,
        target: CompareTarget::Version as i32,
        key: key.clone(),
        target_union: Some(TargetValue::Version(seen.version)),
    };
    let value = seen.revision.map_or(0, Revision::get).to_string();
    let put = Op::Put(PutRequest { key: key.clone(), value: value.into(), lease: 0 });
    let get = Op::Range(RangeRequest { key, ..RangeRequest::default() });
    let op = |op| vec![RequestOp { request: Some(op) }];
    let request = TxnRequest { compare: vec![compare], success: op(put), failure: op(get) };
    let answer = cluster.call(request, Repeat::NotBegun).await?;
    let revision = answer.header.map(|header| from_wire(header.revision));
    if !answer.succeeded {
        // Somebody else had this turn.
        let mut version = 0;
        if let Some(Done::Range(range)) = answer.responses.into_iter().next().and_then(|done| done.response)
            && let Some(kv) = range.kvs.first()
        {
            version = kv.version;
            let compacted = std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse().ok());
            compacted.and_then(Revision::new).into_iter().for_each(|compacted| known.note_compacted(compacted));
        }
        return Ok(Seen { version, revision });
    }
    if let Some(compacted) = seen.revision {
        let request = CompactionRequest { revision: to_wire(compacted), physical: false };
        match cluster.call(request, Repeat::Freely).await {
            Ok(_) | Err(Fault::Compacted) => known.note_compacted(compacted),
            // The key says that it was done; the next turn does it.
            Err(fault) => tracing::warn!(?fault, "etcd's history could not be compacted"),
        }
    }
    Ok(Seen { version: seen.version + 1, revision })
}
