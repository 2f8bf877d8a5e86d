//! Files that others must not read, written whole or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}")]
pub struct FileError {
    /// What was tried.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why it failed.
    #[source]
    pub source: io::Error,
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError { action, path, source }
}

/// Makes a directory and those above it, for this user alone.
pub(super) fn make_dir(dir: &Path) -> Result<(), FileError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("make the directory", dir))
}

/// The text of a file; `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, FileError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// Writes a file with mode 0600 beside its place and moves it there, so that readers see the old text or the new one.
///
/// # Errors
/// [`FileError`] when it cannot be written.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(content)?;
        drop(file);
        fs::rename(&beside, path)
    };
    let written = write().map_err(failed("write", path));
    if written.is_err() {
        // nothing more can be done about a leftover
        let _ = fs::remove_file(&beside);
    }
    written
}
