//! What a watch tells.

use pintle_apimachinery::Status;

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<T> {
    /// The object is new to this watch: made, or now selected, or there when the watch began.
    Added(T),
    /// The object has changed.
    Modified(T),
    /// The object is gone or no longer selected; this is its last content, with the version of the deletion.
    Deleted(T),
    /// Nothing changed up to this version.
    Bookmark(Bookmark),
    /// The watch failed and ends. [`Status::is`]`("Expired")` asks for a new list.
    Error(Box<Status>),
}

/// A version without a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    /// The version.
    pub resource_version: String,
    /// Whether everything that was there when the watch began has now been sent (`sendInitialEvents`).
    pub is_initial_events_end: bool,
}

impl<T> Event<T> {
    /// The object of a change.
    pub fn object(&self) -> Option<&T> {
        match self {
            Event::Added(object) | Event::Modified(object) | Event::Deleted(object) => Some(object),
            Event::Bookmark(_) | Event::Error(_) => None,
        }
    }

    /// The object of a change.
    pub fn into_object(self) -> Option<T> {
        match self {
            Event::Added(object) | Event::Modified(object) | Event::Deleted(object) => Some(object),
            Event::Bookmark(_) | Event::Error(_) => None,
        }
    }

    /// The same event about another form of the object.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Event<U> {
        match self {
            Event::Added(object) => Event::Added(f(object)),
            Event::Modified(object) => Event::Modified(f(object)),
            Event::Deleted(object) => Event::Deleted(f(object)),
            Event::Bookmark(bookmark) => Event::Bookmark(bookmark),
            Event::Error(status) => Event::Error(status),
        }
    }

    /// The type as it stands on the wire.
    pub fn type_name(&self) -> &'static str {
        match self {
            Event::Added(_) => "ADDED",
            Event::Modified(_) => "MODIFIED",
            Event::Deleted(_) => "DELETED",
            Event::Bookmark(_) => "BOOKMARK",
            Event::Error(_) => "ERROR",
        }
    }
}
