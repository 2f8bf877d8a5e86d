//! Reading: gets, lists and past events. Places come from the index, values from whoever holds them already, else from
//! the segments.

use crate::disk::read_exact_at;
use crate::error::to_usize;
use crate::index::{Past, Place};
use crate::shared::{Shared, buffer_of, unreadable};
use pintle_storage::{At, Event, Found, Key, ListRequest, Listing, Note, Record, Result, Revision, StorageError};
use std::ops::Bound;
use std::sync::Arc;

/// Keys looked at before the index is let go for writers: about 100 us.
const PAGE_KEYS_MAX: usize = 1024;

/// Revisions looked at before the index is let go for writers.
const SCAN_REVISIONS_MAX: usize = 4096;

/// Past events read in one piece.
const PAST_EVENTS_MAX: usize = 256;

/// Records read from the disk by the caller itself; more are read where waiting disturbs nobody.
const INLINE_READS_MAX: usize = 16;

/// Bytes between two records that are read along rather than seeking over them.
const GAP_BYTES_MAX: u64 = 16 << 10;

/// Bytes read at once, unless one record has more.
const RUN_BYTES_MAX: u64 = 1 << 20;

/// How often a list of the newest state begins again when history is forgotten under it.
const RESTARTS_MAX: usize = 3;

/// Records whose holders are noted before the index is let go.
const HOLD_RECORDS_MAX: usize = 256;

/// Reads a running store.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    shared: Arc<Shared>,
}

/// What a list found, before values are read.
struct Places {
    places: Vec<Place>,
    revision: Revision,
    remaining: usize,
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>) -> Reader {
        Reader { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Reads one key.
    pub(crate) async fn get(&self, key: &Key, at: At) -> Result<Found> {
        let (place, revision) = {
            let index = self.shared.index.read();
            let revision = resolve(at, index.revision());
            index.readable(revision)?;
            match at {
                At::Exact(_) => (index.at(key, revision), revision),
                At::Latest | At::Any | At::NotOlderThan(_) => (index.newest(key), index.revision()),
            }
        };
        let record = match place {
            None => None,
            Some(Place { held: Some(record), .. }) => Some(record),
            Some(place) => self.read_all(vec![place]).await?.pop(),
        };
        Ok(Found { record, revision })
    }

    /// Reads the keys of a prefix.
    pub(crate) async fn list(&self, request: &ListRequest) -> Result<Listing> {
        let mut places = self.places(request);
        for _ in 0..RESTARTS_MAX {
            match places {
                // Only an exact read is bound to a revision that may be forgotten.
                Err(StorageError::Expired { .. }) if !matches!(request.at, At::Exact(_)) => {
                    places = self.places(request);
                }
                Ok(_) | Err(_) => break,
            }
        }
        let Places { places, revision, remaining } = places?;
        Ok(Listing { records: self.read_all(places).await?, revision, remaining })
    }

    fn places(&self, request: &ListRequest) -> Result<Places> {
        let revision = {
            let index = self.shared.index.read();
            let revision = resolve(request.at, index.revision());
            index.readable(revision)?;
            if matches!(request.at, At::Exact(_)) { revision } else { index.revision() }
        };
        let limit = if request.limit == 0 { usize::MAX } else { request.limit };
        let prefix = request.prefix.as_str();
        let start = request.start.as_ref().filter(|start| start.as_str() > prefix);
        let mut next = Some(start.unwrap_or(&request.prefix).clone());
        let mut found = Places { places: Vec::new(), revision, remaining: 0 };
        while let Some(start) = next.take() {
            let index = self.shared.index.read();
            index.readable(revision)?;
            let start = Bound::Included(start.as_str());
            if found.places.len() < limit {
                let (places, more) = index.page(prefix, start, revision, PAGE_KEYS_MAX);
                found.places.extend(places);
                next = more;
            } else {
                let (n_more, more) = index.count(prefix, start, revision, PAGE_KEYS_MAX);
                found.remaining += n_more;
                next = more;
            }
        }
        found.remaining += found.places.len().saturating_sub(limit);
        found.places.truncate(limit);
        Ok(found)
    }

    /// How many keys a prefix has.
    pub(crate) fn count(&self, prefix: &Key) -> usize {
        let mut n_found = 0;
        let mut next = Some(prefix.clone());
        while let Some(start) = next.take() {
            let index = self.shared.index.read();
            let revision = index.revision();
            let (n_more, more) = index.count(prefix, Bound::Included(start.as_str()), revision, PAGE_KEYS_MAX);
            n_found += n_more;
            next = more;
        }
        n_found
    }

    /// Some events after `cursor` of keys that begin with `prefix`, none if there is none soon; and how far that goes.
    pub(crate) async fn past(&self, cursor: Revision, prefix: &Key) -> Result<(Vec<Arc<Event>>, Revision)> {
        let (past, scanned) = self.shared.index.read().past(cursor, prefix, SCAN_REVISIONS_MAX, PAST_EVENTS_MAX)?;
        let places = past.iter().flat_map(|past| [&past.record, &past.previous]).flatten().cloned().collect();
        let mut records = self.read_all(places).await?.into_iter();
        let mut take = |place: &Option<Place>| if place.is_some() { records.next() } else { None };
        let events = past.iter().map(|past| {
            let (record, previous) = (take(&past.record), take(&past.previous));
            let Past { key, revision, .. } = past;
            Arc::new(Event { key: key.clone(), revision: *revision, record, previous, note: Note::default() })
        });
        Ok((events.collect(), scanned))
    }

    /// Reads records; the answer has their order.
    async fn read_all(&self, places: Vec<Place>) -> Result<Vec<Arc<Record>>> {
        let n_missing = places.iter().filter(|place| place.held.is_none()).count();
        if n_missing <= INLINE_READS_MAX {
            return read_places(&self.shared, places);
        }
        self.shared.blocking(move |shared| read_places(shared, places)).await?
    }
}

/// The revision that a read of this kind asks for, where the store stands at `current`.
fn resolve(at: At, current: Revision) -> Revision {
    match at {
        At::Latest | At::Any => current,
        // Where the store stands is no older; what lies ahead of it must be refused by its own name.
        At::NotOlderThan(requested) => requested.max(current),
        At::Exact(requested) => requested,
    }
}

/// Reads records; the answer has their order. Takes note of who holds them.
fn read_places(shared: &Shared, mut places: Vec<Place>) -> Result<Vec<Arc<Record>>> {
    let read = read_missing(&mut places)?;
    for some in read.chunks(HOLD_RECORDS_MAX) {
        let records = some.iter().filter_map(|idx| places.get(*idx)?.held.as_ref());
        shared.index.write().hold(records);
    }
    Ok(places.into_iter().filter_map(|place| place.held).collect())
}

/// Reads the records that nobody holds, in the order of the disk. Answers which those were.
pub(crate) fn read_missing(places: &mut [Place]) -> Result<Vec<usize>> {
    let mut missing: Vec<usize> =
        places.iter().enumerate().filter(|(_, place)| place.held.is_none()).map(|(idx, _)| idx).collect();
    missing.sort_unstable_by_key(|idx| places.get(*idx).map(|place| (place.version.segment, place.version.unit)));
    let mut rest = missing.as_slice();
    while !rest.is_empty() {
        let n_run = run_length(places, rest);
        let (run, others) = rest.split_at(n_run);
        read_run(places, run)?;
        rest = others;
    }
    Ok(missing)
}

/// How many of the first of these records, which are in the order of the disk, are read at once.
fn run_length(places: &[Place], rest: &[usize]) -> usize {
    let version = |idx: &usize| places.get(*idx).map(|place| place.version);
    let Some(first) = rest.first().and_then(version) else { return 1 };
    let mut end = first.offset() + u64::from(first.bytes);
    let mut n_run = 1;
    for next in rest.iter().skip(1).filter_map(version) {
        let next_end = next.offset() + u64::from(next.bytes);
        let is_near = next.segment == first.segment && next.offset() <= end + GAP_BYTES_MAX;
        if !is_near || next_end - first.offset() > RUN_BYTES_MAX {
            break;
        }
        end = end.max(next_end);
        n_run += 1;
    }
    n_run
}

/// Reads records that lie close together.
fn read_run(places: &mut [Place], run: &[usize]) -> Result<()> {
    let ends = |idx: &usize| places.get(*idx).map(|place| place.version);
    let (Some(first), Some(last)) = (run.first().and_then(ends), run.last().and_then(ends)) else { return Ok(()) };
    let start = first.offset();
    let mut buffer = buffer_of(last.offset() + u64::from(last.bytes) - start);
    for (n_done, idx) in run.iter().enumerate() {
        let Some(place) = places.get_mut(*idx) else { continue };
        if n_done == 0 {
            let what = format!("{} cannot be read", place.segment.name);
            read_exact_at(&*place.segment.file, &mut buffer, start).map_err(|error| unreadable(&what, &error))?;
        }
        let from = to_usize(place.version.offset() - start);
        let bytes = buffer.get(from..from + to_usize(u64::from(place.version.bytes))).unwrap_or_default();
        place.held = Some(place.segment.record(&place.key, &place.version, bytes)?);
    }
    Ok(())
}
