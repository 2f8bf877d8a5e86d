//! The window: recent events, numbered, bounded by count and by bytes. Immutable; a changed copy shares most of it.

use imbl::Vector;
use pintle_storage::{Event, Revision};
use std::sync::Arc;

/// What an event takes beside its value.
const EVENT_BYTES: usize = 256;

/// The number of the first event. Far from 0, so that older events can be put before it.
const FIRST_NUMBER: u64 = 1 << 48;

/// Recent events. Their numbers follow each other; what was let go of keeps its number.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    events: Vector<Arc<Event>>,
    /// The number of the first event that is there, or of the next if none is.
    start: u64,
    /// All events after this revision are there.
    since: Revision,
    bytes: usize,
}

/// What an event adds to a window's bytes: an older value that only the window keeps.
pub(crate) fn bytes_of(event: &Event) -> usize {
    let record = event.record.as_ref().or(event.previous.as_ref());
    EVENT_BYTES + record.map_or(0, |record| record.value.len() + record.key.len())
}

impl Window {
    /// An empty window that will have all events after `since`.
    pub(crate) fn new(since: Revision) -> Window {
        Window { events: Vector::new(), start: FIRST_NUMBER, since, bytes: 0 }
    }

    /// The number of the first event that is there.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The number of the next event.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.events.len() as u64
    }

    /// All events after this revision are there.
    pub(crate) fn since(&self) -> Revision {
        self.since
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the next event.
    pub(crate) fn push(&mut self, event: Arc<Event>) {
        debug_assert!(self.events.last().is_none_or(|last| last.revision <= event.revision));
        self.bytes += bytes_of(&event);
        self.events.push_back(event);
    }

    /// Puts older events before the others: all those after `since`.
    pub(crate) fn prepend(&mut self, since: Revision, older: Vec<Arc<Event>>) {
        debug_assert!(older.last().is_none_or(|last| last.revision <= self.since));
        self.bytes += older.iter().map(|event| bytes_of(event)).sum::<usize>();
        self.start -= older.len() as u64;
        self.since = since;
        let mut events: Vector<Arc<Event>> = older.into_iter().collect();
        events.append(std::mem::take(&mut self.events));
        self.events = events;
    }

    /// Lets go of the oldest events until the rest is within the limits. Events of one revision go together.
    pub(crate) fn trim(&mut self, events_max: usize, bytes_max: usize) {
        while self.events.len() > events_max || self.bytes > bytes_max {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= bytes_of(&oldest);
            self.start += 1;
            self.since = oldest.revision;
        }
    }

    /// The event of this number, if it is there.
    pub(crate) fn get(&self, number: u64) -> Option<&Arc<Event>> {
        self.events.get(usize::try_from(number.checked_sub(self.start)?).ok()?)
    }

    /// The number of the first event after a revision that is not older than [`Window::since`].
    pub(crate) fn after(&self, revision: Revision) -> u64 {
        let (mut low, mut high) = (0, self.events.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.events.get(middle).is_some_and(|event| event.revision <= revision) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.start + low as u64
    }

    /// Calls `take` for the events of these numbers, in order, until it answers `false`.
    pub(crate) fn visit(&self, numbers: std::ops::Range<u64>, mut take: impl FnMut(u64, &Arc<Event>) -> bool) {
        let mut focus = self.events.focus();
        for number in numbers {
            let idx = number.checked_sub(self.start).and_then(|idx| usize::try_from(idx).ok());
            let Some(event) = idx.and_then(|idx| focus.get(idx)) else { return };
            if !take(number, event) {
                return;
            }
        }
    }

    /// The events after a revision, newest first.
    pub(crate) fn newest_until(&self, revision: Revision) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().rev().take_while(move |event| event.revision > revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use pintle_storage::{Note, Record};
    use proptest::prelude::*;

    fn event(n: u64) -> Arc<Event> {
        let (key, revision) = (pintle_storage::Key::new("k"), Revision::new(n).expect("not 0"));
        let value = Bytes::from(vec![b'x'; 100]);
        let record = Some(Arc::new(Record { key: key.clone(), revision, value, note: Note::default() }));
        Arc::new(Event { key, revision, record, previous: None, note: Note::default() })
    }

    fn revisions(window: &Window, from: u64) -> Vec<u64> {
        let mut seen = Vec::new();
        window.visit(from..window.end(), |number, event| {
            assert_eq!(window.get(number).map(|event| event.revision), Some(event.revision));
            seen.push(event.revision.get());
            true
        });
        seen
    }

    proptest! {
        /// Revisions grow by steps, events are pushed and trimmed, older ones are put before; everything after `since`
        /// is always there.
        #[test]
        fn a_window_has_everything_after_its_beginning(steps in prop::collection::vec(1u64..4, 1..80), events_max in 1usize..20, bytes_max in 300usize..5000) {
            let mut window = Window::new(Revision::new(100).expect("not 0"));
            let older: Vec<_> = [80, 90, 99].map(event).to_vec();
            let mut all: Vec<u64> = Vec::new();
            let mut n = 100;
            for (idx, step) in steps.iter().enumerate() {
                n += step;
                all.push(n);
                window.push(event(n));
                if idx == 0 {
                    window.prepend(Revision::new(70).expect("not 0"), older.clone());
                    all.splice(0..0, [80, 90, 99]);
                }
                window.trim(events_max, bytes_max);
                prop_assert!(window.len() <= events_max && window.bytes() <= bytes_max);
                let since = window.since().get();
                let expected: Vec<u64> = all.iter().copied().filter(|n| *n > since).collect();
                prop_assert_eq!(revisions(&window, window.start()), &expected[..]);
                for revision in since..=n + 1 {
                    let from = window.after(Revision::new(revision).expect("not 0"));
                    let expected: Vec<u64> = all.iter().copied().filter(|n| *n > revision).collect();
                    prop_assert_eq!(revisions(&window, from), &expected[..]);
                    let newest: Vec<u64> = window.newest_until(Revision::new(revision).expect("not 0")).map(|e| e.revision.get()).collect();
                    prop_assert_eq!(newest, expected.into_iter().rev().collect::<Vec<_>>());
                }
                prop_assert!(window.get(window.start() - 1).is_none() && window.get(window.end()).is_none());
            }
        }
    }
}
