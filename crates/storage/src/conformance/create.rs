//! Scenarios of `create`.

use super::*;
use crate::Note;

/// The record answered is the one written.
pub async fn create_answers_the_record(subject: &Subject) {
    let record = subject.create("a", "1").await;
    assert_eq!(record.key, key("a"));
    assert_eq!(text(&record), "1");
    let found = ok(subject.store.get(&key("a"), At::Latest).await);
    let read = found.record.expect("the key was created");
    assert_eq!((&read.key, read.revision, &read.value), (&record.key, record.revision, &record.value));
    assert!(found.revision >= record.revision);
}

/// Each create has a greater revision than the one before.
pub async fn create_makes_revisions_grow(subject: &Subject) {
    let mut newest = subject.revision().await;
    for n in 0..20 {
        let record = subject.create(&format!("k{n}"), "x").await;
        assert!(record.revision > newest, "{} is not after {newest}", record.revision);
        newest = record.revision;
        assert!(subject.revision().await >= newest);
    }
}

/// A key that is there is not created again; the refusal says where it stands.
pub async fn create_of_an_existing_key_is_refused(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let second = subject.update(&first, "2").await;
    let error = subject.store.create(key("a"), value("3")).await.expect_err("the key is there");
    assert_refused!(Err::<(), _>(error.clone()), StorageError::AlreadyExists { .. });
    assert_eq!(stored(&error), Some(second.revision));
    assert_eq!(listed(&subject.list(At::Latest).await), "a=2");
}

/// A deleted key can be created; its new life has nothing before it.
pub async fn create_after_delete_succeeds(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let deleted = subject.delete("a").await;
    let second = subject.create("a", "2").await;
    assert!(first.revision < deleted.revision && deleted.revision < second.revision);
    let mut watch = subject.watch(deleted.revision).await;
    let events = watch.events(1).await;
    assert_eq!(told(&events), "+a=2");
}

/// Values are bytes, whatever they are.
pub async fn create_keeps_every_byte(subject: &Subject) {
    let bytes: Bytes = (0..=255u8).chain((0..=255u8).rev()).collect();
    ok(subject.store.create(key("a"), NewValue { bytes: bytes.clone(), ..NewValue::default() }).await);
    let found = ok(subject.store.get(&key("a"), At::Latest).await);
    assert_eq!(found.record.map(|record| record.value.clone()), Some(bytes));
}

/// A value may be empty, and an empty value is not a missing key.
pub async fn create_keeps_an_empty_value(subject: &Subject) {
    let record = subject.create("a", "").await;
    assert_refused!(subject.store.create(key("a"), value("x")).await, StorageError::AlreadyExists { .. });
    assert_eq!(listed(&subject.list(At::Latest).await), "a=");
    let event = ok(subject.store.delete(key("a"), Some(record.revision)).await);
    assert_eq!(event.previous.as_ref().map(|record| record.value.len()), Some(0));
}

/// A value of 1 MiB is kept.
pub async fn create_keeps_a_large_value(subject: &Subject) {
    let since = subject.revision().await;
    let bytes: Bytes = (0..1u32 << 18).flat_map(u32::to_le_bytes).collect();
    ok(subject.store.create(key("a"), NewValue { bytes: bytes.clone(), ..NewValue::default() }).await);
    assert_eq!(subject.list(At::Latest).await.records[0].value, bytes);
    let events = subject.watch(since).await.events(1).await;
    assert_eq!(events[0].record.as_ref().map(|record| record.value.clone()), Some(bytes));
}

/// A value that no back end takes is refused, and nothing is written.
pub async fn create_of_a_huge_value_is_refused(subject: &Subject) {
    let before = subject.create("a", "1").await;
    let bytes = Bytes::from(vec![b'x'; 64 << 20]);
    let answer = subject.store.create(key("b"), NewValue { bytes, ..NewValue::default() }).await;
    assert_refused!(answer, StorageError::TooLarge { .. });
    assert_eq!(listed(&subject.list(At::Latest).await), "a=1");
    let after = subject.create("c", "3").await;
    let events = subject.watch(before.revision).await.events(1).await;
    assert_eq!(events[0].revision, after.revision);
}

/// Keys are text, whatever it is.
pub async fn create_takes_keys_of_any_text(subject: &Subject) {
    let long = "x".repeat(700);
    let names = ["ns/web", "ns/web.1", "ns//x", "ns/ä ö\u{1f980}", "ns/\"%2F\\", "ns/\u{1}", "ns/-", "ns/~", &long];
    for name in names {
        subject.create(name, name).await;
    }
    let listing = subject.list(At::Latest).await;
    let mut expected = names.map(|name| key(name).to_string());
    expected.sort();
    assert_eq!(listing.records.iter().map(|record| record.key.to_string()).collect::<Vec<_>>(), expected);
    assert!(listing.records.iter().all(|record| record.key.ends_with(&text(record))));
}

/// What the writer derived from the value comes back with the record.
pub async fn create_keeps_the_note(subject: &Subject) {
    let note = Note::of(Arc::new("derived"));
    let value = NewValue { note: note.clone(), ..value("1") };
    let record = ok(subject.store.create(key("a"), value).await);
    assert_eq!(record.note.peek::<&str>(), Some(&"derived"));
    let value = NewValue { note: Note::of(Arc::new("again")), ..super::value("2") };
    let record = ok(subject.store.update(key("a"), value, record.revision).await);
    assert_eq!(record.note.peek::<&str>(), Some(&"again"));
}
