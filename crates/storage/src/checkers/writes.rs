//! The guarantees of reads and writes: a [`Journal`] records calls and answers, [`check_operations`] asks whether each
//! can have happened at one moment between the two. The revisions of the writes are the witness: if the calls are
//! linearizable at all, then in the order of their revisions.

use super::history::History;
use super::{Guarantee, Verdict, at, broken};
use crate::{Event, Found, Key, Record, Result, Revision, StorageError};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was asked for.
#[derive(Clone, Debug)]
pub enum Request {
    /// To create the key with this value.
    Create(Bytes),
    /// To replace the value of the key, which must stand at this revision.
    Update(Bytes, Revision),
    /// To delete the key, which must stand at this revision, if one is given.
    Delete(Option<Revision>),
    /// To read the newest state.
    Get,
}

/// What was answered.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The write was done, at this revision.
    Written(Revision),
    /// The key stood at this revision, or was not there. Answers a read and explains a refusal.
    Stood(Option<Revision>),
    /// Nothing was written, for a reason that says nothing about the key (a full disk).
    Refused,
    /// The write may or may not have been done, now or later.
    Unknown,
}

/// One call with its answer.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The key.
    pub key: Key,
    /// What was asked for.
    pub request: Request,
    /// What was answered.
    pub outcome: Outcome,
    /// The moment of the call, in the journal's count.
    pub called: u64,
    /// The moment of the answer.
    pub answered: u64,
}

/// Records calls by many tasks. Its clock counts calls and answers.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Mutex<(u64, Vec<Operation>)>,
}

impl Journal {
    /// The moment of a call, to be handed to one of the methods below with the answer.
    pub fn call(&self) -> u64 {
        let mut entries = self.entries.lock();
        entries.0 += 1;
        entries.0
    }

    fn answer(&self, called: u64, key: Key, request: Request, outcome: Outcome) {
        let mut entries = self.entries.lock();
        entries.0 += 1;
        let answered = entries.0;
        entries.1.push(Operation { key, request, outcome, called, answered });
    }

    /// The answer to a create or update.
    pub fn put(&self, called: u64, key: Key, request: Request, answer: &Result<Arc<Record>>) {
        let outcome = match answer {
            Ok(record) => Outcome::Written(record.revision),
            Err(error) => refusal(error),
        };
        self.answer(called, key, request, outcome);
    }

    /// The answer to a delete.
    pub fn delete(&self, called: u64, key: Key, expected: Option<Revision>, answer: &Result<Arc<Event>>) {
        let outcome = match answer {
            Ok(event) => Outcome::Written(event.revision),
            Err(error) => refusal(error),
        };
        self.answer(called, key, Request::Delete(expected), outcome);
    }

    /// The answer to a get of the newest state.
    pub fn get(&self, called: u64, key: Key, answer: &Result<Found>) {
        let outcome = match answer {
            Ok(found) => Outcome::Stood(found.record.as_ref().map(|record| record.revision)),
            Err(_) => Outcome::Refused,
        };
        self.answer(called, key, Request::Get, outcome);
    }

    /// Notes that a write was given up: it may or may not happen.
    pub fn give_up(&self, called: u64, key: Key, request: Request) {
        self.answer(called, key, request, Outcome::Unknown);
    }

    /// What was recorded so far, in the order of the answers.
    pub fn operations(&self) -> Vec<Operation> {
        self.entries.lock().1.clone()
    }
}

fn refusal(error: &StorageError) -> Outcome {
    match error {
        StorageError::AlreadyExists { stored, .. } | StorageError::Conflict { stored, .. } => {
            Outcome::Stood(Some(*stored))
        }
        StorageError::NotFound { .. } => Outcome::Stood(None),
        StorageError::Unavailable { .. } => Outcome::Unknown,
        StorageError::Expired { .. }
        | StorageError::Future { .. }
        | StorageError::TooLarge { .. }
        | StorageError::ReadOnly { .. }
        | StorageError::Corrupt { .. } => Outcome::Refused,
    }
}

/// When a write happened at the earliest and at the latest.
#[derive(Clone, Copy, Debug)]
struct Moment {
    earliest: u64,
    latest: u64,
}

/// Whether the operations can have had the effects that the history shows, each at one moment between call and answer.
///
/// # Errors
/// The first operation that cannot.
pub fn check_operations(operations: &[Operation], history: &History) -> Verdict {
    let moments = written(operations, history)?;
    real_time(operations)?;
    for operation in operations {
        if let Outcome::Stood(stood) = operation.outcome {
            was_so(operation, stood, history, &moments)?;
        }
    }
    Ok(())
}

/// Every acknowledged write is in the history as it was asked for; says when each write of the history happened.
fn written(operations: &[Operation], history: &History) -> Result<BTreeMap<Revision, Moment>, super::Violation> {
    let events: BTreeMap<Revision, &Arc<Event>> = history.events.iter().map(|event| (event.revision, event)).collect();
    let mut moments = BTreeMap::new();
    for operation in operations {
        let Outcome::Written(revision) = operation.outcome else { continue };
        let name = at(&operation.key, revision);
        let Some(event) = events.get(&revision) else {
            broken(Guarantee::Linearizable, format!("{name} was acknowledged and is lost"))?;
            continue;
        };
        if !does(operation, event) {
            broken(Guarantee::Linearizable, format!("{name} is {event:?}, asked was {:?}", operation.request))?;
        }
        let moment = Moment { earliest: operation.called, latest: operation.answered };
        if moments.insert(revision, moment).is_some() {
            broken(Guarantee::Linearizable, format!("{name} was acknowledged to two writers"))?;
        }
    }
    Ok(moments)
}

/// Whether the event is what the operation asked for.
fn does(operation: &Operation, event: &Event) -> bool {
    let previous = event.previous.as_ref().map(|record| record.revision);
    let value = event.record.as_ref().map(|record| &record.value);
    event.key == operation.key
        && match &operation.request {
            Request::Create(bytes) => value == Some(bytes) && previous.is_none(),
            Request::Update(bytes, expected) => value == Some(bytes) && previous == Some(*expected),
            Request::Delete(Some(expected)) => event.is_delete() && previous == Some(*expected),
            Request::Delete(None) => event.is_delete() && previous.is_some(),
            Request::Get => false,
        }
}

/// A write that was acknowledged before another was called has the lesser revision.
fn real_time(operations: &[Operation]) -> Verdict {
    let mut by_answer: Vec<(&Operation, Revision)> = operations
        .iter()
        .filter_map(|operation| match operation.outcome {
            Outcome::Written(revision) => Some((operation, revision)),
            Outcome::Stood(_) | Outcome::Refused | Outcome::Unknown => None,
        })
        .collect();
    let mut by_call = by_answer.clone();
    by_answer.sort_by_key(|(operation, _)| operation.answered);
    by_call.sort_by_key(|(operation, _)| operation.called);
    let mut answered = by_answer.into_iter().peekable();
    let mut newest: Option<(&Operation, Revision)> = None;
    for (operation, revision) in by_call {
        while let Some(earlier) = answered.next_if(|(earlier, _)| earlier.answered < operation.called) {
            if newest.is_none_or(|(_, newest)| earlier.1 > newest) {
                newest = Some(earlier);
            }
        }
        if let Some((earlier, newest)) = newest
            && newest >= revision
        {
            let (earlier, later) = (at(&earlier.key, newest), at(&operation.key, revision));
            return broken(Guarantee::Linearizable, format!("{earlier} was acknowledged before {later} was called"));
        }
    }
    Ok(())
}

/// Whether the key can have stood as the answer says at one moment between call and answer.
fn was_so(
    operation: &Operation,
    stood: Option<Revision>,
    history: &History,
    moments: &BTreeMap<Revision, Moment>,
) -> Verdict {
    let is_contradiction = match (&operation.request, stood) {
        (Request::Create(_), None) => true,
        (Request::Update(_, expected) | Request::Delete(Some(expected)), Some(stood)) => *expected == stood,
        (Request::Delete(None), Some(_)) => true,
        _ => false,
    };
    if is_contradiction {
        return broken(Guarantee::Linearizable, format!("{operation:?} was refused without a reason"));
    }
    let changes = history.events.iter().filter(|event| event.key == operation.key);
    // The moments at which the key was in the state answered: from the write that made it to the write that ended it.
    let mut is_in_state = history.base.get(&operation.key).map(|record| record.revision) == stood;
    let mut earliest = 0;
    for event in changes {
        let moment = moments.get(&event.revision);
        if is_in_state && operation.called <= moment.map_or(u64::MAX, |m| m.latest) && operation.answered >= earliest {
            return Ok(());
        }
        is_in_state = event.record.as_ref().map(|record| record.revision) == stood;
        earliest = earliest.max(moment.map_or(0, |m| m.earliest));
    }
    if is_in_state && operation.answered >= earliest {
        return Ok(());
    }
    let stood = stood.map_or_else(|| "absent".to_owned(), |revision| format!("at revision {revision}"));
    let Operation { key, request, called, answered, .. } = operation;
    broken(Guarantee::Linearizable, format!("{key} was not {stood} between {called} and {answered}: {request:?}"))
}
