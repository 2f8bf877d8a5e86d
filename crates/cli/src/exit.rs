//! How the process ends: exit codes that scripts can rely on.

use pintle_storage_embedded::OpenError;
use std::io;
use std::process::ExitCode;

/// Something else went wrong.
pub(crate) const FAILURE: u8 = 1;
/// A flag or its value is wrong (what the command line parser uses, too).
pub(crate) const USAGE: u8 = 2;
/// The address or port cannot be listened on.
pub(crate) const ADDRESS: u8 = 3;
/// Another process has the data directory.
pub(crate) const IN_USE: u8 = 4;
/// The data directory cannot be read or written.
pub(crate) const DIRECTORY: u8 = 5;
/// The store is damaged, of another version, or no store.
pub(crate) const DAMAGED: u8 = 6;

/// The codes, for `--help`.
pub(crate) const HELP: &str = "Exit codes:
  0  ended as asked
  1  something else went wrong
  2  a flag or its value is wrong
  3  the address or port cannot be listened on
  4  another process has the data directory
  5  the data directory cannot be read or written
  6  the store is damaged, or of another version";

/// An error that has an exit code of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A flag's value is wrong.
    #[error("{0}")]
    Usage(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address} ({fix})")]
    Address {
        /// What was tried.
        address: std::net::SocketAddr,
        /// What to do.
        fix: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The data directory cannot be used.
    #[error("cannot use the data directory {directory} (give one that can be written with --data-dir)")]
    Directory {
        /// The directory.
        directory: String,
        /// Why not.
        source: io::Error,
    },
}

/// The code of an error: of the first of its causes that has one.
pub(crate) fn code(why: &anyhow::Error) -> ExitCode {
    let of_cause = |cause: &(dyn std::error::Error + 'static)| {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return Some(match failure {
                Failure::Usage(_) => USAGE,
                Failure::Address { .. } => ADDRESS,
                Failure::Directory { .. } => DIRECTORY,
            });
        }
        cause.downcast_ref::<OpenError>().map(|open| match open {
            OpenError::InUse => IN_USE,
            OpenError::Io { .. } => DIRECTORY,
            _ => DAMAGED,
        })
    };
    ExitCode::from(why.chain().find_map(of_cause).unwrap_or(FAILURE))
}
