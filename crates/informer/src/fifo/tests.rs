use super::*;
use crate::store::Indexer;
use crate::testing::{TestObject, object};
use expect_test::expect;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pops one and applies it to the cache, as a controller does; tells what it was.
fn pop(queue: &dyn Queue<TestObject>, cache: &Indexer<TestObject>) -> Option<String> {
    let mut line = String::new();
    let popped = queue.try_pop(&mut |deltas, is_in_initial_list| {
        for delta in &deltas {
            match delta {
                Delta::Deleted(deleted) => drop(cache.remove(&deleted.object_name())),
                other => drop(cache.insert(other.object().clone())),
            }
        }
        let told = deltas.iter().map(|delta| {
            let unknown = matches!(delta, Delta::Deleted(deleted) if deleted.is_final_state_unknown());
            format!("{}{} {:?}", delta.type_name(), if unknown { " (unknown)" } else { "" }, delta.object())
        });
        line = told.collect::<Vec<_>>().join(", ");
        if is_in_initial_list {
            line.push_str(" [initial]");
        }
        Ok(())
    });
    matches!(popped, Popped::Processed(..)).then_some(line)
}

fn drain(queue: &dyn Queue<TestObject>, cache: &Indexer<TestObject>) -> String {
    std::iter::from_fn(|| pop(queue, cache)).map(|line| line + "\n").collect()
}

/// The same story told to either queue.
fn story(queue: &dyn Queue<TestObject>, cache: &Indexer<TestObject>) -> String {
    let at = |name: &str, version| object(&format!("ns/{name}"), version, "n");
    let mut out = String::new();
    assert!(!queue.has_synced());
    queue.replace(vec![at("a", 1), at("b", 2)], "2");
    assert!(!queue.has_synced(), "put in, not yet taken out");
    queue.update(at("a", 3));
    queue.add(at("c", 4));
    out += &drain(queue, cache);
    assert!(queue.has_synced());
    out += "-- deleted twice, made again, and one that nobody knew\n";
    queue.delete(at("a", 5));
    queue.delete(at("a", 5));
    queue.add(at("a", 6));
    queue.delete(at("x", 7));
    out += &drain(queue, cache);
    out += "-- a list without b, while c changes\n";
    queue.update(at("c", 8));
    queue.replace(vec![at("a", 6), at("c", 8)], "9");
    out += &drain(queue, cache);
    out += "-- resync, while a waits\n";
    queue.update(at("a", 10));
    queue.resync();
    out += &drain(queue, cache);
    queue.close();
    assert!(matches!(queue.try_pop(&mut |_, _| Ok(())), Popped::Closed));
    out
}

#[test]
fn delta_fifo_gathers() {
    let cache = Indexer::new();
    let queue = DeltaFifo::new(Some(Arc::new(cache.clone())));
    expect![[r#"
        Replaced ns/a@1, Updated ns/a@3 [initial]
        Replaced ns/b@2 [initial]
        Added ns/c@4
        -- deleted twice, made again, and one that nobody knew
        Deleted ns/a@5, Added ns/a@6
        -- a list without b, while c changes
        Updated ns/c@8, Replaced ns/c@8
        Replaced ns/a@6
        Deleted (unknown) ns/b@2
        -- resync, while a waits
        Updated ns/a@10
        Sync ns/c@8
    "#]]
    .assert_eq(&story(&queue, &cache));
}

#[test]
fn real_fifo_keeps_the_order() {
    let cache = Indexer::new();
    let queue = RealFifo::new(Arc::new(cache.clone()));
    expect![[r#"
        Replaced ns/a@1 [initial]
        Replaced ns/b@2 [initial]
        Updated ns/a@3
        Added ns/c@4
        -- deleted twice, made again, and one that nobody knew
        Deleted ns/a@5
        Deleted ns/a@5
        Added ns/a@6
        Deleted ns/x@7
        -- a list without b, while c changes
        Updated ns/c@8
        Deleted (unknown) ns/b@2
        Replaced ns/a@6
        Replaced ns/c@8
        -- resync, while a waits
        Updated ns/a@10
        Sync ns/c@8
    "#]]
    .assert_eq(&story(&queue, &cache));
}

#[test]
fn what_failed_comes_again_unless_there_is_news() {
    let queue = DeltaFifo::new(None);
    queue.add(object("ns/a", 1, "n"));
    let mut kept = Vec::new();
    let popped = queue.try_pop(&mut |deltas, _| {
        kept = deltas;
        Err(ProcessError("not today".into()))
    });
    assert!(matches!(popped, Popped::Processed(_, Err(_))));
    queue.update(object("ns/a", 2, "n"));
    queue.add_if_not_present(kept.clone());
    assert_eq!(queue.get(&ObjectName::new("ns", "a")).unwrap().len(), 1, "the news wins");
    assert!(matches!(queue.try_pop(&mut |_, _| Ok(())), Popped::Processed(..)));
    queue.add_if_not_present(kept);
    assert_eq!(queue.len(), 1);
}

proptest! {
    /// Whatever is put in, in whatever order it is taken out between: once everything is out, the cache is what the
    /// source is.
    #[test]
    fn the_cache_becomes_the_source(steps in proptest::collection::vec((0..7_u8, 0..4_u8), 0..80), gathers: bool) {
        let cache = Indexer::new();
        let known: Arc<dyn KnownObjects<TestObject>> = Arc::new(cache.clone());
        let queue: Box<dyn Queue<TestObject>> =
            if gathers { Box::new(DeltaFifo::new(Some(known))) } else { Box::new(RealFifo::new(known)) };
        let mut source: BTreeMap<u8, TestObject> = BTreeMap::new();
        // whether the watch is up: when it is down, changes show with the next list only
        let mut is_up = false;
        for (version, (action, name)) in (1..).zip(steps) {
            let object = object(&format!("ns/{name}"), version, "n");
            match action {
                0..2 => {
                    let is_new = source.insert(name, object.clone()).is_none();
                    match (is_up, is_new) {
                        (true, true) => queue.add(object),
                        (true, false) => queue.update(object),
                        (false, _) => {}
                    }
                }
                2 => if source.remove(&name).is_some() && is_up {
                    queue.delete(object);
                },
                3 => is_up = false,
                4 => {
                    queue.replace(source.values().cloned().collect(), &version.to_string());
                    is_up = true;
                }
                5 => queue.resync(),
                _ => drop(pop(queue.as_ref(), &cache)),
            }
        }
        queue.replace(source.values().cloned().collect(), "last");
        drain(queue.as_ref(), &cache);
        prop_assert!(queue.has_synced());
        let cached: Vec<String> = cache.list().iter().map(|o| format!("{o:?}")).collect();
        let wanted: Vec<String> = source.values().map(|o| format!("{o:?}")).collect();
        prop_assert_eq!(cached, wanted);
    }
}
