//! The guarantees of a watch: Ordered, Unique, Atomic, Reliable, Resumable, Bookmarkable, PrevKV, Filter.

use super::history::{History, is_same, show};
use super::{Guarantee, Verdict, at, broken};
use crate::{Event, Filter, Key, Revision, WatchItem};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one watch told, from its beginning.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The prefix that was watched.
    pub prefix: Key,
    /// The revision it began after.
    pub since: Revision,
    /// What only was asked for, if anything.
    pub filter: Option<Arc<dyn Filter>>,
    /// What it told, in order.
    pub items: Vec<WatchItem>,
}

impl Recording {
    /// A recording in which nothing was told yet.
    pub fn new(prefix: Key, since: Revision) -> Recording {
        Recording { prefix, since, filter: None, items: Vec::new() }
    }

    /// All events, in the order in which they were told.
    pub fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.items.iter().flat_map(|item| match item {
            WatchItem::Events(events) => events.as_slice(),
            WatchItem::Progress(_) => &[],
        })
    }

    /// The revision from which the watch could be resumed.
    pub fn resume_at(&self) -> Revision {
        let last = self.items.iter().rev().find_map(|item| match item {
            WatchItem::Events(events) => events.last().map(|event| event.revision),
            WatchItem::Progress(revision) => Some(*revision),
        });
        last.unwrap_or(self.since).max(self.since)
    }
}

/// All guarantees at once.
///
/// # Errors
/// The first one that is broken.
pub fn check_watch(recording: &Recording, history: &History) -> Verdict {
    ordered(recording)?;
    unique(recording)?;
    atomic(recording)?;
    bookmarkable(recording)?;
    reliable(recording, history)?;
    prev_kv(recording, history)
}

/// Ordered: revisions never go back, and nothing is told that lies before the beginning.
///
/// # Errors
/// The first event that is older than the one before it.
pub fn ordered(recording: &Recording) -> Verdict {
    let mut newest = recording.since;
    for (n, event) in recording.events().enumerate() {
        let is_behind = if n == 0 { event.revision <= newest } else { event.revision < newest };
        if is_behind {
            return broken(
                Guarantee::Ordered,
                format!("{} is told after revision {newest}", at(&event.key, event.revision)),
            );
        }
        newest = event.revision;
    }
    Ok(())
}

/// Unique: each event is told once.
///
/// # Errors
/// The first event that is told again.
pub fn unique(recording: &Recording) -> Verdict {
    let mut told = BTreeSet::new();
    for event in recording.events() {
        if !told.insert((event.revision, event.key.clone())) {
            return broken(Guarantee::Unique, format!("{} is told twice", at(&event.key, event.revision)));
        }
    }
    Ok(())
}

/// Atomic: the events of one revision come in one item; no item is empty.
///
/// # Errors
/// The revision that is torn apart.
pub fn atomic(recording: &Recording) -> Verdict {
    let mut last: Option<Revision> = None;
    for item in &recording.items {
        let WatchItem::Events(events) = item else { continue };
        let Some(first) = events.first() else {
            return broken(Guarantee::Atomic, "an item has no events".to_owned());
        };
        if last == Some(first.revision) {
            return broken(Guarantee::Atomic, format!("the events of revision {} come in two items", first.revision));
        }
        last = events.last().map(|event| event.revision);
    }
    Ok(())
}

/// Bookmarkable: progress never goes back, and after it come only newer events. (That none before it was left out is
/// part of [`reliable`].)
///
/// # Errors
/// The first bookmark or event that goes back.
pub fn bookmarkable(recording: &Recording) -> Verdict {
    let mut bookmark = recording.since;
    let mut newest = recording.since;
    for item in &recording.items {
        match item {
            WatchItem::Progress(revision) => {
                if *revision < newest {
                    return broken(
                        Guarantee::Bookmarkable,
                        format!("bookmark {revision} comes after revision {newest}"),
                    );
                }
                bookmark = *revision;
                newest = *revision;
            }
            WatchItem::Events(events) => {
                if let Some(event) =
                    events.iter().find(|event| event.revision <= bookmark && bookmark > recording.since)
                {
                    return broken(
                        Guarantee::Bookmarkable,
                        format!("{} comes after bookmark {bookmark}", at(&event.key, event.revision)),
                    );
                }
                newest = events.last().map_or(newest, |event| event.revision.max(newest));
            }
        }
    }
    Ok(())
}

/// Reliable, and with a filter also Filter: what was told is what happened between the beginning and the last thing
/// told, with nothing left out that matches and nothing added.
///
/// # Errors
/// The first event that is missing, made up or wrong.
pub fn reliable(recording: &Recording, history: &History) -> Verdict {
    let until = recording.resume_at();
    let told: BTreeMap<(Revision, &Key), &Arc<Event>> =
        recording.events().map(|event| ((event.revision, &event.key), event)).collect();
    let mut n_found = 0;
    for event in history.between(recording.since, until, &recording.prefix) {
        let name = at(&event.key, event.revision);
        let Some(seen) = told.get(&(event.revision, &event.key)) else {
            if !is_wanted(recording, event) {
                continue;
            }
            let guarantee = if recording.filter.is_some() { Guarantee::Filter } else { Guarantee::Reliable };
            return broken(guarantee, format!("{name} is left out of a watch since {} until {until}", recording.since));
        };
        n_found += 1;
        if !is_same(seen.record.as_ref(), event.record.as_ref()) {
            let (seen, real) = (show(seen.record.as_ref()), show(event.record.as_ref()));
            return broken(Guarantee::Reliable, format!("{name} is told as {seen}, it is {real}"));
        }
    }
    if n_found < told.len() {
        let real: BTreeSet<(Revision, &Key)> =
            history.between(recording.since, until, &recording.prefix).map(|e| (e.revision, &e.key)).collect();
        let made_up = told.keys().find(|name| !real.contains(name)).map(|(revision, key)| at(key, *revision));
        return broken(Guarantee::Reliable, format!("{} never happened", made_up.unwrap_or_default()));
    }
    Ok(())
}

fn is_wanted(recording: &Recording, event: &Event) -> bool {
    let Some(filter) = &recording.filter else { return true };
    [&event.record, &event.previous].into_iter().flatten().any(|record| filter.matches(record))
}

/// Resumable: a watch from the revision of an event of the first tells the rest of the first.
///
/// # Errors
/// The first difference, up to where the shorter of the two ends.
pub fn resumable(first: &Recording, resumed: &Recording) -> Verdict {
    let rest: Vec<_> = first.events().filter(|event| event.revision > resumed.since).collect();
    let told: Vec<_> = resumed.events().collect();
    for (a, b) in rest.iter().zip(&told) {
        if a.revision != b.revision || a.key != b.key || !is_same(a.record.as_ref(), b.record.as_ref()) {
            let (a, b) = (at(&a.key, a.revision), at(&b.key, b.revision));
            return broken(Guarantee::Resumable, format!("resumed at {}: {b} instead of {a}", resumed.since));
        }
    }
    Ok(())
}

/// PrevKV: each event carries what the key held before it.
///
/// # Errors
/// The first event that carries something else.
pub fn prev_kv(recording: &Recording, history: &History) -> Verdict {
    let real: BTreeMap<(Revision, &Key), &Arc<Event>> =
        history.events.iter().map(|event| ((event.revision, &event.key), event)).collect();
    for event in recording.events() {
        let previous = real.get(&(event.revision, &event.key)).and_then(|real| real.previous.as_ref());
        if !is_same(event.previous.as_ref(), previous) {
            let (seen, held) = (show(event.previous.as_ref()), show(previous));
            return broken(
                Guarantee::PrevKv,
                format!("{} carries {seen}, the key held {held}", at(&event.key, event.revision)),
            );
        }
    }
    Ok(())
}
