//! Each guarantee is broken by hand once: a checker that accepts everything would not be noticed otherwise.

use super::watches::{atomic, bookmarkable, ordered, prev_kv, reliable, resumable, unique};
use super::*;
use crate::{Event, Filter, Note, Record, StorageError, WatchItem};
use bytes::Bytes;
use expect_test::{Expect, expect};
use std::sync::Arc;

fn revision(n: u64) -> Revision {
    Revision::new(n).expect("tests count from 1")
}

fn record(key: &str, n: u64) -> Arc<Record> {
    let value = Bytes::from(format!("v{n}"));
    Arc::new(Record { key: key.into(), revision: revision(n), value, note: Note::default() })
}

/// `put a@3 over 2` and the like.
fn event(key: &str, n: u64, is_put: bool, previous: Option<u64>) -> Arc<Event> {
    let record_now = is_put.then(|| record(key, n));
    let previous = previous.map(|n| record(key, n));
    Arc::new(Event { key: key.into(), revision: revision(n), record: record_now, previous, note: Note::default() })
}

/// a is created at 2, b at 3, a updated at 4 and deleted at 5, b updated at 6.
fn events() -> Vec<Arc<Event>> {
    vec![
        event("a", 2, true, None),
        event("b", 3, true, None),
        event("a", 4, true, Some(2)),
        event("a", 5, false, Some(4)),
        event("b", 6, true, Some(3)),
    ]
}

fn history() -> History {
    History::from_empty(Revision::FIRST, events())
}

fn recording(since: u64, items: Vec<WatchItem>) -> Recording {
    Recording { items, ..Recording::new("".into(), revision(since)) }
}

fn told(idx: &[usize]) -> WatchItem {
    WatchItem::Events(idx.iter().map(|idx| Arc::clone(&events()[*idx])).collect())
}

fn says(verdict: &Verdict, expected: &Expect) {
    let text = verdict.as_ref().map_or_else(ToString::to_string, |()| "holds".to_owned());
    expected.assert_eq(&text);
}

#[test]
fn a_right_watch_holds() {
    let whole = recording(1, vec![told(&[0, 1]), WatchItem::Progress(revision(3)), told(&[2]), told(&[3, 4])]);
    assert_eq!(check_watch(&whole, &history()), Ok(()));
    assert_eq!(whole.resume_at(), revision(6));
    let rest = recording(3, vec![told(&[2]), told(&[3])]);
    assert_eq!(check_watch(&rest, &history()), Ok(()));
    assert_eq!(resumable(&whole, &rest), Ok(()));
    assert_eq!(history().check(), Ok(()));
}

#[test]
fn what_goes_back_is_seen() {
    let back = recording(1, vec![told(&[1]), told(&[0])]);
    says(&ordered(&back), &expect!["Ordered is broken: a@2 is told after revision 3"]);
    let early = recording(3, vec![told(&[1])]);
    says(&ordered(&early), &expect!["Ordered is broken: b@3 is told after revision 3"]);
    let twice = recording(1, vec![told(&[0]), told(&[0])]);
    says(&unique(&twice), &expect!["Unique is broken: a@2 is told twice"]);
    says(&atomic(&twice), &expect!["Atomic is broken: the events of revision 2 come in two items"]);
    says(&atomic(&recording(1, vec![told(&[])])), &expect!["Atomic is broken: an item has no events"]);
}

#[test]
fn what_is_missing_or_made_up_is_seen() {
    let gap = recording(1, vec![told(&[0, 2])]);
    says(&reliable(&gap, &history()), &expect!["Reliable is broken: b@3 is left out of a watch since 1 until 4"]);
    let bookmark = recording(1, vec![told(&[0]), WatchItem::Progress(revision(3))]);
    says(&reliable(&bookmark, &history()), &expect!["Reliable is broken: b@3 is left out of a watch since 1 until 3"]);
    let made_up = recording(5, vec![WatchItem::Events(vec![event("c", 6, true, None)]), told(&[4])]);
    says(&reliable(&made_up, &history()), &expect!["Reliable is broken: c@6 never happened"]);
    let changed = recording(4, vec![WatchItem::Events(vec![event("a", 5, true, Some(4))])]);
    says(&reliable(&changed, &history()), &expect![[r#"Reliable is broken: a@5 is told as a@5 "v5", it is nothing"#]]);
    let other = recording(3, vec![told(&[3])]);
    let whole = recording(1, vec![told(&[0, 1, 2, 3, 4])]);
    says(&resumable(&whole, &other), &expect!["Resumable is broken: resumed at 3: a@5 instead of a@4"]);
}

#[derive(Debug)]
struct OnlyB;

impl Filter for OnlyB {
    fn matches(&self, record: &Record) -> bool {
        &*record.key == "b"
    }
}

#[test]
fn a_filter_may_leave_out_what_does_not_match() {
    let filtered = |idx: &[usize]| Recording { filter: Some(Arc::new(OnlyB)), ..recording(1, vec![told(idx)]) };
    assert_eq!(reliable(&filtered(&[1, 4]), &history()), Ok(()));
    assert_eq!(reliable(&filtered(&[1, 3, 4]), &history()), Ok(()));
    let verdict = reliable(&filtered(&[0, 4]), &history());
    says(&verdict, &expect!["Filter is broken: b@3 is left out of a watch since 1 until 6"]);
}

#[test]
fn wrong_bookmarks_are_seen() {
    let behind = recording(1, vec![told(&[0, 1]), WatchItem::Progress(revision(2))]);
    says(&bookmarkable(&behind), &expect!["Bookmarkable is broken: bookmark 2 comes after revision 3"]);
    let ahead = recording(1, vec![WatchItem::Progress(revision(3)), told(&[1])]);
    says(&bookmarkable(&ahead), &expect!["Bookmarkable is broken: b@3 comes after bookmark 3"]);
}

#[test]
fn wrong_previous_values_are_seen() {
    let wrong = recording(3, vec![WatchItem::Events(vec![event("a", 4, true, None)])]);
    says(&prev_kv(&wrong, &history()), &expect![[r#"PrevKV is broken: a@4 carries nothing, the key held a@2 "v2""#]]);
}

#[test]
fn histories_that_make_no_sense_are_seen() {
    let of = |events| History::from_empty(Revision::FIRST, events).check();
    let gone = of(vec![event("a", 2, false, None)]);
    says(&gone, &expect!["Linearizable is broken: a@2 deletes what is not there"]);
    let stale = of(vec![event("a", 2, true, None), event("a", 3, true, None)]);
    says(&stale, &expect![[r#"PrevKV is broken: a@3 carries nothing, the key held a@2 "v2""#]]);
    let back = of(vec![event("a", 3, true, None), event("b", 2, true, None)]);
    says(&back, &expect!["Ordered is broken: b@2 comes after revision 3"]);
}

fn value(n: u64) -> Bytes {
    Bytes::from(format!("v{n}"))
}

/// A call and its answer, at these moments.
fn operation(key: &str, request: Request, outcome: Outcome, called: u64, answered: u64) -> Operation {
    Operation { key: key.into(), request, outcome, called, answered }
}

#[test]
fn right_calls_hold() {
    let operations = [
        operation("a", Request::Create(value(2)), Outcome::Written(revision(2)), 1, 4),
        operation("b", Request::Create(value(3)), Outcome::Written(revision(3)), 2, 3),
        operation("a", Request::Update(value(9), revision(9)), Outcome::Stood(Some(revision(2))), 5, 6),
        operation("a", Request::Update(value(4), revision(2)), Outcome::Unknown, 7, 8),
        operation("a", Request::Delete(None), Outcome::Written(revision(5)), 9, 12),
        operation("a", Request::Get, Outcome::Stood(Some(revision(2))), 5, 9),
        operation("a", Request::Get, Outcome::Stood(Some(revision(4))), 10, 11),
        operation("a", Request::Get, Outcome::Stood(None), 10, 11),
        operation("b", Request::Update(value(6), revision(3)), Outcome::Written(revision(6)), 13, 14),
    ];
    assert_eq!(check_operations(&operations, &history()), Ok(()));
}

#[test]
fn wrong_answers_are_seen() {
    let check = |operations: &[Operation], expected: Expect| says(&check_operations(operations, &history()), &expected);
    let create = |n| operation("a", Request::Create(value(n)), Outcome::Written(revision(n)), 1, 2);
    check(&[create(7)], expect!["Linearizable is broken: a@7 was acknowledged and is lost"]);
    check(&[create(2), create(2)], expect!["Linearizable is broken: a@2 was acknowledged to two writers"]);
    let b = operation("b", Request::Create(value(3)), Outcome::Written(revision(3)), 1, 2);
    let a = operation("a", Request::Create(value(2)), Outcome::Written(revision(2)), 3, 4);
    check(&[b.clone(), a], expect!["Linearizable is broken: b@3 was acknowledged before a@2 was called"]);
    let stale = operation("b", Request::Get, Outcome::Stood(None), 3, 4);
    check(&[b.clone(), stale], expect!["Linearizable is broken: b was not absent between 3 and 4: Get"]);
    let early = operation("b", Request::Get, Outcome::Stood(Some(revision(3))), 1, 2);
    let late = operation("b", Request::Create(value(3)), Outcome::Written(revision(3)), 3, 4);
    check(&[early, late], expect!["Linearizable is broken: b was not at revision 3 between 1 and 2: Get"]);
    let update = Request::Update(value(9), revision(3));
    let refused = operation("b", update, Outcome::Stood(Some(revision(3))), 3, 4);
    let verdict = check_operations(&[b, refused], &history());
    assert!(verdict.is_err_and(|violation| violation.evidence.ends_with("was refused without a reason")));
}

#[test]
fn a_journal_keeps_calls_and_answers() {
    let journal = Journal::default();
    let called = journal.call();
    journal.put(called, "a".into(), Request::Create(value(2)), &Ok(record("a", 2)));
    let called = journal.call();
    let refused = Err(StorageError::NotFound { key: "a".into() });
    journal.delete(called, "a".into(), None, &refused);
    let operations = journal.operations();
    assert_eq!(operations.len(), 2);
    assert!(matches!(operations[0].outcome, Outcome::Written(written) if written == revision(2)));
    assert!(matches!(operations[1].outcome, Outcome::Stood(None)));
    assert!(operations[0].answered < operations[1].called);
}
