//! The store itself.

use crate::backup::{self, Done, SnapshotStatus};
use crate::commit::{Log, Message, Request, WRITES_WAITING_MAX, Write, Writer};
use crate::disk::{Disk, RealDisk};
use crate::error::OpenError;
use crate::expiry::Expiry;
use crate::format::{HEADER_BYTES, KEY_BYTES_MAX, SegmentKind};
use crate::maintenance;
use crate::options::{Options, Runner};
use crate::reader::Reader;
use crate::recovery::{Leftovers, Mortal, Recovered, new_id, read_format, recover, write_format};
use crate::segment::Segment;
use crate::shared::Shared;
use crate::status::Status;
use crate::watchers::{self, Watchers};
use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use pintle_apimachinery::env::Env;
use pintle_storage::{
    At, Event, Found, Key, ListRequest, Listing, NewValue, Newest, Record, Result, Revision, Storage, StorageError,
    WatchRequest, WatchStream,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

/// A durable store in one directory. Clones share it; when the last is gone, so is the store. See [`EmbeddedStore::close`]
/// for an orderly end; after any other, everything acknowledged is there as well.
#[derive(Clone, Debug)]
pub struct EmbeddedStore {
    reader: Reader,
    writer: mpsc::Sender<Message>,
}

impl EmbeddedStore {
    /// Opens the store in a directory, which is made if need be. Must be called on a runtime, which the store then uses.
    ///
    /// # Errors
    /// `InUse` when another process has the directory, `NotAStore` and `Format` when it is not one of this version,
    /// `Corrupt` when something acknowledged cannot be read, `Io` when the operating system refuses.
    pub fn open(directory: impl AsRef<Path>, options: Options, env: Env) -> Result<EmbeddedStore, OpenError> {
        let directory = directory.as_ref();
        let disk = RealDisk::new(directory).map_err(OpenError::io(format!("make {}", directory.display())))?;
        EmbeddedStore::open_on(Arc::new(disk), options, env)
    }

    /// Opens the store on a disk.
    ///
    /// # Errors
    /// As [`EmbeddedStore::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: Options, env: Env) -> Result<EmbeddedStore, OpenError> {
        let lock = disk.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => OpenError::InUse,
            _ => OpenError::io("lock the data directory")(error),
        })?;
        let id = match read_format(&*disk)? {
            Some(id) => id,
            None => {
                let id = new_id(&env);
                write_format(&*disk, id)?;
                id
            }
        };
        let recovered = recover(&*disk, id, Leftovers::CleanUp)?;
        let Recovered { mut index, next_number, mortals, times, log_bytes } = recovered;
        let now_ms = u64::try_from(env.clock.now().as_millisecond()).unwrap_or_default();
        let window_ms = u64::try_from(options.history_time.as_millis()).unwrap_or(u64::MAX);
        for (revision, written_ms, bytes) in times {
            // Clocks may have been changed meanwhile: nothing is older than the window, nothing younger than now.
            index.mark_past(revision, window_ms - now_ms.saturating_sub(written_ms).min(window_ms), bytes);
        }
        let current = index.revision();
        let shared = Arc::new(Shared {
            disk,
            env,
            options,
            id,
            index: RwLock::new(index),
            watchers: Watchers::new(current),
            expiry: Expiry::default(),
            spare: Mutex::new(None),
            trouble: Mutex::new(None),
            work: Arc::new(Notify::new()),
            manifest: Mutex::new(()),
            next_number: AtomicU32::new(next_number),
            is_closed: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
            opened: Instant::now(),
        });
        for mortal in mortals {
            set_deadline(&shared, &mortal, now_ms);
        }
        let log = begin_log(&shared, current, log_bytes).map_err(OpenError::io("begin a segment"))?;
        let (writer, inbox) = mpsc::channel(WRITES_WAITING_MAX);
        start_writer(Writer::new(Arc::clone(&shared), log), inbox, shared.options.runner)?;
        maintenance::start(&shared, &writer);
        Ok(EmbeddedStore { reader: Reader::new(shared), writer })
    }

    /// Ends the store in good order: what was taken up is finished, unused space is given back, the directory is free
    /// for another process. Everything asked afterwards is refused as `Unavailable`; watches end.
    pub async fn close(&self) {
        let shared = self.shared();
        let (reply, answer) = oneshot::channel();
        if self.writer.send(Message::Close(reply)).await.is_ok() {
            // The writer may have closed for somebody else already.
            let _ = answer.await;
        }
        shared.is_closed.store(true, Ordering::Release);
        shared.work.notify_one();
        shared.watchers.wake_all();
        let waited = shared.blocking(|shared| {
            // A piece of maintenance that is under way ends first.
            let _no_file_comes_or_goes = shared.manifest.lock();
            if let Some(spare) = shared.spare.lock().take() {
                drop(shared.disk.remove(&spare.name.to_string()));
            }
            *shared.lock.lock() = None;
        });
        // The runtime may end first; then the process does, too.
        let _ = waited.await;
    }

    /// Where the store stands.
    pub fn status(&self) -> Status {
        let trouble = self.shared().trouble.lock().as_ref().map(|trouble| trouble.why().to_owned());
        Status { read_only: trouble, ..Status::of(&self.shared().index.read()) }
    }

    /// Takes a snapshot of the newest state into a file, while reads and writes go on. The file appears when it is
    /// complete.
    ///
    /// # Errors
    /// `Corrupt` when a record cannot be read, or when the state is forgotten before it is copied; `Io` when the file
    /// cannot be written.
    pub async fn save(
        &self,
        file: impl AsRef<Path>,
        mut progress: impl FnMut(Done) + Send + 'static,
    ) -> Result<SnapshotStatus, OpenError> {
        let file = file.as_ref().to_path_buf();
        let saved = self.shared().blocking(move |shared| {
            let revision = shared.index.read().revision();
            backup::save_index(&shared.index, revision, shared.id, &file, &shared.env, &mut progress)
        });
        saved.await.map_err(|error| OpenError::io("save a snapshot")(io::Error::other(error)))?
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.reader.shared()
    }

    fn open_or(&self) -> Result<()> {
        if self.shared().is_closed() { Err(closed()) } else { Ok(()) }
    }

    async fn write(&self, key: Key, request: Request) -> Result<Arc<Event>> {
        if key.len() > KEY_BYTES_MAX {
            return Err(StorageError::TooLarge { bytes: key.len(), key, bytes_max: KEY_BYTES_MAX });
        }
        let (reply, answer) = oneshot::channel();
        let write = Write { key, request, reply };
        self.writer.send(Message::Write(write)).await.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    async fn put(&self, key: Key, request: Request) -> Result<Arc<Record>> {
        let event = self.write(key, request).await?;
        event.record.clone().ok_or_else(|| StorageError::NotFound { key: event.key.clone() })
    }
}

fn closed() -> StorageError {
    StorageError::Unavailable { why: "the store is closed".to_owned() }
}

/// Begins a fresh segment: what is behind the last record of the old one is nobody's business.
fn begin_log(shared: &Shared, current: Revision, log_bytes: u64) -> io::Result<Log> {
    let capacity = shared.options.segment_bytes;
    let made = shared.make_segment(SegmentKind::Log, capacity)?;
    let Segment { name, file, seed, .. } = &*made;
    let segment = Segment { name: *name, file: Arc::clone(file), seed: *seed, first: current.next() };
    let segment = Arc::new(segment);
    segment.file.write_at(&shared.header(segment.name, segment.first), 0)?;
    segment.file.sync()?;
    shared.index.write().add_segment(Arc::clone(&segment), HEADER_BYTES as u64);
    Ok(Log::new(segment, HEADER_BYTES as u64, capacity, current, log_bytes))
}

fn start_writer(writer: Writer, inbox: mpsc::Receiver<Message>, runner: Runner) -> Result<(), OpenError> {
    match runner {
        Runner::Task => drop(tokio::spawn(writer.run_as_task(inbox))),
        Runner::Thread => {
            let thread = std::thread::Builder::new().name("pintle-store".to_owned());
            thread.spawn(move || writer.run_on_thread(inbox)).map_err(OpenError::io("start a thread"))?;
        }
    }
    Ok(())
}

/// A key found at start is due when the rest of its time is over; never later than its whole time from now, whatever
/// the clocks say.
fn set_deadline(shared: &Shared, mortal: &Mortal, now_ms: u64) {
    let whole_ms = mortal.expires_ms.saturating_sub(mortal.written_ms);
    let rest_ms = mortal.expires_ms.saturating_sub(now_ms).min(whole_ms);
    let due = shared.opened.checked_add(Duration::from_millis(rest_ms));
    shared.expiry.set(&mortal.key, mortal.revision, due);
}

#[async_trait]
impl Storage for EmbeddedStore {
    async fn create(&self, key: Key, value: NewValue) -> Result<Arc<Record>> {
        self.put(key, Request::Create(value)).await
    }

    async fn update(&self, key: Key, value: NewValue, expected: Revision) -> Result<Arc<Record>> {
        self.put(key, Request::Update(value, expected)).await
    }

    async fn delete(&self, key: Key, expected: Option<Revision>) -> Result<Arc<Event>> {
        self.write(key, Request::Delete(expected)).await
    }

    async fn get(&self, key: &Key, at: At) -> Result<Found> {
        self.open_or()?;
        self.reader.get(key, at).await
    }

    async fn list(&self, request: ListRequest) -> Result<Listing> {
        self.open_or()?;
        self.reader.list(&request).await
    }

    async fn count(&self, prefix: &Key) -> Result<usize> {
        self.open_or()?;
        Ok(self.reader.count(prefix))
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream> {
        self.open_or()?;
        watchers::open(self.reader.clone(), request)
    }

    async fn current_revision(&self) -> Result<Revision> {
        self.open_or()?;
        Ok(self.shared().watchers.committed())
    }

    fn newest(&self, prefix: &Key) -> Option<Newest> {
        (!self.shared().is_closed()).then(|| self.shared().watchers.newest(prefix))
    }

    async fn request_progress(&self) -> Result<()> {
        self.open_or()?;
        self.shared().watchers.request_progress();
        Ok(())
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.open_or()?;
        {
            let index = self.shared().index.read();
            if revision > index.revision() {
                return Err(StorageError::Future { requested: revision, current: index.revision() });
            }
            if revision <= index.compacted() {
                return Err(StorageError::Expired { requested: revision, compacted: index.compacted() });
            }
        }
        let compacted = self.shared().blocking(move |shared| {
            shared.forget_until(revision);
            let _no_file_comes_or_goes = shared.manifest.lock();
            shared.write_manifest(&[])
        });
        compacted
            .await?
            .map_err(|error| StorageError::Unavailable { why: format!("cannot write the manifest: {error}") })?;
        self.shared().work.notify_one();
        Ok(())
    }

    async fn health(&self) -> Result<()> {
        self.open_or()?;
        self.shared().refusal().map_or(Ok(()), Err)
    }
}
