//! A disk that can lose power, tear writes, fill up and fail at any call. Everything it does follows from a seed.
//!
//! It is harsher than a real disk: what was written and not synced survives a power cut sector by sector, each or not as
//! the dice say; names that were not synced survive up to some point; a failed sync forgets what it was to make durable.

use super::{Disk, DiskFile};
use parking_lot::Mutex;
use pintle_apimachinery::env::{IdSource, SeededIds};
use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// What a disk writes as one piece.
const SECTOR_BYTES: usize = 512;

/// Something that is to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with an input/output error.
    Error,
    /// The call fails because the disk is full.
    Full,
    /// The power goes off in the middle of the call; all later calls fail.
    PowerCut,
}

/// A simulated disk. Clones share it.
#[derive(Clone, Debug)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

type File = Arc<Mutex<Content>>;

/// What some names point to from now on; `None`: they are gone.
type NameChange = Vec<(String, Option<File>)>;

#[derive(Debug)]
struct State {
    dice: SeededIds,
    /// Names as processes see them.
    names: BTreeMap<String, File>,
    /// Names as they were when the directory was last synced.
    durable_names: BTreeMap<String, File>,
    /// Changes of names since then, in order: what the name points to from then on.
    name_changes: Vec<NameChange>,
    /// Calls so far that may fail.
    n_calls: u64,
    /// What is to go wrong, at the call of which number.
    faults: BTreeMap<u64, Fault>,
    /// Bytes that all files may have together.
    capacity: u64,
    is_off: bool,
    is_locked: bool,
}

/// The content of one file.
#[derive(Clone, Debug, Default)]
struct Content {
    /// As processes see it.
    seen: Vec<u8>,
    /// As it is after a power cut if nothing of the changes below survives.
    durable: Vec<u8>,
    /// Changes since the last sync.
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(offset, bytes) => {
            let start = to_usize(*offset);
            let end = start + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[start..end].copy_from_slice(bytes);
        }
        Change::Length(bytes) => content.resize(to_usize(*bytes), 0),
    }
}

fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

impl SimDisk {
    /// An empty disk whose behaviour follows from `seed`. It has room for 1 GiB.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk::with_names(seed, BTreeMap::new(), 1 << 30)
    }

    fn with_names(seed: u64, names: BTreeMap<String, File>, capacity: u64) -> SimDisk {
        let state = State {
            dice: SeededIds::new(seed),
            durable_names: names.clone(),
            names,
            name_changes: Vec::new(),
            n_calls: 0,
            faults: BTreeMap::new(),
            capacity,
            is_off: false,
            is_locked: false,
        };
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// Lets the `n`-th call from now on that changes the disk (1 is the next) go wrong.
    pub fn fail_at(&self, n: u64, fault: Fault) {
        let mut state = self.state.lock();
        let at = state.n_calls + n;
        state.faults.insert(at, fault);
    }

    /// Sets how many bytes all files may have together.
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().capacity = bytes;
    }

    /// Bytes of all files together.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// How many calls changed the disk so far.
    pub fn n_calls(&self) -> u64 {
        self.state.lock().n_calls
    }

    /// Whether there is power.
    pub fn is_on(&self) -> bool {
        !self.state.lock().is_off
    }

    /// Takes the power away: all calls fail from now on.
    pub fn power_off(&self) {
        self.state.lock().is_off = true;
    }

    /// The disk as it is found after the power was cut now. This one stays off.
    #[must_use]
    pub fn after_power_cut(&self) -> SimDisk {
        let mut state = self.state.lock();
        state.is_off = true;
        let names = state.surviving_names();
        let files = names
            .into_iter()
            .map(|(name, content)| {
                let survived = state.surviving_content(&content.lock());
                let content = Content { seen: survived.clone(), durable: survived, changes: Vec::new() };
                (name, Arc::new(Mutex::new(content)))
            })
            .collect();
        SimDisk::with_names(state.dice.random_u64(), files, state.capacity)
    }

    /// The disk as it is found after the process was killed now: everything written is there. This one stays off.
    #[must_use]
    pub fn after_kill(&self) -> SimDisk {
        let mut state = self.state.lock();
        state.is_off = true;
        let copy = |content: &Arc<Mutex<Content>>| Arc::new(Mutex::new(content.lock().clone()));
        let names: BTreeMap<_, _> = state.names.iter().map(|(name, content)| (name.clone(), copy(content))).collect();
        let disk = SimDisk::with_names(state.dice.random_u64(), names, state.capacity);
        // What was not durable is not durable now either.
        let mut new = disk.state.lock();
        new.durable_names.clear();
        for (name, content) in &state.durable_names {
            let same = state.names.iter().find(|(_, now)| Arc::ptr_eq(now, content)).map(|(name, _)| name);
            let content = same.and_then(|same| new.names.get(same).cloned()).unwrap_or_else(|| copy(content));
            new.durable_names.insert(name.clone(), content);
        }
        let current: Vec<_> =
            new.names.iter().map(|(name, content)| (name.clone(), Some(Arc::clone(content)))).collect();
        let gone = state.durable_names.keys().filter(|name| !state.names.contains_key(*name));
        let change = current.into_iter().chain(gone.map(|name| (name.clone(), None))).collect();
        new.name_changes.push(change);
        drop(new);
        disk
    }

    /// Changes bytes of a file behind the back of whoever has it open, durably: a rotten sector.
    pub fn corrupt(&self, name: &str, offset: u64, bytes: &[u8]) {
        let state = self.state.lock();
        if let Some(content) = state.names.get(name) {
            let mut content = content.lock();
            let change = Change::Write(offset, bytes.to_vec());
            apply(&mut content.seen, &change);
            apply(&mut content.durable, &change);
        }
    }

    /// The content of a file, as processes see it.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.state.lock().names.get(name).map(|content| content.lock().seen.clone())
    }
}

impl State {
    fn used(&self) -> u64 {
        self.names.values().map(|content| content.lock().seen.len() as u64).sum()
    }

    fn die(&self, n: usize) -> usize {
        usize::try_from(self.dice.random_u64() % (n.max(1) as u64)).unwrap_or_default()
    }

    /// Counts a call that changes the disk and says what is to go wrong with it.
    fn call(&mut self) -> io::Result<Option<Fault>> {
        if self.is_off {
            return Err(io::Error::other("the simulated disk has no power"));
        }
        self.n_calls += 1;
        let fault = self.faults.remove(&self.n_calls);
        self.is_off = fault == Some(Fault::PowerCut);
        Ok(fault)
    }

    fn read(&self) -> io::Result<()> {
        if self.is_off { Err(io::Error::other("the simulated disk has no power")) } else { Ok(()) }
    }

    fn rename_all(&mut self, changes: NameChange) {
        for (name, content) in &changes {
            match content {
                Some(content) => self.names.insert(name.clone(), Arc::clone(content)),
                None => self.names.remove(name),
            };
        }
        self.name_changes.push(changes);
    }

    /// Some of the unsynced changes of names, from the first on.
    fn surviving_names(&self) -> BTreeMap<String, File> {
        let mut names = self.durable_names.clone();
        let n_survive = self.die(self.name_changes.len() + 1);
        for (name, content) in self.name_changes.iter().take(n_survive).flatten() {
            match content {
                Some(content) => names.insert(name.clone(), Arc::clone(content)),
                None => names.remove(name),
            };
        }
        names
    }

    /// Some of the unsynced sectors of a file.
    fn surviving_content(&self, content: &Content) -> Vec<u8> {
        let mut survived = content.durable.clone();
        // Nothing, everything, or each sector as the dice say.
        let mood = self.die(4);
        for change in &content.changes {
            match change {
                Change::Length(_) if mood == 0 || (mood > 1 && self.die(2) == 0) => {}
                Change::Length(_) => apply(&mut survived, change),
                Change::Write(offset, bytes) => {
                    let mut start = 0;
                    while start < bytes.len() {
                        let to_edge = SECTOR_BYTES - to_usize(offset + start as u64) % SECTOR_BYTES;
                        let end = (start + to_edge).min(bytes.len());
                        if mood == 1 || (mood > 1 && self.die(2) == 0) {
                            let sector = Change::Write(offset + start as u64, bytes[start..end].to_vec());
                            apply(&mut survived, &sector);
                        }
                        start = end;
                    }
                }
            }
        }
        survived
    }
}

fn to_error(fault: Fault) -> io::Error {
    match fault {
        Fault::Error => io::Error::other("the simulated disk fails"),
        Fault::Full => io::ErrorKind::StorageFull.into(),
        Fault::PowerCut => io::Error::other("the simulated disk has no power"),
    }
}

impl Disk for SimDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        state.read()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        if let Some(fault) = state.call()? {
            return Err(to_error(fault));
        }
        let content = Arc::new(Mutex::new(Content::default()));
        state.rename_all(vec![(name.to_owned(), Some(Arc::clone(&content)))]);
        Ok(Arc::new(SimFile { disk: self.clone(), content }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.state.lock();
        state.read()?;
        let content = state.names.get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(SimFile { disk: self.clone(), content }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let content = state.names.get(from).cloned().ok_or(io::ErrorKind::NotFound)?;
        if let Some(fault) = state.call()? {
            return Err(to_error(fault));
        }
        state.rename_all(vec![(from.to_owned(), None), (to.to_owned(), Some(content))]);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Some(fault) = state.call()? {
            return Err(to_error(fault));
        }
        state.rename_all(vec![(name.to_owned(), None)]);
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if let Some(fault) = state.call()? {
            return Err(to_error(fault));
        }
        state.durable_names = state.names.clone();
        state.name_changes.clear();
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        let mut state = self.state.lock();
        if state.is_locked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.is_locked = true;
        Ok(Box::new(SimLock { disk: self.clone() }))
    }
}

struct SimLock {
    disk: SimDisk,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.state.lock().is_locked = false;
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    content: File,
}

impl SimFile {
    /// Makes a change, or the part of it that gets through before the fault.
    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let fault = state.call()?;
        let mut content = self.content.lock();
        let growth = match &change {
            Change::Write(offset, bytes) => (offset + bytes.len() as u64).saturating_sub(content.seen.len() as u64),
            Change::Length(bytes) => bytes.saturating_sub(content.seen.len() as u64),
        };
        // `used` locks this content, too: it is told what this file adds instead.
        let others: u64 = state
            .names
            .values()
            .filter(|other| !Arc::ptr_eq(other, &self.content))
            .map(|other| other.lock().seen.len() as u64)
            .sum();
        let is_full = growth > 0 && others + content.seen.len() as u64 + growth > state.capacity;
        let fault = fault.or(if is_full { Some(Fault::Full) } else { None });
        let Some(fault) = fault else {
            apply(&mut content.seen, &change);
            content.changes.push(change);
            return Ok(());
        };
        if let Change::Write(offset, bytes) = change {
            let n_written = state.die(bytes.len() + 1);
            let part = Change::Write(offset, bytes[..n_written].to_vec());
            if fault != Fault::Full {
                apply(&mut content.seen, &part);
                content.changes.push(part);
            }
        }
        Err(to_error(fault))
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        self.disk.state.lock().read()?;
        Ok(self.content.lock().seen.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.state.lock().read()?;
        let content = self.content.lock();
        let rest = content.seen.get(to_usize(offset)..).unwrap_or_default();
        let n_read = rest.len().min(buffer.len());
        buffer[..n_read].copy_from_slice(&rest[..n_read]);
        Ok(n_read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(Change::Write(offset, bytes.to_vec()))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let fault = state.call()?;
        let mut content = self.content.lock();
        match fault {
            None => {
                for change in std::mem::take(&mut content.changes) {
                    apply(&mut content.durable, &change);
                }
                Ok(())
            }
            Some(Fault::PowerCut) => Err(to_error(Fault::PowerCut)),
            Some(fault) => {
                // As real systems do: the pages count as clean now, whether they reached the disk or not.
                content.durable = state.surviving_content(&content);
                content.changes.clear();
                Err(to_error(fault))
            }
        }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.change(Change::Length(bytes))
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let longer = bytes.max(self.content.lock().seen.len() as u64);
        self.change(Change::Length(longer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_synced_survives() {
        for seed in 0..50 {
            let disk = SimDisk::new(seed);
            let file = disk.create("a").expect("no fault is planned");
            file.write_at(b"durable", 0).expect("no fault is planned");
            file.sync().expect("no fault is planned");
            disk.sync_dir().expect("no fault is planned");
            file.write_at(&[7; 2000], 7).expect("no fault is planned");
            disk.create("b").expect("no fault is planned");
            let after = disk.after_power_cut();
            let content = after.content("a").expect("its name was synced");
            assert_eq!(&content[..7], b"durable");
            assert!(content[7..].iter().all(|byte| [0, 7].contains(byte)));
            assert!(disk.create("c").is_err(), "the power is off");
            assert_eq!(disk.content("a").map(|content| content.len()), Some(2007));
        }
    }

    #[test]
    fn unsynced_data_is_torn_in_many_ways() {
        let outcomes: std::collections::BTreeSet<Option<Vec<u8>>> = (0..100)
            .map(|seed| {
                let disk = SimDisk::new(seed);
                let file = disk.create("a").expect("no fault is planned");
                file.write_at(&[7; 1500], 0).expect("no fault is planned");
                disk.after_power_cut().content("a")
            })
            .collect();
        assert!(outcomes.contains(&None) && outcomes.len() > 5, "{} outcomes", outcomes.len());
    }

    #[test]
    fn planned_faults_happen() {
        let disk = SimDisk::new(1);
        let file = disk.create("a").expect("no fault is planned");
        disk.fail_at(2, Fault::Error);
        file.write_at(b"x", 0).expect("the next but one fails");
        assert!(file.write_at(b"y", 1).is_err());
        file.write_at(b"z", 1).expect("only one fault was planned");
        disk.set_capacity(10);
        let full = file.write_at(&[1; 20], 2).map_err(|error| error.kind());
        assert_eq!(full, Err(io::ErrorKind::StorageFull));
        assert_eq!(disk.content("a").as_deref(), Some(&b"xz"[..]));
        disk.fail_at(1, Fault::PowerCut);
        assert!(file.sync().is_err() && file.len().is_err() && disk.list().is_err());
    }

    #[test]
    fn a_killed_process_loses_nothing_that_a_later_power_cut_may_not_lose() {
        let disk = SimDisk::new(3);
        let file = disk.create("a").expect("no fault is planned");
        file.write_at(b"unsynced", 0).expect("no fault is planned");
        let killed = disk.after_kill();
        assert_eq!(killed.content("a").as_deref(), Some(&b"unsynced"[..]));
        let outcomes: std::collections::BTreeSet<_> =
            (0..20).map(|_| killed.clone()).map(|disk| disk.after_power_cut().content("a")).collect();
        assert!(outcomes.contains(&None));
    }
}
