//! Scenarios of keys with a time to live. They wait for the deletion, however late it comes.

use super::*;

/// Long enough for back ends that count in seconds.
const TTL: Duration = Duration::from_secs(1);

fn mortal(text: &str, ttl: Duration) -> NewValue {
    NewValue { ttl: Some(ttl), ..value(text) }
}

/// A key is deleted when its time is over, by an ordinary event.
pub async fn ttl_deletes_the_key(subject: &Subject) {
    let record = ok(subject.store.create(key("a"), mortal("1", TTL)).await);
    subject.create("b", "stays").await;
    let mut watch = subject.watch(record.revision).await;
    assert_eq!(told(&watch.events(2).await), "+b=stays -a[1]");
    assert!(ok(subject.store.get(&key("a"), At::Latest).await).record.is_none());
    assert_eq!(listed(&subject.list(At::Latest).await), "b=stays");
}

/// An update with a new time to live counts from the update.
pub async fn ttl_is_renewed_by_an_update(subject: &Subject) {
    let first = ok(subject.store.create(key("a"), mortal("1", TTL)).await);
    let second = ok(subject.store.update(key("a"), mortal("2", 3 * TTL), first.revision).await);
    let mut watch = subject.watch(second.revision).await;
    ok(subject.store.create(key("b"), mortal("1", 2 * TTL)).await);
    assert_eq!(told(&watch.events(3).await), "+b=1 -b[1] -a[2]");
}

/// An update without a time to live makes the key permanent.
pub async fn ttl_ends_with_an_update_without_it(subject: &Subject) {
    let first = ok(subject.store.create(key("a"), mortal("1", TTL)).await);
    let second = subject.update(&first, "2").await;
    let mut watch = subject.watch(second.revision).await;
    ok(subject.store.create(key("b"), mortal("1", 2 * TTL)).await);
    assert_eq!(told(&watch.events(2).await), "+b=1 -b[1]");
    assert_eq!(listed(&subject.list(At::Latest).await), "a=2");
}

/// The time of a key that is gone does not strike one of the same name.
pub async fn ttl_does_not_strike_a_successor(subject: &Subject) {
    ok(subject.store.create(key("a"), mortal("1", TTL)).await);
    subject.delete("a").await;
    let second = subject.create("a", "2").await;
    let mut watch = subject.watch(second.revision).await;
    ok(subject.store.create(key("b"), mortal("1", 2 * TTL)).await);
    assert_eq!(told(&watch.events(2).await), "+b=1 -b[1]");
    assert_eq!(listed(&subject.list(At::Latest).await), "a=2");
}

/// Keys go in the order in which they are due, each once.
pub async fn ttl_of_many_keys_in_their_order(subject: &Subject) {
    let since = subject.revision().await;
    for n in [2u32, 1] {
        for m in 0..5 {
            ok(subject.store.create(key(&format!("k{n}-{m}")), mortal("x", n * TTL)).await);
        }
    }
    let mut watch = subject.watch(since).await;
    let events = watch.events(20).await;
    let mut gone: Vec<_> = events[10..].iter().map(|event| event.key.to_string()).collect();
    assert!(events[10..].iter().all(|event| event.is_delete()));
    gone[..5].sort();
    gone[5..].sort();
    let expected: Vec<_> =
        [1, 2].iter().flat_map(|n| (0..5).map(move |m| key(&format!("k{n}-{m}")).to_string())).collect();
    assert_eq!(gone, expected);
    assert_eq!(subject.list(At::Latest).await.records.len(), 0);
}
