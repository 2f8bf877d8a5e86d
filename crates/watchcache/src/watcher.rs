//! One watcher of the cache: a stream that reads the window from its own place on.

use crate::buckets::{Announcement, Membership};
use crate::cache::Inner;
use crate::state::State;
use futures_util::{FutureExt, Stream, StreamExt};
use pintle_storage::{Event, Filter, Key, Result, Revision, StorageError, WatchItem, WatchRequest, WatchStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep_until};

/// Events told in one item.
const ITEM_EVENTS_MAX: usize = 256;

/// Events looked at before other tasks get their turn.
const LOOK_EVENTS_MAX: u64 = 4096;

/// A watch of the back end that tells what is older than the window.
pub(crate) struct Bridge {
    pub(crate) stream: WatchStream,
}

/// One watcher.
pub(crate) struct Watcher {
    inner: Arc<Inner>,
    membership: Membership,
    prefix: Key,
    filter: Option<Arc<dyn Filter>>,
    /// The filling of the cache that it watches.
    filling: u64,
    /// Everything up to here is not wanted.
    since: Revision,
    /// Everything up to here was told.
    told: Revision,
    /// The number of the next event to look at.
    cursor: u64,
    /// Events from this number on are announced; those before must be looked through.
    announced_since: u64,
    /// What comes before the window, up to this revision.
    bridge: Option<(Bridge, Revision)>,
    progress: Option<Progress>,
    is_over: bool,
}

/// When progress is told next.
struct Progress {
    timer: Pin<Box<Sleep>>,
    /// How many requests were answered.
    n_answered: u64,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.inner.buckets.lock().leave(&self.membership);
    }
}

impl Watcher {
    /// A watcher that joined when the cache was in this state.
    pub(crate) fn new(
        inner: Arc<Inner>,
        request: WatchRequest,
        membership: Membership,
        state: &State,
        bridge: Option<Bridge>,
    ) -> Watcher {
        let since = request.since;
        let bridge = bridge.filter(|_| since < state.window.since()).map(|bridge| (bridge, state.window.since()));
        let interval = inner.options.progress_interval;
        let progress = request.progress.then(|| Progress {
            timer: Box::pin(sleep_until(Instant::now() + interval)),
            n_answered: state.n_progress_requests,
        });
        Watcher {
            membership,
            prefix: request.prefix,
            filter: request.filter,
            filling: state.filling,
            since,
            told: since,
            cursor: state.window.after(since.max(state.window.since())),
            announced_since: state.window.end(),
            bridge,
            progress,
            is_over: false,
            inner,
        }
    }

    /// Whether an event of the window is for this watcher.
    fn wants(&self, event: &Event) -> bool {
        let matches = |filter: &Arc<dyn Filter>| {
            [&event.record, &event.previous].into_iter().flatten().any(|record| filter.matches(record))
        };
        event.revision > self.since && event.key.starts_with(&*self.prefix) && self.filter.as_ref().is_none_or(matches)
    }

    /// The next events for this watcher, if there are any.
    fn look(&mut self, state: &State) -> Result<Vec<Arc<Event>>> {
        let end = state.window.end();
        let mut n_looks_left = LOOK_EVENTS_MAX;
        let mut found: Vec<Arc<Event>> = Vec::new();
        while self.cursor < end && found.is_empty() && n_looks_left > 0 {
            if self.cursor < state.window.start() {
                let (requested, compacted) = (self.told, state.window.since());
                return Err(StorageError::Expired { requested, compacted });
            }
            let until = if self.membership.is_of_everything() { end } else { self.announced_since.min(end) };
            if self.cursor < until {
                let until = until.min(self.cursor + n_looks_left);
                n_looks_left -= until - self.cursor;
                self.look_through(state, until, &mut found);
                continue;
            }
            match self.membership.bucket.announced(self.cursor, end, ITEM_EVENTS_MAX) {
                Announcement::LookUpTo(number) => self.announced_since = number,
                Announcement::Numbers(numbers) => {
                    n_looks_left = n_looks_left.saturating_sub(numbers.len() as u64);
                    self.look_up(state, &numbers, &mut found)?;
                    if numbers.len() < ITEM_EVENTS_MAX {
                        // Nothing else up to the end is for this watcher.
                        self.cursor = end;
                    }
                }
            }
        }
        self.finish_revision(state, &mut found);
        Ok(found)
    }

    /// Adds the events that have the revision of the last one: they are told together.
    fn finish_revision(&mut self, state: &State, found: &mut Vec<Arc<Event>>) {
        while let Some(last) = found.last()
            && let Some(next) = state.window.get(self.cursor)
            && next.revision == last.revision
        {
            if self.wants(next) {
                found.push(Arc::clone(next));
            }
            self.cursor += 1;
        }
    }

    fn look_through(&mut self, state: &State, until: u64, found: &mut Vec<Arc<Event>>) {
        let mut cursor = self.cursor;
        state.window.visit(cursor..until, |number, event| {
            cursor = number + 1;
            if self.wants(event) {
                found.push(Arc::clone(event));
            }
            found.len() < ITEM_EVENTS_MAX
        });
        self.cursor = cursor;
    }

    fn look_up(&mut self, state: &State, numbers: &[u64], found: &mut Vec<Arc<Event>>) -> Result<()> {
        for number in numbers {
            let Some(event) = state.window.get(*number) else {
                let (requested, compacted) = (self.told, state.window.since());
                return Err(StorageError::Expired { requested, compacted });
            };
            self.cursor = number + 1;
            if self.wants(event) {
                found.push(Arc::clone(event));
            }
        }
        Ok(())
    }

    fn tell(&mut self, events: Vec<Arc<Event>>) -> WatchItem {
        self.told = events.last().map_or(self.told, |last| last.revision.max(self.told));
        WatchItem::Events(events)
    }

    /// Polls what comes before the window. `None` when that is over.
    fn poll_bridge(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<WatchItem>>> {
        while let Some((bridge, until)) = &mut self.bridge {
            let until = *until;
            let item = match ready!(bridge.stream.poll_next_unpin(context)) {
                Some(Ok(item)) => item,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                // The back end begins anew; so must whoever watches.
                None => {
                    self.is_over = true;
                    return Poll::Ready(None);
                }
            };
            match item {
                WatchItem::Events(mut events) => {
                    if events.last().is_some_and(|last| last.revision > until) {
                        self.bridge = None;
                        events.retain(|event| event.revision <= until);
                    }
                    if !events.is_empty() {
                        return Poll::Ready(Some(Ok(self.tell(events))));
                    }
                }
                WatchItem::Progress(revision) if revision >= until => self.bridge = None,
                WatchItem::Progress(_) => {}
            }
        }
        Poll::Ready(None)
    }

    /// Tells progress if it is due. Everything in the state was told.
    fn poll_progress(&mut self, state: &State, context: &mut Context<'_>) -> Poll<WatchItem> {
        let Some(progress) = &mut self.progress else { return Poll::Pending };
        let is_asked = progress.n_answered != state.n_progress_requests;
        progress.n_answered = state.n_progress_requests;
        if progress.timer.poll_unpin(context).is_ready() {
            progress.timer.as_mut().reset(Instant::now() + self.inner.options.progress_interval);
            // Registers for the next time.
            let _ = progress.timer.poll_unpin(context);
        } else if !is_asked {
            return Poll::Pending;
        }
        let revision = self.inner.progress(state);
        if revision < self.told {
            return Poll::Pending;
        }
        self.told = revision;
        Poll::Ready(WatchItem::Progress(revision))
    }
}

impl Stream for Watcher {
    type Item = Result<WatchItem>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<WatchItem>>> {
        let this = self.get_mut();
        if this.is_over || this.inner.is_ended() {
            return Poll::Ready(None);
        }
        if this.bridge.is_some()
            && let Some(item) = ready!(this.poll_bridge(context))
        {
            this.is_over = item.is_err();
            return Poll::Ready(Some(item));
        }
        if this.is_over {
            return Poll::Ready(None);
        }
        // Before the look, so that what comes after it wakes this task.
        this.membership.seat.waker.register(context.waker());
        let Some(state) = this.inner.state.load_full() else { return Poll::Pending };
        if state.filling != this.filling || this.inner.is_ended() {
            this.is_over = true;
            return Poll::Ready(None);
        }
        match this.look(&state) {
            Err(error) => {
                this.is_over = true;
                Poll::Ready(Some(Err(error)))
            }
            Ok(events) if !events.is_empty() => Poll::Ready(Some(Ok(this.tell(events)))),
            Ok(_) if this.cursor < state.window.end() => {
                // There is more to look at, after the others.
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(_) => this.poll_progress(&state, context).map(|item| Some(Ok(item))),
        }
    }
}
