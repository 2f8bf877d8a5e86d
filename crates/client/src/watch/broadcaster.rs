//! [`Broadcaster`]: one source of events, many watches.

use super::{Event, Watch};
use futures_util::Stream;
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// What happens to an event for a watch whose queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullChannelBehavior {
    /// The sender waits: no watch misses anything, and the slowest sets the pace for all.
    WaitIfChannelFull,
    /// That watch misses the event; the others get it.
    DropIfChannelFull,
}

/// Sends each event to every watch. Cheap to clone.
///
/// All watches see the events in the same order. A watch sees what is sent after it was opened.
#[derive(Debug)]
pub struct Broadcaster<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    queue_len: usize,
    behavior: FullChannelBehavior,
    /// Held while an event goes out, so that all watches see one order. Taken before `watches`.
    turn: tokio::sync::Mutex<()>,
    watches: Mutex<Watches<T>>,
}

#[derive(Debug)]
struct Watches<T> {
    senders: Vec<mpsc::Sender<Event<T>>>,
    is_shut_down: bool,
}

impl<T> Clone for Broadcaster<T> {
    fn clone(&self) -> Broadcaster<T> {
        Broadcaster { shared: Arc::clone(&self.shared) }
    }
}

/// The broadcaster is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broadcaster already stopped")]
pub struct BroadcasterStopped;

impl<T: Clone + Send + 'static> Broadcaster<T> {
    /// A broadcaster whose watches queue up to `queue_len` events (at least one).
    pub fn new(queue_len: usize, behavior: FullChannelBehavior) -> Broadcaster<T> {
        let watches = Mutex::new(Watches { senders: Vec::new(), is_shut_down: false });
        let shared = Shared { queue_len: queue_len.max(1), behavior, turn: tokio::sync::Mutex::new(()), watches };
        Broadcaster { shared: Arc::new(shared) }
    }

    /// Opens a watch.
    ///
    /// # Errors
    /// [`BroadcasterStopped`].
    pub fn watch(&self) -> Result<BroadcastWatch<T>, BroadcasterStopped> {
        self.watch_with_prefix(Vec::new())
    }

    /// Opens a watch that first shows `prefix`, whatever its length.
    ///
    /// # Errors
    /// [`BroadcasterStopped`].
    pub fn watch_with_prefix(&self, prefix: Vec<Event<T>>) -> Result<BroadcastWatch<T>, BroadcasterStopped> {
        let mut watches = self.shared.watches.lock();
        if watches.is_shut_down {
            return Err(BroadcasterStopped);
        }
        let (sender, receiver) = mpsc::channel(self.shared.queue_len);
        watches.senders.retain(|sender| !sender.is_closed());
        watches.senders.push(sender);
        Ok(BroadcastWatch { prefix: prefix.into_iter(), events: receiver })
    }

    /// Sends an event to every watch; waits for slow ones if the broadcaster is made so.
    ///
    /// # Errors
    /// [`BroadcasterStopped`].
    pub async fn action(&self, event: Event<T>) -> Result<(), BroadcasterStopped> {
        let _turn = self.shared.turn.lock().await;
        for sender in self.senders()? {
            match self.shared.behavior {
                // an error means that the watch has stopped, or that it misses this event
                FullChannelBehavior::WaitIfChannelFull => drop(sender.send(event.clone()).await),
                FullChannelBehavior::DropIfChannelFull => drop(sender.try_send(event.clone())),
            }
        }
        Ok(())
    }

    /// Sends an event to every watch without waiting. `false` when that cannot be: another event is going out, or the
    /// broadcaster waits for slow watches and one is full; then no watch gets the event.
    ///
    /// # Errors
    /// [`BroadcasterStopped`].
    pub fn action_or_drop(&self, event: Event<T>) -> Result<bool, BroadcasterStopped> {
        let senders = self.senders()?;
        let Ok(_turn) = self.shared.turn.try_lock() else { return Ok(false) };
        if self.shared.behavior == FullChannelBehavior::WaitIfChannelFull {
            let is_full = |sender: &mpsc::Sender<Event<T>>| !sender.is_closed() && sender.capacity() == 0;
            if senders.iter().any(is_full) {
                return Ok(false);
            }
        }
        for sender in senders {
            drop(sender.try_send(event.clone()));
        }
        Ok(true)
    }

    /// Ends every watch once it has shown what was sent.
    pub async fn shutdown(&self) {
        let _turn = self.shared.turn.lock().await;
        let mut watches = self.shared.watches.lock();
        watches.is_shut_down = true;
        watches.senders.clear();
    }

    fn senders(&self) -> Result<Vec<mpsc::Sender<Event<T>>>, BroadcasterStopped> {
        let watches = self.shared.watches.lock();
        if watches.is_shut_down { Err(BroadcasterStopped) } else { Ok(watches.senders.clone()) }
    }
}

/// A watch of a [`Broadcaster`].
#[derive(Debug)]
pub struct BroadcastWatch<T> {
    prefix: std::vec::IntoIter<Event<T>>,
    events: mpsc::Receiver<Event<T>>,
}

impl<T: Send + Unpin> Stream for BroadcastWatch<T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        match self.prefix.next() {
            Some(event) => Poll::Ready(Some(event)),
            None => self.events.poll_recv(cx),
        }
    }
}

impl<T: Send + Unpin> Watch<T> for BroadcastWatch<T> {
    fn stop(&mut self) {
        self.prefix = Vec::new().into_iter();
        self.events.close();
        while self.events.try_recv().is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{FutureExt as _, StreamExt as _};

    async fn rest<T: Send + Unpin>(mut watch: BroadcastWatch<T>) -> Vec<T> {
        let mut seen = Vec::new();
        while let Some(event) = watch.next().await {
            seen.extend(event.into_object());
        }
        seen
    }

    #[tokio::test]
    async fn a_full_watch_misses_events_or_holds_everybody() {
        let dropping = Broadcaster::new(2, FullChannelBehavior::DropIfChannelFull);
        let (slow, mut quick) = (dropping.watch().unwrap(), dropping.watch().unwrap());
        for n in 0..4 {
            assert!(dropping.action_or_drop(Event::Added(n)).unwrap());
            assert_eq!(quick.next().await, Some(Event::Added(n)));
        }
        dropping.shutdown().await;
        assert_eq!(rest(slow).await, [0, 1]);
        assert_eq!(dropping.action(Event::Added(9)).await, Err(BroadcasterStopped));

        let waiting = Broadcaster::new(1, FullChannelBehavior::WaitIfChannelFull);
        let (mut first, second) = (waiting.watch().unwrap(), waiting.watch().unwrap());
        waiting.action(Event::Added(0)).await.unwrap();
        assert!(!waiting.action_or_drop(Event::Added(1)).unwrap());
        let mut sending = Box::pin(waiting.action(Event::Added(2)));
        assert!((&mut sending).now_or_never().is_none(), "it waits for the first watch");
        assert_eq!(first.next().await, Some(Event::Added(0)));
        assert!((&mut sending).now_or_never().is_none(), "it waits for the second watch");
        drop(second);
        sending.await.unwrap();
        assert_eq!(first.next().await, Some(Event::Added(2)));
    }

    #[tokio::test]
    async fn a_prefix_comes_first() {
        let broadcaster = Broadcaster::new(3, FullChannelBehavior::WaitIfChannelFull);
        let watch = broadcaster.watch_with_prefix((0..10).map(Event::Added).collect()).unwrap();
        broadcaster.action(Event::Modified(10)).await.unwrap();
        broadcaster.shutdown().await;
        assert_eq!(rest(watch).await, (0..11).collect::<Vec<_>>());
    }
}
