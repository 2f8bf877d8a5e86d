//! One watch: what etcd's answers mean for it.

use super::queue::Queue;
use crate::convert::{self, Told, from_wire};
use crate::known::Known;
use crate::proto::{self, WatchResponse};
use bytes::Bytes;
use pintle_storage::{Event, Result, Revision, StorageError};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Where a watch stands in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is to be opened with the next stream.
    Waiting,
    /// It was asked for under this id.
    Opening(i64),
    /// It runs under this id.
    Running(i64),
    /// Its watcher is too slow: etcd is told to cancel it.
    Paused,
}

impl Phase {
    /// Its id in the stream.
    pub(crate) fn id(self) -> Option<i64> {
        match self {
            Phase::Opening(id) | Phase::Running(id) => Some(id),
            Phase::Waiting | Phase::Paused => None,
        }
    }
}

/// One watch.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) key: Bytes,
    pub(crate) range_end: Bytes,
    /// Everything up to here was put into the queue.
    pub(crate) told: Revision,
    pub(crate) wants_progress: bool,
    pub(crate) phase: Phase,
    /// The pieces of an answer that is not complete yet.
    pub(crate) fragments: Vec<proto::Event>,
    pub(crate) queue: Arc<Queue>,
    /// Told once that the watch is open.
    opened: Option<oneshot::Sender<Result<()>>>,
}

/// What is to be done with a watch after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It goes on.
    GoOn,
    /// etcd is to cancel it for now.
    Pause,
    /// It is over.
    Remove,
    /// The stream is of no use any more.
    Reopen,
}

impl Watch {
    pub(crate) fn new(
        key: Bytes,
        range_end: Bytes,
        since: Revision,
        wants_progress: bool,
        queue: Arc<Queue>,
        opened: oneshot::Sender<Result<()>>,
    ) -> Watch {
        let (phase, fragments, opened) = (Phase::Waiting, Vec::new(), Some(opened));
        Watch { key, range_end, told: since, wants_progress, phase, fragments, queue, opened }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.phase == Phase::Paused
    }

    /// Takes in an answer that is for this watch.
    pub(crate) fn take(&mut self, answer: WatchResponse, known: &Known) -> Next {
        if answer.canceled {
            return self.cancelled(&answer, known);
        }
        if answer.created {
            if let Phase::Opening(id) = self.phase {
                self.phase = Phase::Running(id);
            }
            self.answer_open(Ok(()));
        }
        if answer.fragment {
            self.fragments.extend(answer.events);
            return Next::GoOn;
        }
        let mut events = std::mem::take(&mut self.fragments);
        events.extend(answer.events);
        if events.is_empty() {
            if let Some(header) = answer.header.filter(|_| !answer.created) {
                self.progress(from_wire(header.revision));
            }
            return Next::GoOn;
        }
        self.tell(&events, known)
    }

    fn tell(&mut self, events: &[proto::Event], known: &Known) -> Next {
        let mut told: Vec<Arc<Event>> = Vec::with_capacity(events.len());
        for event in events {
            match convert::event(event, known) {
                // After a resumption etcd may begin with what was told already only if it is asked to; it never is.
                Told::Event(event) if event.revision > self.told => told.push(event),
                Told::Event(_) | Told::Nothing => {}
                Told::Compacted(compacted) => {
                    let requested = self.told;
                    return self.end(Some(StorageError::Expired { requested, compacted }));
                }
            }
        }
        let Some(last) = told.last() else { return Next::GoOn };
        self.told = last.revision;
        if self.queue.push(told) { Next::GoOn } else { Next::Pause }
    }

    /// Everything up to a revision was told.
    pub(crate) fn progress(&mut self, revision: Revision) {
        let is_running = matches!(self.phase, Phase::Running(_));
        if is_running && self.wants_progress && self.fragments.is_empty() && revision >= self.told {
            self.told = revision;
            self.queue.progress(revision);
        }
    }

    fn cancelled(&mut self, answer: &WatchResponse, known: &Known) -> Next {
        if answer.compact_revision > 0 {
            let compacted = from_wire(answer.compact_revision);
            known.note_compacted(compacted);
            return self.end(Some(StorageError::Expired { requested: self.told, compacted }));
        }
        if answer.cancel_reason.contains("no leader") {
            return Next::Reopen;
        }
        self.end(Some(StorageError::Unavailable { why: format!("etcd ends the watch: {}", answer.cancel_reason) }))
    }

    /// Ends the watch.
    pub(crate) fn end(&mut self, error: Option<StorageError>) -> Next {
        match (self.opened.is_some(), &error) {
            (true, Some(refused)) => self.answer_open(Err(refused.clone())),
            (true, None) | (false, _) => self.queue.end(error),
        }
        Next::Remove
    }

    fn answer_open(&mut self, answer: Result<()>) {
        if let Some(opened) = self.opened.take() {
            // Whoever asked may have gone.
            drop(opened.send(answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{EventType, KeyValue, ResponseHeader};
    use expect_test::{Expect, expect};
    use futures_util::{FutureExt, StreamExt};
    use pintle_storage::WatchItem;

    fn put(key: &str, create: i64, modified: i64, previous: i64) -> proto::Event {
        let kv = |modified| KeyValue {
            key: Bytes::copy_from_slice(key.as_bytes()),
            create_revision: create,
            mod_revision: modified,
            version: 1,
            value: Bytes::from_static(b"v"),
        };
        let prev_kv = (previous > 0).then(|| kv(previous));
        proto::Event { r#type: EventType::Put as i32, kv: Some(kv(modified)), prev_kv }
    }

    fn events(events: Vec<proto::Event>) -> WatchResponse {
        WatchResponse { events, ..WatchResponse::default() }
    }

    fn at(revision: i64) -> Option<ResponseHeader> {
        Some(ResponseHeader { revision, ..ResponseHeader::default() })
    }

    /// A watch since 10 that takes these answers: what it does, and what its watcher reads.
    fn check(answers: Vec<WatchResponse>, expected: Expect) {
        let (reply, mut opened) = oneshot::channel();
        let (queue, since) = (Arc::new(Queue::default()), Revision::new(10).expect("not 0"));
        let mut watch = Watch::new(Bytes::new(), Bytes::new(), since, true, Arc::clone(&queue), reply);
        watch.phase = Phase::Opening(1);
        let mut seen = String::new();
        for answer in answers {
            seen += &format!("{:?} told {}\n", watch.take(answer, &Known::default()), watch.told);
        }
        seen += &format!("opened: {:?}\n", opened.try_recv().map(|opened| opened.map_err(|error| error.to_string())));
        let mut watcher = super::super::queue::Watcher::new(0, queue, Arc::default());
        while let Some(Some(item)) = watcher.next().now_or_never() {
            seen += &match item {
                Ok(WatchItem::Events(events)) => {
                    events.iter().map(|event| format!("{}@{} ", event.key, event.revision)).collect::<String>() + "\n"
                }
                Ok(WatchItem::Progress(revision)) => format!("progress {revision}\n"),
                Err(error) => format!("{error}\n"),
            };
        }
        expected.assert_eq(&seen);
    }

    fn created() -> WatchResponse {
        WatchResponse { created: true, header: at(12), ..WatchResponse::default() }
    }

    #[test]
    fn fragments_are_put_together() {
        let piece = |event| WatchResponse { fragment: true, ..events(vec![event]) };
        check(
            vec![created(), piece(put("a", 11, 11, 0)), piece(put("b", 12, 12, 0)), events(vec![put("c", 12, 12, 0)])],
            expect![[r#"
                GoOn told 10
                GoOn told 10
                GoOn told 10
                GoOn told 12
                opened: Ok(Ok(()))
                a@11 b@12 c@12 
            "#]],
        );
    }

    #[test]
    fn progress_is_told_once_and_never_backwards() {
        let progress = |revision| WatchResponse { header: at(revision), ..WatchResponse::default() };
        check(
            vec![created(), progress(20), progress(22), events(vec![put("a", 11, 23, 11)]), progress(22), progress(23)],
            expect![[r#"
                GoOn told 10
                GoOn told 20
                GoOn told 22
                GoOn told 23
                GoOn told 23
                GoOn told 23
                opened: Ok(Ok(()))
                progress 22
                a@23 
                progress 23
            "#]],
        );
    }

    #[test]
    fn compaction_expires_it() {
        let cancelled = WatchResponse { canceled: true, compact_revision: 15, ..WatchResponse::default() };
        check(
            vec![cancelled.clone()],
            expect![[r#"
                Remove told 10
                opened: Ok(Err("revision 10 is compacted: history begins at 15"))
            "#]],
        );
        check(
            vec![created(), cancelled],
            expect![[r#"
                GoOn told 10
                Remove told 10
                opened: Ok(Ok(()))
                revision 10 is compacted: history begins at 15
            "#]],
        );
        check(
            vec![created(), events(vec![put("a", 5, 15, 0)])],
            expect![[r#"
                GoOn told 10
                Remove told 10
                opened: Ok(Ok(()))
                revision 10 is compacted: history begins at 15
            "#]],
        );
    }

    #[test]
    fn a_member_without_leader_ends_the_stream_only() {
        let cancelled = WatchResponse { canceled: true, cancel_reason: "etcdserver: no leader".into(), ..created() };
        check(
            vec![created(), cancelled],
            expect![[r#"
                GoOn told 10
                Reopen told 10
                opened: Ok(Ok(()))
            "#]],
        );
    }
}
