use super::*;
use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

/// Runs a script of words: `+p` adds a pod (`+p!` of high priority, `+p?` gated, `-p?` takes its gate away), `pop`,
/// `fail` what was popped last for lack of room, `err` for an error, `room` and `labels` are events, `2s` lets time pass.
fn check(script: &str, expected: Expect) {
    let mut queue = SchedulingQueue::default();
    let start = Instant::now();
    let mut now = start;
    let mut last = ObjectName::default();
    let mut out = String::new();
    for word in script.split_whitespace() {
        if let Some(name) = word.strip_prefix('+').or_else(|| word.strip_prefix('-')) {
            let plain = name.trim_end_matches(['!', '?']);
            let is_gated = name.ends_with('?') && word.starts_with('+');
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": plain, "namespace": "n", "uid": plain},
                "spec": {
                    "containers": [], "priority": i32::from(name.ends_with('!')),
                    "schedulingGates": if is_gated { json!([{"name": "g"}]) } else { json!(null) },
                },
            }))
            .unwrap();
            queue.set(Arc::new(PodInfo::new(&pod)), now);
            continue;
        }
        match word {
            "pop" => {
                let popped = queue.pop(now);
                last = popped.map(|pod| pod.name.clone()).unwrap_or_default();
                let seconds = (now - start).as_secs();
                out.push_str(&format!(
                    "{seconds}s {} of {:?}\n",
                    if last.name.is_empty() { "nothing" } else { &last.name },
                    queue.lens()
                ));
            }
            "fail" => queue.failed(&last, Plugins::NODE_RESOURCES_FIT, now),
            "err" => queue.failed(&last, Plugins::NONE, now),
            "done" => queue.done(&last),
            "room" => queue.on_event(Plugins::NODE_RESOURCES_FIT, now),
            "labels" => queue.on_event(Plugins::NODE_AFFINITY, now),
            "deadline" => {
                let shown = queue.next_deadline().map(|at| (at - start).as_secs());
                out.push_str(&format!("deadline {shown:?}\n"));
            }
            seconds => now += Duration::from_secs(seconds.trim_end_matches('s').parse().unwrap()),
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn the_important_first_then_who_came_first() {
    check(
        "+a +b +c! pop done pop done pop done pop",
        expect![[r#"
            0s c of (2, 0, 0)
            0s a of (1, 0, 0)
            0s b of (0, 0, 0)
            0s nothing of (0, 0, 0)
    "#]],
    );
}

#[test]
fn who_failed_waits_for_an_event_that_may_help() {
    check(
        "+a pop fail pop labels pop room pop fail deadline 300s pop",
        expect![[r#"
            0s a of (0, 0, 0)
            0s nothing of (0, 0, 1)
            0s nothing of (0, 0, 1)
            0s a of (0, 0, 0)
            deadline Some(300)
            300s a of (0, 0, 0)
    "#]],
    );
}

#[test]
fn pauses_grow_but_nobody_waits_for_nobody() {
    check(
        "+a pop err deadline +b pop done pop err deadline 3s pop err deadline",
        expect![[r#"
            0s a of (0, 0, 0)
            deadline Some(1)
            0s b of (0, 1, 0)
            0s nothing of (0, 1, 0)
            deadline Some(1)
            3s a of (0, 0, 0)
            deadline Some(5)
    "#]],
    );
}

#[test]
fn gates() {
    check(
        "+a? pop room pop deadline -a? pop",
        expect![[r#"
            0s nothing of (0, 0, 1)
            0s nothing of (0, 0, 1)
            deadline Some(300)
            0s a of (0, 0, 0)
    "#]],
    );
}
