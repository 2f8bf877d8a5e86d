//! Scenarios of `get`.

use super::*;

/// The text of a key in a state, if it is there.
async fn got(subject: &Subject, name: &str, at: At) -> Option<String> {
    ok(subject.store.get(&key(name), at).await).record.map(|record| text(&record))
}

/// A missing key is no error; neither is a key that another begins with.
pub async fn get_of_a_missing_key_finds_nothing(subject: &Subject) {
    let record = subject.create("abc", "1").await;
    for name in ["ab", "abcd", "abd", ""] {
        let found = ok(subject.store.get(&key(name), At::Latest).await);
        assert!(found.record.is_none());
        assert!(found.revision >= record.revision);
    }
}

/// What was acknowledged is there at once.
pub async fn get_latest_sees_acknowledged_writes(subject: &Subject) {
    for n in 0..50 {
        let name = format!("k{}", n % 7);
        let old = ok(subject.store.get(&key(&name), At::Latest).await).record;
        let record = match &old {
            Some(old) => subject.update(old, &n.to_string()).await,
            None => subject.create(&name, &n.to_string()).await,
        };
        let found = ok(subject.store.get(&key(&name), At::Latest).await);
        assert_eq!(found.record.map(|found| found.revision), Some(record.revision));
        assert!(found.revision >= record.revision);
        if n % 5 == 4 {
            let event = subject.delete(&name).await;
            let found = ok(subject.store.get(&key(&name), At::Latest).await);
            assert!(found.record.is_none() && found.revision >= event.revision);
        }
    }
}

/// "Not older than" a write sees that write or a later one.
pub async fn get_not_older_than_a_write_sees_it(subject: &Subject) {
    let mut record = subject.create("a", "0").await;
    for n in 1..20 {
        record = subject.update(&record, &n.to_string()).await;
        let found = ok(subject.store.get(&key("a"), At::NotOlderThan(record.revision)).await);
        assert_eq!(found.record.map(|found| text(&found)), Some(n.to_string()));
        assert!(found.revision >= record.revision);
    }
    let event = subject.delete("a").await;
    assert_eq!(got(subject, "a", At::NotOlderThan(event.revision)).await, None);
}

/// "Any" answers at once with some state that was.
pub async fn get_any_finds_a_version_that_was(subject: &Subject) {
    let first = subject.create("a", "1").await;
    subject.update(&first, "2").await;
    let found = got(subject, "a", At::Any).await;
    assert!([None, Some("1".to_owned()), Some("2".to_owned())].contains(&found), "{found:?}");
}

/// An exact read finds each version of a key at its revision and until the next.
pub async fn get_exact_finds_every_version(subject: &Subject) {
    let mut record = subject.create("a", "0").await;
    let mut versions = vec![(record.revision, 0)];
    for n in 1..10 {
        let between = subject.create(&format!("other{n}"), "x").await;
        versions.push((between.revision, n - 1));
        record = subject.update(&record, &n.to_string()).await;
        versions.push((record.revision, n));
    }
    for (revision, n) in versions {
        let found = ok(subject.store.get(&key("a"), At::Exact(revision)).await);
        assert_eq!(found.record.map(|record| text(&record)), Some(n.to_string()));
        assert_eq!(found.revision, revision);
    }
}

/// Before its creation and from its deletion on a key is not there.
pub async fn get_exact_finds_nothing_before_and_after(subject: &Subject) {
    let before = subject.create("other", "x").await;
    let created = subject.create("a", "1").await;
    let deleted = subject.delete("a").await;
    let again = subject.create("a", "2").await;
    assert_eq!(got(subject, "a", At::Exact(before.revision)).await, None);
    assert_eq!(got(subject, "a", At::Exact(created.revision)).await.as_deref(), Some("1"));
    assert_eq!(got(subject, "a", At::Exact(deleted.revision)).await, None);
    assert_eq!(got(subject, "a", At::Exact(again.revision)).await.as_deref(), Some("2"));
}

/// A revision that is not reached yet is refused; the store says where it stands.
pub async fn get_ahead_of_the_store_is_refused(subject: &Subject) {
    let record = subject.create("a", "1").await;
    for at in [At::NotOlderThan(ahead(record.revision, 1000)), At::Exact(ahead(record.revision, 1000))] {
        let answer = subject.store.get(&key("a"), at).await;
        let Err(StorageError::Future { requested, current }) = answer else { fail(&format!("{at:?}: {answer:?}")) };
        assert_eq!(requested, ahead(record.revision, 1000));
        assert!(current >= record.revision && current < requested);
    }
}
