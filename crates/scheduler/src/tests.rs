//! Decisions as transcripts: a cluster, pods that come one after the other, where they go or why not.

use crate::cache::Cache;
use crate::pod_info::PodInfo;
use crate::preempt::preempt;
use crate::select::{Cursor, n_feasible_wanted, select};
use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};
use std::sync::Arc;

/// A node: `name`, and what is to be different from a node with 4 CPUs, 8 GiB and 10 pods.
fn node(name: &str, different: &Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    });
    merge(&mut node, different);
    serde_json::from_value(node).unwrap()
}

fn pod(name: &str, different: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "n", "uid": name, "labels": {"app": name.split('-').next()}},
        "spec": {"containers": [{"name": "c"}]},
    });
    merge(&mut pod, different);
    serde_json::from_value(pod).unwrap()
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn needs(cpu: &str) -> Value {
    json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}])
}

/// Puts the pods onto the nodes, one after the other.
fn check(nodes: &[(&str, Value)], pods: &[(&str, Value)], expected: Expect) {
    let mut cache = Cache::default();
    for (name, different) in nodes {
        cache.set_node(&node(name, different));
    }
    let mut cursor = Cursor::default();
    let mut out = String::new();
    for (name, different) in pods {
        let info = PodInfo::new(&pod(name, different));
        if !info.node.is_empty() {
            cache.set_pod(Arc::new(info));
            continue;
        }
        let demands = info.demands.as_deref().unwrap();
        match select(&cache, &info, demands, &mut cursor, 0) {
            Ok(node) => {
                out.push_str(&format!("{name} -> {node}\n"));
                cache.assume(Arc::new(info.on_node(&node)));
            }
            Err(mut why) => {
                let room = preempt(&cache, &info, demands, &mut why);
                out.push_str(&format!("{name}: {why}\n"));
                if let Some(room) = room {
                    let victims: Vec<&str> = room.victims.iter().map(|victim| victim.name.name.as_str()).collect();
                    out.push_str(&format!("    {} could make room without {}\n", room.node, victims.join(", ")));
                }
            }
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn resources() {
    let five = json!({"spec": {"containers": needs("3")}});
    check(
        &[("a", json!({})), ("b", json!({"status": {"allocatable": {"cpu": "2"}}}))],
        &[
            ("one", five.clone()),
            ("two", five),
            ("small", json!({"spec": {"containers": needs("1500m")}})),
            (
                "gpu",
                json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"example.org/gpu": "1"}}}]}}),
            ),
            ("named", json!({"spec": {"nodeName": "b", "containers": needs("500m")}})),
            ("late", json!({"spec": {"containers": needs("1")}})),
            ("later", json!({"spec": {"containers": needs("1")}})),
        ],
        expect![[r#"
            one -> a
            two: 0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.
            small -> b
            gpu: 0/2 nodes are available: 2 Insufficient example.org/gpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.
            late -> a
            later: 0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.
        "#]],
    );
    check(
        &[],
        &[("one", json!({}))],
        expect![[r#"
        one: no nodes available to schedule pods
    "#]],
    );
}

#[test]
fn what_keeps_pods_off_nodes() {
    let taint = json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}});
    let nodes = [
        ("cordoned", json!({"spec": {"unschedulable": true}})),
        ("tainted", taint),
        ("disk", json!({"metadata": {"labels": {"disk": "ssd", "size": "7"}}})),
        ("full", json!({"status": {"allocatable": {"pods": "0"}}})),
    ];
    let affinity = |expressions: Value| json!({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}}});
    check(
        &nodes,
        &[
            ("plain", json!({})),
            ("port", json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]}})),
            (
                "port-2",
                json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80, "hostIP": "1.2.3.4"}]}]}}),
            ),
            (
                "tolerant",
                json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "tainted"}, "tolerations": [{"key": "k", "operator": "Exists"}]}}),
            ),
            (
                "daemon",
                json!({"spec": {"tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["cordoned"]}]}]}}}}}),
            ),
            (
                "ssd",
                affinity(
                    json!([{"key": "disk", "operator": "In", "values": ["ssd"]}, {"key": "size", "operator": "Gt", "values": ["6"]}]),
                ),
            ),
            ("hdd", affinity(json!([{"key": "disk", "operator": "In", "values": ["hdd"]}]))),
            (
                "lost",
                json!({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["full"]}]}]}}}}}),
            ),
        ],
        expect![[r#"
            plain -> disk
            port -> disk
            port-2: 0/4 nodes are available: 1 Too many pods, 1 node(s) didn't have free ports for the requested pod ports, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/4 nodes are available: 2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.
            tolerant -> tainted
            daemon -> cordoned
            ssd -> disk
            hdd: 0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.
            lost: 0/4 nodes are available: 1 Too many pods, 3 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new claims to deallocate, preemption: 0/4 nodes are available: 1 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling.
        "#]],
    );
}

#[test]
fn pods_near_and_far() {
    let zone = |zone: &str| json!({"metadata": {"labels": {"zone": zone}}});
    let nodes = [("a1", zone("a")), ("a2", zone("a")), ("b1", zone("b"))];
    let term = |app: &str, key: &str| json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key});
    let rule = |rule: &str, term: Value| json!({"spec": {"affinity": {rule: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}});
    let wish = |rule: &str, term: Value| json!({"spec": {"affinity": {rule: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}}}});
    check(
        &nodes,
        &[
            ("lonely", rule("podAffinity", term("db", "zone"))),
            ("db-0", rule("podAntiAffinity", term("db", "zone"))),
            ("db-1", rule("podAntiAffinity", term("db", "zone"))),
            ("db-2", rule("podAntiAffinity", term("db", "zone"))),
            ("self-0", rule("podAffinity", term("self", "kubernetes.io/hostname"))),
            ("self-1", rule("podAffinity", term("self", "kubernetes.io/hostname"))),
            ("shy-0", json!({})),
            ("shy-1", wish("podAntiAffinity", term("shy", "zone"))),
            ("fond", wish("podAffinity", term("shy", "kubernetes.io/hostname"))),
        ],
        expect![[r#"
            lonely: 0/3 nodes are available: 3 node(s) didn't match pod affinity rules. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.
            db-0 -> a1
            db-1 -> b1
            db-2: 0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.
            self-0 -> a2
            self-1 -> a2
            shy-0 -> a1
            shy-1 -> b1
            fond -> a1
        "#]],
    );
}

#[test]
fn pods_spread() {
    let zone = |zone: &str| json!({"metadata": {"labels": {"zone": zone}}});
    let spread = |when: &str| json!({"spec": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {"app": "web"}}}]}});
    let required = spread("DoNotSchedule");
    check(
        &[
            ("a1", zone("a")),
            ("b1", json!({"metadata": {"labels": {"zone": "b"}}, "status": {"allocatable": {"pods": "1"}}})),
            ("c", json!({})),
        ],
        &[("web-0", required.clone()), ("web-1", required.clone()), ("web-2", required.clone()), ("web-3", required)],
        expect![[r#"
            web-0 -> a1
            web-1 -> b1
            web-2 -> a1
            web-3: 0/3 nodes are available: 1 Too many pods, 1 node(s) didn't match pod topology spread constraints, 1 node(s) didn't match pod topology spread constraints (missing required label). no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.
        "#]],
    );
    let owned = json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true}]}});
    check(
        &[("a", json!({})), ("b", json!({})), ("c", json!({}))],
        &[("r-0", owned.clone()), ("r-1", owned.clone()), ("r-2", owned.clone()), ("r-3", owned)],
        expect![[r#"
            r-0 -> a
            r-1 -> b
            r-2 -> c
            r-3 -> a
        "#]],
    );
}

#[test]
fn room_is_made_where_least_is_lost() {
    let on = |node: &str, priority: i32, cpu: &str| json!({"spec": {"nodeName": node, "priority": priority, "containers": needs(cpu)}});
    let important = |priority: i32| json!({"spec": {"priority": priority, "containers": needs("2")}});
    check(
        &[("a", json!({})), ("b", json!({})), ("c", json!({"spec": {"unschedulable": true}}))],
        &[
            ("a-high", on("a", 50, "2")),
            ("a-low", on("a", 10, "1")),
            ("a-lower", on("a", 5, "1")),
            ("b-low", on("b", 20, "3")),
            ("equal", important(5)),
            ("urgent", important(100)),
            ("polite", json!({"spec": {"priority": 100, "preemptionPolicy": "Never", "containers": needs("2")}})),
            ("huge", json!({"spec": {"priority": 100, "containers": needs("4")}})),
        ],
        expect![[r#"
            equal: 0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.
            urgent: 0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.
                a could make room without a-low, a-lower
            polite: 0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.
            huge: 0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.
                b could make room without b-low
        "#]],
    );
}

#[test]
fn large_clusters_are_not_searched_to_the_end() {
    let shown: Vec<(usize, usize)> = [1, 99, 100, 1000, 5000, 20_000].map(|n| (n, n_feasible_wanted(n))).into();
    assert_eq!(shown, [(1, 1), (99, 99), (100, 100), (1000, 420), (5000, 500), (20_000, 1000)]);
}
