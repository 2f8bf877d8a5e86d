//! Scenarios of `update` and `delete`.

use super::*;

/// An update replaces the value and moves the revision on.
pub async fn update_replaces_the_value(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let second = subject.update(&first, "2").await;
    assert!(second.revision > first.revision);
    let found = ok(subject.store.get(&key("a"), At::Latest).await).record.expect("it was created");
    assert_eq!((found.revision, text(&found)), (second.revision, "2".to_owned()));
}

/// An update of what the key no longer holds is refused; the refusal says where it stands.
pub async fn update_of_a_stale_revision_conflicts(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let second = subject.update(&first, "2").await;
    for expected in [first.revision, Revision::FIRST, ahead(second.revision, 5)] {
        let error = subject.store.update(key("a"), value("3"), expected).await.expect_err("it stands elsewhere");
        assert_refused!(Err::<(), _>(error.clone()), StorageError::Conflict { .. });
        assert_eq!(stored(&error), Some(second.revision));
    }
    assert_eq!(listed(&subject.list(At::Latest).await), "a=2");
}

/// A key that was never there, or is gone, cannot be updated.
pub async fn update_of_a_missing_key_is_refused(subject: &Subject) {
    let record = subject.create("a", "1").await;
    assert_refused!(subject.store.update(key("b"), value("x"), record.revision).await, StorageError::NotFound { .. });
    subject.delete("a").await;
    assert_refused!(subject.store.update(key("a"), value("x"), record.revision).await, StorageError::NotFound { .. });
    assert_eq!(listed(&subject.list(At::Latest).await), "");
}

/// A key that was deleted and created again is another one.
pub async fn update_of_a_successor_conflicts(subject: &Subject) {
    let first = subject.create("a", "1").await;
    subject.delete("a").await;
    let second = subject.create("a", "2").await;
    let error = subject.store.update(key("a"), value("3"), first.revision).await.expect_err("it is another key");
    assert_eq!(stored(&error), Some(second.revision));
}

/// The store compares nothing: the same value again is a new version.
pub async fn update_with_the_same_value_counts(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let second = subject.update(&first, "1").await;
    assert!(second.revision > first.revision);
    assert_eq!(told(&subject.watch(first.revision).await.events(1).await), "a=1[1]");
}

/// An update changes no other key's value or revision.
pub async fn update_leaves_other_keys_alone(subject: &Subject) {
    let a = subject.create("a", "1").await;
    let b = subject.create("ab", "1").await;
    subject.update(&a, "2").await;
    let found = ok(subject.store.get(&key("ab"), At::Latest).await).record.expect("it was created");
    assert_eq!((found.revision, text(&found)), (b.revision, "1".to_owned()));
}

/// A value that no back end takes is refused, and the old one stays.
pub async fn update_of_a_huge_value_is_refused(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let huge = NewValue { bytes: Bytes::from(vec![b'x'; 64 << 20]), ..NewValue::default() };
    assert_refused!(subject.store.update(key("a"), huge, first.revision).await, StorageError::TooLarge { .. });
    subject.update(&first, "2").await;
}

/// A deletion answers its own revision and what was deleted.
pub async fn delete_answers_what_was_deleted(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let second = subject.update(&first, "2").await;
    let event = subject.delete("a").await;
    assert!(event.is_delete() && event.revision > second.revision && event.key == key("a"));
    let previous = event.previous.as_ref().expect("a deletion carries what was deleted");
    assert_eq!((previous.revision, text(previous)), (second.revision, "2".to_owned()));
}

/// A deletion at the stored revision succeeds.
pub async fn delete_at_its_revision_succeeds(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let second = subject.update(&first, "2").await;
    let event = ok(subject.store.delete(key("a"), Some(second.revision)).await);
    assert_eq!(told(&[event]), "-a[2]");
}

/// A deletion of what the key no longer holds is refused.
pub async fn delete_of_a_stale_revision_conflicts(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let second = subject.update(&first, "2").await;
    let error = subject.store.delete(key("a"), Some(first.revision)).await.expect_err("it stands elsewhere");
    assert_refused!(Err::<(), _>(error.clone()), StorageError::Conflict { .. });
    assert_eq!(stored(&error), Some(second.revision));
    assert_eq!(listed(&subject.list(At::Latest).await), "a=2");
}

/// A key that is not there cannot be deleted, at no revision.
pub async fn delete_of_a_missing_key_is_refused(subject: &Subject) {
    let record = subject.create("a", "1").await;
    subject.delete("a").await;
    for expected in [None, Some(record.revision)] {
        assert_refused!(subject.store.delete(key("a"), expected).await, StorageError::NotFound { .. });
        assert_refused!(subject.store.delete(key("never"), expected).await, StorageError::NotFound { .. });
    }
}

/// A deleted key is gone from gets and lists.
pub async fn delete_hides_the_key(subject: &Subject) {
    subject.create("a", "1").await;
    subject.create("b", "1").await;
    let event = subject.delete("a").await;
    let found = ok(subject.store.get(&key("a"), At::Latest).await);
    assert!(found.record.is_none() && found.revision >= event.revision);
    assert_eq!(listed(&subject.list(At::Latest).await), "b=1");
}

/// Deleting every other key leaves the others.
pub async fn delete_of_many_leaves_the_rest(subject: &Subject) {
    for n in 0..40 {
        subject.create(&format!("k{n:02}"), "x").await;
    }
    for n in (0..40).step_by(2) {
        subject.delete(&format!("k{n:02}")).await;
    }
    let listing = subject.list(At::Latest).await;
    let expected: Vec<_> = (0..20).map(|n| format!("k{:02}=x", 2 * n + 1)).collect();
    assert_eq!(listed(&listing), expected.join(" "));
}

/// A refused write makes no event and takes nothing from the next.
pub async fn refused_writes_are_not_told(subject: &Subject) {
    let first = subject.create("a", "1").await;
    let mut watch = subject.watch(first.revision).await;
    let second = subject.update(&first, "2").await;
    let store = &subject.store;
    assert!(store.create(key("a"), value("no")).await.is_err());
    assert!(store.update(key("a"), value("no"), first.revision).await.is_err());
    assert!(store.update(key("b"), value("no"), first.revision).await.is_err());
    assert!(store.delete(key("a"), Some(first.revision)).await.is_err());
    assert!(store.delete(key("b"), None).await.is_err());
    subject.update(&second, "3").await;
    assert_eq!(told(&watch.events(2).await), "a=2[1] a=3[2]");
}
