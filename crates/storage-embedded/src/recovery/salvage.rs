//! Reading a damaged store: whatever is intact, and what is not.

use super::read_manifest;
use crate::disk::{Disk, read_exact_at};
use crate::error::OpenError;
use crate::format::{Decoded, Entry, HEADER_BYTES, Header, Kind, SegmentKind, SegmentName, StoreId, decode, seed};
use crate::repair::Damage;
use crate::shared::buffer_of;
use pintle_storage::Revision;
use std::collections::BTreeMap;

/// What is intact, and what is not.
#[derive(Debug, Default)]
pub(crate) struct Salvage {
    /// The newest intact record of each key, deletions included: where it is and what it says.
    pub(crate) newest: BTreeMap<String, (SegmentName, usize, Entry)>,
    pub(crate) damages: Vec<Damage>,
    /// The newest revision that is known of.
    pub(crate) revision: Option<Revision>,
    /// All segment files.
    pub(crate) names: Vec<SegmentName>,
}

/// Reads all segments that count, or all there are if the manifest does not say which.
///
/// # Errors
/// When the disk cannot read.
pub(crate) fn salvage(disk: &dyn Disk, id: StoreId) -> Result<Salvage, OpenError> {
    let names = disk.list().map_err(OpenError::io("list the data directory"))?;
    let mut salvage = Salvage::default();
    let manifest = read_manifest(disk, id, &names);
    if let Err(error) = &manifest {
        salvage.note("MANIFEST", 0, error.to_string());
    }
    let manifest = manifest.ok();
    salvage.revision = manifest.as_ref().map(|manifest| manifest.revision);
    let counts = |name: &SegmentName| {
        manifest.as_ref().is_none_or(|manifest| {
            let is_implicit = name.kind == SegmentKind::Log && name.number >= manifest.next_number;
            is_implicit || manifest.segments.iter().any(|entry| entry.name == *name)
        })
    };
    for name in names.iter().filter_map(|name| SegmentName::parse(name)) {
        salvage.names.push(name);
        if counts(&name) {
            salvage.read(disk, id, name)?;
        }
    }
    if let Some(manifest) = &manifest {
        for entry in &manifest.segments {
            if !salvage.names.contains(&entry.name) {
                salvage.note(&entry.name.to_string(), 0, "the file is missing".to_owned());
            }
        }
    }
    Ok(salvage)
}

/// The content of a segment file.
pub(crate) fn read_segment(disk: &dyn Disk, name: SegmentName) -> Result<Vec<u8>, OpenError> {
    let fail = || OpenError::io(format!("read {name}"));
    let file = disk.open(&name.to_string()).map_err(fail())?;
    let mut bytes = buffer_of(file.len().map_err(fail())?);
    read_exact_at(&*file, &mut bytes, 0).map_err(fail())?;
    Ok(bytes)
}

impl Salvage {
    fn note(&mut self, file: &str, offset: u64, what: String) {
        self.damages.push(Damage { file: file.to_owned(), offset, what });
    }

    fn read(&mut self, disk: &dyn Disk, id: StoreId, name: SegmentName) -> Result<(), OpenError> {
        let bytes = read_segment(disk, name)?;
        let seed = seed(&id, name.number);
        let is_blank = bytes.iter().all(|byte| *byte == 0);
        if Header::decode(&bytes).is_none() && !is_blank {
            self.note(&name.to_string(), 0, "the header is not what was written".to_owned());
        }
        let mut offset = HEADER_BYTES;
        let mut damaged_from = None;
        while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            match decode(rest, seed) {
                Some(decoded) => {
                    if let Some(from) = damaged_from.take() {
                        let what = format!("{} bytes are not what was written", offset - from);
                        self.note(&name.to_string(), from as u64, what);
                    }
                    self.take(name, offset, &decoded);
                    offset += crate::format::padded(decoded.bytes);
                }
                None => {
                    damaged_from = damaged_from.or(Some(offset));
                    offset += 8;
                }
            }
        }
        // Behind the last record there may be anything: nobody vouches for it.
        Ok(())
    }

    fn take(&mut self, name: SegmentName, offset: usize, decoded: &Decoded<'_>) {
        self.revision = self.revision.max(Some(decoded.entry.revision));
        let is_newest =
            self.newest.get(decoded.key).is_none_or(|(_, _, other)| other.revision < decoded.entry.revision);
        if is_newest {
            self.newest.insert(decoded.key.to_owned(), (name, offset, decoded.entry));
        }
    }

    /// Keys that are there.
    pub(crate) fn n_live(&self) -> u64 {
        self.newest.values().filter(|(_, _, entry)| entry.kind == Kind::Put).count() as u64
    }
}
