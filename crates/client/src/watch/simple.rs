//! Watches without a server: the empty one, the two fakes, and the filtered one.

use super::{Event, Watch};
use futures_util::Stream;
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Events that a [`RaceFreeFakeWatcher`] holds until they are read; one more is refused.
pub const FAKE_EVENTS_MAX: usize = 100;

/// A watch that has ended.
#[derive(Debug)]
pub struct EmptyWatch<T>(std::marker::PhantomData<fn() -> T>);

impl<T> EmptyWatch<T> {
    /// An ended watch.
    pub fn new() -> EmptyWatch<T> {
        EmptyWatch(std::marker::PhantomData)
    }
}

impl<T> Default for EmptyWatch<T> {
    fn default() -> EmptyWatch<T> {
        EmptyWatch::new()
    }
}

impl<T> Stream for EmptyWatch<T> {
    type Item = Event<T>;

    fn poll_next(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        Poll::Ready(None)
    }
}

impl<T> Watch<T> for EmptyWatch<T> {
    fn stop(&mut self) {}
}

/// A watch that is fed through a channel.
#[derive(Debug)]
pub struct ChannelWatch<T> {
    events: mpsc::Receiver<Event<T>>,
}

impl<T: Send> Stream for ChannelWatch<T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        self.events.poll_recv(cx)
    }
}

impl<T: Send> Watch<T> for ChannelWatch<T> {
    fn stop(&mut self) {
        self.events.close();
        // what was sent and not read is not shown any more
        while self.events.try_recv().is_ok() {}
    }
}

/// The reader has stopped the watch, or the writer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the watch is stopped")]
pub struct Stopped;

/// Feeds a watch in a test, one event at a time: each call waits until there is room for the event.
#[derive(Debug)]
pub struct FakeWatcher<T> {
    events: mpsc::Sender<Event<T>>,
}

impl<T: Send> FakeWatcher<T> {
    /// A watch and what feeds it; `n_buffered` events (at least one) may wait to be read.
    pub fn new(n_buffered: usize) -> (FakeWatcher<T>, ChannelWatch<T>) {
        let (sender, receiver) = mpsc::channel(n_buffered.max(1));
        (FakeWatcher { events: sender }, ChannelWatch { events: receiver })
    }

    /// Tells the reader that an object is new.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn add(&self, object: T) -> Result<(), Stopped> {
        self.action(Event::Added(object)).await
    }

    /// Tells the reader that an object has changed.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn modify(&self, object: T) -> Result<(), Stopped> {
        self.action(Event::Modified(object)).await
    }

    /// Tells the reader that an object is gone.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn delete(&self, last: T) -> Result<(), Stopped> {
        self.action(Event::Deleted(last)).await
    }

    /// Tells the reader anything.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn action(&self, event: Event<T>) -> Result<(), Stopped> {
        self.events.send(event).await.map_err(|_| Stopped)
    }

    /// Whether the reader has stopped.
    pub fn is_stopped(&self) -> bool {
        self.events.is_closed()
    }

    /// Ends the watch: the reader gets what was sent, then the end.
    pub fn stop(self) {}
}

/// Feeds a watch in a test without ever waiting: events are buffered, up to [`FAKE_EVENTS_MAX`]. Cheap to clone.
#[derive(Debug)]
pub struct RaceFreeFakeWatcher<T> {
    events: Arc<Mutex<Option<mpsc::Sender<Event<T>>>>>,
}

impl<T> Clone for RaceFreeFakeWatcher<T> {
    fn clone(&self) -> RaceFreeFakeWatcher<T> {
        RaceFreeFakeWatcher { events: Arc::clone(&self.events) }
    }
}

/// Why a [`RaceFreeFakeWatcher`] did not take an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FakeWatchError {
    /// The watch is stopped.
    #[error("the watch is stopped")]
    Stopped,
    /// [`FAKE_EVENTS_MAX`] events wait already.
    #[error("the watch's buffer is full")]
    Full,
}

impl<T: Send> RaceFreeFakeWatcher<T> {
    /// A watch and what feeds it.
    pub fn new() -> (RaceFreeFakeWatcher<T>, ChannelWatch<T>) {
        let (sender, receiver) = mpsc::channel(FAKE_EVENTS_MAX);
        (RaceFreeFakeWatcher { events: Arc::new(Mutex::new(Some(sender))) }, ChannelWatch { events: receiver })
    }

    /// Tells the reader that an object is new.
    ///
    /// # Errors
    /// [`FakeWatchError`].
    pub fn add(&self, object: T) -> Result<(), FakeWatchError> {
        self.action(Event::Added(object))
    }

    /// Tells the reader that an object has changed.
    ///
    /// # Errors
    /// [`FakeWatchError`].
    pub fn modify(&self, object: T) -> Result<(), FakeWatchError> {
        self.action(Event::Modified(object))
    }

    /// Tells the reader that an object is gone.
    ///
    /// # Errors
    /// [`FakeWatchError`].
    pub fn delete(&self, last: T) -> Result<(), FakeWatchError> {
        self.action(Event::Deleted(last))
    }

    /// Tells the reader anything.
    ///
    /// # Errors
    /// [`FakeWatchError`].
    pub fn action(&self, event: Event<T>) -> Result<(), FakeWatchError> {
        let events = self.events.lock();
        let sender = events.as_ref().ok_or(FakeWatchError::Stopped)?;
        sender.try_send(event).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => FakeWatchError::Full,
            mpsc::error::TrySendError::Closed(_) => FakeWatchError::Stopped,
        })
    }

    /// Whether the watch is stopped, from either side.
    pub fn is_stopped(&self) -> bool {
        self.events.lock().as_ref().is_none_or(mpsc::Sender::is_closed)
    }

    /// Ends the watch: the reader gets what was sent, then the end. Stopping twice does nothing more.
    pub fn stop(&self) {
        *self.events.lock() = None;
    }
}

/// A watch that shows what a function makes of another watch's events; see [`filter`].
#[derive(Debug)]
pub struct FilteredWatch<W, F> {
    watch: W,
    filter: F,
}

/// Shows each event as `keep` returns it; those for which it returns `None` are left out.
pub fn filter<T, W, F>(watch: W, keep: F) -> FilteredWatch<W, F>
where
    W: Watch<T>,
    F: FnMut(Event<T>) -> Option<Event<T>> + Send + Unpin,
{
    FilteredWatch { watch, filter: keep }
}

impl<T, W, F> Stream for FilteredWatch<W, F>
where
    W: Stream<Item = Event<T>> + Unpin,
    F: FnMut(Event<T>) -> Option<Event<T>> + Unpin,
{
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        loop {
            match std::task::ready!(Pin::new(&mut self.watch).poll_next(cx)) {
                None => return Poll::Ready(None),
                Some(event) => {
                    if let Some(kept) = (self.filter)(event) {
                        return Poll::Ready(Some(kept));
                    }
                }
            }
        }
    }
}

impl<T, W, F> Watch<T> for FilteredWatch<W, F>
where
    W: Watch<T>,
    F: FnMut(Event<T>) -> Option<Event<T>> + Send + Unpin,
{
    fn stop(&mut self) {
        self.watch.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt as _;

    #[tokio::test]
    async fn fakes_and_filters() {
        let (fake, watch) = RaceFreeFakeWatcher::new();
        let mut odd = filter(watch, |event: Event<u32>| match event {
            Event::Added(n) if n % 2 == 0 => None,
            Event::Modified(n) => Some(Event::Added(n * 100)),
            other => Some(other),
        });
        for n in 1..4 {
            fake.add(n).unwrap();
        }
        fake.modify(5).unwrap();
        fake.stop();
        fake.stop();
        assert_eq!(fake.add(9), Err(FakeWatchError::Stopped));
        let mut seen = Vec::new();
        while let Some(event) = odd.next().await {
            seen.extend(event.into_object());
        }
        assert_eq!(seen, [1, 3, 500]);
    }

    #[tokio::test]
    async fn the_reader_may_stop_first() {
        let (fake, mut watch) = RaceFreeFakeWatcher::new();
        fake.add(1).unwrap();
        watch.stop();
        assert!(watch.next().await.is_none(), "nothing more after stop");
        assert!(fake.is_stopped());
        let (fake, mut watch) = FakeWatcher::new(1);
        fake.add(1).await.unwrap();
        assert_eq!(watch.next().await, Some(Event::Added(1)));
        drop(watch);
        assert_eq!(fake.add(2).await, Err(Stopped));
    }

    #[tokio::test]
    async fn a_full_fake_says_so() {
        let (fake, _watch) = RaceFreeFakeWatcher::new();
        for n in 0..FAKE_EVENTS_MAX {
            fake.add(n).unwrap();
        }
        assert_eq!(fake.add(0), Err(FakeWatchError::Full));
    }
}
