//! The disk under the store: one flat directory of files. Everything that the store does to a disk goes through these two
//! traits, so that a simulated disk can lose power, tear writes, fill up and fail at any call.

mod real;
mod sim;

pub use real::RealDisk;
pub use sim::{Fault, SimDisk};

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A directory. Names have no separators.
pub trait Disk: Send + Sync + Debug + 'static {
    /// The names of all files.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes an empty file, in place of any of that name. Its name is durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// When it cannot be made.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, in place of any of that name. Durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Whoever has it open can still read it. Durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable.
    ///
    /// # Errors
    /// When that failed; then nobody knows which names are.
    fn sync_dir(&self) -> io::Result<()>;

    /// Takes the directory for this process until the guard is dropped.
    ///
    /// # Errors
    /// `WouldBlock` when another process has it.
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>>;
}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "nobody asks whether a file is empty")]
pub trait DiskFile: Send + Sync + Debug + 'static {
    /// Its length.
    ///
    /// # Errors
    /// When it cannot be told.
    fn len(&self) -> io::Result<u64>;

    /// Reads up to the length of `buffer`; answers how much; 0 at the end of the file.
    ///
    /// # Errors
    /// When the disk cannot read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes`, making the file longer if need be. Durable after [`DiskFile::sync`].
    ///
    /// # Errors
    /// `StorageFull` when the disk is full. Any part may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes content and length durable.
    ///
    /// # Errors
    /// When that failed. What was not durable before may be lost, even if a later call succeeds.
    fn sync(&self) -> io::Result<()>;

    /// Cuts or extends (with zeros) the file.
    ///
    /// # Errors
    /// When that failed.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Reserves space, so that writing below `bytes` does not find the disk full, and makes the file that long.
    ///
    /// # Errors
    /// `StorageFull` when there is not as much.
    fn allocate(&self, bytes: u64) -> io::Result<()>;
}

/// Reads exactly as much as the buffer takes.
///
/// # Errors
/// `UnexpectedEof` when the file ends before.
pub(crate) fn read_exact_at(file: &dyn DiskFile, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        let n_read = file.read_at(buffer, offset)?;
        if n_read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer = buffer.get_mut(n_read..).unwrap_or_default();
        offset += n_read as u64;
    }
    Ok(())
}

/// Reads a whole file.
///
/// # Errors
/// As [`Disk::open`] and [`DiskFile::read_at`].
pub(crate) fn read_whole(disk: &dyn Disk, name: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(name)?;
    let bytes = usize::try_from(file.len()?).map_err(io::Error::other)?;
    let mut content = vec![0; bytes];
    read_exact_at(&*file, &mut content, 0)?;
    Ok(content)
}

/// Puts a whole file in place so that after a crash there is either the old one or the new one.
///
/// # Errors
/// When a step failed; the old file may or may not have been replaced.
pub(crate) fn replace_whole(disk: &dyn Disk, name: &str, content: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    let file = disk.create(&temporary)?;
    file.write_at(content, 0)?;
    file.sync()?;
    disk.rename(&temporary, name)?;
    disk.sync_dir()
}
