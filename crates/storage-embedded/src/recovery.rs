//! Opening: finding out from the files what the store holds.
//!
//! ```text
//! FORMAT      version and identity; made first, never changed
//! MANIFEST    which segments count; logs with greater numbers count, too
//! *.base      read first: what is needed from before the compacted revision
//! *.log       read in order; revisions after the compacted one must follow each other without a gap
//! ```
//!
//! The last log may end in something unfinished: records that were never acknowledged, in any state. Whether a damaged
//! record was acknowledged is known from the ones behind it: each says how many before it were not durable when it was
//! written. What nobody vouches for is cut off; what somebody vouches for and is damaged is refused.

mod format_file;
pub(crate) mod salvage;
mod scan;
mod tail;

pub(crate) use format_file::{new_id, read_format, write_format};
pub(crate) use scan::{Found, scan};

use crate::disk::{Disk, read_exact_at, read_whole};
use crate::error::{OpenError, to_u32};
use crate::format::{
    Decoded, HEADER_BYTES, Header, Kind, Manifest, SegmentEntry, SegmentKind, SegmentName, StoreId, seed,
};
use crate::index::{Builder, Index, Physical};
use crate::segment::{Segment, Version};
use crate::shared::MANIFEST_NAME;
use pintle_storage::{Key, Revision};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was found.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) index: Index,
    /// The number for the next segment file.
    pub(crate) next_number: u32,
    /// Keys with a time to live: revision, when written, when due; milliseconds since 1970.
    pub(crate) mortals: Vec<Mortal>,
    /// When the store stood where, as far as the log tells: revision, milliseconds since 1970, bytes of log.
    pub(crate) times: Vec<(Revision, u64, u64)>,
    /// Bytes of log after the compacted revision.
    pub(crate) log_bytes: u64,
}

/// A key with a time to live.
#[derive(Clone, Debug)]
pub(crate) struct Mortal {
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    pub(crate) written_ms: u64,
    pub(crate) expires_ms: u64,
}

/// What to do with what a crash left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// Cut off and remove it: the store is ours.
    CleanUp,
    /// Leave it: the store may be in use.
    Keep,
}

/// The files of a store that count.
struct Files {
    manifest: Manifest,
    bases: Vec<SegmentEntry>,
    /// In order of their numbers. `bytes` is 0 where nobody knows.
    logs: Vec<SegmentEntry>,
}

/// Finds out what the store holds.
///
/// # Errors
/// `Corrupt` when something that was acknowledged cannot be read.
pub(crate) fn recover(disk: &dyn Disk, id: StoreId, leftovers: Leftovers) -> Result<Recovered, OpenError> {
    let names = disk.list().map_err(OpenError::io("list the data directory"))?;
    let manifest = read_manifest(disk, id, &names)?;
    let files = sort_files(disk, manifest, &names, leftovers)?;
    let compacted = files.manifest.compacted;
    let mut recovery = Recovery {
        disk,
        id,
        leftovers,
        listed: files.manifest.segments.iter().map(|entry| entry.name.number).collect(),
        builder: Builder::new(compacted),
        compacted,
        mortals: BTreeMap::new(),
        times: Vec::new(),
        log_bytes: 0,
    };
    for base in &files.bases {
        recovery.read_base(base)?;
    }
    recovery.read_logs(&files.logs)?;
    let numbers = names.iter().filter_map(|name| SegmentName::parse(name)).map(|name| name.number + 1);
    let next_number = numbers.max().unwrap_or(1).max(files.manifest.next_number);
    recovery.finish(files.manifest.revision, next_number)
}

pub(crate) fn read_manifest(disk: &dyn Disk, id: StoreId, names: &[String]) -> Result<Manifest, OpenError> {
    if !names.iter().any(|name| name == MANIFEST_NAME) {
        let first = Revision::FIRST;
        return Ok(Manifest { store: id, revision: first, compacted: first, next_number: 0, segments: Vec::new() });
    }
    let bytes = read_whole(disk, MANIFEST_NAME).map_err(OpenError::io("read MANIFEST"))?;
    let manifest = Manifest::decode(&bytes).filter(|manifest| manifest.store == id);
    manifest.ok_or_else(|| OpenError::corrupt("MANIFEST is not what was written"))
}

/// Tells files that count from leftovers.
fn sort_files(disk: &dyn Disk, manifest: Manifest, names: &[String], leftovers: Leftovers) -> Result<Files, OpenError> {
    let mut files = Files { bases: Vec::new(), logs: Vec::new(), manifest };
    let listed: BTreeMap<String, SegmentEntry> =
        files.manifest.segments.iter().map(|entry| (entry.name.to_string(), *entry)).collect();
    if let Some(missing) = listed.keys().find(|name| !names.contains(name)) {
        return Err(OpenError::corrupt(format!("{missing} is missing")));
    }
    for text in names {
        let name = SegmentName::parse(text);
        let entry = name.and_then(|name| {
            let is_implicit = name.kind == SegmentKind::Log && name.number >= files.manifest.next_number;
            let implicit = is_implicit.then_some(SegmentEntry { name, n_records: 0, bytes: 0 });
            listed.get(text).copied().or(implicit)
        });
        match entry {
            Some(entry) if entry.name.kind == SegmentKind::Base => files.bases.push(entry),
            Some(entry) => files.logs.push(entry),
            None if (name.is_some() || text.ends_with(".tmp")) && leftovers == Leftovers::CleanUp => {
                disk.remove(text).map_err(OpenError::io(format!("remove {text}")))?;
            }
            None => {}
        }
    }
    files.logs.sort_by_key(|entry| entry.name.number);
    Ok(files)
}

/// A recovery under way.
struct Recovery<'a> {
    disk: &'a dyn Disk,
    id: StoreId,
    leftovers: Leftovers,
    /// Numbers that the manifest names.
    listed: BTreeSet<u32>,
    builder: Builder,
    compacted: Revision,
    mortals: BTreeMap<Key, Mortal>,
    times: Vec<(Revision, u64, u64)>,
    log_bytes: u64,
}

/// A log segment that was read.
struct ReadLog {
    segment: Arc<Segment>,
    /// The revision after its last record.
    next: Revision,
    /// Where its records end.
    end: u64,
}

impl Recovery<'_> {
    fn open(&self, name: SegmentName) -> Result<(Segment, Option<Header>), OpenError> {
        let text = name.to_string();
        let file = self.disk.open(&text).map_err(OpenError::io(format!("open {text}")))?;
        let mut bytes = [0; HEADER_BYTES];
        let header = match read_exact_at(&*file, &mut bytes, 0) {
            Ok(()) => Header::decode(&bytes),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(OpenError::io(format!("read {text}"))(error)),
        };
        let header = header.filter(|h| h.store == self.id && h.number == name.number && h.kind == name.kind);
        let first = header.map_or(Revision::FIRST, |header| header.first);
        Ok((Segment { name, file, seed: seed(&self.id, name.number), first }, header))
    }

    /// Takes in a record.
    fn take(&mut self, number: u32, found: &Found<'_>) {
        let Decoded { entry, key, bytes, .. } = found.decoded;
        let version = Version {
            revision: entry.revision,
            segment: number,
            unit: to_u32(found.offset / 8),
            bytes: to_u32(bytes as u64),
            kind: entry.kind,
            is_mortal: entry.expires_ms != 0,
        };
        if version.is_mortal && entry.kind == Kind::Put {
            let key = Key::new(key);
            let Decoded { entry, .. } = found.decoded;
            let is_newer = self.mortals.get(&key).is_none_or(|other| other.revision < entry.revision);
            if is_newer {
                let (written_ms, expires_ms) = (entry.written_ms, entry.expires_ms);
                self.mortals.insert(key.clone(), Mortal { key, revision: entry.revision, written_ms, expires_ms });
            }
        }
        self.builder.found(&Physical { key, version, previous: entry.previous });
    }

    fn read_base(&mut self, entry: &SegmentEntry) -> Result<(), OpenError> {
        let (segment, header) = self.open(entry.name)?;
        if header.is_none() {
            return Err(OpenError::corrupt(format!("the header of {} is not what was written", entry.name)));
        }
        let segment = Arc::new(segment);
        self.builder.index().add_segment(Arc::clone(&segment), entry.bytes);
        let mut n_records = 0;
        let end = scan(&*segment.file, segment.seed, |found| {
            n_records += 1;
            self.take(entry.name.number, found);
            true
        })
        .map_err(OpenError::io(format!("read {}", entry.name)))?;
        if n_records != entry.n_records || end != entry.bytes {
            let n_missing = entry.n_records.saturating_sub(n_records);
            return Err(OpenError::corrupt(format!(
                "{} is damaged at byte {end} of {}: {n_missing} records from there on cannot be read",
                entry.name, entry.bytes
            )));
        }
        self.builder.index().seal(entry.name.number, end);
        Ok(())
    }

    fn read_logs(&mut self, entries: &[SegmentEntry]) -> Result<(), OpenError> {
        let mut last: Option<(ReadLog, bool)> = None;
        for (n, entry) in entries.iter().enumerate() {
            let is_last = entries.get(n + 1..).unwrap_or_default().iter().all(|later| self.is_blank(later));
            let Some(read) = self.read_log(entry, is_last)? else { continue };
            if let Some((before, is_checked)) = &last
                && !is_checked
                && before.next != read.segment.first
            {
                return Err(OpenError::corrupt(format!(
                    "{} is damaged at byte {}: revision {} cannot be read; the next segment begins with revision {}",
                    before.segment.name, before.end, before.next, read.segment.first
                )));
            }
            last = Some((read, entry.bytes > 0));
        }
        Ok(())
    }

    /// Whether a log has no header and was never written, as far as that can be told from its beginning.
    fn is_blank(&self, entry: &SegmentEntry) -> bool {
        self.open(entry.name).is_ok_and(|(_, header)| header.is_none())
    }

    /// Reads a log; `None` when there is nothing in it.
    fn read_log(&mut self, entry: &SegmentEntry, is_last: bool) -> Result<Option<ReadLog>, OpenError> {
        let name = entry.name;
        let (segment, header) = self.open(name)?;
        let segment = Arc::new(segment);
        let mut next = header.map(|header| header.first);
        let mut tail = tail::Tail::default();
        let mut n_records = 0;
        self.builder.index().add_segment(Arc::clone(&segment), HEADER_BYTES as u64);
        let end = scan(&*segment.file, segment.seed, |found| {
            let revision = found.decoded.entry.revision;
            if next != Some(revision) {
                return false;
            }
            next = Some(revision.next());
            n_records += 1;
            tail.take(found);
            self.take(name.number, found);
            self.note_time(revision, found);
            true
        })
        .map_err(OpenError::io(format!("read {name}")))?;
        if entry.bytes > 0 && (end != entry.bytes || n_records != entry.n_records) {
            return Err(OpenError::corrupt(format!("{name} is damaged at byte {end} of {}", entry.bytes)));
        }
        let expected = next.unwrap_or_else(|| self.builder.revision().next());
        if is_last {
            let vouched =
                tail::vouched_behind(&segment, end, expected).map_err(OpenError::io(format!("read {name}")))?;
            // who reads beside a writer may have come to the end before what is behind it was written
            let is_growing = vouched.is_some()
                && self.leftovers == Leftovers::Keep
                && scan(&*segment.file, segment.seed, |_| true).map_err(OpenError::io(format!("read {name}")))? > end;
            if let Some(vouched) = vouched.filter(|_| !is_growing) {
                return Err(OpenError::corrupt(format!(
                    "{name} is damaged at byte {end}: revision {expected} cannot be read, revision {vouched} behind it can"
                )));
            }
            if self.leftovers == Leftovers::CleanUp {
                tail.settle(&segment, end).map_err(OpenError::io(format!("make the end of {name} durable")))?;
            }
        }
        self.builder.index().seal(name.number, end);
        let is_listed = self.listed.contains(&name.number);
        if n_records == 0 && !is_listed {
            // A file for later, or one whose first records were never finished.
            self.builder.index().remove_segment(name.number);
            if self.leftovers == Leftovers::CleanUp {
                self.disk.remove(&name.to_string()).map_err(OpenError::io(format!("remove {name}")))?;
            }
        }
        Ok(next.map(|next| ReadLog { segment, next, end }))
    }

    fn note_time(&mut self, revision: Revision, found: &Found<'_>) {
        if revision <= self.compacted {
            return;
        }
        self.log_bytes += found.decoded.bytes as u64;
        let ms = found.decoded.entry.written_ms;
        let is_news = self.times.last().is_none_or(|(_, last_ms, last_bytes)| {
            ms >= last_ms + crate::index::MARK_MS || self.log_bytes >= last_bytes + crate::index::MARK_BYTES
        });
        if is_news {
            self.times.push((revision, ms, self.log_bytes));
        }
    }

    fn finish(self, revision: Revision, next_number: u32) -> Result<Recovered, OpenError> {
        let index = self
            .builder
            .finish(revision)
            .map_err(|missing| OpenError::corrupt(format!("revision {missing} is in no segment")))?;
        let is_current =
            |mortal: &Mortal| index.newest(&mortal.key).is_some_and(|place| place.version.revision == mortal.revision);
        let mortals = self.mortals.into_values().filter(is_current).collect();
        Ok(Recovered { mortals, next_number, times: self.times, log_bytes: self.log_bytes, index })
    }
}
