//! Who is concerned by an event. A watcher is in one bucket: that of a trigger value, that of a deeper prefix, or that of
//! everybody. An event is announced to the buckets it concerns, by its number in the window; their watchers read it there.

use crate::options::Indexer;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use pintle_storage::{Event, Key, Record, WatchRequest};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers announced in one bucket. At the limit the oldest is forgotten: a watcher that has not seen it looks through
/// the window itself.
const ANNOUNCED_MAX: usize = 1024;

/// Watchers woken before the bucket is let go for those who come and leave.
const WAKE_WATCHERS_MAX: usize = 128;

/// Watchers with something in common.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    announced: Mutex<Announced>,
    seats: Mutex<BTreeMap<u64, Arc<Seat>>>,
}

/// Numbers of events that concern a bucket.
#[derive(Debug, Default)]
struct Announced {
    /// In order.
    numbers: VecDeque<u64>,
    /// From this number on, all that concern the bucket are there.
    since: u64,
}

/// One watcher's place in a bucket.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    pub(crate) waker: AtomicWaker,
}

/// What a bucket announces to a watcher.
pub(crate) enum Announcement {
    /// Numbers from the watcher's own on.
    Numbers(Vec<u64>),
    /// Up to this number something was forgotten: look through the window.
    LookUpTo(u64),
}

impl Bucket {
    fn new(since: u64) -> Bucket {
        Bucket { announced: Mutex::new(Announced { numbers: VecDeque::new(), since }), seats: Mutex::default() }
    }

    fn announce(&self, number: u64) {
        let mut announced = self.announced.lock();
        if announced.numbers.back() == Some(&number) {
            return;
        }
        if announced.numbers.len() == ANNOUNCED_MAX {
            announced.since = announced.numbers.pop_front().map_or(announced.since, |oldest| oldest + 1);
        }
        announced.numbers.push_back(number);
    }

    /// What concerns a watcher that has seen everything before `cursor`, up to `end`, at most `n_max`.
    pub(crate) fn announced(&self, cursor: u64, end: u64, n_max: usize) -> Announcement {
        let announced = self.announced.lock();
        if cursor < announced.since {
            return Announcement::LookUpTo(announced.since);
        }
        let first = announced.numbers.partition_point(|number| *number < cursor);
        let news = announced.numbers.range(first..).take_while(|number| **number < end).take(n_max);
        Announcement::Numbers(news.copied().collect())
    }

    /// Wakes everybody in the bucket.
    pub(crate) fn wake(&self) {
        let mut next = Bound::Unbounded;
        loop {
            let seats = self.seats.lock();
            let mut last = None;
            for (id, seat) in seats.range((next, Bound::Unbounded)).take(WAKE_WATCHERS_MAX) {
                seat.waker.wake();
                last = Some(*id);
            }
            match last {
                Some(last) => next = Bound::Excluded(last),
                None => return,
            }
        }
    }

    pub(crate) fn n_watchers(&self) -> usize {
        self.seats.lock().len()
    }
}

/// Which bucket a watcher belongs to.
#[derive(Clone, Debug)]
pub(crate) enum Interest {
    Everything,
    Prefix(Key),
    Trigger { field: String, value: String },
}

/// A watcher's membership. It leaves through [`Buckets::leave`].
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) seat: Arc<Seat>,
    interest: Interest,
    id: u64,
}

impl Membership {
    /// Whether every event is for this watcher: nothing is announced to it.
    pub(crate) fn is_of_everything(&self) -> bool {
        matches!(self.interest, Interest::Everything)
    }
}

/// All buckets.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    everybody: Arc<Bucket>,
    /// By field and value. Never an empty bucket, never a field without one.
    by_trigger: BTreeMap<String, BTreeMap<String, Arc<Bucket>>>,
    /// By prefix. Never an empty bucket.
    by_prefix: BTreeMap<Key, Arc<Bucket>>,
    n_joined: AtomicU64,
}

/// Where a watcher belongs.
pub(crate) fn interest(request: &WatchRequest, root: &Key, indexer: &Indexer) -> Interest {
    let trigger = request.filter.as_ref().and_then(|filter| filter.trigger());
    if let Some((field, value)) = trigger.filter(|(field, _)| indexer.has(field)) {
        return Interest::Trigger { field: field.to_owned(), value: value.to_owned() };
    }
    if request.prefix == *root { Interest::Everything } else { Interest::Prefix(request.prefix.clone()) }
}

impl Buckets {
    /// Takes a watcher in. Events from number `end` on will be announced to it.
    pub(crate) fn join(&mut self, interest: Interest, end: u64) -> Membership {
        let fresh = || Arc::new(Bucket::new(end));
        let bucket = match &interest {
            Interest::Everything => &self.everybody,
            Interest::Prefix(prefix) => self.by_prefix.entry(prefix.clone()).or_insert_with(fresh),
            Interest::Trigger { field, value } => {
                self.by_trigger.entry(field.clone()).or_default().entry(value.clone()).or_insert_with(fresh)
            }
        };
        let (bucket, seat) = (Arc::clone(bucket), Arc::new(Seat::default()));
        let id = self.n_joined.fetch_add(1, Ordering::Relaxed);
        bucket.seats.lock().insert(id, Arc::clone(&seat));
        Membership { bucket, seat, interest, id }
    }

    /// Lets a watcher go.
    pub(crate) fn leave(&mut self, membership: &Membership) {
        let is_empty = {
            let mut seats = membership.bucket.seats.lock();
            seats.remove(&membership.id);
            seats.is_empty()
        };
        if !is_empty {
            return;
        }
        match &membership.interest {
            Interest::Everything => {}
            Interest::Prefix(prefix) => {
                self.by_prefix.remove(prefix);
            }
            Interest::Trigger { field, value } => {
                if let Some(values) = self.by_trigger.get_mut(field) {
                    values.remove(value);
                    if values.is_empty() {
                        self.by_trigger.remove(field);
                    }
                }
            }
        }
    }

    /// Announces an event; adds the buckets it concerns to those to be woken.
    pub(crate) fn announce(&self, number: u64, event: &Event, indexer: &Indexer, concerned: &mut Vec<Arc<Bucket>>) {
        if !self.by_trigger.is_empty() {
            for record in [&event.record, &event.previous].into_iter().flatten() {
                self.announce_triggers(number, record, indexer, concerned);
            }
        }
        let mut bound = Bound::Included(&*event.key);
        while let Some((prefix, bucket)) = self.by_prefix.range::<str, _>((Bound::Unbounded, bound)).next_back() {
            let common = common_prefix(&event.key, prefix);
            // Other prefixes of the key are shorter than this one, or no longer than what both have in common.
            bound = if common.len() == prefix.len() {
                bucket.announce(number);
                concern(concerned, bucket);
                Bound::Excluded(common)
            } else {
                Bound::Included(common)
            };
        }
    }

    fn announce_triggers(&self, number: u64, record: &Record, indexer: &Indexer, concerned: &mut Vec<Arc<Bucket>>) {
        indexer.tell(record, &mut |field, value| {
            if let Some(bucket) = self.by_trigger.get(field).and_then(|values| values.get(value)) {
                bucket.announce(number);
                concern(concerned, bucket);
            }
        });
    }

    /// The bucket of those who want everything.
    pub(crate) fn everybody(&self) -> &Arc<Bucket> {
        &self.everybody
    }

    /// All buckets.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Bucket>> {
        let by_trigger = self.by_trigger.values().flat_map(BTreeMap::values);
        [&self.everybody].into_iter().chain(by_trigger).chain(self.by_prefix.values())
    }
}

/// Adds a bucket that is not the last one added already.
fn concern(concerned: &mut Vec<Arc<Bucket>>, bucket: &Arc<Bucket>) {
    if concerned.last().is_none_or(|last| !Arc::ptr_eq(last, bucket)) {
        concerned.push(Arc::clone(bucket));
    }
}

/// What the key begins with and the other text, too, up to a boundary of characters.
fn common_prefix<'a>(key: &'a str, other: &str) -> &'a str {
    let n_common = key.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let n_common = (0..=n_common).rev().find(|n| key.is_char_boundary(*n)).unwrap_or_default();
    key.get(..n_common).unwrap_or_default()
}
