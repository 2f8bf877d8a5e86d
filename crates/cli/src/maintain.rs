//! `pintle snapshot` and `pintle storage`: what can be done to a store besides serving it.

use crate::flags::DEFAULT_DATA_DIR;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use pintle_apimachinery::env::Env;
use pintle_storage_embedded::{Done, RestoreOptions, SnapshotStatus};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Characters of a progress bar.
const BAR_WIDTH: usize = 40;

/// `pintle snapshot`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Save the state of a store into a file, while a server uses it or not.
    Save {
        /// The file; it appears when it is complete.
        file: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Make a store from a file, in a data directory that has none.
    Restore {
        /// A file that `pintle snapshot save` has written.
        file: PathBuf,
        /// How many revisions the store moves ahead, so that versions which clients know from after the snapshot are not
        /// given out again.
        #[arg(long, value_name = "N", default_value_t = RestoreOptions::default().revisions_skipped)]
        skip_revisions: u64,
        #[command(flatten)]
        place: Place,
    },
    /// Read a whole file, check it, and say what it holds.
    Status {
        /// A file that `pintle snapshot save` has written.
        file: PathBuf,
    },
}

/// `pintle storage`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StorageCommand {
    /// Say where a store stands, while a server uses it or not.
    Status {
        #[command(flatten)]
        place: Place,
    },
    /// Read a whole store and name all damage. No server may use it meanwhile.
    Check {
        #[command(flatten)]
        place: Place,
    },
    /// Keep all records of a damaged store that can be read. No server may use it meanwhile.
    Repair {
        #[command(flatten)]
        place: Place,
    },
}

/// Where the store is.
#[derive(Clone, Debug, Args)]
pub(crate) struct Place {
    /// The data directory of the server.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR, env = "PINTLE_DATA_DIR")]
    data_dir: PathBuf,
}

impl Place {
    fn store(&self) -> PathBuf {
        self.data_dir.join("store")
    }
}

/// Runs `pintle snapshot`.
pub(crate) fn snapshot(command: SnapshotCommand) -> Result<()> {
    let env = Env::system();
    match command {
        SnapshotCommand::Save { file, place } => {
            let mut bar = Bar::new("saving");
            let saved = pintle_storage_embedded::save(place.store(), &file, &env, &mut |done| bar.show(done));
            bar.end();
            let saved = saved.with_context(|| format!("cannot save the store in {}", place.store().display()))?;
            println!("saved {}: {}", file.display(), words(&saved));
        }
        SnapshotCommand::Restore { file, skip_revisions, place } => {
            make_private(&place.data_dir)?;
            let options = RestoreOptions { revisions_skipped: skip_revisions };
            let mut bar = Bar::new("restoring");
            let store = place.store();
            let restored = pintle_storage_embedded::restore(&file, &store, options, &env, &mut |done| bar.show(done));
            bar.end();
            let restored = restored.with_context(|| format!("cannot make a store in {}", store.display()))?;
            println!("restored {}: {}", store.display(), words(&restored));
        }
        SnapshotCommand::Status { file } => {
            let mut bar = Bar::new("reading");
            let status = pintle_storage_embedded::snapshot_status(&file, &mut |done| bar.show(done));
            bar.end();
            println!("{}", words(&status.with_context(|| format!("{} is no whole snapshot", file.display()))?));
        }
    }
    Ok(())
}

/// Runs `pintle storage`.
pub(crate) fn storage(command: StorageCommand) -> Result<()> {
    match command {
        StorageCommand::Status { place } => {
            let store = place.store();
            let status = pintle_storage_embedded::status(&store);
            let status = status.with_context(|| format!("cannot read the store in {}", store.display()))?;
            println!("revision      {}", status.revision);
            println!("history since {}", status.compacted);
            println!("keys          {}", status.n_keys);
            println!("segments      {}", status.n_segments);
            println!("bytes         {}, of which {} are needed", status.bytes, status.needed_bytes);
        }
        StorageCommand::Check { place } => {
            let store = place.store();
            let damages = pintle_storage_embedded::check(&store);
            let damages = damages.with_context(|| format!("cannot check the store in {}", store.display()))?;
            damages.iter().for_each(|damage| println!("{damage}"));
            if !damages.is_empty() {
                bail!("the store is damaged; `pintle storage repair` keeps what can be read");
            }
            println!("the store is whole");
        }
        StorageCommand::Repair { place } => {
            let store = place.store();
            let mut bar = Bar::new("copying");
            let repaired = pintle_storage_embedded::repair(&store, &mut |done| bar.show(done));
            bar.end();
            let repaired = repaired.with_context(|| format!("cannot repair the store in {}", store.display()))?;
            repaired.damages.iter().for_each(|damage| println!("{damage}"));
            let (n_records, revision) = (repaired.n_records, repaired.revision);
            match repaired.damages.len() {
                0 => println!("the store is whole: {n_records} records at revision {revision}"),
                _ => println!("kept {n_records} records; the store stands at revision {revision}"),
            }
        }
    }
    Ok(())
}

fn make_private(directory: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.with_context(|| format!("cannot make {}", directory.display()))
}

fn words(status: &SnapshotStatus) -> String {
    format!(
        "{} records, {} bytes, revision {}, taken at {}",
        status.n_records, status.bytes, status.revision, status.taken
    )
}

/// A progress bar on standard error, when that is a terminal.
#[derive(Debug)]
struct Bar {
    verb: &'static str,
    is_shown: bool,
    is_begun: bool,
}

impl Bar {
    fn new(verb: &'static str) -> Bar {
        Bar { verb, is_shown: std::io::stderr().is_terminal(), is_begun: false }
    }

    fn show(&mut self, done: Done) {
        if self.is_shown {
            self.is_begun = true;
            // whoever does not listen need not be told
            let _ = write!(std::io::stderr(), "\r{}", line(self.verb, done));
        }
    }

    fn end(&self) {
        if self.is_begun {
            // as above
            let _ = writeln!(std::io::stderr());
        }
    }
}

fn line(verb: &str, Done { n_records, n_total }: Done) -> String {
    let part = n_records.min(n_total) as f64 / n_total.max(1) as f64;
    let n_full = (part * BAR_WIDTH as f64) as usize;
    let (full, rest) = ("#".repeat(n_full), "-".repeat(BAR_WIDTH.saturating_sub(n_full)));
    format!("{verb} [{full}{rest}] {n_records} of {n_total} records")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_storage::{NewValue, Storage};
    use pintle_storage_embedded::testing::TempDir;
    use pintle_storage_embedded::{EmbeddedStore, Options};

    #[test]
    fn bars() {
        let bar = |n_records, n_total| line("saving", Done { n_records, n_total });
        assert_eq!(bar(0, 0), "saving [----------------------------------------] 0 of 0 records");
        assert_eq!(bar(5, 10), "saving [####################--------------------] 5 of 10 records");
        assert_eq!(bar(10, 10), "saving [########################################] 10 of 10 records");
    }

    #[tokio::test]
    async fn saved_restored_damaged_repaired() {
        let directory = TempDir::new();
        let place = |name: &str| Place { data_dir: directory.path().join(name) };
        let store = EmbeddedStore::open(place("one").store(), Options::default(), Env::system()).unwrap();
        for n in 0..100 {
            let value = NewValue { bytes: vec![b'x'; 100].into(), ..NewValue::default() };
            store.create(format!("/registry/things/{n}").as_str().into(), value).await.unwrap();
        }
        let file = directory.path().join("file");
        snapshot(SnapshotCommand::Save { file: file.clone(), place: place("one") }).unwrap();
        snapshot(SnapshotCommand::Status { file: file.clone() }).unwrap();
        let restore = |place| SnapshotCommand::Restore { file: file.clone(), skip_revisions: 10, place };
        snapshot(restore(place("two"))).unwrap();
        assert!(snapshot(restore(place("two"))).is_err(), "there is a store already");
        assert!(storage(StorageCommand::Check { place: place("one") }).is_err(), "it is in use");
        storage(StorageCommand::Check { place: place("two") }).unwrap();
        let (old, new) = (store.status(), pintle_storage_embedded::status(place("two").store()).unwrap());
        assert_eq!((new.n_keys, new.revision.get()), (old.n_keys, old.revision.get() + 10));
        store.close().await;

        let segments = std::fs::read_dir(place("two").store()).unwrap().flatten();
        let largest = segments.max_by_key(|entry| entry.metadata().unwrap().len()).unwrap().path();
        let mut bytes = std::fs::read(&largest).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&largest, bytes).unwrap();
        assert!(storage(StorageCommand::Check { place: place("two") }).is_err(), "it is damaged");
        storage(StorageCommand::Repair { place: place("two") }).unwrap();
        storage(StorageCommand::Check { place: place("two") }).unwrap();
        let kept = pintle_storage_embedded::status(place("two").store()).unwrap().n_keys;
        assert!((90..100).contains(&kept), "{kept}");
    }
}
