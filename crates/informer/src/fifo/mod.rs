//! The queues between a reflector and a cache: [`DeltaFifo`], which gathers the changes of one object, and
//! [`RealFifo`], which keeps all changes in their order.
//!
//! Both turn a replaced state into deletions of what is no longer there, by comparing with the objects known
//! downstream, so that no deletion is lost when a watch was down.

mod delta_fifo;
mod real_fifo;

pub use delta_fifo::DeltaFifo;
pub use real_fifo::{RealFifo, WAITING_CHANGES_MAX};

use crate::ObjectName;
use crate::store::{Item, Store};
use std::ops::Deref;

/// A change of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta<T> {
    /// It is new.
    Added(T),
    /// It has changed.
    Updated(T),
    /// It is gone.
    Deleted(Deleted<T>),
    /// It was in a list: it is new, has changed, or is as it was.
    Replaced(T),
    /// It is as it was; somebody wants to look at it again.
    Sync(T),
}

impl<T> Delta<T> {
    /// The object, whatever happened to it.
    pub fn object(&self) -> &T {
        match self {
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) | Delta::Sync(object) => object,
            Delta::Deleted(deleted) => deleted.object(),
        }
    }

    /// Upstream's name of the change.
    pub fn type_name(&self) -> &'static str {
        match self {
            Delta::Added(_) => "Added",
            Delta::Updated(_) => "Updated",
            Delta::Deleted(_) => "Deleted",
            Delta::Replaced(_) => "Replaced",
            Delta::Sync(_) => "Sync",
        }
    }
}

/// An object that is gone.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted<T> {
    /// As it was when it went.
    Final(T),
    /// The deletion was missed (the watch was down); this is the last state known, and the final one may differ.
    FinalStateUnknown(T),
}

impl<T> Deleted<T> {
    /// The object: its final state, or the last one known.
    pub fn object(&self) -> &T {
        match self {
            Deleted::Final(object) | Deleted::FinalStateUnknown(object) => object,
        }
    }

    /// The object: its final state, or the last one known.
    pub fn into_object(self) -> T {
        match self {
            Deleted::Final(object) | Deleted::FinalStateUnknown(object) => object,
        }
    }

    /// Whether the deletion was missed.
    pub fn is_final_state_unknown(&self) -> bool {
        matches!(self, Deleted::FinalStateUnknown(_))
    }
}

impl<T> Deref for Deleted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.object()
    }
}

/// The objects known downstream of a queue.
pub trait KnownObjects<T>: Send + Sync {
    /// Names of all of them, ordered.
    fn list_keys(&self) -> Vec<ObjectName>;

    /// One of them.
    fn get_by_key(&self, name: &ObjectName) -> Option<T>;

    /// The equal of `object` that is known, if any.
    fn held(&self, object: T) -> T;
}

impl<T: Item> KnownObjects<T> for crate::store::Indexer<T> {
    fn list_keys(&self) -> Vec<ObjectName> {
        crate::store::Indexer::list_keys(self)
    }

    fn get_by_key(&self, name: &ObjectName) -> Option<T> {
        self.get(name)
    }

    fn held(&self, object: T) -> T {
        Store::held(self, object)
    }
}

/// Why something popped from a queue could not be processed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ProcessError(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// Processes the changes of one object, oldest first, and hears whether they are part of the initial list.
///
/// It runs while the queue is locked, so that what is known downstream is never behind what was popped: it must be
/// quick and must not use the queue.
pub type Process<'a, T> = &'a mut (dyn FnMut(Vec<Delta<T>>, bool) -> Result<(), ProcessError> + Send);

/// What came of a [`Queue::try_pop`].
#[derive(Debug)]
pub enum Popped {
    /// Something was processed, with this result.
    Processed(ObjectName, Result<(), ProcessError>),
    /// There is nothing to process.
    Empty,
    /// There is nothing to process and never will be.
    Closed,
}

/// A queue between a reflector and a cache.
pub trait Queue<T: Item>: Store<T> {
    /// Takes out the next changes and processes them.
    fn try_pop(&self, process: Process<'_, T>) -> Popped;

    /// Completes when something may have arrived since the call, or the queue was closed.
    fn arrived(&self) -> tokio::sync::futures::Notified<'_>;

    /// Completes when something was taken out since the call.
    fn popped(&self) -> tokio::sync::futures::Notified<'_>;

    /// Puts the changes back in front of what came later, unless the object has newer ones.
    fn add_if_not_present(&self, deltas: Vec<Delta<T>>);

    /// Whether the first list has been put in and everything of it taken out.
    fn has_synced(&self) -> bool;

    /// Lets the pops drain the queue and then end.
    fn close(&self);

    /// Changes waiting.
    fn len(&self) -> usize;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
