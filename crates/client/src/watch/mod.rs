//! Following changes: events, and where they come from.
//!
//! Follows: apimachinery/pkg/watch (v0.35). Differs: a watch is a [`Stream`](futures_util::Stream) that is polled, so
//! nothing runs and nothing is buffered between the server and its reader; dropping it closes it.

mod broadcaster;
mod event;
mod simple;
mod stream_watcher;
mod until;

pub use broadcaster::{BroadcastWatch, Broadcaster, BroadcasterStopped, FullChannelBehavior};
pub use event::{Bookmark, Event};
pub use simple::{
    ChannelWatch, EmptyWatch, FAKE_EVENTS_MAX, FakeWatchError, FakeWatcher, FilteredWatch, RaceFreeFakeWatcher,
    Stopped, filter,
};
pub use stream_watcher::{BodyDecoder, ClientErrorReporter, Decoder, Reporter, Stopper, StreamWatcher};
pub use until::{RetryWatcher, UntilError, until, until_without_retry};

use futures_util::Stream;

/// Anything that can be followed: upstream's `watch.Interface`. The stream is its result channel.
///
/// A reader that gets [`Event::Error`] gets nothing after it. The end of the stream without an error means that the
/// server closed the watch, as it does from time to time: watch again from the last version seen.
pub trait Watch<T>: Stream<Item = Event<T>> + Send + Unpin {
    /// Ends the watch: the stream gives nothing more. Stopping twice does nothing more.
    fn stop(&mut self);
}

/// A watch of any making.
pub type BoxWatch<T> = Box<dyn Watch<T>>;
