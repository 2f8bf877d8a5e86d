//! Scenarios of a live watch.

use super::*;
use crate::Filter;
use crate::checkers::check_watch;

/// The three kinds of events, in order.
pub async fn watch_tells_creates_updates_and_deletes(subject: &Subject) {
    let mut watch = subject.watch(subject.revision().await).await;
    let first = subject.create("a", "1").await;
    let second = subject.update(&first, "2").await;
    let deleted = subject.delete("a").await;
    let events = watch.events(3).await;
    assert_eq!(told(&events), "+a=1 a=2[1] -a[2]");
    let revisions: Vec<_> = events.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [first.revision, second.revision, deleted.revision]);
    assert!(events[0].is_create() && !events[1].is_create() && events[2].is_delete());
}

/// Each event carries what the key held before, with its revision.
pub async fn watch_carries_previous_values(subject: &Subject) {
    let since = subject.revision().await;
    let mut watch = subject.watch(since).await;
    let mut record = subject.create("a", "0").await;
    for n in 1..10 {
        let next = subject.update(&record, &n.to_string()).await;
        let events = watch.events(1).await;
        let last = events.last().and_then(|event| event.previous.clone());
        if n > 1 {
            assert_eq!(last.map(|last| (last.revision, text(&last))), Some((record.revision, (n - 1).to_string())));
        } else if events.len() < 2 {
            watch.events(1).await;
        }
        record = next;
    }
    let history = subject.history(since).await;
    holds(history.check());
    holds(check_watch(&watch.recording, &history));
}

/// A watch of a deeper prefix is told that prefix only.
pub async fn watch_keeps_to_its_prefix(subject: &Subject) {
    let mut watch = ok(subject.try_watch(key("ns/"), subject.revision().await).await);
    for name in ["ns/a", "ns0/b", "ns", "ns.x/c", "n/d", "ns/e"] {
        subject.create(name, "1").await;
    }
    subject.delete("ns0/b").await;
    subject.delete("ns/a").await;
    assert_eq!(told(&watch.events(3).await), "+ns/a=1 +ns/e=1 -ns/a[1]");
}

/// A watch of a whole key is told that key (and those that begin with it).
pub async fn watch_of_one_key_tells_that_key(subject: &Subject) {
    let mut watch = ok(subject.try_watch(key("ns/web"), subject.revision().await).await);
    subject.create("ns/we", "1").await;
    let web = subject.create("ns/web", "1").await;
    subject.create("ns/wea", "1").await;
    subject.update(&web, "2").await;
    assert_eq!(told(&watch.events(2).await), "+ns/web=1 ns/web=2[1]");
}

/// A watch from the present is told nothing of the past.
pub async fn watch_from_now_tells_nothing_old(subject: &Subject) {
    for n in 0..10 {
        subject.create(&format!("old{n}"), "x").await;
    }
    let mut watch = subject.watch(subject.revision().await).await;
    subject.create("new", "1").await;
    assert_eq!(told(&watch.events(1).await), "+new=1");
}

/// A watch from a revision not reached yet is silent until it is passed.
pub async fn watch_ahead_of_the_store_waits(subject: &Subject) {
    let now = subject.create("a", "0").await.revision;
    let mut watch = subject.watch(ahead(now, 5)).await;
    let mut last = now;
    for n in 0..10 {
        last = subject.create(&format!("k{n}"), "x").await.revision;
    }
    assert!(last > ahead(now, 5));
    while watch.recording.resume_at() < last {
        watch.item().await;
    }
    assert!(watch.recording.events().all(|event| event.revision > ahead(now, 5)));
    holds(check_watch(&watch.recording, &subject.history(now).await));
}

/// All watchers are told the same.
pub async fn watch_is_told_to_all_watchers_alike(subject: &Subject) {
    let since = subject.revision().await;
    let mut watches = Vec::new();
    for n in 0..20 {
        watches.push(subject.watch(since).await);
        subject.create(&format!("k{n}"), "x").await;
    }
    let history = subject.history(since).await;
    for watch in &mut watches {
        watch.events(20).await;
        holds(check_watch(&watch.recording, &history));
    }
}

/// A watch that is dropped takes nothing from the others.
pub async fn watch_dropped_leaves_others_running(subject: &Subject) {
    let since = subject.revision().await;
    let mut stays = subject.watch(since).await;
    let mut goes: Vec<_> = vec![subject.watch(since).await, subject.watch(since).await];
    subject.create("a", "1").await;
    goes[0].events(1).await;
    goes.clear();
    subject.create("b", "1").await;
    assert_eq!(told(&stays.events(2).await), "+a=1 +b=1");
}

/// Thousands of events come in order and without a gap, to a watcher that reads while they are made.
pub async fn watch_tells_thousands_in_order(subject: &Subject) {
    let since = subject.revision().await;
    let mut watch = subject.watch(since).await;
    let store = Arc::clone(&subject.store);
    let writer = tokio::spawn(async move {
        for n in 0..3000 {
            ok(store.create(key(&format!("k{n:04}")), value("x")).await);
        }
    });
    let events = watch.events(3000).await;
    assert!(writer.await.is_ok());
    let names: Vec<_> = events.iter().map(|event| event.key.to_string()).collect();
    assert_eq!(names, (0..3000).map(|n| key(&format!("k{n:04}")).to_string()).collect::<Vec<_>>());
    holds(check_watch(&watch.recording, &subject.history(since).await));
}

/// A key that comes back is a creation, not an update.
pub async fn watch_tells_recreated_keys(subject: &Subject) {
    let mut watch = subject.watch(subject.revision().await).await;
    for n in 0..3 {
        subject.create("a", &n.to_string()).await;
        subject.delete("a").await;
    }
    assert_eq!(told(&watch.events(6).await), "+a=0 -a[0] +a=1 -a[1] +a=2 -a[2]");
}

/// Progress that is asked for comes, covers what was written before, and is not followed by anything older.
pub async fn watch_reports_progress_on_request(subject: &Subject) {
    let since = subject.revision().await;
    let request = WatchRequest { prefix: PREFIX.into(), since, filter: None, progress: true };
    let mut watch = ok(subject.open(request).await);
    for n in 0..5 {
        let record = subject.create(&format!("k{n}"), "x").await;
        ok(subject.store.request_progress().await);
        while watch.progress().await < record.revision {}
        assert_eq!(watch.recording.events().count(), n + 1);
    }
    holds(check_watch(&watch.recording, &subject.history(since).await));
}

/// Who did not ask for progress gets none.
pub async fn watch_without_progress_gets_none(subject: &Subject) {
    let mut watch = subject.watch(subject.revision().await).await;
    for n in 0..5 {
        ok(subject.store.request_progress().await);
        subject.create(&format!("k{n}"), "x").await;
    }
    watch.events(5).await;
    assert!(watch.recording.items.iter().all(|item| matches!(item, WatchItem::Events(_))));
}

/// Values that contain a word.
#[derive(Debug)]
struct Has(&'static str);

impl Filter for Has {
    fn matches(&self, record: &Record) -> bool {
        text(record).contains(self.0)
    }
}

/// Values that contain a word, with the word as the value of a trigger.
#[derive(Debug)]
struct Triggered(&'static str);

impl Filter for Triggered {
    fn matches(&self, record: &Record) -> bool {
        text(record).split(' ').any(|word| word == self.0)
    }
    fn trigger(&self) -> Option<(&str, &str)> {
        Some(("word", self.0))
    }
}

async fn open_filtered(subject: &Subject, since: Revision, filter: Arc<dyn Filter>) -> Watch {
    ok(subject.open(WatchRequest { prefix: PREFIX.into(), since, filter: Some(filter), progress: false }).await)
}

/// A filter leaves out nothing that matches. What does not match may come or not.
pub async fn watch_filter_keeps_what_matches(subject: &Subject) {
    let since = subject.revision().await;
    let mut watch = open_filtered(subject, since, Arc::new(Has("red"))).await;
    for n in 0..30 {
        subject.create(&format!("k{n:02}"), if n % 3 == 0 { "red" } else { "blue" }).await;
    }
    subject.create("end", "red").await;
    while watch.recording.events().all(|event| event.key != key("end")) {
        watch.item().await;
    }
    let red = watch.recording.events().filter(|e| e.record.as_ref().is_some_and(|r| text(r) == "red")).count();
    assert_eq!(red, 11);
    holds(check_watch(&watch.recording, &subject.history(since).await));
}

/// A change into or out of what matches is told: the watcher has to add or remove the object.
pub async fn watch_filter_keeps_what_begins_or_ceases_to_match(subject: &Subject) {
    let since = subject.revision().await;
    let mut watch = open_filtered(subject, since, Arc::new(Has("red"))).await;
    let a = subject.create("a", "blue").await;
    let a = subject.update(&a, "red").await;
    let a = subject.update(&a, "blue").await;
    let a = subject.update(&a, "green").await;
    let a = subject.update(&a, "red").await;
    subject.delete("a").await;
    while watch.recording.resume_at() <= a.revision {
        watch.item().await;
    }
    let seen: Vec<_> = watch.recording.events().map(Arc::clone).collect();
    for expected in ["a=red[blue]", "a=blue[red]", "a=red[green]", "-a[red]"] {
        assert!(told(&seen).split(' ').any(|word| word == expected), "{expected} in {}", told(&seen));
    }
    holds(check_watch(&watch.recording, &subject.history(since).await));
}

/// With a trigger the same holds, for many watchers with a trigger each.
pub async fn watch_trigger_keeps_what_matches(subject: &Subject) {
    const WORDS: [&str; 4] = ["red", "blue", "green", "white"];
    let since = subject.revision().await;
    let mut watches = Vec::new();
    for word in WORDS {
        watches.push(open_filtered(subject, since, Arc::new(Triggered(word))).await);
    }
    let dice = Dice::new(3);
    let mut records: Vec<Arc<Record>> = Vec::new();
    for n in 0..200 {
        let word = WORDS[dice.below(4)];
        if records.len() < 10 {
            records.push(subject.create(&format!("k{n}"), word).await);
        } else if dice.below(5) == 0 {
            let record = records.swap_remove(dice.below(10));
            ok(subject.store.delete(record.key.clone(), Some(record.revision)).await);
        } else {
            let idx = dice.below(10);
            records[idx] = subject.update(&records[idx].clone(), word).await;
        }
    }
    for word in WORDS {
        subject.create(&format!("end-{word}"), word).await;
    }
    let history = subject.history(since).await;
    for (watch, word) in watches.iter_mut().zip(WORDS) {
        while watch.recording.events().all(|event| event.key != key(&format!("end-{word}"))) {
            watch.item().await;
        }
        holds(check_watch(&watch.recording, &history));
    }
}

/// A watcher that never reads holds up neither writers nor other watchers; when it reads at last it is told everything,
/// or that it is too late.
pub async fn watch_never_read_disturbs_nobody(subject: &Subject) {
    let since = subject.revision().await;
    let mut sleeper = subject.watch(since).await;
    let mut reader = subject.watch(since).await;
    for n in 0..1000 {
        subject.create(&format!("k{n:03}"), "x").await;
    }
    reader.events(1000).await;
    let history = subject.history(since).await;
    holds(check_watch(&reader.recording, &history));
    while sleeper.recording.events().count() < 1000 {
        match sleeper.try_item().await {
            Ok(_) => {}
            Err(StorageError::Expired { .. }) => break,
            Err(error) => fail(&error.to_string()),
        }
    }
    holds(check_watch(&sleeper.recording, &history));
}
