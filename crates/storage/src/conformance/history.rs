//! Scenarios of revisions, compaction and the whole history.

use super::*;
use crate::MemoryStore;
use crate::checkers::check_watch;

/// Writes a key several times; answers all its versions.
async fn versions(subject: &Subject, name: &str, n: usize) -> Vec<Arc<Record>> {
    let mut versions = vec![subject.create(name, "0").await];
    for n in 1..n {
        let next = subject.update(&versions[n - 1].clone(), &n.to_string()).await;
        versions.push(next);
    }
    versions
}

/// After a compaction, exact reads from before it answer `Expired` and say where history begins.
pub async fn compact_expires_older_exact_reads(subject: &Subject) {
    let versions = versions(subject, "a", 10).await;
    ok(subject.store.compact(versions[6].revision).await);
    for version in &versions[..6] {
        let answer = subject.try_page(None, 0, At::Exact(version.revision)).await;
        let Err(StorageError::Expired { requested, compacted }) = answer else { fail(&format!("{answer:?}")) };
        assert_eq!(requested, version.revision);
        assert!(compacted >= versions[6].revision);
        assert_refused!(subject.store.get(&key("a"), At::Exact(version.revision)).await, StorageError::Expired { .. });
    }
}

/// After a compaction, watches from before it answer `Expired`, at once or as their only item.
pub async fn compact_expires_older_watches(subject: &Subject) {
    let versions = versions(subject, "a", 10).await;
    ok(subject.store.compact(versions[6].revision).await);
    for version in &versions[..5] {
        let answer = match subject.try_watch(PREFIX.into(), version.revision).await {
            Ok(mut watch) => watch.try_item().await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert_refused!(answer, StorageError::Expired { .. });
    }
    let mut watch = subject.watch(versions[6].revision).await;
    assert_eq!(told(&watch.events(3).await), "a=7[6] a=8[7] a=9[8]");
}

/// Compaction takes no live record, however old.
pub async fn compact_keeps_live_records(subject: &Subject) {
    let old = subject.create("old", "1").await;
    versions(subject, "a", 10).await;
    let now = subject.revision().await;
    ok(subject.store.compact(now).await);
    let listing = subject.list(At::Latest).await;
    assert_eq!(listed(&listing), "a=9 old=1");
    assert_eq!(listing.records[1].revision, old.revision);
    assert_eq!(listed(&subject.list(At::Exact(now)).await), "a=9 old=1");
    let updated = subject.update(&old, "2").await;
    assert_eq!(told(&subject.watch(now).await.events(1).await), "old=2[1]");
    ok(subject.store.delete(key("old"), Some(updated.revision)).await);
}

/// Exact reads and watches from behind the compaction work as before.
pub async fn compact_keeps_what_is_newer(subject: &Subject) {
    let versions = versions(subject, "a", 10).await;
    ok(subject.store.compact(versions[3].revision).await);
    for (n, version) in versions.iter().enumerate().skip(4) {
        assert_eq!(listed(&subject.list(At::Exact(version.revision)).await), format!("a={n}"));
        let mut watch = subject.watch(version.revision).await;
        if n < 9 {
            assert_eq!(told(&watch.events(1).await[..1]), format!("a={}[{n}]", n + 1));
        }
    }
}

/// The state at the compaction's own revision can still be read.
pub async fn compact_keeps_the_state_it_names(subject: &Subject) {
    let a = versions(subject, "a", 3).await;
    subject.create("b", "0").await;
    subject.delete("b").await;
    let then = subject.create("c", "0").await.revision;
    subject.update(&a[2], "3").await;
    subject.delete("c").await;
    ok(subject.store.compact(then).await);
    assert_eq!(listed(&subject.list(At::Exact(then)).await), "a=2 c=0");
    assert_eq!(told(&subject.watch(then).await.events(2).await), "a=3[2] -c[0]");
}

/// What is compacted cannot be compacted again.
pub async fn compact_twice_is_refused(subject: &Subject) {
    let versions = versions(subject, "a", 6).await;
    ok(subject.store.compact(versions[4].revision).await);
    for version in &versions[..5] {
        assert_refused!(subject.store.compact(version.revision).await, StorageError::Expired { .. });
    }
    ok(subject.store.compact(versions[5].revision).await);
}

/// The future cannot be compacted.
pub async fn compact_ahead_is_refused(subject: &Subject) {
    let record = subject.create("a", "1").await;
    let answer = subject.store.compact(ahead(record.revision, 100)).await;
    assert_refused!(answer, StorageError::Future { .. });
    assert_eq!(listed(&subject.list(At::Exact(record.revision)).await), "a=1");
}

/// A watch that is up to date is not disturbed by a compaction behind it.
pub async fn compact_leaves_running_watches_alone(subject: &Subject) {
    let since = subject.revision().await;
    let mut watch = subject.watch(since).await;
    let versions = versions(subject, "a", 10).await;
    watch.events(10).await;
    ok(subject.store.compact(versions[9].revision).await);
    let next = subject.update(&versions[9], "10").await;
    assert_eq!(told(&watch.events(1).await), "a=10[9]");
    ok(subject.store.compact(next.revision).await);
    subject.update(&next, "11").await;
    assert_eq!(told(&watch.events(1).await), "a=11[10]");
}

/// Keys that were deleted before the compaction stay deleted.
pub async fn compact_forgets_deleted_keys(subject: &Subject) {
    for n in 0..20 {
        subject.create(&format!("k{n:02}"), "1").await;
    }
    for n in 0..19 {
        subject.delete(&format!("k{n:02}")).await;
    }
    let now = subject.revision().await;
    ok(subject.store.compact(now).await);
    assert_eq!(listed(&subject.list(At::Latest).await), "k19=1");
    let again = subject.create("k00", "2").await;
    assert_eq!(told(&subject.watch(now).await.events(1).await), "+k00=2");
    assert_refused!(subject.store.update(key("k01"), value("x"), again.revision).await, StorageError::NotFound { .. });
}

/// The current revision is never behind an acknowledged write.
pub async fn current_revision_covers_acknowledged_writes(subject: &Subject) {
    let mut newest = subject.revision().await;
    for n in 0..20 {
        let record = subject.create(&format!("k{n}"), "x").await;
        assert!(record.revision > newest);
        newest = subject.revision().await;
        assert!(newest >= record.revision);
        if let Some(told) = subject.store.newest(&PREFIX.into()) {
            assert!(told.current >= record.revision && told.change >= record.revision);
        }
    }
}

/// Reads and refused writes move nothing.
pub async fn current_revision_rests_when_nothing_is_written(subject: &Subject) {
    let record = subject.create("a", "1").await;
    let before = subject.revision().await;
    subject.list(At::Latest).await;
    ok(subject.store.get(&key("a"), At::Latest).await);
    assert!(subject.store.create(key("a"), value("2")).await.is_err());
    assert!(subject.store.delete(key("b"), None).await.is_err());
    assert_eq!(subject.revision().await, before);
    assert!(before >= record.revision);
}

/// A store that was just made is well.
pub async fn health_is_good(subject: &Subject) {
    ok(subject.store.health().await);
}

/// The same random writes to the store and to the reference model give the same answers, states and events.
pub async fn random_writes_match_the_model(subject: &Subject) {
    let model = MemoryStore::new();
    let dice = Dice::new(97);
    let since = subject.revision().await;
    let mut pairs: Vec<(Revision, Revision)> = vec![(since, ok(model.current_revision().await))];
    for n in 0..400 {
        let key = key(&format!("ns{}/k{}", dice.below(3), dice.below(6)));
        // The revision to expect is that of some earlier write, which may be the right one.
        let (expected, model_expected) = match dice.below(3) {
            0 => pairs[dice.below(pairs.len())],
            _ => {
                let found = ok(subject.store.get(&key, At::Latest).await).record.map(|record| record.revision);
                pairs.iter().copied().find(|(real, _)| Some(*real) == found).unwrap_or(pairs[0])
            }
        };
        let text = n.to_string();
        let (real, model) = match dice.below(4) {
            0 => (
                subject.store.create(key.clone(), value(&text)).await.map(|record| record.revision),
                model.create(key, value(&text)).await.map(|record| record.revision),
            ),
            1 => {
                let expected = [None, Some((expected, model_expected))][dice.below(2)];
                (
                    subject.store.delete(key.clone(), expected.map(|e| e.0)).await.map(|event| event.revision),
                    model.delete(key, expected.map(|e| e.1)).await.map(|event| event.revision),
                )
            }
            _ => (
                subject.store.update(key.clone(), value(&text), expected).await.map(|record| record.revision),
                model.update(key, value(&text), model_expected).await.map(|record| record.revision),
            ),
        };
        match (real, model) {
            (Ok(real), Ok(model)) => pairs.push((real, model)),
            (Err(real), Err(model)) => {
                assert_eq!(std::mem::discriminant(&real), std::mem::discriminant(&model), "{real} and {model}");
            }
            (real, model) => fail(&format!("step {n}: {real:?}, the model says {model:?}")),
        }
    }
    let history = subject.history(since).await;
    holds(history.check());
    for (real, modelled) in &pairs {
        let real = subject.list(At::Exact(*real)).await;
        let request = ListRequest { prefix: PREFIX.into(), start: None, limit: 0, at: At::Exact(*modelled) };
        assert_eq!(listed(&real), listed(&ok(model.list(request).await)));
    }
    let mut watch = subject.watch(pairs[pairs.len() / 2].0).await;
    watch.events(pairs.len() - 1 - pairs.len() / 2).await;
    holds(check_watch(&watch.recording, &history));
}
