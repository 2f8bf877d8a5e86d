//! Scenarios of a watch that begins in the past.

use super::*;
use crate::checkers::watches::{check_watch, resumable};

/// Some keys under two namespaces come, change and go. Answers the revisions, that before the first write included.
async fn busy_past(subject: &Subject, n_writes: usize, seed: u64) -> Vec<Revision> {
    let dice = Dice::new(seed);
    let mut revisions = vec![subject.revision().await];
    let mut records: Vec<Arc<Record>> = Vec::new();
    for n in 0..n_writes {
        let idx = dice.below(12);
        let revision = if idx >= records.len() {
            records.push(subject.create(&format!("ns{}/k{n:03}", n % 2), &n.to_string()).await);
            records[records.len() - 1].revision
        } else if dice.below(4) == 0 {
            let record = records.swap_remove(idx);
            ok(subject.store.delete(record.key.clone(), None).await).revision
        } else {
            records[idx] = subject.update(&records[idx].clone(), &n.to_string()).await;
            records[idx].revision
        };
        revisions.push(revision);
    }
    revisions
}

/// A watch may begin at every revision and tells all that came after it.
pub async fn watch_from_every_revision(subject: &Subject) {
    let revisions = busy_past(subject, 60, 17).await;
    let history = subject.history(revisions[0]).await;
    holds(history.check());
    for (n, revision) in revisions.iter().enumerate() {
        let mut watch = subject.watch(*revision).await;
        watch.events(revisions.len() - 1 - n).await;
        holds(check_watch(&watch.recording, &history));
    }
}

/// A watch that is cut after any event goes on from there without a gap or a repetition.
pub async fn watch_resumes_after_every_event(subject: &Subject) {
    let revisions = busy_past(subject, 40, 23).await;
    let history = subject.history(revisions[0]).await;
    let mut whole = subject.watch(revisions[0]).await;
    whole.events(40).await;
    let cuts: Vec<Revision> = whole.recording.events().map(|event| event.revision).collect();
    for cut in cuts {
        let mut resumed = subject.watch(cut).await;
        let n_rest = whole.recording.events().filter(|event| event.revision > cut).count();
        resumed.events(n_rest).await;
        holds(resumable(&whole.recording, &resumed.recording));
        holds(check_watch(&resumed.recording, &history));
    }
}

/// A watch goes on from a bookmark as from an event.
pub async fn watch_resumes_after_progress(subject: &Subject) {
    let since = subject.revision().await;
    let request = |since| WatchRequest { prefix: PREFIX.into(), since, filter: None, progress: true };
    let mut watch = ok(subject.open(request(since)).await);
    let mut n_told = 0;
    for n in 0..8 {
        let record = subject.create(&format!("k{n}"), "x").await;
        ok(subject.store.request_progress().await);
        let mut bookmark = watch.progress().await;
        while bookmark < record.revision {
            bookmark = watch.progress().await;
        }
        n_told += watch.recording.events().count();
        holds(crate::checkers::watches::bookmarkable(&watch.recording));
        watch = ok(subject.open(request(bookmark)).await);
    }
    assert_eq!(n_told, 8);
}

/// A watch from the revision of a list tells what the list does not show.
pub async fn watch_follows_a_list(subject: &Subject) {
    let start = subject.revision().await;
    let store = Arc::clone(&subject.store);
    let writer = tokio::spawn(async move {
        for n in 0..300 {
            ok(store.create(key(&format!("k{n:03}")), value("x")).await);
        }
    });
    for _ in 0..10 {
        let listing = subject.list(At::Latest).await;
        let n_listed = listing.records.len();
        let mut watch = subject.watch(listing.revision).await;
        if n_listed < 300 {
            let events = watch.events(1).await;
            assert_eq!(events[0].key, key(&format!("k{n_listed:03}")));
        }
        tokio::task::yield_now().await;
    }
    assert!(writer.await.is_ok());
    assert_eq!(subject.history(start).await.state_at(subject.revision().await).len(), 300);
}

/// Watches opened in the past while writes go on catch up without a gap.
pub async fn watch_catches_up_while_writes_go_on(subject: &Subject) {
    let since = subject.revision().await;
    let store = Arc::clone(&subject.store);
    let writer = tokio::spawn(async move {
        for n in 0..600 {
            ok(store.create(key(&format!("k{n:03}")), value("x")).await);
        }
    });
    let mut recordings = Vec::new();
    for n in 0..12 {
        let mut watch = subject.watch(since).await;
        watch.events(50 * (n + 1)).await;
        recordings.push(watch);
    }
    assert!(writer.await.is_ok());
    let history = subject.history(since).await;
    for watch in &mut recordings {
        holds(check_watch(&watch.recording, &history));
        let n_told = watch.recording.events().count();
        watch.events(600 - n_told).await;
        holds(check_watch(&watch.recording, &history));
    }
}

/// A watch of a deeper prefix may begin in the past, too.
pub async fn watch_of_a_namespace_from_the_past(subject: &Subject) {
    let revisions = busy_past(subject, 60, 29).await;
    let history = subject.history(revisions[0]).await;
    for since in revisions.iter().step_by(5) {
        for namespace in ["ns0/", "ns1/"] {
            let n_events = history.between(*since, subject.revision().await, &key(namespace)).count();
            let mut watch = ok(subject.try_watch(key(namespace), *since).await);
            watch.events(n_events).await;
            holds(check_watch(&watch.recording, &history));
        }
    }
}

/// What a watch tells and what exact reads show is the same.
pub async fn watch_events_agree_with_exact_reads(subject: &Subject) {
    let revisions = busy_past(subject, 40, 31).await;
    let history = subject.history(revisions[0]).await;
    for revision in revisions {
        let listing = subject.list(At::Exact(revision)).await;
        let expected = history.state_at(revision);
        assert_eq!(
            listing.records.iter().map(|r| (r.key.clone(), r.revision, text(r))).collect::<Vec<_>>(),
            expected.values().map(|r| (r.key.clone(), r.revision, text(r))).collect::<Vec<_>>()
        );
    }
}
