//! The snapshot file.

use crate::error::OpenError;
use crate::format::{Entry, KEY_BYTES_MAX, StoreId, Take, claimed_bytes, decode, encode, padded, seed};
use jiff::Timestamp;
use pintle_storage::{Revision, VALUE_BYTES_MAX};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"PINTLSNP";
const END_MAGIC: &[u8; 8] = b"PINTLEND";
const HEADER_BYTES: usize = 48;
const FOOTER_BYTES: usize = 32;

/// The version of the file.
const VERSION: u32 = 1;

/// Bytes buffered.
const BUFFER_BYTES: usize = 1 << 20;

/// Where a snapshot comes from and how much is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotStatus {
    /// The revision whose state it is.
    pub revision: Revision,
    /// Records in it.
    pub n_records: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// When it was taken.
    pub taken: Timestamp,
}

/// A snapshot file in the making. It has its name when it is finished.
pub(super) struct SnapshotWriter {
    path: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
    seed: u32,
    piece: Vec<u8>,
    status: SnapshotStatus,
}

impl SnapshotWriter {
    pub(super) fn create(path: &Path, id: StoreId, revision: Revision, taken: Timestamp) -> Result<Self, OpenError> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&temporary).map_err(OpenError::io(format!("make {}", temporary.display())))?;
        let taken = Timestamp::from_millisecond(taken.as_millisecond()).unwrap_or(taken);
        let status = SnapshotStatus { revision, n_records: 0, bytes: 0, taken };
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let mut writer =
            SnapshotWriter { path: path.to_path_buf(), temporary, file, seed: seed(&id, 0), piece: Vec::new(), status };
        let mut rest = VERSION.to_le_bytes().to_vec();
        rest.extend_from_slice(&id);
        rest.extend_from_slice(&revision.get().to_le_bytes());
        rest.extend_from_slice(&taken.as_millisecond().to_le_bytes());
        writer.write_sealed(MAGIC, &rest)?;
        Ok(writer)
    }

    pub(super) fn n_records(&self) -> u64 {
        self.status.n_records
    }

    fn write_sealed(&mut self, magic: &[u8; 8], rest: &[u8]) -> Result<(), OpenError> {
        self.piece.clear();
        self.piece.extend_from_slice(magic);
        self.piece.extend_from_slice(&crc32c::crc32c(rest).to_le_bytes());
        self.piece.extend_from_slice(rest);
        self.write_piece()
    }

    fn write_piece(&mut self) -> Result<(), OpenError> {
        self.status.bytes += self.piece.len() as u64;
        let written = self.file.write_all(&self.piece);
        written.map_err(OpenError::io(format!("write {}", self.temporary.display())))
    }

    pub(super) fn add(&mut self, entry: &Entry, key: &str, value: &[u8]) -> Result<(), OpenError> {
        self.piece.clear();
        encode(&mut self.piece, self.seed, entry, key, value);
        self.status.n_records += 1;
        self.write_piece()
    }

    pub(super) fn finish(mut self) -> Result<SnapshotStatus, OpenError> {
        let mut rest = 0u32.to_le_bytes().to_vec();
        rest.extend_from_slice(&self.status.n_records.to_le_bytes());
        rest.extend_from_slice(&(self.status.bytes + FOOTER_BYTES as u64).to_le_bytes());
        self.write_sealed(END_MAGIC, &rest)?;
        let SnapshotWriter { path, temporary, file, status, .. } = self;
        let fail = || format!("write {}", path.display());
        let file = file.into_inner().map_err(|error| OpenError::io(fail())(error.into_error()))?;
        file.sync_all().map_err(OpenError::io(fail()))?;
        std::fs::rename(&temporary, &path).map_err(OpenError::io(fail()))?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            File::open(parent).and_then(|parent| parent.sync_all()).map_err(OpenError::io(fail()))?;
        }
        Ok(status)
    }
}

/// A snapshot file being read.
pub(super) struct SnapshotReader {
    file: BufReader<File>,
    seed: u32,
    status: SnapshotStatus,
    name: String,
}

impl SnapshotReader {
    pub(super) fn open(path: &Path) -> Result<SnapshotReader, OpenError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(OpenError::io(format!("open {name}")))?;
        let bytes = file.metadata().map_err(OpenError::io(format!("open {name}")))?.len();
        let footer = read_footer(&file, bytes).map_err(OpenError::io(format!("read {name}")))?;
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).map_err(OpenError::io(format!("read {name}")))?;
        let parsed = parse_header(&header).zip(footer).filter(|(_, footer)| footer.1 == bytes);
        let Some(((id, revision, taken), (n_records, _))) = parsed else {
            return Err(OpenError::corrupt(format!("{name} is not a whole snapshot")));
        };
        Ok(SnapshotReader {
            file,
            seed: seed(&id, 0),
            status: SnapshotStatus { revision, n_records, bytes, taken },
            name,
        })
    }

    pub(super) fn status(&self) -> SnapshotStatus {
        self.status
    }

    /// Calls `take` for each record, with how many came before it.
    pub(super) fn each(
        &mut self,
        mut take: impl FnMut(u64, &Entry, &str, &[u8]) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let mut bytes = Vec::new();
        for n_before in 0..self.status.n_records {
            let damaged = || OpenError::corrupt(format!("record {n_before} of {} is not what was written", self.name));
            bytes.resize(8, 0);
            self.file.read_exact(&mut bytes).map_err(|_| damaged())?;
            let n_bytes = claimed_bytes(&bytes).filter(|n| *n <= KEY_BYTES_MAX + VALUE_BYTES_MAX + 64);
            bytes.resize(padded(n_bytes.ok_or_else(damaged)?), 0);
            let rest = bytes.get_mut(8..).unwrap_or_default();
            self.file.read_exact(rest).map_err(|_| damaged())?;
            let decoded = decode(&bytes, self.seed).ok_or_else(damaged)?;
            take(n_before, &decoded.entry, decoded.key, decoded.value)?;
        }
        Ok(())
    }
}

/// What a sealed piece says, if it is intact.
fn unseal<'a>(bytes: &'a [u8], magic: &[u8; 8]) -> Option<Take<'a>> {
    let mut take = Take(bytes);
    let is_intact = take.array::<8>()? == *magic && take.u32()? == crc32c::crc32c(take.0);
    is_intact.then_some(take)
}

fn parse_header(bytes: &[u8]) -> Option<(StoreId, Revision, Timestamp)> {
    let mut take = unseal(bytes, MAGIC)?;
    if take.u32()? != VERSION {
        return None;
    }
    let id = take.array()?;
    let revision = Revision::new(take.u64()?)?;
    let taken = Timestamp::from_millisecond(i64::from_le_bytes(take.array()?)).ok()?;
    Some((id, revision, taken))
}

/// The number of records and the bytes of the file, as the footer says.
fn read_footer(file: &File, bytes: u64) -> std::io::Result<Option<(u64, u64)>> {
    use std::os::unix::fs::FileExt;
    let mut footer = [0; FOOTER_BYTES];
    let Some(offset) = bytes.checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
    file.read_exact_at(&mut footer, offset)?;
    Ok(unseal(&footer, END_MAGIC).and_then(|mut take| {
        take.u32()?;
        Some((take.u64()?, take.u64()?))
    }))
}
