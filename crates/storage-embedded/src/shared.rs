//! What the parts of a running store share.

use crate::disk::{Disk, replace_whole};
use crate::error::to_usize;
use crate::expiry::Expiry;
use crate::format::{HEADER_BYTES, Header, Manifest, SegmentEntry, SegmentKind, SegmentName, StoreId, seed};
use crate::index::Index;
use crate::options::{Options, Runner};
use crate::segment::Segment;
use crate::watchers::Watchers;
use parking_lot::{Mutex, RwLock};
use pintle_apimachinery::env::Env;
use pintle_storage::{Result, Revision, StorageError};
use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The name of the manifest.
pub(crate) const MANIFEST_NAME: &str = "MANIFEST";

/// What the parts of a running store share.
///
/// Order of locks: `manifest`, then `index`, then those inside `watchers`; `expiry`, `spare` and `trouble` are taken
/// alone. None is held across an await.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) env: Env,
    pub(crate) options: Options,
    pub(crate) id: StoreId,
    pub(crate) index: RwLock<Index>,
    pub(crate) watchers: Watchers,
    pub(crate) expiry: Expiry,
    /// The segment to be written next, prepared ahead.
    pub(crate) spare: Mutex<Option<Arc<Segment>>>,
    /// Why the store takes no writes, if it does not.
    pub(crate) trouble: Mutex<Option<Trouble>>,
    /// Wakes the maintenance before its time.
    pub(crate) work: Arc<Notify>,
    /// Held while the manifest or the set of segments changes other than by the writer, and during each piece of
    /// maintenance: who has it knows that no file comes or goes.
    pub(crate) manifest: Mutex<()>,
    /// The number for the next segment file.
    pub(crate) next_number: AtomicU32,
    pub(crate) is_closed: AtomicBool,
    /// Keeps other processes out.
    pub(crate) lock: Mutex<Option<Box<dyn Any + Send + Sync>>>,
    /// When the store was opened, in runtime time.
    pub(crate) opened: Instant,
}

/// Why the store takes no writes.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The disk is full: writes go on when there is space again.
    Full(String),
    /// Nobody knows what is durable: the store must be opened again.
    Broken(String),
}

impl Trouble {
    pub(crate) fn why(&self) -> &str {
        match self {
            Trouble::Full(why) | Trouble::Broken(why) => why,
        }
    }
}

impl Shared {
    /// Why writes are refused, if they are.
    pub(crate) fn refusal(&self) -> Option<StorageError> {
        self.trouble.lock().as_ref().map(|trouble| StorageError::ReadOnly { why: trouble.why().to_owned() })
    }

    /// Milliseconds since 1970.
    pub(crate) fn wall_ms(&self) -> u64 {
        u64::try_from(self.env.clock.now().as_millisecond()).unwrap_or_default()
    }

    /// Milliseconds on a clock that only runs forward, and that could show `history_time` when the store was opened.
    pub(crate) fn running_ms(&self) -> u64 {
        let before = self.options.history_time.as_millis();
        u64::try_from(before + self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Runs something that may wait for the disk.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> Result<T> {
        match self.options.runner {
            Runner::Task => Ok(act(self)),
            Runner::Thread => {
                let shared = Arc::clone(self);
                let done = tokio::task::spawn_blocking(move || act(&shared)).await;
                done.map_err(|error| StorageError::Unavailable { why: format!("the runtime stops: {error}") })
            }
        }
    }

    /// Makes a segment file with its space reserved and its name durable. Its header is still to be written.
    pub(crate) fn make_segment(&self, kind: SegmentKind, bytes: u64) -> io::Result<Arc<Segment>> {
        let number = self.next_number.fetch_add(1, Ordering::AcqRel);
        let name = SegmentName { number, kind };
        let file = self.disk.create(&name.to_string())?;
        let prepared = file.allocate(bytes).and_then(|()| self.disk.sync_dir());
        if let Err(error) = prepared {
            // Without its file the name means nothing; if it stays, the next start removes it.
            drop(self.disk.remove(&name.to_string()));
            return Err(error);
        }
        Ok(Arc::new(Segment { name, file, seed: seed(&self.id, number), first: Revision::FIRST }))
    }

    /// The header of a segment of this store.
    pub(crate) fn header(&self, name: SegmentName, first: Revision) -> [u8; HEADER_BYTES] {
        Header { store: self.id, number: name.number, kind: name.kind, first }.encode()
    }

    /// Writes which segments count, without those that `gone` names. The caller holds `manifest`.
    pub(crate) fn write_manifest(&self, gone: &[u32]) -> io::Result<()> {
        let manifest = {
            let index = self.index.read();
            let segments = index.segments().filter(|state| !gone.contains(&state.segment.name.number));
            let entry = |state: &crate::index::SegmentState| SegmentEntry {
                name: state.segment.name,
                n_records: if state.is_sealed { state.n_records } else { 0 },
                bytes: if state.is_sealed { state.used_bytes } else { 0 },
            };
            let segments: Vec<SegmentEntry> = segments.map(entry).collect();
            // Logs that are not in the index yet have greater numbers than those that are.
            let logs = segments.iter().filter(|entry| entry.name.kind == SegmentKind::Log);
            let next_number = logs.map(|entry| entry.name.number + 1).max().unwrap_or(1);
            Manifest { store: self.id, revision: index.revision(), compacted: index.compacted(), next_number, segments }
        };
        replace_whole(&*self.disk, MANIFEST_NAME, &manifest.encode())
    }
}

/// What a disk error means for whoever reads.
pub(crate) fn unreadable(what: &str, error: &io::Error) -> StorageError {
    StorageError::Corrupt { what: format!("{what}: {error}") }
}

/// Bytes of memory for a length on disk.
pub(crate) fn buffer_of(bytes: u64) -> Vec<u8> {
    vec![0; to_usize(bytes)]
}
