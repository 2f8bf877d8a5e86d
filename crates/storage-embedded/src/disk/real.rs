//! A directory of the operating system.

use super::{Disk, DiskFile};
use rustix::fs::{FallocateFlags, FlockOperation};
use std::any::Any;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that a process locks while it has the directory.
const LOCK_NAME: &str = "LOCK";

/// A directory of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    path: PathBuf,
}

impl RealDisk {
    /// The directory at this path, which is made if need be (with its parents, readable by the owner only).
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(path: impl AsRef<Path>) -> io::Result<RealDisk> {
        use std::os::unix::fs::DirBuilderExt;
        let path = path.as_ref().to_path_buf();
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(RealDisk { path })
    }

    /// The directory at this path, which must be there.
    ///
    /// # Errors
    /// `NotFound` when it is not, `NotADirectory` when it is something else.
    pub fn existing(path: impl AsRef<Path>) -> io::Result<RealDisk> {
        let path = path.as_ref().to_path_buf();
        if !std::fs::metadata(&path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(RealDisk { path })
    }
}

impl Disk for RealDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        Ok(Arc::new(RealFile { file: options.open(self.path.join(name))? }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.path.join(name);
        // A snapshot of somebody else's directory needs no right to write.
        let file = OpenOptions::new().read(true).write(true).open(&path).or_else(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => File::open(&path),
            _ => Err(error),
        })?;
        Ok(Arc::new(RealFile { file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.path.join(LOCK_NAME))?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(file))
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                answer => return answer,
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            // Not every file system can reserve; then the space is found when it is written.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => self.file.set_len(bytes),
            answer => Ok(answer?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{read_whole, replace_whole};
    use crate::testing::TempDir;

    #[test]
    fn files_come_change_and_go() {
        let dir = TempDir::new();
        let disk = RealDisk::new(dir.path().join("a/b")).expect("a fresh directory");
        let file = disk.create("x").expect("a fresh file");
        file.allocate(100).expect("the disk is not full");
        file.write_at(b"hello", 3).expect("the disk is not full");
        file.sync().expect("a sync");
        assert_eq!(file.len().expect("a length"), 100);
        file.set_len(8).expect("a cut");
        replace_whole(&disk, "y", b"content").expect("a replacement");
        assert_eq!(disk.list().expect("a list"), ["x", "y"]);
        disk.remove("x").expect("it is there");
        let mut buffer = [9; 16];
        assert_eq!(file.read_at(&mut buffer, 0).expect("an open file outlives its name"), 8);
        assert_eq!(&buffer[..8], b"\0\0\0hello");
        assert_eq!(read_whole(&disk, "y").expect("it is there"), b"content");
        assert_eq!(disk.open("x").map(|_| ()).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn a_directory_is_locked_once() {
        let dir = TempDir::new();
        let disk = RealDisk::new(dir.path()).expect("a directory");
        let lock = disk.lock().expect("nobody has it");
        assert_eq!(disk.lock().map(|_| ()).map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
        drop(lock);
        assert!(disk.lock().is_ok());
    }
}
