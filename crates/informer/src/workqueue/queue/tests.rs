use super::*;
use crate::workqueue::ItemExponentialFailureRateLimiter;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_and_once() {
    let queue = WorkQueue::new("test");
    for item in ["a", "b", "a"] {
        queue.add(item);
    }
    let first = queue.get().await.unwrap();
    assert_eq!(*first, "a");
    queue.add("a");
    queue.add("a");
    assert_eq!(*queue.get().await.unwrap(), "b");
    assert!(queue.try_get().is_none(), "a is still worked on");
    drop(first);
    assert_eq!(*queue.get().await.unwrap(), "a");
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn delays_take_the_sooner_and_keep_their_time() {
    let queue = WorkQueue::new("test");
    let start = Instant::now();
    queue.add_after("late", millis(100));
    queue.add_after("soon", millis(50));
    queue.add_after("late", millis(70));
    queue.add_after("late", millis(90));
    let mut got = Vec::new();
    for _ in 0..2 {
        let item = queue.get().await.unwrap();
        got.push((*item, start.elapsed().as_millis()));
    }
    assert_eq!(got, [("soon", 50), ("late", 70)]);
    assert_eq!(queue.n_delayed(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_hears_of_a_sooner_item() {
    let queue = WorkQueue::new("test");
    queue.add_after("late", Duration::from_secs(100));
    let waiter = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|item| *item) }
    });
    tokio::task::yield_now().await;
    queue.add_after("soon", millis(1));
    assert_eq!(waiter.await.unwrap(), Some("soon"));
}

#[tokio::test(start_paused = true)]
async fn priorities() {
    let queue = WorkQueue::new("test");
    queue.add("first");
    queue.add("second");
    queue.add_with_priority("urgent", 10);
    queue.add_with_priority("background", -1);
    queue.add_with_priority("second", 5);
    queue.add_with_priority("urgent", 0);
    let order: Vec<&str> = std::iter::from_fn(|| queue.try_get().map(|item| *item)).collect();
    assert_eq!(order, ["urgent", "second", "first", "background"]);
}

#[tokio::test(start_paused = true)]
async fn retries_wait_longer_until_forgotten() {
    let limiter = ItemExponentialFailureRateLimiter::new(millis(10), millis(1000));
    let options = WorkQueueOptions { rate_limiter: Box::new(limiter), ..WorkQueueOptions::default() };
    let queue = WorkQueue::with_options("test", options);
    let start = Instant::now();
    queue.add("x");
    let mut seen = Vec::new();
    for _ in 0..4 {
        let item = queue.get().await.unwrap();
        seen.push(start.elapsed().as_millis());
        item.retry();
    }
    assert_eq!(seen, [0, 10, 30, 70]);
    let item = queue.get().await.unwrap();
    assert_eq!(queue.num_requeues(&item), 4);
    item.forget();
    assert_eq!(queue.num_requeues(&"x"), 0);
}

#[tokio::test(start_paused = true)]
async fn shutting_down() {
    let queue = WorkQueue::new("test");
    queue.add("a");
    queue.add_after("later", millis(10));
    let working = queue.get().await.unwrap();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await.map(|item| *item) })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap(), None);
    }
    queue.add("too late");
    drop(working);
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_work_in_progress() {
    let queue = WorkQueue::new("test");
    queue.add("a");
    queue.add("b");
    let working = queue.get().await.unwrap();
    queue.add("a");
    let draining = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    tokio::task::yield_now().await;
    assert!(!draining.is_finished());
    drop(working);
    let mut rest = Vec::new();
    while let Some(item) = queue.get().await {
        rest.push(*item);
    }
    assert_eq!(rest, ["b", "a"], "what was added again is part of the drain");
    draining.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn workers_share_the_work() {
    let queue = WorkQueue::new("test");
    for item in 0..100_u32 {
        queue.add(item);
    }
    let done = Arc::new(Mutex::new(Vec::new()));
    let working = crate::workqueue::run_workers(&queue, 5, {
        let (done, queue) = (Arc::clone(&done), queue.clone());
        move |item: u32| {
            let (done, queue) = (Arc::clone(&done), queue.clone());
            async move {
                tokio::time::sleep(millis(u64::from(item % 7))).await;
                if item.is_multiple_of(10) && queue.num_requeues(&item) < 2 {
                    return Err("not yet");
                }
                let n_done = {
                    let mut done = done.lock();
                    done.push(item);
                    done.len()
                };
                if n_done == 100 {
                    queue.shut_down();
                }
                Ok(crate::workqueue::Action::Done)
            }
        }
    });
    working.await;
    let done = done.lock();
    assert_eq!(done.len(), 100);
    assert_eq!(done.iter().collect::<BTreeSet<_>>().len(), 100);
}

proptest! {
    /// Against a model that knows only sets: nothing is lost, nothing is given out twice at once.
    #[test]
    fn nothing_is_lost(steps in proptest::collection::vec((0..4_u8, 0..5_u8), 0..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let queue = WorkQueue::new("test");
            let mut wanted: BTreeSet<u8> = BTreeSet::new();
            let mut working: Vec<Item<u8>> = Vec::new();
            for (action, item) in steps {
                match action {
                    0 => { queue.add(item); wanted.insert(item); }
                    1 => { queue.add_after(item, millis(u64::from(item))); wanted.insert(item); }
                    2 => {
                        if let Some(item) = queue.try_get() {
                            assert!(working.iter().all(|other| **other != *item), "given out twice");
                            assert!(wanted.remove(&item) || queue.n_delayed() > 0);
                            working.push(item);
                        }
                    }
                    _ => { if !working.is_empty() { working.remove(0); } }
                }
            }
            drop(working);
            tokio::time::sleep(millis(10)).await;
            while let Some(item) = queue.try_get() {
                wanted.remove(&item);
            }
            assert!(wanted.is_empty(), "lost: {wanted:?}");
        });
    }
}
