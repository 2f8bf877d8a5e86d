//! Watchers of a running store. Each has a queue that the commit pipeline fills; one that overflows is emptied and its
//! watcher reads what it missed from the log, so that a slow watcher costs its own time only.

use crate::reader::Reader;
use futures_util::stream;
use parking_lot::Mutex;
use pintle_storage::{Event, Key, Newest, Result, Revision, StorageError, WatchItem, WatchRequest, WatchStream};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::Notify;

/// Events in one watcher's queue. At the limit the queue is emptied and the watcher reads the log instead.
const QUEUE_EVENTS_MAX: usize = 16_384;

/// Bytes of values in one watcher's queue. As above.
const QUEUE_BYTES_MAX: usize = 32 << 20;

/// Events in one item.
const ITEM_EVENTS_MAX: usize = 1024;

/// All watchers, by the prefix they watch.
#[derive(Debug)]
pub(crate) struct Watchers {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The revision up to which all changes were told to the queues.
    committed: Revision,
    /// Never an empty group.
    groups: BTreeMap<Key, Group>,
}

/// The watchers of one prefix.
#[derive(Debug)]
struct Group {
    /// The newest change under the prefix, or where the store stood when the group was made.
    change: Revision,
    queues: Vec<Arc<Queue>>,
}

/// What the commit pipeline and one watcher share.
#[derive(Debug)]
struct Queue {
    content: Mutex<Content>,
    wake: Notify,
    wants_progress: bool,
}

#[derive(Debug, Default)]
struct Content {
    /// Events after those that the watcher has taken, without a gap, if `is_live`. Otherwise empty.
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    is_live: bool,
    is_progress_asked: bool,
}

impl Watchers {
    pub(crate) fn new(committed: Revision) -> Watchers {
        Watchers { state: Mutex::new(State { committed, groups: BTreeMap::new() }) }
    }

    /// The revision up to which all changes were told.
    pub(crate) fn committed(&self) -> Revision {
        self.state.lock().committed
    }

    /// How far a prefix that is watched has come.
    pub(crate) fn newest(&self, prefix: &Key) -> Newest {
        let state = self.state.lock();
        let current = state.committed;
        Newest { change: state.groups.get(prefix).map_or(current, |group| group.change), current }
    }

    /// Tells events to whom they concern; they follow on those told before.
    pub(crate) fn tell(&self, events: &[Arc<Event>]) {
        let mut woken: Vec<Arc<Queue>> = Vec::new();
        let mut state = self.state.lock();
        for event in events {
            debug_assert!(event.revision > state.committed);
            state.committed = event.revision;
            for_prefixes(&mut state.groups, &event.key, |group| {
                group.change = event.revision;
                woken.extend(group.queues.iter().filter(|queue| queue.push(event)).map(Arc::clone));
            });
        }
        drop(state);
        for queue in woken {
            queue.wake.notify_one();
        }
    }

    /// Asks all watchers that want progress to tell theirs.
    pub(crate) fn request_progress(&self) {
        let state = self.state.lock();
        for queue in state.groups.values().flat_map(|group| &group.queues).filter(|queue| queue.wants_progress) {
            queue.content.lock().is_progress_asked = true;
            queue.wake.notify_one();
        }
    }

    /// Lets all watchers look whether the store is closed.
    pub(crate) fn wake_all(&self) {
        for queue in self.state.lock().groups.values().flat_map(|group| &group.queues) {
            queue.wake.notify_one();
        }
    }

    /// Lets the commit pipeline fill the queue from now on. Answers from where: what is newer will be in it.
    fn join(&self, prefix: &Key, queue: &Arc<Queue>) -> Revision {
        let mut state = self.state.lock();
        let committed = state.committed;
        let group = state.groups.entry(prefix.clone());
        group.or_insert_with(|| Group { change: committed, queues: Vec::new() }).queues.push(Arc::clone(queue));
        committed
    }

    /// As [`Watchers::join`], for a queue that has overflowed.
    fn rejoin(&self, queue: &Queue) -> Revision {
        let state = self.state.lock();
        queue.content.lock().is_live = true;
        state.committed
    }

    /// Where all watchers stand that have nothing in their queue; `None` when this one has.
    fn progress(&self, queue: &Queue) -> Option<Revision> {
        let state = self.state.lock();
        let mut content = queue.content.lock();
        let is_at_rest = content.is_live && content.events.is_empty();
        if is_at_rest {
            content.is_progress_asked = false;
        }
        is_at_rest.then_some(state.committed)
    }

    fn leave(&self, prefix: &Key, queue: &Arc<Queue>) {
        let mut state = self.state.lock();
        if let Some(group) = state.groups.get_mut(prefix) {
            group.queues.retain(|other| !Arc::ptr_eq(other, queue));
            if group.queues.is_empty() {
                state.groups.remove(prefix);
            }
        }
    }
}

/// Calls `act` for every group whose prefix the key begins with, looking at few others.
fn for_prefixes(groups: &mut BTreeMap<Key, Group>, key: &str, mut act: impl FnMut(&mut Group)) {
    let mut bound = Bound::Included(key);
    while let Some((prefix, group)) = groups.range_mut::<str, _>((Bound::Unbounded, bound)).next_back() {
        let n_common = common_prefix(prefix, key);
        let common = key.get(..n_common).unwrap_or_default();
        // Other prefixes of the key are shorter than this one, or no longer than what this group has in common with it.
        bound = if n_common == prefix.len() {
            act(group);
            Bound::Excluded(common)
        } else {
            Bound::Included(common)
        };
    }
}

/// Bytes that both begin with, up to a boundary of characters.
fn common_prefix(a: &str, b: &str) -> usize {
    let n_common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=n_common).rev().find(|n| b.is_char_boundary(*n)).unwrap_or_default()
}

impl Queue {
    /// Adds an event; answers whether the watcher must be woken: not when it has something to read already.
    fn push(&self, event: &Arc<Event>) -> bool {
        let mut content = self.content.lock();
        if !content.is_live {
            return false;
        }
        let bytes = bytes_of(std::slice::from_ref(event));
        if content.events.len() == QUEUE_EVENTS_MAX || content.bytes + bytes > QUEUE_BYTES_MAX {
            content.events = VecDeque::new();
            content.bytes = 0;
            content.is_live = false;
            return false;
        }
        content.bytes += bytes;
        content.events.push_back(Arc::clone(event));
        content.events.len() == 1
    }
}

/// One running watch.
#[derive(Debug)]
struct Watcher {
    reader: Reader,
    prefix: Key,
    queue: Arc<Queue>,
    /// Everything up to here was told or is not wanted.
    cursor: Revision,
    /// What is newer than this is in the queue, unless that overflowed; what is older must be read from the log.
    queue_since: Revision,
    is_ended: bool,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.reader.shared().watchers.leave(&self.prefix, &self.queue);
    }
}

/// Opens a watch.
///
/// # Errors
/// `Expired` when events after `since` are forgotten.
pub(crate) fn open(reader: Reader, request: WatchRequest) -> Result<WatchStream> {
    // Who wants progress learns at once where the past ends: what is newest under the prefix may be older than that.
    let content = Content { is_live: true, is_progress_asked: request.progress, ..Content::default() };
    let queue = Queue { content: Mutex::new(content), wake: Notify::new(), wants_progress: request.progress };
    let queue = Arc::new(queue);
    let queue_since = reader.shared().watchers.join(&request.prefix, &queue);
    // From here on the watcher leaves when it is dropped.
    let watcher =
        Watcher { prefix: request.prefix, queue, cursor: request.since, queue_since, reader, is_ended: false };
    let compacted = watcher.reader.shared().index.read().compacted();
    if request.since < compacted {
        return Err(StorageError::Expired { requested: request.since, compacted });
    }
    Ok(Box::pin(stream::unfold(watcher, |mut watcher| async move {
        let item = watcher.next().await?;
        watcher.is_ended = item.is_err();
        Some((item, watcher))
    })))
}

/// What a look into the queue found.
enum Look {
    Events(Vec<Arc<Event>>),
    /// The queue overflowed: the log has what it lost.
    Overflow,
    ProgressAsked,
    Nothing,
}

impl Watcher {
    async fn next(&mut self) -> Option<Result<WatchItem>> {
        while !self.is_ended && !self.reader.shared().is_closed() {
            if self.cursor < self.queue_since {
                match self.reader.past(self.cursor, &self.prefix).await {
                    Ok((events, cursor)) => {
                        self.cursor = cursor;
                        if !events.is_empty() {
                            return Some(Ok(WatchItem::Events(events)));
                        }
                    }
                    Err(error) => return Some(Err(error)),
                }
                continue;
            }
            match self.look() {
                Look::Events(events) => return Some(Ok(WatchItem::Events(events))),
                Look::Overflow => self.queue_since = self.reader.shared().watchers.rejoin(&self.queue),
                Look::ProgressAsked => {
                    if let Some(revision) = self.reader.shared().watchers.progress(&self.queue) {
                        self.cursor = self.cursor.max(revision);
                        return Some(Ok(WatchItem::Progress(revision)));
                    }
                }
                Look::Nothing => self.queue.wake.notified().await,
            }
        }
        None
    }

    fn look(&mut self) -> Look {
        let mut content = self.queue.content.lock();
        if !content.is_live {
            return Look::Overflow;
        }
        let n_taken = content.events.len().min(ITEM_EVENTS_MAX);
        let taken: Vec<Arc<Event>> = content.events.drain(..n_taken).collect();
        content.bytes = if content.events.is_empty() { 0 } else { content.bytes.saturating_sub(bytes_of(&taken)) };
        let is_progress_asked = content.is_progress_asked;
        drop(content);
        let cursor = self.cursor;
        // What was read from the log already may be in the queue, too.
        let news: Vec<Arc<Event>> = taken.into_iter().filter(|event| event.revision > cursor).collect();
        match news.last() {
            Some(last) => {
                self.cursor = last.revision;
                Look::Events(news)
            }
            None if n_taken > 0 => self.look(),
            None if is_progress_asked => Look::ProgressAsked,
            None => Look::Nothing,
        }
    }
}

/// Bytes of the values that events carry.
fn bytes_of(events: &[Arc<Event>]) -> usize {
    let records = events.iter().flat_map(|event| [&event.record, &event.previous]).flatten();
    records.map(|record| record.value.len()).sum()
}
