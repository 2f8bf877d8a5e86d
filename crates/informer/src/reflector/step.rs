//! The reflector's protocol as a state machine without I/O: what happened goes in, what to do comes out.
//!
//! Follows: client-go tools/cache/reflector.go (v0.35). Differs: a watch that fails for a passing reason (5xx, 429, a
//! broken connection) is opened again from its version after a pause, where upstream lists again; and lists in pages,
//! after the first, ask for the newest version.

use crate::backoff::{Backoff, BackoffConfig};
use pintle_apimachinery::env::IdSource;
use pintle_client::Error;
use pintle_client::options::{ListOptions, ResourceVersionMatch};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A watch that ends sooner than this without an event is suspicious: the next one waits.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Watches ask to be ended after a random time between this and twice this, so that they spread over servers.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(300);

/// What a failure means for the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The version is gone.
    Expired,
    /// The server has not yet seen the version.
    TooLargeVersion,
    /// The server does not take such a request: no streaming lists, say.
    Refused,
    /// It may work next time: no connection, too busy, an internal error.
    Passing,
}

impl Failure {
    /// What an error means.
    pub fn of(error: &Error) -> Failure {
        if error.is_expired() || error.is_gone() {
            return Failure::Expired;
        }
        if error.is_too_large_resource_version() {
            return Failure::TooLargeVersion;
        }
        match error.code() {
            Some(code) if (400..500).contains(&code) && code != 429 && code != 408 => Failure::Refused,
            Some(_) | None => Failure::Passing,
        }
    }
}

/// Where the protocol stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A list, or a page of it, is asked for.
    Listing {
        /// Where the page starts; empty for the first.
        continue_token: String,
        /// Whether pages are asked for at all.
        is_paged: bool,
    },
    /// A watch that begins with what is there: before the marked bookmark.
    InitialEvents,
    /// A watch from the last version.
    Watching,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The reflector starts, or the pause that was asked for is over.
    Ready,
    /// A list, or a page of it, has come; its objects are in the buffer.
    Listed {
        /// Its version.
        resource_version: String,
        /// Where the next page starts; empty at the end.
        continue_token: String,
    },
    /// The list failed.
    ListFailed(Failure),
    /// The watch is open.
    WatchOpened,
    /// The watch could not be opened.
    WatchFailed(Failure),
    /// The watch told of a change, which the caller holds.
    Changed {
        /// The version of the object.
        resource_version: String,
    },
    /// The watch told its version.
    Bookmark {
        /// The version.
        resource_version: String,
        /// Whether this ends the initial events.
        is_initial_events_end: bool,
    },
    /// The watch ended with an error.
    WatchErred(Failure),
    /// The watch ended.
    WatchClosed,
}

/// What to do with the objects at hand, before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAction {
    /// Nothing.
    None,
    /// Empty the buffer.
    ClearBuffer,
    /// Put the change into the buffer.
    Buffer,
    /// Put the change into the store.
    Apply,
    /// Replace the store's contents by the buffer, at the last version.
    Replace,
    /// Tell the store the last version.
    Bookmark,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Do {
    /// Ask for a list; its objects go into the buffer.
    List(ListOptions),
    /// Open a watch.
    Watch(ListOptions),
    /// Read the next event of the open watch.
    Read,
    /// Wait, then come back with [`Input::Ready`].
    Wait(Duration),
}

/// The answer to an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// First.
    pub store: StoreAction,
    /// Then.
    pub then: Do,
}

/// The state of the protocol.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Where it stands. While a pause is made, where it will go on.
    phase: Phase,
    /// The version of the last list, change or bookmark; empty before the first.
    last_version: String,
    /// The server does not know `last_version` any more, or not yet: the next list takes whatever is newest.
    is_last_version_unavailable: bool,
    /// Whether lists come as watches. Given up for good when the server refuses.
    uses_watch_list: bool,
    /// Objects in one page of a list; 0 for all at once.
    page_size: u32,
    backoff: Backoff,
    ids: Arc<dyn IdSource>,
    watch_opened_at: Option<Instant>,
    has_watch_told: bool,
}

impl Machine {
    /// The state before anything is known.
    pub fn new(uses_watch_list: bool, page_size: u32, backoff: BackoffConfig, ids: Arc<dyn IdSource>) -> Machine {
        let phase = if uses_watch_list { Phase::InitialEvents } else { first_page(page_size) };
        Machine {
            phase,
            last_version: String::new(),
            is_last_version_unavailable: false,
            uses_watch_list,
            page_size,
            backoff: Backoff::new(backoff, Arc::clone(&ids)),
            ids,
            watch_opened_at: None,
            has_watch_told: false,
        }
    }

    /// The version of the last list, change or bookmark.
    pub fn last_version(&self) -> &str {
        &self.last_version
    }

    /// Where the protocol stands.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// What to do about `input`.
    pub fn step(&mut self, input: Input, now: Instant) -> Step {
        match input {
            Input::Ready => Step { store: StoreAction::None, then: self.ask() },
            Input::Listed { resource_version, continue_token } => self.listed(resource_version, continue_token),
            Input::ListFailed(failure) => self.list_failed(failure, now),
            Input::WatchOpened => {
                self.watch_opened_at = Some(now);
                self.has_watch_told = false;
                Step { store: StoreAction::None, then: Do::Read }
            }
            Input::WatchFailed(failure) => self.watch_failed(failure, now),
            Input::WatchErred(failure) => self.watch_failed(failure, now),
            Input::Changed { resource_version } => self.changed(resource_version),
            Input::Bookmark { resource_version, is_initial_events_end } => {
                self.bookmark(resource_version, is_initial_events_end)
            }
            Input::WatchClosed => self.watch_closed(now),
        }
    }

    /// The request that the phase stands for.
    fn ask(&self) -> Do {
        match &self.phase {
            Phase::Listing { continue_token, is_paged } => Do::List(self.list_options(continue_token, *is_paged)),
            Phase::InitialEvents => {
                let version = if self.is_last_version_unavailable { "" } else { &self.last_version };
                Do::Watch(ListOptions {
                    resource_version: version.to_owned(),
                    resource_version_match: Some(ResourceVersionMatch::NotOlderThan),
                    send_initial_events: Some(true),
                    ..self.watch_options()
                })
            }
            Phase::Watching => {
                Do::Watch(ListOptions { resource_version: self.last_version.clone(), ..self.watch_options() })
            }
        }
    }

    fn list_options(&self, continue_token: &str, is_paged: bool) -> ListOptions {
        let version = if continue_token.is_empty() { self.first_page_version(is_paged) } else { "" };
        ListOptions {
            resource_version: version.to_owned(),
            limit: is_paged.then_some(self.page_size),
            continue_token: continue_token.to_owned(),
            ..ListOptions::default()
        }
    }

    /// Any version at first, from the server's cache; then none older than what was seen; the newest if the server does
    /// not know that one, and for pages: a list with a limit and a version is of that very version, from which a watch
    /// may just have been too old.
    fn first_page_version(&self, is_paged: bool) -> &str {
        match (self.is_last_version_unavailable, self.last_version.is_empty()) {
            (false, true) => "0",
            (false, false) if !is_paged => &self.last_version,
            (true, _) | (false, false) => "",
        }
    }

    fn watch_options(&self) -> ListOptions {
        let span = WATCH_TIMEOUT_MIN.as_secs();
        let seconds = span + self.ids.random_u64() % span;
        ListOptions {
            timeout_seconds: u32::try_from(seconds).ok(),
            allow_watch_bookmarks: true,
            ..ListOptions::default()
        }
    }

    fn listed(&mut self, resource_version: String, continue_token: String) -> Step {
        debug_assert!(matches!(self.phase, Phase::Listing { .. }), "a list came in {:?}", self.phase);
        if !continue_token.is_empty() {
            self.phase = Phase::Listing { continue_token, is_paged: true };
            return Step { store: StoreAction::None, then: self.ask() };
        }
        self.synced(resource_version);
        Step { store: StoreAction::Replace, then: self.ask() }
    }

    /// Everything up to this version is in the buffer.
    fn synced(&mut self, resource_version: String) {
        self.last_version = resource_version;
        self.is_last_version_unavailable = false;
        self.phase = Phase::Watching;
        self.backoff.reset();
    }

    fn list_failed(&mut self, failure: Failure, now: Instant) -> Step {
        let (was_in_a_later_page, asked_for_newest) = match &self.phase {
            Phase::Listing { continue_token, is_paged } => {
                (!continue_token.is_empty(), self.first_page_version(*is_paged).is_empty())
            }
            Phase::InitialEvents | Phase::Watching => (false, false),
        };
        let then = match failure {
            Failure::Expired if was_in_a_later_page => {
                // the pages took longer than the server remembers: all at once
                self.phase = Phase::Listing { continue_token: String::new(), is_paged: false };
                self.ask()
            }
            Failure::Expired | Failure::TooLargeVersion if !asked_for_newest => {
                self.is_last_version_unavailable = true;
                self.phase = first_page(self.page_size);
                self.ask()
            }
            Failure::Expired | Failure::TooLargeVersion | Failure::Refused | Failure::Passing => {
                self.start_over();
                Do::Wait(self.backoff.next(now))
            }
        };
        Step { store: StoreAction::ClearBuffer, then }
    }

    /// The next request is for everything.
    fn start_over(&mut self) {
        self.phase = if self.uses_watch_list { Phase::InitialEvents } else { first_page(self.page_size) };
    }

    fn changed(&mut self, resource_version: String) -> Step {
        self.has_watch_told = true;
        match self.phase {
            // the version counts once everything is there
            Phase::InitialEvents => Step { store: StoreAction::Buffer, then: Do::Read },
            Phase::Watching | Phase::Listing { .. } => {
                self.last_version = resource_version;
                self.backoff.reset();
                Step { store: StoreAction::Apply, then: Do::Read }
            }
        }
    }

    fn bookmark(&mut self, resource_version: String, is_initial_events_end: bool) -> Step {
        self.has_watch_told = true;
        let store = match (&self.phase, is_initial_events_end) {
            (Phase::InitialEvents, true) => {
                self.synced(resource_version);
                StoreAction::Replace
            }
            (Phase::InitialEvents, false) => StoreAction::None,
            (Phase::Watching | Phase::Listing { .. }, _) => {
                if !resource_version.is_empty() {
                    self.last_version = resource_version;
                }
                StoreAction::Bookmark
            }
        };
        Step { store, then: Do::Read }
    }

    fn watch_failed(&mut self, failure: Failure, now: Instant) -> Step {
        let is_initial = self.phase == Phase::InitialEvents;
        let made_progress = self.made_progress(now);
        let then = match failure {
            Failure::Expired | Failure::TooLargeVersion => {
                // From a list of whatever version, upstream goes on at once; if even that fails, this one pauses.
                let is_repeated = is_initial && self.is_last_version_unavailable;
                self.is_last_version_unavailable = self.is_last_version_unavailable || is_initial;
                self.start_over();
                if is_repeated || !(is_initial || made_progress) {
                    Do::Wait(self.backoff.next(now))
                } else {
                    self.ask()
                }
            }
            Failure::Refused if is_initial => {
                self.uses_watch_list = false;
                self.start_over();
                self.ask()
            }
            Failure::Refused => {
                self.start_over();
                Do::Wait(self.backoff.next(now))
            }
            Failure::Passing => Do::Wait(self.backoff.next(now)),
        };
        Step { store: StoreAction::ClearBuffer, then }
    }

    fn watch_closed(&mut self, now: Instant) -> Step {
        let then = if self.made_progress(now) { self.ask() } else { Do::Wait(self.backoff.next(now)) };
        Step { store: StoreAction::ClearBuffer, then }
    }

    /// Whether the watch that ended told something or at least lasted.
    fn made_progress(&self, now: Instant) -> bool {
        let lasted = self.watch_opened_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        (self.has_watch_told && self.phase != Phase::InitialEvents) || lasted >= SHORT_WATCH
    }
}

fn first_page(page_size: u32) -> Phase {
    Phase::Listing { continue_token: String::new(), is_paged: page_size > 0 }
}

#[cfg(test)]
mod tests;
