//! Checks of recorded histories against guarantees that have names. The same checks run over unit tests, the conformance
//! suite, property tests, simulations and real back ends: a test records what it saw, then asks here whether that can be.
//!
//! [`watches`] holds the guarantees of a watch, [`writes`] those of reads and writes. Both compare with a [`History`]:
//! all events of a store, as told by a watch from its beginning.

mod history;
pub mod watches;
pub mod writes;

pub use history::{History, fold};
pub use watches::{Recording, check_watch};
pub use writes::{Journal, Operation, Outcome, Request, check_operations};

use crate::{Key, Revision};

/// A guarantee that a history breaks: its name and the evidence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{guarantee} is broken: {evidence}")]
pub struct Violation {
    /// The guarantee's name.
    pub guarantee: Guarantee,
    /// What was seen that cannot be.
    pub evidence: String,
}

/// The guarantees that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Revisions never go back.
    Ordered,
    /// Each event is told once.
    Unique,
    /// The events of one revision come together.
    Atomic,
    /// No event is left out between two that are told.
    Reliable,
    /// A watch from the revision of any event tells the rest.
    Resumable,
    /// After a bookmark come only events newer than it, and none older than it was left out.
    Bookmarkable,
    /// Each event carries what the key held before.
    PrevKv,
    /// Left out is only what does not match, before and after.
    Filter,
    /// Reads and writes of a key look as if each happened at one moment between its call and its answer.
    Linearizable,
}

impl std::fmt::Display for Guarantee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Guarantee::Ordered => "Ordered",
            Guarantee::Unique => "Unique",
            Guarantee::Atomic => "Atomic",
            Guarantee::Reliable => "Reliable",
            Guarantee::Resumable => "Resumable",
            Guarantee::Bookmarkable => "Bookmarkable",
            Guarantee::PrevKv => "PrevKV",
            Guarantee::Filter => "Filter",
            Guarantee::Linearizable => "Linearizable",
        };
        f.write_str(name)
    }
}

/// The result of a check.
pub type Verdict = Result<(), Violation>;

fn broken(guarantee: Guarantee, evidence: String) -> Verdict {
    Err(Violation { guarantee, evidence })
}

/// A version of a key in few words.
fn at(key: &Key, revision: Revision) -> String {
    format!("{key}@{revision}")
}

#[cfg(test)]
mod tests;
