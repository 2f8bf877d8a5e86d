//! What happens beside reading and writing: history is forgotten, segments are rewritten, the next one is prepared, keys
//! whose time is over are deleted. All of it in small pieces: nobody waits for long.

mod rewrite;

use crate::commit::{Message, Request, Write};
use crate::format::SegmentKind;
use crate::options::Runner;
use crate::shared::{Shared, Trouble};
use pintle_storage::{Key, Revision};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Time between two rounds, unless there is work before.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// Revisions forgotten before the index is let go for others: about 50 us.
const FORGET_REVISIONS_MAX: usize = 128;

/// Bytes of zeros written at once into a prepared segment, each made durable before the next: so much of the disk's time
/// a write may have to wait for.
const ZEROS_BYTES: usize = 256 << 10;

/// Keys deleted at once because their time is over.
const EXPIRE_KEYS_MAX: usize = 128;

/// Does what is to be done, again and again, until the store is closed or gone.
pub(crate) async fn maintain(shared: Weak<Shared>) {
    loop {
        let Some(strong) = shared.upgrade().filter(|shared| !shared.is_closed()) else { return };
        if strong.blocking(Shared::maintain_once).await.is_err() {
            return;
        }
        // The store may go while this waits.
        let work = Arc::clone(&strong.work);
        drop(strong);
        // Whether there is work or the time has come, a round follows.
        let _ = tokio::time::timeout(ROUND_INTERVAL, work.notified()).await;
    }
}

impl Shared {
    /// One round.
    pub(crate) fn maintain_once(&self) {
        if let Err(error) = self.prepare_spare() {
            tracing::warn!(%error, "cannot prepare a segment");
        }
        self.forget();
        if let Err(error) = self.rewrite_what_is_worth_it() {
            tracing::warn!(%error, "cannot rewrite segments");
        }
    }

    /// Forgets what the options say is too old.
    fn forget(&self) {
        let target = {
            let mut index = self.index.write();
            let bytes = index.log_bytes();
            index.compaction_target(self.running_ms(), bytes, &self.options)
        };
        self.forget_until(target);
    }

    /// Forgets what is older than a revision.
    pub(crate) fn forget_until(&self, target: Revision) {
        while !self.is_closed() && !self.index.write().compact(target, FORGET_REVISIONS_MAX) {}
    }

    /// Makes the segment that is written next, so that the writer need not wait for it.
    fn prepare_spare(&self) -> io::Result<()> {
        let is_broken = matches!(*self.trouble.lock(), Some(Trouble::Broken(_)));
        let _no_file_comes_or_goes = self.manifest.lock();
        if is_broken || self.is_closed() || self.spare.lock().is_some() {
            return Ok(());
        }
        let spare = self.make_segment(SegmentKind::Log, self.options.segment_bytes)?;
        if self.options.runner == Runner::Thread {
            // Blocks that were written once take less time to sync than reserved ones.
            let zeros = vec![0; ZEROS_BYTES];
            let mut offset = 0;
            while offset < self.options.segment_bytes && !self.is_closed() {
                let n_zeros = zeros.len().min(crate::error::to_usize(self.options.segment_bytes - offset));
                spare.file.write_at(zeros.get(..n_zeros).unwrap_or_default(), offset)?;
                spare.file.sync()?;
                offset += n_zeros as u64;
            }
        }
        *self.spare.lock() = Some(spare);
        Ok(())
    }
}

/// Deletes keys whose time is over, by ordinary writes, until the store is closed or gone.
pub(crate) async fn expire(shared: Weak<Shared>, writer: mpsc::WeakSender<Message>) {
    loop {
        let Some(strong) = shared.upgrade().filter(|shared| !shared.is_closed()) else { return };
        let next = strong.expiry.next();
        let due = next.filter(|due| *due <= Instant::now());
        if due.is_some() {
            let keys = strong.expiry.due(Instant::now(), EXPIRE_KEYS_MAX);
            let Some(writer) = writer.upgrade() else { return };
            drop(strong);
            if !delete_all(&shared, &writer, keys).await {
                tokio::time::sleep(ROUND_INTERVAL).await;
            }
            continue;
        }
        let wait = next.map_or(ROUND_INTERVAL, |due| due.saturating_duration_since(Instant::now()).min(ROUND_INTERVAL));
        let changed = strong.expiry.changed();
        drop(strong);
        // Whether another key is due next or the time has come, look again.
        let _ = tokio::time::timeout(wait, changed.notified()).await;
    }
}

/// Answers whether all is well.
async fn delete_all(shared: &Weak<Shared>, writer: &mpsc::Sender<Message>, keys: Vec<(Key, Revision)>) -> bool {
    let mut replies = Vec::with_capacity(keys.len());
    for (key, revision) in keys {
        let (reply, answer) = oneshot::channel();
        let write = Write { key: key.clone(), request: Request::Delete(Some(revision)), reply };
        if writer.send(Message::Write(write)).await.is_err() {
            return false;
        }
        replies.push((key, revision, answer));
    }
    let mut is_well = true;
    for (key, revision, answer) in replies {
        use pintle_storage::StorageError::{Conflict, NotFound};
        match answer.await {
            Ok(Ok(_)) => {}
            // Somebody was faster; that write has set or removed the deadline.
            Ok(Err(Conflict { .. } | NotFound { .. })) => {
                if let Some(shared) = shared.upgrade() {
                    shared.expiry.forget(&key, revision);
                }
            }
            Ok(Err(_)) | Err(_) => is_well = false,
        }
    }
    is_well
}

/// The handles of both, for whoever must keep them.
pub(crate) fn start(shared: &Arc<Shared>, writer: &mpsc::Sender<Message>) {
    tokio::spawn(maintain(Arc::downgrade(shared)));
    tokio::spawn(expire(Arc::downgrade(shared), writer.downgrade()));
}
