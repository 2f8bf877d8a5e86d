//! Reading ranges of keys: what is large is read in pages of one state.

use crate::cluster::{Cluster, Repeat};
use crate::convert::{from_wire, range_end, to_wire};
use crate::fault::Fault;
use crate::known::Known;
use crate::proto::{KeyValue, RangeRequest, RangeResponse};
use bytes::Bytes;
use pintle_storage::{At, Key, ListRequest, Listing, Record, Result, Revision, StorageError};
use std::sync::Arc;

/// Keys of the first page: whether they are large is not known yet.
const FIRST_PAGE_KEYS: usize = 500;

/// Keys of one page at most.
const PAGE_KEYS_MAX: usize = 10_000;

/// Bytes that a page should have: the next one's keys follow from it.
const PAGE_BYTES: usize = 8 << 20;

/// How often a list of the newest state begins again when history is compacted under it.
const RESTARTS_MAX: usize = 3;

/// Reads one key. Whether a member may answer alone follows from `at`.
pub(crate) async fn get(
    cluster: &Cluster,
    known: &Known,
    key: &Key,
    at: At,
) -> Result<(Option<Arc<Record>>, Revision)> {
    let request = RangeRequest { key: Bytes::copy_from_slice(key.as_bytes()), ..of(at) };
    let answer = read(cluster, known, request, at).await?;
    let current = revision_of(&answer);
    let record = answer.kvs.first().and_then(|kv| known.record(kv));
    check_reached(at, current)?;
    Ok((record, if let At::Exact(revision) = at { revision } else { current }))
}

/// How many keys begin with a prefix.
pub(crate) async fn count(cluster: &Cluster, known: &Known, prefix: &Key) -> Result<usize> {
    let key = Bytes::copy_from_slice(prefix.as_bytes());
    let request = RangeRequest { key, range_end: range_end(prefix), count_only: true, ..RangeRequest::default() };
    let answer = read(cluster, known, request, At::Latest).await?;
    Ok(usize::try_from(answer.count).unwrap_or_default())
}

/// Where the store stands.
pub(crate) async fn current(cluster: &Cluster, known: &Known) -> Result<Revision> {
    // A key that is not there; the answer tells what is asked for.
    let request = RangeRequest { key: Bytes::from_static(b"\0"), count_only: true, ..RangeRequest::default() };
    read(cluster, known, request, At::Latest).await.map(|answer| revision_of(&answer))
}

/// Reads the keys of a prefix.
pub(crate) async fn list(cluster: &Cluster, known: &Known, request: &ListRequest) -> Result<Listing> {
    let mut answer = try_list(cluster, known, request).await;
    for _ in 0..RESTARTS_MAX {
        match &answer {
            // Only an exact read is bound to a revision that may be compacted.
            Err(StorageError::Expired { .. }) if !matches!(request.at, At::Exact(_)) => {
                answer = try_list(cluster, known, request).await;
            }
            Ok(_) | Err(_) => break,
        }
    }
    answer
}

async fn try_list(cluster: &Cluster, known: &Known, request: &ListRequest) -> Result<Listing> {
    let prefix = request.prefix.as_str();
    let limit = if request.limit == 0 { usize::MAX } else { request.limit };
    let start = request.start.as_ref().filter(|start| start.as_str() > prefix).unwrap_or(&request.prefix);
    let end = range_end(prefix);
    if start.as_bytes() >= &end[..] && &end[..] != b"\0" {
        let (_, revision) = get(cluster, known, start, request.at).await?;
        return Ok(Listing { records: Vec::new(), revision, remaining: 0 });
    }
    let mut next = RangeRequest { key: Bytes::copy_from_slice(start.as_bytes()), range_end: end, ..of(request.at) };
    let mut page_keys = FIRST_PAGE_KEYS;
    let mut records: Vec<Arc<Record>> = Vec::new();
    let mut n_read = 0;
    let mut at = request.at;
    let mut revision = None;
    loop {
        next.limit = i64::try_from(page_keys.min(limit - n_read)).unwrap_or(i64::MAX);
        let page = read(cluster, known, next.clone(), at).await?;
        let revision = *revision.get_or_insert_with(|| match request.at {
            At::Exact(revision) => revision,
            At::Latest | At::Any | At::NotOlderThan(_) => revision_of(&page),
        });
        check_reached(request.at, revision)?;
        records.extend(page.kvs.iter().filter_map(|kv| known.record(kv)));
        n_read += page.kvs.len();
        let remaining = usize::try_from(page.count).unwrap_or_default().saturating_sub(page.kvs.len());
        let Some(last) = page.kvs.last().filter(|_| page.more && n_read < limit) else {
            return Ok(Listing { records, revision, remaining });
        };
        let mut key = last.key.to_vec();
        key.push(0);
        next.key = key.into();
        // All pages are of the first one's state; a member has it when it has that revision.
        next.revision = to_wire(revision);
        next.serializable = false;
        at = At::Exact(revision);
        page_keys = keys_of_next_page(&page.kvs);
    }
}

fn keys_of_next_page(page: &[KeyValue]) -> usize {
    let bytes: usize = page.iter().map(|kv| kv.key.len() + kv.value.len()).sum();
    let bytes_per_key = (bytes / page.len().max(1)).max(1);
    (PAGE_BYTES / bytes_per_key).clamp(1, PAGE_KEYS_MAX)
}

/// What every request for a state has.
fn of(at: At) -> RangeRequest {
    let revision = if let At::Exact(revision) = at { to_wire(revision) } else { 0 };
    RangeRequest { revision, serializable: at == At::Any, ..RangeRequest::default() }
}

async fn read(cluster: &Cluster, known: &Known, request: RangeRequest, at: At) -> Result<RangeResponse> {
    let requested = if let At::Exact(revision) = at { Some(revision) } else { None };
    if let Some(requested) = requested.filter(|requested| *requested < known.compacted()) {
        return Err(StorageError::Expired { requested, compacted: known.compacted() });
    }
    match cluster.call(request, Repeat::Freely).await {
        Ok(answer) => Ok(answer),
        Err(Fault::Future) => {
            let newest = RangeRequest { key: Bytes::from_static(b"\0"), count_only: true, ..RangeRequest::default() };
            let current = cluster.call(newest, Repeat::Freely).await.map_err(Fault::into_error)?;
            Err(Fault::Future.of_read(requested, known.compacted(), revision_of(&current)))
        }
        Err(fault) => Err(fault.of_read(requested, known.compacted(), Revision::FIRST)),
    }
}

fn check_reached(at: At, current: Revision) -> Result<()> {
    match at {
        At::NotOlderThan(requested) if requested > current => Err(StorageError::Future { requested, current }),
        At::NotOlderThan(_) | At::Latest | At::Any | At::Exact(_) => Ok(()),
    }
}

fn revision_of(answer: &RangeResponse) -> Revision {
    answer.header.as_ref().map_or(Revision::FIRST, |header| from_wire(header.revision))
}
