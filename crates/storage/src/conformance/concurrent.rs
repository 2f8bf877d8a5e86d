//! Scenarios of many callers at once.

use super::*;
use crate::checkers::{Journal, Request, check_operations, check_watch};
use futures_util::future::join_all;

/// Runs the futures as tasks of the runtime and answers their results.
async fn all<T: Send + 'static>(tasks: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>) -> Vec<T> {
    let handles: Vec<_> = tasks.into_iter().map(|task| tokio::spawn(task)).collect();
    join_all(handles).await.into_iter().map(|answer| answer.expect("no task panics")).collect()
}

/// Of many creates of one key exactly one wins; the others are told its revision.
pub async fn concurrent_creates_have_one_winner(subject: &Subject) {
    for round in 0..5 {
        let key = key(&format!("k{round}"));
        let calls = (0..20).map(|n| {
            let (store, key) = (Arc::clone(&subject.store), key.clone());
            async move { store.create(key, value(n.to_string())).await }
        });
        let answers = all(calls).await;
        let winners: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
        assert_eq!(winners.len(), 1);
        for error in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            assert_eq!(stored(error), Some(winners[0].revision), "{error}");
        }
    }
}

/// A counter that many tasks count up by compare-and-swap counts every one of them.
pub async fn concurrent_updates_lose_nothing(subject: &Subject) {
    subject.create("counter", "0").await;
    let counters = (0..10).map(|_| {
        let store = Arc::clone(&subject.store);
        async move {
            for _ in 0..20 {
                loop {
                    let record = ok(store.get(&key("counter"), At::Latest).await).record.expect("it was created");
                    let n: u64 = text(&record).parse().expect("only numbers are written");
                    match store.update(key("counter"), value((n + 1).to_string()), record.revision).await {
                        Ok(_) => break,
                        Err(StorageError::Conflict { .. }) => tokio::task::yield_now().await,
                        Err(error) => fail(&error.to_string()),
                    }
                }
            }
        }
    });
    all(counters).await;
    assert_eq!(listed(&subject.list(At::Latest).await), "counter=200");
}

/// Of many deletes of one key exactly one wins.
pub async fn concurrent_deletes_have_one_winner(subject: &Subject) {
    for round in 0..5 {
        let record = subject.create(&format!("k{round}"), "x").await;
        let calls = (0..10).map(|n| {
            let (store, record) = (Arc::clone(&subject.store), Arc::clone(&record));
            let expected = (n % 2 == 0).then_some(record.revision);
            async move { store.delete(record.key.clone(), expected).await }
        });
        let answers = all(calls).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        let others = answers.iter().filter_map(|answer| answer.as_ref().err());
        assert!(others.into_iter().all(|error| matches!(error, StorageError::NotFound { .. })));
    }
}

/// A task of random calls on few keys, recorded in a journal.
pub(crate) async fn random_calls(store: Arc<dyn Storage>, journal: Arc<Journal>, seed: u64, n_calls: usize) {
    let dice = Dice::new(seed);
    for n in 0..n_calls {
        let key = key(&format!("k{}", dice.below(4)));
        let bytes = Bytes::from(format!("{seed}-{n}"));
        let called = journal.call();
        let found = store.get(&key, At::Latest).await;
        journal.get(called, key.clone(), &found);
        let stands = found.ok().and_then(|found| found.record).map(|record| record.revision);
        if dice.below(3) == 0 {
            tokio::task::yield_now().await;
        }
        let new = NewValue { bytes: bytes.clone(), ..NewValue::default() };
        let called = journal.call();
        match (stands, dice.below(4)) {
            (None, _) | (Some(_), 0) => {
                let answer = store.create(key.clone(), new).await;
                journal.put(called, key, Request::Create(bytes), &answer);
            }
            (Some(revision), 1) => {
                let expected = (n % 2 == 0).then_some(revision);
                let answer = store.delete(key.clone(), expected).await;
                journal.delete(called, key, expected, &answer);
            }
            (Some(revision), _) => {
                let answer = store.update(key.clone(), new, revision).await;
                journal.put(called, key, Request::Update(bytes, revision), &answer);
            }
        }
    }
}

/// That many tasks make 60 rounds of [`random_calls`] each; then one more key is created, which tells watchers that
/// there is nothing more to wait for.
fn busy(subject: &Subject, journal: &Arc<Journal>, n_tasks: u64) -> tokio::task::JoinHandle<()> {
    let store = Arc::clone(&subject.store);
    let calls = |seed| random_calls(Arc::clone(&subject.store), Arc::clone(journal), seed, 60);
    let tasks: Vec<_> = (0..n_tasks).map(calls).collect();
    tokio::spawn(async move {
        all(tasks).await;
        ok(store.create(key("the-end"), value("")).await);
    })
}

/// Whether the watch was told that all is written.
fn is_over(watch: &Watch) -> bool {
    watch.recording.events().any(|event| event.key == key("the-end"))
}

/// Gets, creates, updates and deletes of few keys by many tasks are linearizable.
pub async fn concurrent_calls_are_linearizable(subject: &Subject) {
    let since = subject.revision().await;
    let journal = Arc::new(Journal::default());
    assert!(busy(subject, &journal, 8).await.is_ok());
    let history = subject.history(since).await;
    holds(history.check());
    let operations = journal.operations();
    assert_eq!(operations.len(), 8 * 60 * 2);
    holds(check_operations(&operations, &history));
}

/// Watchers that come and go while many tasks write see one history.
pub async fn concurrent_watchers_see_one_history(subject: &Subject) {
    let since = subject.revision().await;
    let journal = Arc::new(Journal::default());
    let writing = busy(subject, &journal, 4);
    let mut watches = vec![subject.watch(since).await];
    for n in 0..20 {
        if is_over(&watches[n % watches.len()]) {
            continue;
        }
        let from = watches[n % watches.len()].recording.resume_at();
        let mut watch = subject.watch(from).await;
        watch.item().await;
        watches.push(watch);
    }
    assert!(writing.await.is_ok());
    let history = subject.history(since).await;
    holds(history.check());
    for watch in &mut watches {
        subject.tell_all(watch).await;
    }
    let history = subject.history(since).await;
    for watch in &watches {
        holds(check_watch(&watch.recording, &history));
    }
}

/// Each list, whenever it is made, is the state at its revision.
pub async fn concurrent_lists_are_states_of_the_history(subject: &Subject) {
    let since = subject.revision().await;
    let journal = Arc::new(Journal::default());
    let writing = busy(subject, &journal, 4);
    let mut listings = Vec::new();
    while !writing.is_finished() {
        for at in [At::Latest, At::Any] {
            listings.push(subject.list(at).await);
        }
        let newest = listings[listings.len() - 1].revision;
        listings.push(subject.list(At::NotOlderThan(newest)).await);
        tokio::task::yield_now().await;
    }
    let history = subject.history(since).await;
    for listing in listings {
        let expected = history.state_at(listing.revision);
        assert_eq!(
            listing.records.iter().map(|r| (r.key.clone(), r.revision)).collect::<Vec<_>>(),
            expected.values().map(|r| (r.key.clone(), r.revision)).collect::<Vec<_>>(),
            "the list at {}",
            listing.revision
        );
    }
}

/// Compaction while others read and write: each exact read is right or `Expired`, never wrong.
pub async fn concurrent_compaction_disturbs_no_reader(subject: &Subject) {
    let since = subject.revision().await;
    let mut watch = subject.watch(since).await;
    let journal = Arc::new(Journal::default());
    let writing = busy(subject, &journal, 4);
    let mut readings = Vec::new();
    let dice = Dice::new(41);
    while !is_over(&watch) {
        watch.item().await;
        let events: Vec<Revision> = watch.recording.events().map(|event| event.revision).collect();
        match subject.try_page(None, 0, At::Exact(events[dice.below(events.len())])).await {
            Ok(listing) => readings.push(listing),
            Err(error) => assert_refused!(Err::<(), _>(error), StorageError::Expired { .. }),
        }
        let answer = subject.store.compact(events[events.len() * 3 / 4]).await;
        assert!(matches!(answer, Ok(()) | Err(StorageError::Expired { .. })), "{answer:?}");
        tokio::task::yield_now().await;
    }
    assert!(writing.await.is_ok());
    subject.tell_all(&mut watch).await;
    let told = watch.recording.events().map(Arc::clone).collect();
    let history = crate::checkers::History::from_empty(since, told);
    holds(history.check());
    holds(check_operations(&journal.operations(), &history));
    for listing in readings {
        let expected = history.state_at(listing.revision);
        assert_eq!(
            listing.records.iter().map(|r| (r.key.clone(), r.revision)).collect::<Vec<_>>(),
            expected.values().map(|r| (r.key.clone(), r.revision)).collect::<Vec<_>>()
        );
    }
}
