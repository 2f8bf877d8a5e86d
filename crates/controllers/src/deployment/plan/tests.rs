use super::*;
use proptest::prelude::*;
use serde_json::json;

fn deployment(replicas: i32, surge: serde_json::Value, unavailable: serde_json::Value) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "generation": 1},
        "spec": {"replicas": replicas, "selector": {}, "template": {}, "revisionHistoryLimit": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}},
    }))
    .unwrap()
}

fn set(name: &str, created: i64, size: i32, available: i32) -> ReplicaSet {
    let created = jiff::Timestamp::from_second(created).unwrap().to_string();
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "creationTimestamp": created},
        "spec": {"replicas": size, "selector": {}},
        "status": {"replicas": size, "availableReplicas": available},
    }))
    .unwrap()
}

fn show(sizes: &[Resize]) -> String {
    sizes.iter().map(|resize| format!("{}={}", resize.uid, resize.to)).collect::<Vec<_>>().join(" ")
}

#[test]
fn fenceposts_are_resolved_as_upstream_does() {
    let posts = |replicas, surge, unavailable| fenceposts(&deployment(replicas, surge, unavailable));
    assert_eq!(posts(10, json!("25%"), json!("25%")), (3, 2));
    assert_eq!(posts(1, json!("25%"), json!("25%")), (1, 0));
    assert_eq!(posts(1, json!(0), json!("25%")), (0, 1));
    assert_eq!(max_unavailable(&deployment(2, json!(0), json!(5))), 2);
}

#[test]
fn a_rollout_step_by_step() {
    let deployment = deployment(10, json!("25%"), json!("25%"));
    let mut log = String::new();
    let (mut new, mut old) = (set("new", 2, 0, 0), vec![set("old", 1, 10, 10)]);
    for _ in 0..20 {
        let step = match rolling_up(&deployment, &new, &old) {
            Some(up) => vec![up],
            None => rolling_down(&deployment, &new, &old),
        };
        if step.is_empty() {
            // the new pods become available
            if available(&new) == size(&new) {
                break;
            }
            new.status.as_mut().unwrap().available_replicas = Some(size(&new));
            log.push_str("ready; ");
            continue;
        }
        log.push_str(&show(&step));
        log.push_str("; ");
        for Resize { uid, to } in step {
            let set = if uid == "new" { &mut new } else { &mut old[0] };
            set.spec.as_mut().unwrap().replicas = Some(to);
            let status = set.status.as_mut().unwrap();
            status.available_replicas = Some(status.available_replicas.unwrap().min(to));
        }
    }
    expect_test::expect!["new=3; old=8; new=5; ready; old=3; new=10; ready; old=0; "].assert_eq(&log);
}

#[test]
fn unhealthy_old_pods_go_first() {
    let deployment = deployment(10, json!(0), json!(2));
    let old = [set("a", 1, 5, 5), set("b", 2, 5, 3)];
    assert_eq!(show(&rolling_down(&deployment, &set("new", 3, 0, 0), &old)), "b=3");
    assert_eq!(show(&rolling_down(&deployment, &set("new", 3, 2, 2), &old)), "a=3 b=3");
}

#[test]
fn scaling_in_the_middle_keeps_the_proportions() {
    let mut deployment = deployment(10, json!(3), json!(2));
    let with_max = |mut set: ReplicaSet, max: &str| {
        set.metadata.annotations = Some([(MAX_REPLICAS.to_owned(), max.to_owned())].into());
        set
    };
    let old = [with_max(set("old", 1, 8, 8), "13")];
    let new = with_max(set("new", 2, 5, 0), "13");
    deployment.spec.as_mut().unwrap().replicas = Some(15);
    assert_eq!(show(&proportional(&deployment, Some(&new), &old)), "old=11 new=7");
    deployment.spec.as_mut().unwrap().replicas = Some(5);
    assert_eq!(show(&proportional(&deployment, Some(&new), &old)), "old=5 new=3");
    assert_eq!(show(&proportional(&deployment, None, &[set("only", 1, 3, 3)])), "only=5");
    assert_eq!(show(&proportional(&deployment, None, &[])), "");
}

#[test]
fn old_revisions_go_when_they_are_empty() {
    let deployment = deployment(1, json!(1), json!(0));
    let old = [set("a", 1, 0, 0), set("b", 2, 1, 0), set("c", 3, 0, 0)];
    let names: Vec<&str> = beyond_history(&deployment, &old).iter().map(|set| set.name()).collect();
    assert_eq!(names, ["a"], "b is beyond the limit too, but has a pod");
}

proptest! {
    /// No step of a rolling update makes more pods than allowed or leaves fewer available ones than promised.
    #[test]
    fn steps_keep_the_promises(
        wanted in 1..20_i32, surge in 0..5_i32, unavailable in 0..5_i32,
        new_size in 0..25_i32, new_ready in 0..25_i32, old_sizes in proptest::collection::vec((0..12_i32, 0..12_i32), 0..4),
    ) {
        prop_assume!(surge + unavailable > 0);
        let deployment = deployment(wanted, json!(surge), json!(unavailable));
        let new = set("new", 9, new_size, new_ready.min(new_size));
        let old: Vec<ReplicaSet> = old_sizes.iter().enumerate()
            .map(|(idx, (n, ready))| set(&format!("old{idx}"), idx as i64, *n, (*ready).min(*n))).collect();
        let before = total(old.iter().chain([&new]), size);
        if let Some(up) = rolling_up(&deployment, &new, &old).filter(|up| up.to > new_size) {
            prop_assert!(before - new_size + up.to <= wanted + surge);
        }
        let down = rolling_down(&deployment, &new, &old);
        let size_after = |set: &ReplicaSet| down.iter().find(|r| r.uid == set.uid()).map_or_else(|| size(set), |r| r.to);
        prop_assert!(old.iter().all(|set| (0..=size(set)).contains(&size_after(set))));
        // the worst case: of each set, the available pods are those that go, as far as more go than are unavailable
        let available_after: i32 = old.iter().map(|set| available(set).min(size_after(set))).sum::<i32>() + available(&new);
        let available_before = total(old.iter().chain([&new]), available);
        prop_assert!(available_after >= (wanted - unavailable.min(wanted)).min(available_before));
    }

    /// After a scaling the sets have exactly what is wanted and allowed.
    #[test]
    fn proportional_sizes_add_up(wanted in 1..40_i32, surge in 1..5_i32, sizes in proptest::collection::vec(1..15_i32, 2..5)) {
        let deployment = deployment(wanted, json!(surge), json!(0));
        let before: i32 = sizes.iter().sum();
        let mut sets: Vec<ReplicaSet> = sizes.iter().enumerate().map(|(idx, n)| {
            let mut set = set(&format!("s{idx}"), idx as i64, *n, 0);
            set.metadata.annotations = Some([(MAX_REPLICAS.to_owned(), before.to_string())].into());
            set
        }).collect();
        let new = sets.pop().unwrap();
        let after: i32 = proportional(&deployment, Some(&new), &sets).iter().map(|r| r.to).sum();
        prop_assert_eq!(after, wanted + surge);
    }
}
