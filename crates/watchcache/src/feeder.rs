//! Keeping the cache fed: list, then watch; after a failure go on from where it was, and if that is forgotten, list again.

use crate::cache::Inner;
use crate::state::State;
use futures_util::StreamExt;
use pintle_storage::{At, ListRequest, Result, Revision, StorageError, WatchItem, WatchRequest, WatchStream};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// First pause after a failure; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What is to be done next.
enum Next {
    /// List, then watch from there.
    List,
    /// Watch after this revision.
    Watch(Revision),
}

/// Feeds the cache until it is gone.
pub(crate) async fn feed(inner: Weak<Inner>) {
    let mut next = Next::List;
    let mut pause = PAUSE_MIN;
    loop {
        let Some(strong) = inner.upgrade() else { return };
        let opened = match next {
            Next::List => fill(&strong).await,
            Next::Watch(since) => open(&strong, since).await.map(|stream| (stream, since)),
        };
        let prefix = strong.prefix.clone();
        drop(strong);
        match opened {
            Ok((stream, since)) => {
                let (reached, end) = follow(&inner, stream, since).await;
                next = after(end.as_ref(), reached);
                // Only a stream that told something is a success.
                if reached > since {
                    pause = PAUSE_MIN;
                }
                if inner.strong_count() == 0 {
                    return;
                }
                tracing::debug!(%prefix, error = end.map(|end| end.to_string()), "the watch under the cache ended");
            }
            Err(error) => {
                tracing::warn!(%prefix, %error, "the watch cache cannot be fed");
                if matches!(error, StorageError::Expired { .. }) {
                    next = Next::List;
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn after(end: Option<&StorageError>, reached: Revision) -> Next {
    match end {
        None | Some(StorageError::Unavailable { .. }) => Next::Watch(reached),
        Some(_) => Next::List,
    }
}

/// Lists, opens the watch that follows, and shows the new state.
async fn fill(inner: &Arc<Inner>) -> Result<(WatchStream, Revision)> {
    let request = ListRequest { prefix: inner.prefix.clone(), start: None, limit: 0, at: At::Latest };
    let listing = inner.backend.list(request).await?;
    let since = listing.revision;
    let stream = open(inner, since).await?;
    let (filling, floor) = inner.state.load().as_ref().map_or((0, Revision::FIRST), |old| (old.filling, old.floor));
    inner.refill(State::filled(listing, filling + 1, floor));
    Ok((stream, since))
}

async fn open(inner: &Arc<Inner>, since: Revision) -> Result<WatchStream> {
    let request = WatchRequest { prefix: inner.prefix.clone(), since, filter: None, progress: true };
    inner.backend.watch(request).await
}

/// Applies what the stream tells, until it ends. Answers how far it came, and its error.
async fn follow(inner: &Weak<Inner>, mut stream: WatchStream, since: Revision) -> (Revision, Option<StorageError>) {
    let mut reached = since;
    while let Some(item) = stream.next().await {
        let Some(inner) = inner.upgrade() else { return (reached, None) };
        match item {
            Ok(WatchItem::Events(events)) => {
                reached = events.last().map_or(reached, |last| last.revision);
                inner.apply(&events);
            }
            Ok(WatchItem::Progress(revision)) => {
                reached = reached.max(revision);
                inner.advance(revision);
            }
            Err(error) => return (reached, Some(error)),
        }
        drop(inner);
        // A back end that always has more must not keep this thread to itself.
        tokio::task::coop::consume_budget().await;
    }
    (reached, None)
}
