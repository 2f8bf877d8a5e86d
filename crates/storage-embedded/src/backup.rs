//! Snapshots: all records of one revision in one file. They are taken while the store runs, by the process that has it or
//! by another, and restored into an empty directory.
//!
//! ```text
//! header  "PINTLSNP", CRC-32C of the rest (4), version (4), store (16), revision (8), when it was taken (8)
//! records as in segments, in order of their keys; their checksums are seeded with store and segment number 0
//! footer  "PINTLEND", CRC-32C of the rest (4), 0 (4), number of records (8), bytes of the file (8)
//! ```

mod file;

pub use file::SnapshotStatus;

use crate::bases::Bases;
use crate::disk::{Disk, RealDisk};
use crate::error::OpenError;
use crate::format::{Entry, Kind};
use crate::index::Index;
use crate::reader::read_missing;
use crate::recovery::{Leftovers, new_id, read_format, recover, write_format};
use file::{SnapshotReader, SnapshotWriter};
use parking_lot::RwLock;
use pintle_apimachinery::env::Env;
use pintle_storage::Revision;
use std::ops::Bound;
use std::path::Path;

/// Records copied between two words of progress.
const PAGE_RECORDS: usize = 1024;

/// How often a directory is read again that changes while it is read.
const ATTEMPTS_MAX: usize = 32;

/// How far something has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Records copied.
    pub n_records: u64,
    /// Records there are.
    pub n_total: u64,
}

/// How to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreOptions {
    /// The restored store stands so many revisions behind the snapshot. Clients may know of revisions that were written
    /// after it; theirs must not be given out again.
    pub revisions_skipped: u64,
}

impl Default for RestoreOptions {
    fn default() -> RestoreOptions {
        RestoreOptions { revisions_skipped: 1_000_000 }
    }
}

/// Takes a snapshot of the store in a directory, whether a process has it open or not. Changes nothing there. The file
/// appears when it is complete.
///
/// # Errors
/// As [`crate::status`]; `Io` when the file cannot be written.
pub fn save(
    directory: impl AsRef<Path>,
    file: impl AsRef<Path>,
    env: &Env,
    progress: &mut dyn FnMut(Done),
) -> Result<SnapshotStatus, OpenError> {
    let directory = directory.as_ref();
    let disk = RealDisk::existing(directory).map_err(OpenError::io(format!("open {}", directory.display())))?;
    let id = read_format(&disk)?.ok_or_else(|| OpenError::NotAStore { name: "it is empty".to_owned() })?;
    let index = RwLock::new(look(&disk, id)?);
    let revision = index.read().revision();
    save_index(&index, revision, id, file.as_ref(), env, progress)
}

/// Finds out what a store holds that may be changing.
pub(crate) fn look(disk: &dyn Disk, id: crate::format::StoreId) -> Result<Index, OpenError> {
    let mut attempt = 1;
    loop {
        match recover(disk, id, Leftovers::Keep) {
            Ok(recovered) => return Ok(recovered.index),
            // A file may go between being named and being opened; the end of the log may be seen half written.
            Err(OpenError::Corrupt { .. } | OpenError::Io { .. }) if attempt < ATTEMPTS_MAX => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Writes all records of a revision into a file.
pub(crate) fn save_index(
    index: &RwLock<Index>,
    revision: Revision,
    id: crate::format::StoreId,
    file: &Path,
    env: &Env,
    progress: &mut dyn FnMut(Done),
) -> Result<SnapshotStatus, OpenError> {
    let n_total = index.read().n_live() as u64;
    let mut writer = SnapshotWriter::create(file, id, revision, env.clock.now())?;
    let mut next: Option<pintle_storage::Key> = Some("".into());
    while let Some(start) = next.take() {
        let mut places = {
            let index = index.read();
            index.readable(revision).map_err(|error| OpenError::corrupt(error.to_string()))?;
            let (places, more) = index.page("", Bound::Included(&start), revision, PAGE_RECORDS);
            next = more;
            places
        };
        read_missing(&mut places).map_err(|error| OpenError::corrupt(error.to_string()))?;
        for place in places {
            let Some(record) = place.held else { continue };
            let (written_ms, expires_ms) = if place.version.is_mortal {
                place.segment.times(&place.version).map_err(OpenError::io(format!("read {}", place.segment.name)))?
            } else {
                (0, 0)
            };
            let revision = record.revision;
            let entry = Entry { revision, previous: None, written_ms, expires_ms, n_pending: 0, kind: Kind::Put };
            writer.add(&entry, &record.key, &record.value)?;
        }
        progress(Done { n_records: writer.n_records(), n_total });
    }
    writer.finish()
}

/// Where a snapshot comes from and how much is in it. Reads and checks all of it.
///
/// # Errors
/// `Corrupt` when it is not a whole snapshot.
pub fn snapshot_status(file: impl AsRef<Path>, progress: &mut dyn FnMut(Done)) -> Result<SnapshotStatus, OpenError> {
    let mut reader = SnapshotReader::open(file.as_ref())?;
    let status = reader.status();
    reader.each(|n_records, _, _, _| {
        if n_records % PAGE_RECORDS as u64 == 0 {
            progress(Done { n_records, n_total: status.n_records });
        }
        Ok(())
    })?;
    Ok(status)
}

/// Makes a store out of a snapshot, in a directory that is empty or not there. It has another identity than the one the
/// snapshot was taken of, and no history.
///
/// # Errors
/// `Corrupt` when the file is not a whole snapshot, `InUse` and `NotAStore` when the directory is not empty, `Io` when the
/// operating system refuses. The directory is a store after success only.
pub fn restore(
    file: impl AsRef<Path>,
    directory: impl AsRef<Path>,
    options: RestoreOptions,
    env: &Env,
    progress: &mut dyn FnMut(Done),
) -> Result<SnapshotStatus, OpenError> {
    let mut reader = SnapshotReader::open(file.as_ref())?;
    let status = reader.status();
    let directory = directory.as_ref();
    let disk = RealDisk::new(directory).map_err(OpenError::io(format!("make {}", directory.display())))?;
    let _lock = disk.lock().map_err(|_| OpenError::InUse)?;
    if read_format(&disk)?.is_some() {
        return Err(OpenError::NotAStore { name: "it holds a store already".to_owned() });
    }
    let id = new_id(env);
    let mut bases = Bases::new(&disk, id, 1);
    reader.each(|n_records, entry, key, value| {
        if n_records % PAGE_RECORDS as u64 == 0 {
            progress(Done { n_records, n_total: status.n_records });
        }
        bases.add(entry, key, value)
    })?;
    let revision = status.revision.get().saturating_add(options.revisions_skipped);
    bases.finish(Revision::new(revision).unwrap_or(status.revision))?;
    write_format(&disk, id)?;
    Ok(status)
}
