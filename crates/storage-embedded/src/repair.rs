//! Checking a store, and keeping what is intact of a damaged one.

use crate::backup::Done;
use crate::bases::Bases;
use crate::disk::{Disk, RealDisk};
use crate::error::OpenError;
use crate::format::{Kind, SegmentName, StoreId, decode, seed};
use crate::recovery::salvage::{Salvage, read_segment, salvage};
use crate::recovery::{Leftovers, read_format, recover};
use crate::shared::MANIFEST_NAME;
use pintle_storage::Revision;
use std::collections::BTreeMap;
use std::path::Path;

/// How far the revision of a repaired store lies behind the newest that is known of. What was lost may have had greater
/// ones, and clients may know them.
const REVISIONS_SKIPPED: u64 = 1_000_000;

/// A piece of a store that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Where in the file.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.offset, self.what)
    }
}

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// What was damaged.
    pub damages: Vec<Damage>,
    /// Records that were kept.
    pub n_records: u64,
    /// Where the store stands now. It has no history.
    pub revision: Revision,
}

fn open(directory: &Path) -> Result<(RealDisk, StoreId), OpenError> {
    let disk = RealDisk::existing(directory).map_err(OpenError::io(format!("open {}", directory.display())))?;
    let id = read_format(&disk)?.ok_or_else(|| OpenError::NotAStore { name: "it is empty".to_owned() })?;
    Ok((disk, id))
}

/// Reads the whole store in a directory that no process has open, and tells what is damaged. Changes nothing.
///
/// # Errors
/// `InUse` when a process has it, `NotAStore` and `Format` when it is not a store of this version, `Io` when the operating
/// system refuses.
pub fn check(directory: impl AsRef<Path>) -> Result<Vec<Damage>, OpenError> {
    let (disk, id) = open(directory.as_ref())?;
    let _lock = disk.lock().map_err(|_| OpenError::InUse)?;
    check_on(&disk, id)
}

fn check_on(disk: &dyn Disk, id: StoreId) -> Result<Vec<Damage>, OpenError> {
    match recover(disk, id, Leftovers::Keep) {
        Ok(_) => Ok(Vec::new()),
        Err(OpenError::Corrupt { what }) => {
            let mut damages = salvage(disk, id)?.damages;
            if damages.is_empty() {
                damages.push(Damage { file: MANIFEST_NAME.to_owned(), offset: 0, what });
            }
            Ok(damages)
        }
        Err(error) => Err(error),
    }
}

/// Makes a damaged store usable: the newest intact version of every key is kept, history is forgotten, and the damaged
/// files stay beside it with `.damaged` behind their names. Does nothing to a store that is sound.
///
/// # Errors
/// As [`check`].
pub fn repair(directory: impl AsRef<Path>, progress: &mut dyn FnMut(Done)) -> Result<Repaired, OpenError> {
    let (disk, id) = open(directory.as_ref())?;
    let _lock = disk.lock().map_err(|_| OpenError::InUse)?;
    repair_on(&disk, id, progress)
}

pub(crate) fn repair_on(disk: &dyn Disk, id: StoreId, progress: &mut dyn FnMut(Done)) -> Result<Repaired, OpenError> {
    if let Ok(recovered) = recover(disk, id, Leftovers::Keep) {
        let index = recovered.index;
        return Ok(Repaired { damages: Vec::new(), n_records: index.n_live() as u64, revision: index.revision() });
    }
    let salvage = salvage(disk, id)?;
    let next_number = salvage.names.iter().map(|name| name.number + 1).max().unwrap_or(1);
    let mut bases = Bases::new(disk, id, next_number);
    let n_records = copy(disk, id, &salvage, &mut bases, progress)?;
    let known = salvage.revision.unwrap_or(Revision::FIRST);
    let revision = Revision::new(known.get().saturating_add(REVISIONS_SKIPPED)).unwrap_or(known);
    bases.finish(revision)?;
    // The new manifest does not name them: a crash from here on does no harm.
    for name in &salvage.names {
        let fail = || OpenError::io(format!("rename {name}"));
        disk.rename(&name.to_string(), &format!("{name}.damaged")).map_err(fail())?;
    }
    disk.sync_dir().map_err(OpenError::io("make the names durable"))?;
    Ok(Repaired { damages: salvage.damages, n_records, revision })
}

/// Copies the newest version of every key that is there.
fn copy(
    disk: &dyn Disk,
    id: StoreId,
    salvage: &Salvage,
    bases: &mut Bases<'_>,
    progress: &mut dyn FnMut(Done),
) -> Result<u64, OpenError> {
    let n_total = salvage.n_live();
    let mut wanted: BTreeMap<(u32, usize), SegmentName> = BTreeMap::new();
    for (name, offset, entry) in salvage.newest.values() {
        if entry.kind == Kind::Put {
            wanted.insert((name.number, *offset), *name);
        }
    }
    let mut n_records = 0;
    let mut open: Option<(SegmentName, Vec<u8>)> = None;
    for ((_, offset), name) in wanted {
        let bytes = match &open {
            Some((current, bytes)) if *current == name => bytes,
            _ => {
                progress(Done { n_records, n_total });
                let content = read_segment(disk, name)?;
                &open.insert((name, content)).1
            }
        };
        let found = bytes.get(offset..).and_then(|bytes| decode(bytes, seed(&id, name.number)));
        let Some(decoded) = found else { continue };
        bases.add(&decoded.entry, decoded.key, decoded.value)?;
        n_records += 1;
    }
    Ok(n_records)
}
