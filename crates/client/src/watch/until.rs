//! Waiting for a condition: on one watch, on a watch that is reopened when it ends, on an object by its name.

use super::{Event, StreamWatcher, Watch};
use crate::api::Api;
use crate::error::{Error, Result};
use crate::options::ListOptions;
use crate::resource::Object;
use futures_util::StreamExt as _;
use std::time::Duration;

/// How long a [`RetryWatcher`] and [`until`] wait before they open a watch again.
const REOPEN_DELAY: Duration = Duration::from_secs(1);

/// Why waiting for a condition ended without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UntilError {
    /// The watch ended before the condition held.
    #[error("watch closed before UntilWithoutRetry timeout")]
    WatchClosed,
    /// The condition did not hold in time.
    #[error("timed out waiting for the condition")]
    Timeout,
    /// The server refused, or the condition failed.
    #[error("cannot wait for the condition")]
    Request(#[source] Error),
}

/// Reads `watch` until `condition` holds for an event, and gives that event.
///
/// # Errors
/// [`UntilError::WatchClosed`] when the watch ends first; [`UntilError::Request`] when the watch shows an error or
/// `condition` gives one.
pub async fn until_without_retry<T>(
    watch: &mut (impl Watch<T> + ?Sized),
    mut condition: impl FnMut(&Event<T>) -> Result<bool>,
) -> Result<Event<T>, UntilError> {
    while let Some(event) = watch.next().await {
        if let Event::Error(status) = event {
            return Err(UntilError::Request(Error::Api(status)));
        }
        if condition(&event).map_err(UntilError::Request)? {
            return Ok(event);
        }
    }
    Err(UntilError::WatchClosed)
}

/// A watch that goes on: when it ends or breaks it is opened again from the last version seen. It ends when the server
/// has forgotten that version.
#[derive(Debug)]
pub struct RetryWatcher<K> {
    api: Api<K>,
    options: ListOptions,
    watch: Option<StreamWatcher<K>>,
}

impl<K: Object> RetryWatcher<K> {
    /// Follows what happens after `options.resource_version`.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] without a version, or with `"0"`: the events before the first version seen could not
    /// be told apart from those lost.
    pub fn new(api: Api<K>, options: ListOptions) -> Result<RetryWatcher<K>> {
        if matches!(options.resource_version.as_str(), "" | "0") {
            let why = format!(
                "initial RV {:?} is not supported due to issues with underlying WATCH",
                options.resource_version
            );
            return Err(Error::InvalidRequest(why));
        }
        Ok(RetryWatcher { api, options: options.bookmarks(), watch: None })
    }

    /// The version up to which events were seen.
    pub fn last_resource_version(&self) -> &str {
        &self.options.resource_version
    }

    /// The next event. An [`Event::Error`] is the last. Cancel-safe.
    pub async fn next(&mut self) -> Event<K> {
        loop {
            let watch = match &mut self.watch {
                Some(watch) => watch,
                None => match self.api.watch().options(self.options.clone()).await {
                    Ok(watch) => self.watch.insert(watch),
                    Err(error) => {
                        if let Some(status) = error.status().filter(|_| is_final(&error)) {
                            return Event::Error(Box::new(status.clone()));
                        }
                        tokio::time::sleep(error.suggested_delay().unwrap_or(REOPEN_DELAY)).await;
                        continue;
                    }
                },
            };
            match watch.next().await {
                None => {
                    self.watch = None;
                    tokio::time::sleep(REOPEN_DELAY).await;
                }
                Some(Event::Error(status)) => {
                    self.watch = None;
                    let error = Error::Api(status);
                    if let Some(status) = error.status().filter(|_| is_final(&error)) {
                        return Event::Error(Box::new(status.clone()));
                    }
                    tokio::time::sleep(error.suggested_delay().unwrap_or(REOPEN_DELAY)).await;
                }
                Some(Event::Bookmark(bookmark)) => self.options.resource_version = bookmark.resource_version,
                Some(event) => {
                    if let Some(object) = event.object() {
                        object.resource_version().clone_into(&mut self.options.resource_version);
                    }
                    return event;
                }
            }
        }
    }
}

/// Whether opening the watch again cannot help.
fn is_final(error: &Error) -> bool {
    match error.code() {
        Some(429) | None => false,
        Some(code) => code < 500,
    }
}

/// Waits until `condition` holds for the object `name`, and gives it. It is asked about the object as it is now
/// (`None` when there is none), then about each change.
///
/// # Errors
/// [`UntilError::Timeout`] after `timeout`; [`UntilError::Request`] when the server refuses for good.
pub async fn until<K: Object>(
    api: &Api<K>,
    name: &str,
    timeout: Duration,
    mut condition: impl FnMut(Option<&K>) -> bool + Send,
) -> Result<Option<K>, UntilError> {
    let waiting = async {
        loop {
            if let Some(found) = follow(api, name, &mut condition).await? {
                return Ok(found);
            }
            tokio::time::sleep(REOPEN_DELAY).await;
        }
    };
    tokio::time::timeout(timeout, waiting).await.unwrap_or(Err(UntilError::Timeout))
}

/// One list and one watch; `None` when the watch ended before the condition held.
async fn follow<K: Object>(
    api: &Api<K>,
    name: &str,
    condition: &mut (impl FnMut(Option<&K>) -> bool + Send),
) -> Result<Option<Option<K>>, UntilError> {
    let passing =
        |error: Error| if is_final(&error) && !error.is_expired() { Err(UntilError::Request(error)) } else { Ok(None) };
    let list = match api.list().fields(format_args!("metadata.name={name}")).await {
        Ok(list) => list,
        Err(error) => return passing(error),
    };
    let version = list.resource_version().to_owned();
    let now = list.items.into_iter().next();
    if condition(now.as_ref()) {
        return Ok(Some(now));
    }
    let mut watch = match api.watch_one(name).resource_version(version).await {
        Ok(watch) => watch,
        Err(error) => return passing(error),
    };
    while let Some(event) = watch.next().await {
        match event {
            Event::Added(object) | Event::Modified(object) => {
                if condition(Some(&object)) {
                    return Ok(Some(Some(object)));
                }
            }
            Event::Deleted(_) => {
                if condition(None) {
                    return Ok(Some(None));
                }
            }
            Event::Bookmark(_) => {}
            Event::Error(status) => return passing(Error::Api(status)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::RaceFreeFakeWatcher;
    use super::*;

    #[tokio::test]
    async fn conditions_on_one_watch() {
        let (fake, mut watch) = RaceFreeFakeWatcher::new();
        for n in [1, 2, 3] {
            fake.add(n).unwrap();
        }
        let is = |wanted: i32| move |event: &Event<i32>| Ok(event.object() == Some(&wanted));
        assert_eq!(until_without_retry(&mut watch, is(2)).await.unwrap(), Event::Added(2));
        fake.stop();
        assert!(matches!(until_without_retry(&mut watch, is(9)).await, Err(UntilError::WatchClosed)));
        let (fake, mut watch) = RaceFreeFakeWatcher::<i32>::new();
        let status = pintle_apimachinery::Status::expired("too old");
        fake.action(Event::Error(Box::new(status))).unwrap();
        let error = until_without_retry(&mut watch, is(1)).await.unwrap_err();
        assert_eq!(crate::error::chain_text(&error), "cannot wait for the condition: too old");
    }
}
