//! Widening the window into the past: after a start it begins at the present, while watchers come back that have seen
//! everything up to a moment ago. What they ask for is read from the back end once, for all of them.

use crate::cache::Inner;
use crate::watcher::Bridge;
use futures_util::StreamExt;
use pintle_storage::{Event, Result, Revision, StorageError, WatchItem, WatchRequest};
use std::sync::Arc;

/// What is known about the past.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// The newest revision from which on everything was too much for the window.
    too_much_since: Option<Revision>,
}

impl Inner {
    /// Sees to it that the window has everything after a revision, if there is room for it.
    ///
    /// # Errors
    /// `Expired` when the back end does not have it.
    pub(crate) async fn backfill(&self, since: Revision) -> Result<()> {
        let mut past = self.past.lock().await;
        let Some(state) = self.state.load_full() else { return Ok(()) };
        let until = state.window.since();
        if since >= until || past.too_much_since.is_some_and(|too_much| since <= too_much) {
            return Ok(());
        }
        let request = WatchRequest { prefix: self.prefix.clone(), since, filter: None, progress: true };
        let bridge = self.bridge(&request).await?;
        let n_events_max = self.options.window_events_max.saturating_sub(state.window.len());
        let n_bytes_max = self.options.window_bytes_max.saturating_sub(state.window.bytes());
        let Some(older) = collect(bridge, until, n_events_max, n_bytes_max).await? else {
            past.too_much_since = Some(since);
            return Ok(());
        };
        self.change(|state| {
            // Meanwhile the window may have moved on, or the cache been filled anew: then the piece does not fit.
            if state.window.since() == until {
                state.window.prepend(since, older);
            }
        });
        Ok(())
    }
}

/// The events of the bridge up to a revision, if they are not too many.
async fn collect(
    mut bridge: Bridge,
    until: Revision,
    n_events_max: usize,
    n_bytes_max: usize,
) -> Result<Option<Vec<Arc<Event>>>> {
    let mut older: Vec<Arc<Event>> = Vec::new();
    let mut n_bytes = 0;
    loop {
        let ended = || StorageError::Unavailable { why: "the watch of the back end ended".to_owned() };
        match bridge.stream.next().await.ok_or_else(ended)?? {
            WatchItem::Progress(revision) if revision >= until => return Ok(Some(older)),
            WatchItem::Progress(_) => {}
            WatchItem::Events(events) => {
                let is_over = events.last().is_some_and(|last| last.revision > until);
                older.extend(events.into_iter().filter(|event| event.revision <= until).inspect(|event| {
                    n_bytes += crate::window::bytes_of(event);
                }));
                if is_over {
                    return Ok(Some(older));
                }
                if older.len() > n_events_max || n_bytes > n_bytes_max {
                    return Ok(None);
                }
            }
        }
    }
}
