//! Scenarios of `list` and `count`.

use super::*;
use std::collections::BTreeMap;

/// Keys come in the order of their bytes, not of their creation.
pub async fn list_is_in_order_of_keys(subject: &Subject) {
    for name in ["b", "a/2", "c", "a", "a/1", "B", "a-1", "ä", "a0"] {
        subject.create(name, "x").await;
    }
    let listing = subject.list(At::Latest).await;
    assert_eq!(listed(&listing), "B=x a=x a-1=x a/1=x a/2=x a0=x b=x c=x ä=x");
    assert_eq!(listing.remaining, 0);
}

/// A list of nothing is empty and has a revision.
pub async fn list_of_an_empty_prefix_is_empty(subject: &Subject) {
    let before = subject.revision().await;
    for at in [At::Latest, At::Any, At::NotOlderThan(before), At::Exact(before)] {
        let listing = subject.list(at).await;
        assert_eq!((listing.records.len(), listing.remaining), (0, 0));
    }
    assert!(subject.list(At::Latest).await.revision >= before);
}

/// A deeper prefix gives its keys only.
pub async fn list_keeps_to_its_prefix(subject: &Subject) {
    for name in ["ns/a", "ns/b", "ns0/c", "ns.d", "ns", "n/e"] {
        subject.create(name, "x").await;
    }
    let request = |prefix: &str| ListRequest { prefix: key(prefix), start: None, limit: 0, at: At::Latest };
    let cases = [("ns/", "ns/a=x ns/b=x"), ("ns", "ns=x ns.d=x ns/a=x ns/b=x ns0/c=x"), ("ns/b", "ns/b=x"), ("z", "")];
    for (prefix, expected) in cases {
        assert_eq!(listed(&ok(subject.store.list(request(prefix)).await)), expected, "{prefix}");
    }
}

/// A limit cuts the list and says how many keys are behind it.
pub async fn list_limit_counts_what_remains(subject: &Subject) {
    for n in 0..10 {
        subject.create(&format!("k{n}"), "x").await;
    }
    for limit in 1..=12 {
        let listing = subject.page(None, limit, At::Latest).await;
        assert_eq!(listing.records.len(), limit.min(10));
        assert_eq!(listing.remaining, 10usize.saturating_sub(limit));
    }
}

/// A limit that is just enough leaves nothing behind.
pub async fn list_limit_of_all_leaves_nothing(subject: &Subject) {
    for name in ["a", "b", "c"] {
        subject.create(name, "x").await;
    }
    let listing = subject.page(None, 3, At::Latest).await;
    assert_eq!((listed(&listing).as_str(), listing.remaining), ("a=x b=x c=x", 0));
    let listing = subject.page(Some(key("b")), 2, At::Latest).await;
    assert_eq!((listed(&listing).as_str(), listing.remaining), ("b=x c=x", 0));
}

/// All pages of a state, each from behind the last key of the one before.
async fn pages(subject: &Subject, limit: usize, revision: Revision) -> Vec<Arc<Record>> {
    let mut records: Vec<Arc<Record>> = Vec::new();
    loop {
        let start = records.last().map(|record| Key::new(format!("{}\0", record.key)));
        let listing = subject.page(start, limit, At::Exact(revision)).await;
        assert_eq!(listing.revision, revision);
        records.extend(listing.records);
        if listing.remaining == 0 {
            return records;
        }
    }
}

/// Pages give every key once, whatever their size.
pub async fn list_pages_give_everything_once(subject: &Subject) {
    for n in 0..23 {
        subject.create(&format!("k{:02}", n * 7 % 23), &n.to_string()).await;
    }
    let whole = subject.list(At::Latest).await;
    for limit in [1, 2, 5, 22, 23, 24] {
        let paged = pages(subject, limit, whole.revision).await;
        assert_eq!(
            paged.iter().map(|record| (&record.key, record.revision)).collect::<Vec<_>>(),
            whole.records.iter().map(|record| (&record.key, record.revision)).collect::<Vec<_>>()
        );
    }
}

/// The start need not be a key that is there, and it is included if it is.
pub async fn list_starts_between_keys(subject: &Subject) {
    for name in ["a", "c", "e"] {
        subject.create(name, "x").await;
    }
    for (start, expected) in [("a", "a=x c=x e=x"), ("b", "c=x e=x"), ("c", "c=x e=x"), ("c\0", "e=x"), ("f", "")] {
        assert_eq!(listed(&subject.page(Some(key(start)), 0, At::Latest).await), expected, "{start:?}");
    }
}

/// A start before the prefix is its beginning, one behind it its end.
pub async fn list_starts_outside_the_prefix(subject: &Subject) {
    for name in ["ns/a", "ns/b", "oo/c"] {
        subject.create(name, "x").await;
    }
    let request =
        |start: &str| ListRequest { prefix: key("ns/"), start: Some(Key::new(start)), limit: 1, at: At::Latest };
    let listing = ok(subject.store.list(request("/a")).await);
    assert_eq!((listed(&listing).as_str(), listing.remaining), ("ns/a=x", 1));
    let listing = ok(subject.store.list(request("/zzz")).await);
    assert_eq!((listed(&listing).as_str(), listing.remaining), ("", 0));
}

/// Pages of one state stay of that state while writes go on.
pub async fn list_pages_are_of_one_state(subject: &Subject) {
    for n in 0..12 {
        subject.create(&format!("k{n:02}"), "old").await;
    }
    let mut page = subject.page(None, 3, At::Latest).await;
    let revision = page.revision;
    let mut seen = page.records.clone();
    for n in 0..12 {
        let name = format!("k{n:02}");
        match n % 3 {
            0 => drop(subject.delete(&name).await),
            1 => {
                let record = ok(subject.store.get(&key(&name), At::Latest).await).record.expect("it was created");
                subject.update(&record, "new").await;
            }
            _ => drop(subject.create(&format!("{name}-more"), "new").await),
        }
        if page.remaining > 0 && n % 2 == 0 {
            let start = Key::new(format!("{}\0", seen[seen.len() - 1].key));
            page = subject.page(Some(start), 3, At::Exact(revision)).await;
            assert_eq!(page.remaining, 12 - seen.len() - page.records.len());
            seen.extend(page.records.iter().map(Arc::clone));
        }
    }
    let names: Vec<_> = seen.iter().map(|record| record.key.to_string()).collect();
    assert_eq!(names, (0..12).map(|n| key(&format!("k{n:02}")).to_string()).collect::<Vec<_>>());
    assert!(seen.iter().all(|record| text(record) == "old"));
}

/// Every past state can be read, whole.
pub async fn list_exact_gives_every_state(subject: &Subject) {
    let mut state: BTreeMap<String, (Revision, String)> = BTreeMap::new();
    let mut states = vec![(subject.revision().await, state.clone())];
    let dice = Dice::new(11);
    for n in 0..60 {
        let name = format!("k{}", dice.below(8));
        let revision = match (state.get(&name).cloned(), dice.below(3)) {
            (None, _) => {
                let record = subject.create(&name, &n.to_string()).await;
                state.insert(name, (record.revision, n.to_string()));
                record.revision
            }
            (Some(_), 0) => {
                state.remove(&name);
                subject.delete(&name).await.revision
            }
            (Some((revision, _)), _) => {
                let record = ok(subject.store.update(key(&name), value(n.to_string()), revision).await);
                state.insert(name, (record.revision, n.to_string()));
                record.revision
            }
        };
        states.push((revision, state.clone()));
    }
    for (revision, state) in states {
        let listing = subject.list(At::Exact(revision)).await;
        assert_eq!(listing.revision, revision);
        let seen: Vec<_> = listing.records.iter().map(|r| (r.key.to_string(), (r.revision, text(r)))).collect();
        let expected: Vec<_> = state.into_iter().map(|(name, version)| (key(&name).to_string(), version)).collect();
        assert_eq!(seen, expected, "the state at {revision}");
    }
}

/// An exact list obeys limit and start, and counts what remained then.
pub async fn list_exact_with_limit_and_start(subject: &Subject) {
    for name in ["a", "b", "c", "d"] {
        subject.create(name, "1").await;
    }
    let then = subject.revision().await;
    subject.delete("c").await;
    subject.create("bb", "2").await;
    let listing = subject.page(Some(key("b")), 1, At::Exact(then)).await;
    assert_eq!((listed(&listing).as_str(), listing.remaining), ("b=1", 2));
    let listing = subject.page(Some(key("b\0")), 1, At::Exact(then)).await;
    assert_eq!((listed(&listing).as_str(), listing.remaining), ("c=1", 1));
}

/// "Not older than" a write sees that write.
pub async fn list_not_older_than_a_write_sees_it(subject: &Subject) {
    for n in 0..20 {
        let record = subject.create(&format!("k{n:02}"), "x").await;
        let listing = subject.list(At::NotOlderThan(record.revision)).await;
        assert_eq!(listing.records.len(), n + 1);
        assert!(listing.revision >= record.revision);
    }
}

/// "Any" answers with a state that was: no gaps before the newest key in it.
pub async fn list_any_gives_a_state_that_was(subject: &Subject) {
    for n in 0..20 {
        subject.create(&format!("k{n:02}"), "x").await;
        let listing = subject.list(At::Any).await;
        let names: Vec<_> = listing.records.iter().map(|record| record.key.to_string()).collect();
        let expected: Vec<_> = (0..names.len()).map(|n| key(&format!("k{n:02}")).to_string()).collect();
        assert_eq!(names, expected);
    }
}

/// What was acknowledged is listed at once.
pub async fn list_latest_sees_acknowledged_writes(subject: &Subject) {
    let mut state: BTreeMap<String, Arc<Record>> = BTreeMap::new();
    let dice = Dice::new(5);
    for n in 0..60 {
        let name = format!("k{}", dice.below(10));
        match state.remove(&name) {
            Some(record) if n % 2 == 0 => {
                let record = subject.update(&record, "x").await;
                state.insert(name, record);
            }
            Some(_) => drop(subject.delete(&name).await),
            None => {
                let record = subject.create(&name, "x").await;
                state.insert(name, record);
            }
        }
        let listing = subject.list(At::Latest).await;
        let seen: Vec<_> = listing.records.iter().map(|record| record.revision).collect();
        assert_eq!(seen, state.values().map(|record| record.revision).collect::<Vec<_>>());
    }
}

/// The revision of a list is at least that of every record in it.
pub async fn list_revision_covers_its_records(subject: &Subject) {
    for n in 0..10 {
        subject.create(&format!("k{n}"), "x").await;
        for at in [At::Latest, At::Any] {
            let listing = subject.list(at).await;
            assert!(listing.records.iter().all(|record| record.revision <= listing.revision));
        }
    }
}

/// A revision that is not reached yet is refused.
pub async fn list_ahead_of_the_store_is_refused(subject: &Subject) {
    let record = subject.create("a", "1").await;
    for at in [At::NotOlderThan(ahead(record.revision, 1000)), At::Exact(ahead(record.revision, 1000))] {
        assert_refused!(subject.try_page(None, 0, at).await, StorageError::Future { .. });
    }
}

/// A deleted key is not listed and not counted among what remains.
pub async fn list_shows_no_deleted_keys(subject: &Subject) {
    for name in ["a", "b", "c", "d", "e"] {
        subject.create(name, "x").await;
    }
    for name in ["b", "d", "e"] {
        subject.delete(name).await;
    }
    let listing = subject.page(None, 1, At::Latest).await;
    assert_eq!((listed(&listing).as_str(), listing.remaining), ("a=x", 1));
    assert_eq!(listed(&subject.list(At::Latest).await), "a=x c=x");
}

/// A count is of the keys that are there.
pub async fn count_counts_keys(subject: &Subject) {
    assert_eq!(ok(subject.store.count(&PREFIX.into()).await), 0);
    for name in ["ns/a", "ns/b", "other/a"] {
        subject.create(name, "x").await;
    }
    subject.delete("ns/a").await;
    // A count may be a moment old, a list may not: the list brings a cache up to date.
    subject.list(At::Latest).await;
    assert_eq!(ok(subject.store.count(&PREFIX.into()).await), 2);
    assert_eq!(ok(subject.store.count(&key("ns/")).await), 1);
    assert_eq!(ok(subject.store.count(&key("none/")).await), 0);
}
