//! The store itself.

use crate::barrier::Barrier;
use crate::cluster::{Cluster, Repeat};
use crate::compactor;
use crate::convert::{from_wire, to_wire};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::known::Known;
use crate::lease::Leases;
use crate::options::{Options, OptionsError};
use crate::proto::{
    CompactionRequest, Compare, CompareResult, CompareTarget, DeleteRangeRequest, Done, KeyValue, Op, PutRequest,
    RangeRequest, RequestOp, StatusRequest, TargetValue, TxnRequest, TxnResponse,
};
use crate::range;
use async_trait::async_trait;
use bytes::Bytes;
use pintle_storage::{
    At, Event, Found, Key, ListRequest, Listing, NewValue, Note, Record, Result, Revision, Storage, StorageError,
    VALUE_BYTES_MAX, WatchRequest, WatchStream,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Time for the answer to a question after etcd's health.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// An etcd cluster as a store. Clones share it.
#[derive(Clone, Debug)]
pub struct EtcdStore {
    cluster: Arc<Cluster>,
    known: Arc<Known>,
    leases: Arc<Leases>,
    barrier: Arc<Barrier>,
    /// Watches that want to know of progress, which costs one question for all of them.
    progress: Arc<Hub>,
    /// All others: they may be far behind, and then etcd tells nobody in the same stream of progress.
    others: Arc<Hub>,
}

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its address.
    pub endpoint: String,
    /// Its version of etcd.
    pub version: String,
    /// Bytes of its database file.
    pub db_bytes: u64,
    /// Bytes of it that are in use.
    pub db_used_bytes: u64,
    /// Where its store stands.
    pub revision: Revision,
    /// Whether it is the leader.
    pub is_leader: bool,
    /// Alarms and the like.
    pub errors: Vec<String>,
}

impl EtcdStore {
    /// A store on a cluster. Connects when it is first asked for something. Must be called on a runtime.
    ///
    /// # Errors
    /// Endpoints that are none, and files that cannot be read.
    pub fn new(options: &Options) -> Result<EtcdStore, OptionsError> {
        let cluster = Arc::new(Cluster::new(options)?);
        let known = Arc::new(Known::default());
        let hub = || Arc::new(Hub::start(Arc::clone(&cluster), Arc::clone(&known)));
        let (progress, others) = (hub(), hub());
        Ok(EtcdStore { cluster, known, leases: Arc::default(), barrier: Arc::default(), progress, others })
    }

    /// From now on, lets etcd forget what is older than `interval`, in turns with all other API servers over it. Ends
    /// with the store.
    pub fn start_compactor(&self, interval: Duration) {
        if !interval.is_zero() {
            let (cluster, known) = (Arc::downgrade(&self.cluster), Arc::downgrade(&self.known));
            tokio::spawn(compactor::run(cluster, known, interval));
        }
    }

    /// What each member says of itself.
    ///
    /// # Errors
    /// `Unavailable` when one does not answer.
    pub async fn members(&self) -> Vec<Result<MemberStatus>> {
        let ask = async |idx| {
            let (endpoint, status) = self.cluster.ask_member(idx, StatusRequest {}).await.map_err(Fault::into_error)?;
            let header = status.header.unwrap_or_default();
            let bytes = |bytes: i64| u64::try_from(bytes).unwrap_or_default();
            Ok(MemberStatus {
                endpoint: endpoint.to_owned(),
                version: status.version,
                db_bytes: bytes(status.db_size),
                db_used_bytes: bytes(status.db_size_in_use),
                revision: from_wire(header.revision),
                is_leader: status.leader == header.member_id,
                errors: status.errors,
            })
        };
        futures_util::future::join_all((0..self.cluster.n_members()).map(ask)).await
    }

    /// Where a key stands.
    async fn stored_revision(&self, key: &Key) -> Result<Revision> {
        let found = self.get(key, At::Latest).await?;
        found.record.map(|record| record.revision).ok_or_else(|| StorageError::NotFound { key: key.clone() })
    }

    async fn lease(&self, ttl: Option<Duration>) -> Result<i64, Fault> {
        match ttl {
            Some(ttl) => self.leases.for_key(&self.cluster, ttl).await,
            None => Ok(0),
        }
    }

    /// Writes a value if the key stands at this revision (0: is not there). Answers the record, or what the key holds.
    async fn put(&self, key: &Key, value: NewValue, expected: i64) -> Result<Result<Arc<Record>, Option<KeyValue>>> {
        let n_bytes = value.bytes.len();
        let wrong = |fault: Fault| fault.of_write(key, n_bytes, VALUE_BYTES_MAX);
        if n_bytes > VALUE_BYTES_MAX {
            return Err(wrong(Fault::TooLarge));
        }
        let mut lease = self.lease(value.ttl).await.map_err(wrong)?;
        loop {
            let put = PutRequest { key: bytes_of(key), value: value.bytes.clone(), lease };
            match self.guarded(key, expected, Op::Put(put)).await {
                Ok(Guarded::Done { revision, .. }) => {
                    let (key, bytes) = (key.clone(), value.bytes);
                    let record = Arc::new(Record { key, revision, value: bytes, note: value.note });
                    self.known.note_own(&record);
                    return Ok(Ok(record));
                }
                Ok(Guarded::Refused(found)) => return Ok(Err(found)),
                // The lease that was to be shared ended before its time, and with it nothing was written.
                Err(Fault::NoLease) if lease != 0 => {
                    self.leases.forget(lease).await;
                    lease = self.lease(value.ttl).await.map_err(wrong)?;
                }
                Err(fault) => return Err(wrong(fault)),
            }
        }
    }

    /// Does something if a key stands at a revision (0: is not there).
    async fn guarded(&self, key: &Key, expected: i64, op: Op) -> Result<Guarded, Fault> {
        let compare = Compare {
            result: CompareResult::Equal as i32,
            target: CompareTarget::Mod as i32,
            key: bytes_of(key),
            target_union: Some(TargetValue::ModRevision(expected)),
        };
        let get = Op::Range(RangeRequest { key: bytes_of(key), ..RangeRequest::default() });
        let step = |op| vec![RequestOp { request: Some(op) }];
        let request = TxnRequest { compare: vec![compare], success: step(op), failure: step(get) };
        self.cluster.call(request, Repeat::NotBegun).await.map(Guarded::of)
    }
}

/// What became of a guarded write.
enum Guarded {
    /// It was done, at this revision; a deletion answers what it deleted.
    Done { revision: Revision, deleted: Option<KeyValue> },
    /// The key stands elsewhere: what it holds, if it is there.
    Refused(Option<KeyValue>),
}

impl Guarded {
    fn of(answer: TxnResponse) -> Guarded {
        let revision = answer.header.map_or(Revision::FIRST, |header| from_wire(header.revision));
        let kv = answer.responses.into_iter().next().and_then(|done| done.response).and_then(|done| match done {
            Done::Range(range) => range.kvs.into_iter().next(),
            Done::DeleteRange(deleted) => deleted.prev_kvs.into_iter().next(),
            Done::Put(_) => None,
        });
        if answer.succeeded { Guarded::Done { revision, deleted: kv } } else { Guarded::Refused(kv) }
    }
}

fn bytes_of(key: &Key) -> Bytes {
    Bytes::copy_from_slice(key.as_bytes())
}

/// A refusal for what the key holds.
fn refusal(key: Key, expected: Revision, found: Option<KeyValue>) -> StorageError {
    match found {
        None => StorageError::NotFound { key },
        Some(kv) => StorageError::Conflict { key, expected, stored: from_wire(kv.mod_revision) },
    }
}

#[async_trait]
impl Storage for EtcdStore {
    async fn create(&self, key: Key, value: NewValue) -> Result<Arc<Record>> {
        let put = self.put(&key, value, 0).await?;
        put.map_err(|found| {
            let stored = found.map_or(Revision::FIRST, |kv| from_wire(kv.mod_revision));
            StorageError::AlreadyExists { key, stored }
        })
    }

    async fn update(&self, key: Key, value: NewValue, expected: Revision) -> Result<Arc<Record>> {
        let put = self.put(&key, value, to_wire(expected)).await?;
        put.map_err(|found| refusal(key, expected, found))
    }

    async fn delete(&self, key: Key, expected: Option<Revision>) -> Result<Arc<Event>> {
        let mut guard = match expected {
            Some(expected) => expected,
            None => self.stored_revision(&key).await?,
        };
        loop {
            let delete = DeleteRangeRequest { key: bytes_of(&key), range_end: Bytes::new(), prev_kv: true };
            let answer = self.guarded(&key, to_wire(guard), Op::DeleteRange(delete)).await;
            match answer.map_err(Fault::into_error)? {
                Guarded::Done { revision, deleted } => {
                    let previous = deleted.as_ref().and_then(|kv| self.known.record(kv));
                    return Ok(Arc::new(Event { key, revision, record: None, previous, note: Note::default() }));
                }
                // Whoever expects nothing deletes what is there now.
                Guarded::Refused(Some(kv)) if expected.is_none() => guard = from_wire(kv.mod_revision),
                Guarded::Refused(found) => return Err(refusal(key, guard, found)),
            }
        }
    }

    async fn get(&self, key: &Key, at: At) -> Result<Found> {
        let (record, revision) = range::get(&self.cluster, &self.known, key, at).await?;
        Ok(Found { record, revision })
    }

    async fn list(&self, request: ListRequest) -> Result<Listing> {
        range::list(&self.cluster, &self.known, &request).await
    }

    async fn count(&self, prefix: &Key) -> Result<usize> {
        range::count(&self.cluster, &self.known, prefix).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream> {
        let compacted = self.known.compacted();
        if request.since < compacted {
            return Err(StorageError::Expired { requested: request.since, compacted });
        }
        let hub = if request.progress { &self.progress } else { &self.others };
        hub.watch(&request).await
    }

    async fn current_revision(&self) -> Result<Revision> {
        self.barrier.pass(async || range::current(&self.cluster, &self.known).await).await
    }

    async fn request_progress(&self) -> Result<()> {
        self.progress.request_progress();
        Ok(())
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        let request = CompactionRequest { revision: to_wire(revision), physical: false };
        match self.cluster.call(request, Repeat::NotBegun).await {
            Ok(_) => {
                self.known.note_compacted(revision);
                Ok(())
            }
            Err(Fault::Future) => {
                let current = self.current_revision().await?;
                Err(StorageError::Future { requested: revision, current })
            }
            Err(fault) => Err(fault.of_read(Some(revision), self.known.compacted(), Revision::FIRST)),
        }
    }

    async fn health(&self) -> Result<()> {
        match timeout(HEALTH_TIMEOUT, range::current(&self.cluster, &self.known)).await {
            Ok(answer) => answer.map(|_| ()),
            Err(_) => Err(StorageError::Unavailable { why: "etcd does not answer in time".to_owned() }),
        }
    }
}
