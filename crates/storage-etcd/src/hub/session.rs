//! One stream of watches, as long as it lasts.

use super::Watches;
use super::watch::{Next, Phase, Watch};
use crate::cluster::{Cluster, Member};
use crate::convert::from_wire;
use crate::fault::Fault;
use crate::known::Known;
use crate::proto::{
    WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse, WatchUnion,
};
use futures_util::stream;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tonic::Streaming;

/// Requests under way to the stream; further ones wait here, in the outbox.
const REQUESTS_UNDER_WAY_MAX: usize = 64;

/// How long etcd may take to answer a question after progress. It does not answer at all while a watch of the stream
/// catches up, so the question is put again.
const PROGRESS_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The id under which etcd tells the progress of all watches of a stream.
const ALL_WATCHES: i64 = -1;

/// A question after progress.
#[derive(Clone, Copy, Debug)]
enum Question {
    /// None is open.
    None,
    /// It was sent; it is sent again at this time. Whether somebody asked after it was sent.
    Sent { again_at: Instant, is_asked_again: bool },
}

/// Requests that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox(VecDeque<WatchRequest>);

impl Outbox {
    fn put(&mut self, request: WatchUnion) {
        self.0.push_back(WatchRequest { request_union: Some(request) });
    }

    /// Asks for a watch.
    pub(crate) fn create(&mut self, watch: &Watch, id: i64, start: i64) {
        self.put(WatchUnion::Create(WatchCreateRequest {
            key: watch.key.clone(),
            range_end: watch.range_end.clone(),
            start_revision: start,
            progress_notify: watch.wants_progress,
            prev_kv: true,
            watch_id: id,
            fragment: true,
        }));
    }

    /// Ends a watch.
    pub(crate) fn cancel(&mut self, id: i64) {
        self.put(WatchUnion::Cancel(WatchCancelRequest { watch_id: id }));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Session {
    requests: mpsc::Sender<WatchRequest>,
    answers: Streaming<WatchResponse>,
    pub(crate) outbox: Outbox,
    question: Question,
}

impl Session {
    /// Opens a stream that begins with these requests. There must be one that asks for a watch: etcd does not even answer
    /// that the stream is open before that.
    pub(crate) async fn open(cluster: &Cluster, member: &Member, mut outbox: Outbox) -> Result<Session, Fault> {
        let (requests, inbox) = mpsc::channel(REQUESTS_UNDER_WAY_MAX);
        while let Ok(permit) = requests.try_reserve()
            && let Some(request) = outbox.0.pop_front()
        {
            permit.send(request);
        }
        let inbox = stream::unfold(inbox, async |mut inbox: mpsc::Receiver<WatchRequest>| {
            inbox.recv().await.map(|request| (request, inbox))
        });
        let answers = cluster.watch(member, inbox).await?;
        Ok(Session { requests, answers, outbox, question: Question::None })
    }

    /// Asks how far the watches have come.
    pub(crate) fn want_progress(&mut self) {
        match &mut self.question {
            // The answer that is on its way may be older than who asks now.
            Question::Sent { is_asked_again, .. } => *is_asked_again = true,
            Question::None => self.ask_progress(),
        }
    }

    fn ask_progress(&mut self) {
        self.outbox.put(WatchUnion::Progress(WatchProgressRequest {}));
        let again_at = Instant::now() + PROGRESS_RETRY_INTERVAL;
        self.question = Question::Sent { again_at, is_asked_again: false };
    }

    /// Sends one request, or waits for an answer. Cancel-safe.
    ///
    /// # Errors
    /// Why the stream is broken.
    pub(crate) async fn step(&mut self) -> Result<Option<WatchResponse>, String> {
        let again_at = match self.question {
            Question::Sent { again_at, .. } if self.outbox.is_empty() => Some(again_at),
            Question::Sent { .. } | Question::None => None,
        };
        tokio::select! {
            biased;
            // If there is no permit any more, the stream is broken; its answers say why.
            Ok(permit) = self.requests.reserve(), if !self.outbox.is_empty() => {
                if let Some(request) = self.outbox.0.pop_front() {
                    permit.send(request);
                }
                return Ok(None);
            }
            answer = self.answers.message() => {
                return match answer {
                    Ok(Some(answer)) => Ok(Some(answer)),
                    Ok(None) => Err("etcd ended the stream".to_owned()),
                    Err(status) => Err(format!("{:?}", Fault::of(&status))),
                };
            }
            () = sleep_until(again_at.unwrap_or_else(Instant::now)), if again_at.is_some() => {}
        }
        self.ask_progress();
        Ok(None)
    }

    /// Gives an answer to those whom it concerns.
    ///
    /// # Errors
    /// Why the stream is of no use any more.
    pub(crate) fn take(&mut self, answer: WatchResponse, watches: &mut Watches, known: &Known) -> Result<(), String> {
        if answer.watch_id == ALL_WATCHES && !answer.created && !answer.canceled {
            self.take_progress(&answer, watches);
            return Ok(());
        }
        let Some((number, watch)) = watches.of_id(answer.watch_id) else { return Ok(()) };
        match watch.take(answer, known) {
            Next::GoOn => {}
            Next::Pause => {
                let id = watch.phase.id();
                watch.phase = Phase::Paused;
                id.into_iter().for_each(|id| {
                    watches.by_id.remove(&id);
                    self.outbox.cancel(id);
                });
            }
            Next::Remove => drop(watches.remove(number)),
            Next::Reopen => return Err("the member has no leader".to_owned()),
        }
        Ok(())
    }

    fn take_progress(&mut self, answer: &WatchResponse, watches: &mut Watches) {
        if let Some(header) = &answer.header {
            let revision = from_wire(header.revision);
            watches.by_number.values_mut().for_each(|watch| watch.progress(revision));
        }
        match self.question {
            Question::Sent { is_asked_again: true, .. } => self.ask_progress(),
            Question::Sent { is_asked_again: false, .. } | Question::None => self.question = Question::None,
        }
    }
}
