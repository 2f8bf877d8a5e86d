use super::*;
use serde_json::{Value, json};

fn now() -> Timestamp {
    Timestamp::from_second(1000).unwrap()
}

fn job(spec: Value, status: Value) -> Job {
    let mut spec = spec;
    spec["template"] = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}});
    serde_json::from_value(json!({"metadata": {"name": "j", "namespace": "ns"}, "spec": spec, "status": status}))
        .unwrap()
}

/// `name phase [index] [flags]`, where flags are `free` (no finalizer) and `going` (terminating).
fn pod(line: &str) -> Arc<Pod> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let index = words.iter().find_map(|word| word.strip_prefix('#'));
    let at = Timestamp::from_second(900).unwrap().to_string();
    let mut pod = json!({
        "metadata": {"name": words[0], "uid": words[0], "creationTimestamp": at, "finalizers": [TRACKING_FINALIZER]},
        "status": {"phase": words[1]},
    });
    if let Some(index) = index {
        pod["metadata"]["annotations"] = json!({INDEX: index, INDEX_FAILURES: "0"});
    }
    if words.contains(&"free") {
        pod["metadata"]["finalizers"] = json!([]);
    }
    if words.contains(&"going") {
        pod["metadata"]["deletionTimestamp"] = json!(at);
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn round(job: Job, pods: &[&str]) -> Round {
    Round::new(job, pods.iter().map(|line| pod(line)).collect(), Failures::default(), BTreeSet::new(), now())
}

fn names(pods: &[Arc<Pod>]) -> String {
    pods.iter().map(|pod| pod.name()).collect::<Vec<_>>().join(" ")
}

/// One look, as a line: what is done, what is released, and the status after it.
fn look(job: Job, pods: &[&str]) -> String {
    let mut round = round(job, pods);
    let wait = round.decide();
    let mut line = String::new();
    if let Some(end) = &round.finished {
        line.push_str(&format!(
            "end {} {}; delete [{}]; ",
            end.type_,
            end.reason.clone().unwrap(),
            names(&round.active)
        ));
        let active = round.active.clone();
        round.deleted(&active);
    } else {
        let step = round.step();
        let create: Vec<String> =
            step.create.iter().map(|new| new.index.map_or_else(|| "+".into(), |i| format!("#{i}"))).collect();
        line.push_str(&format!(
            "delete [{}] create [{}] wait {:?}; ",
            names(&step.delete),
            create.join(" "),
            step.wait.or(wait)
        ));
        round.deleted(&step.delete);
        round.created(step.create.len());
        round.conclude(true);
    }
    let (releasable, _) = round.track();
    line.push_str(&format!("release [{}]; ", names(&releasable)));
    round.removing.extend(releasable.iter().map(|pod| pod.uid().to_owned()));
    round.forget_counted();
    let ended = round.finish().map(|condition| condition.type_);
    let mut status = serde_json::to_value(round.job.status.unwrap()).unwrap();
    let conditions: Vec<String> = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| format!("{}={}", c["type"].as_str().unwrap(), c["status"].as_str().unwrap()))
        .collect();
    for key in ["conditions", "startTime", "completionTime"] {
        status.as_object_mut().unwrap().remove(key);
    }
    format!("{line}{status} {} {ended:?}\n", conditions.join(" "))
}

#[test]
fn lives_of_plain_jobs() {
    let plain = || json!({"completions": 3, "parallelism": 2, "backoffLimit": 1});
    let mut log = String::new();
    log += &look(job(plain(), json!({})), &[]);
    log += &look(job(plain(), json!({})), &["a Running", "b Succeeded"]);
    log += &look(job(plain(), json!({"succeeded": 2})), &["a Running", "b Succeeded free"]);
    log += &look(job(plain(), json!({"succeeded": 2})), &["a Succeeded", "b Succeeded free"]);
    log += &look(job(plain(), json!({"failed": 1})), &["a Failed", "b Running"]);
    log += &look(
        job(plain(), json!({"uncountedTerminatedPods": {"failed": ["a"]}})),
        &["a Failed free", "b Running", "c Running"],
    );
    log += &look(
        job(json!({"completions": 3, "parallelism": 2, "backoffLimit": 1, "suspend": true}), json!({})),
        &["a Running"],
    );
    log += &look(job(json!({"parallelism": 2, "backoffLimit": 1}), json!({})), &["a Succeeded", "b Running"]);
    expect_test::expect![[r#"
        delete [] create [+ +] wait None; release []; {"active":2,"ready":0,"terminating":0,"uncountedTerminatedPods":{}}  None
        delete [] create [+] wait None; release [b]; {"active":2,"ready":0,"succeeded":1,"terminating":0,"uncountedTerminatedPods":{}}  None
        delete [] create [] wait None; release []; {"active":1,"ready":0,"succeeded":2,"terminating":0,"uncountedTerminatedPods":{}}  None
        delete [] create [] wait None; release [a]; {"ready":0,"succeeded":3,"terminating":0,"uncountedTerminatedPods":{}} SuccessCriteriaMet=True Complete=True Some("Complete")
        end FailureTarget BackoffLimitExceeded; delete [b]; release [a b]; {"failed":3,"ready":0,"terminating":1,"uncountedTerminatedPods":{}} FailureTarget=True None
        delete [] create [] wait None; release []; {"active":2,"failed":1,"ready":0,"terminating":0,"uncountedTerminatedPods":{}}  None
        delete [a] create [] wait None; release []; {"ready":0,"terminating":1,"uncountedTerminatedPods":{}} Suspended=True None
        delete [] create [] wait None; release [a]; {"active":1,"ready":0,"succeeded":1,"terminating":0,"uncountedTerminatedPods":{}}  None
    "#]].assert_eq(&log);
}

#[test]
fn lives_of_indexed_jobs() {
    let indexed = |more: Value| {
        let mut spec = json!({"completions": 4, "parallelism": 3, "backoffLimit": 6, "completionMode": "Indexed"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let mut log = String::new();
    log += &look(job(indexed(json!({})), json!({})), &["a Running #1", "b Succeeded #0"]);
    log += &look(
        job(indexed(json!({})), json!({"completedIndexes": "0-2"})),
        &["a Running #3", "b Running #3", "c Running #9"],
    );
    log += &look(
        job(indexed(json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}})), json!({})),
        &["a Running #1", "b Succeeded #0"],
    );
    let limited = || indexed(json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}));
    log += &look(job(limited(), json!({})), &["a Running #1", "b Failed #0"]);
    log += &look(job(limited(), json!({"failedIndexes": "0"})), &["a Failed #1"]);
    let retried = || indexed(json!({"backoffLimitPerIndex": 1}));
    log += &look(job(retried(), json!({})), &["a Running #1", "b Failed #0"]);
    expect_test::expect![[r#"
        delete [] create [#2 #3] wait None; release [b]; {"active":3,"completedIndexes":"0","ready":0,"succeeded":1,"terminating":0,"uncountedTerminatedPods":{}}  None
        delete [a c] create [] wait None; release []; {"active":1,"completedIndexes":"0-2","ready":0,"succeeded":3,"terminating":2,"uncountedTerminatedPods":{}}  None
        end SuccessCriteriaMet SuccessPolicy; delete [a]; release [b a]; {"completedIndexes":"0","ready":0,"succeeded":1,"terminating":1,"uncountedTerminatedPods":{}} SuccessCriteriaMet=True None
        delete [] create [#2 #3] wait None; release [b]; {"active":3,"failed":1,"failedIndexes":"0","ready":0,"terminating":0,"uncountedTerminatedPods":{}}  None
        end FailureTarget MaxFailedIndexesExceeded; delete []; release [a]; {"failed":1,"failedIndexes":"0,1","ready":0,"terminating":0,"uncountedTerminatedPods":{}} FailureTarget=True Failed=True Some("Failed")
        delete [] create [#0 #2] wait None; release []; {"active":3,"failedIndexes":"","ready":0,"terminating":0,"uncountedTerminatedPods":{}}  None
    "#]].assert_eq(&log);
}
