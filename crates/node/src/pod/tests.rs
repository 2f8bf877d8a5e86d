use super::*;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn now(seconds: f64) -> Timestamp {
    let start = Timestamp::from_second(1_767_225_600).unwrap();
    later(start, Duration::from_secs_f64(seconds))
}

fn at(time: Timestamp) -> f64 {
    (time.duration_since(now(0.0))).as_secs_f64()
}

/// A container's state in few words.
fn container(status: &Value) -> String {
    let state = &status["state"];
    let shown = if let Some(waiting) = state.get("waiting") {
        format!("waiting {}", waiting["reason"].as_str().unwrap_or_default())
    } else if let Some(terminated) = state.get("terminated") {
        format!("{} {}", terminated["reason"].as_str().unwrap_or_default(), terminated["exitCode"])
    } else {
        "running".to_owned()
    };
    let ready = if status["ready"] == json!(true) { " ready" } else { "" };
    let restarts = status["restartCount"].as_i64().filter(|n| *n > 0).map(|n| format!(" x{n}")).unwrap_or_default();
    format!("{}: {shown}{ready}{restarts}", status["name"].as_str().unwrap_or_default())
}

fn show(status: &PodStatus) -> String {
    let status = serde_json::to_value(status).unwrap();
    let statuses = ["initContainerStatuses", "containerStatuses"];
    let containers = statuses.iter().flat_map(|key| status[*key].as_array().cloned().unwrap_or_default());
    let containers: Vec<String> = containers.map(|status| container(&status)).collect();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let conditions: Vec<String> = conditions
        .iter()
        .filter(|condition| condition["status"] == "True")
        .map(|condition| condition["type"].as_str().unwrap_or_default().to_owned())
        .collect();
    format!("{} [{}] {}", status["phase"].as_str().unwrap_or_default(), containers.join(", "), conditions.join(" "))
}

/// Carries a pod through its life: looks whenever the last step said so, for so many steps, and deletes it at a time.
fn check(pod: Value, n_steps: usize, delete_at: Option<f64>, expected: Expect) {
    let mut pod: Pod = serde_json::from_value(pod).unwrap();
    pod.metadata.uid = Some("u-1".to_owned());
    (pod.metadata.name, pod.metadata.namespace) = (Some("p".to_owned()), Some("n".to_owned()));
    let mut sight = Sight {
        first_seen: now(0.0),
        terminating_seen: None,
        pod_ip: Ipv4Addr::new(10, 244, 0, 2),
        host_ip: Ipv4Addr::new(172, 18, 0, 2),
    };
    let mut out = String::new();
    let mut time = now(0.0);
    for _ in 0..n_steps {
        if delete_at.is_some_and(|at| now(at) <= time) && sight.terminating_seen.is_none() {
            sight.terminating_seen = Some(time);
            pod.metadata.deletion_timestamp = Some(Time(later(time, Duration::from_secs(30))));
            pod.metadata.deletion_grace_period_seconds = Some(30);
        }
        let step = step(&pod, &sight, &Profile::default(), time);
        let patch = status_patch(&pod, &step.status);
        let events: Vec<&str> = step.events.iter().map(|event| event.reason).collect();
        out.push_str(&format!("{:<5} {} {}\n", at(time), show(&step.status), events.join(" ")));
        if patch.is_some() {
            pod.status = Some(step.status);
        }
        if step.is_finished {
            out.push_str("removed\n");
            break;
        }
        let wake = step.wake.or_else(|| delete_at.map(now));
        match (patch.is_some(), wake) {
            // the change itself comes back
            (true, _) => {}
            (false, Some(wake)) => time = time.max(wake),
            (false, None) => break,
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn a_server_lives_until_it_is_deleted() {
    let pod = json!({"spec": {"containers": [{"name": "web", "image": "nginx", "readinessProbe": {"initialDelaySeconds": 5}}]}});
    check(
        pod,
        20,
        Some(60.0),
        expect![[r#"
            0     Pending [web: waiting ContainerCreating] Initialized PodScheduled 
            0     Pending [web: waiting ContainerCreating] Initialized PodScheduled 
            0.3   Running [web: running] PodReadyToStartContainers Initialized PodScheduled Pulled Created Started
            0.3   Running [web: running] PodReadyToStartContainers Initialized PodScheduled 
            5     Running [web: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled 
            5     Running [web: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled 
            60    Running [web: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled Killing
            60.3  Succeeded [web: Completed 0] Initialized PodScheduled 
            removed
        "#]],
    );
}

#[test]
fn jobs() {
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "perl", "command": ["perl"]}]});
    check(
        json!({"spec": spec}),
        20,
        None,
        expect![[r#"
            0     Pending [a: waiting ContainerCreating, b: waiting ContainerCreating] Initialized PodScheduled 
            0     Pending [a: waiting ContainerCreating, b: waiting ContainerCreating] Initialized PodScheduled 
            0.3   Running [a: running ready, b: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled Pulled Created Started Pulled Created Started
            0.3   Running [a: running ready, b: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled 
            1     Succeeded [a: Completed 0, b: Completed 0] Initialized PodScheduled 
            1     Succeeded [a: Completed 0, b: Completed 0] Initialized PodScheduled 
        "#]],
    );
    let failing = json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "x", "command": ["sh", "-c", "sleep 3; exit 4"]}]});
    check(
        json!({"spec": failing}),
        20,
        None,
        expect![[r#"
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            0.3   Running [a: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled Pulled Created Started
            0.3   Running [a: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled 
            3     Failed [a: Error 4] Initialized PodScheduled 
            3     Failed [a: Error 4] Initialized PodScheduled 
        "#]],
    );
    let late = json!({"activeDeadlineSeconds": 2, "restartPolicy": "Never", "containers": [{"name": "a", "image": "x", "command": ["sleep", "9"]}]});
    check(
        json!({"spec": late}),
        20,
        None,
        expect![[r#"
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            0.3   Running [a: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled Pulled Created Started
            0.3   Running [a: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled 
            2     Failed [a: Error 137] Initialized PodScheduled 
            2     Failed [a: Error 137] Initialized PodScheduled 
        "#]],
    );
}

#[test]
fn failing_containers_are_started_again_ever_more_slowly() {
    let spec = json!({"restartPolicy": "OnFailure", "containers": [{"name": "a", "image": "x", "command": ["false"]}]});
    check(
        json!({"spec": spec}),
        16,
        None,
        expect![[r#"
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            0.3   Running [a: Error 1] PodReadyToStartContainers Initialized PodScheduled Pulled Created Started
            0.3   Running [a: Error 1 x1] PodReadyToStartContainers Initialized PodScheduled Pulled Created Started
            0.3   Running [a: waiting CrashLoopBackOff x1] PodReadyToStartContainers Initialized PodScheduled BackOff
            0.3   Running [a: waiting CrashLoopBackOff x1] PodReadyToStartContainers Initialized PodScheduled 
            10    Running [a: Error 1 x2] PodReadyToStartContainers Initialized PodScheduled Pulled Created Started
            10    Running [a: waiting CrashLoopBackOff x2] PodReadyToStartContainers Initialized PodScheduled BackOff
            10    Running [a: waiting CrashLoopBackOff x2] PodReadyToStartContainers Initialized PodScheduled 
            30    Running [a: Error 1 x3] PodReadyToStartContainers Initialized PodScheduled Pulled Created Started
            30    Running [a: waiting CrashLoopBackOff x3] PodReadyToStartContainers Initialized PodScheduled BackOff
            30    Running [a: waiting CrashLoopBackOff x3] PodReadyToStartContainers Initialized PodScheduled 
            70    Running [a: Error 1 x4] PodReadyToStartContainers Initialized PodScheduled Pulled Created Started
            70    Running [a: waiting CrashLoopBackOff x4] PodReadyToStartContainers Initialized PodScheduled BackOff
            70    Running [a: waiting CrashLoopBackOff x4] PodReadyToStartContainers Initialized PodScheduled 
            150   Running [a: Error 1 x5] PodReadyToStartContainers Initialized PodScheduled Pulled Created Started
        "#]],
    );
}

#[test]
fn init_containers_come_first_and_sidecars_stay() {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [
            {"name": "one", "image": "x", "command": ["sleep", "2"]},
            {"name": "side", "image": "x", "restartPolicy": "Always", "startupProbe": {"initialDelaySeconds": 1}},
            {"name": "two", "image": "x", "command": ["true"]},
        ],
        "containers": [{"name": "main", "image": "x"}],
    });
    check(
        json!({"spec": spec}),
        30,
        None,
        expect![[r#"
            0     Pending [one: waiting PodInitializing, side: waiting PodInitializing, two: waiting PodInitializing, main: waiting PodInitializing] PodScheduled 
            0     Pending [one: waiting PodInitializing, side: waiting PodInitializing, two: waiting PodInitializing, main: waiting PodInitializing] PodScheduled 
            0.3   Pending [one: running, side: waiting PodInitializing, two: waiting PodInitializing, main: waiting PodInitializing] PodReadyToStartContainers PodScheduled Pulled Created Started
            0.3   Pending [one: running, side: waiting PodInitializing, two: waiting PodInitializing, main: waiting PodInitializing] PodReadyToStartContainers PodScheduled 
            2     Pending [one: Completed 0, side: running, two: waiting PodInitializing, main: waiting PodInitializing] PodReadyToStartContainers PodScheduled Pulled Created Started
            2     Pending [one: Completed 0, side: running, two: waiting PodInitializing, main: waiting PodInitializing] PodReadyToStartContainers PodScheduled 
            3     Running [one: Completed 0, side: running ready, two: Completed 0, main: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled Pulled Created Started Pulled Created Started
            3     Running [one: Completed 0, side: running ready, two: Completed 0, main: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled 
            4     Succeeded [one: Completed 0, side: Completed 0, two: Completed 0, main: Completed 0] Initialized PodScheduled 
            4     Succeeded [one: Completed 0, side: Completed 0, two: Completed 0, main: Completed 0] Initialized PodScheduled 
        "#]],
    );
    let failing = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}],
        "initContainers": [{"name": "one", "image": "x", "command": ["false"]}]});
    check(
        json!({"spec": failing}),
        20,
        None,
        expect![[r#"
            0     Pending [one: waiting PodInitializing, main: waiting PodInitializing] PodScheduled 
            0     Pending [one: waiting PodInitializing, main: waiting PodInitializing] PodScheduled 
            0.3   Failed [one: Error 1, main: waiting PodInitializing] PodScheduled Pulled Created Started
            0.3   Failed [one: Error 1, main: waiting PodInitializing] PodScheduled 
        "#]],
    );
}

#[test]
fn users_may_choose() {
    let annotations =
        json!({"pintle.dev/exit-code": "3", "pintle.dev/run-seconds": "7", "pintle.dev/start-seconds": "2"});
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "nginx"}]});
    check(
        json!({"metadata": {"annotations": annotations}, "spec": spec}),
        9,
        None,
        expect![[r#"
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            2     Running [a: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled Pulled Created Started
            2     Running [a: running ready] PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled 
            9     Failed [a: Error 3] Initialized PodScheduled 
            9     Failed [a: Error 3] Initialized PodScheduled 
        "#]],
    );
    let annotations = json!({"pintle.dev/waiting-reason": "ImagePullBackOff"});
    check(
        json!({"metadata": {"annotations": annotations}, "spec": spec}),
        9,
        None,
        expect![[r#"
            0     Pending [a: waiting ImagePullBackOff] Initialized PodScheduled 
            0     Pending [a: waiting ImagePullBackOff] Initialized PodScheduled 
        "#]],
    );
    let gated = json!({"readinessGates": [{"conditionType": "example.org/x"}], "containers": [{"name": "a", "image": "nginx"}]});
    check(
        json!({"metadata": {"annotations": {"pintle.dev/ready": "false"}}, "spec": gated}),
        9,
        None,
        expect![[r#"
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            0     Pending [a: waiting ContainerCreating] Initialized PodScheduled 
            0.3   Running [a: running] PodReadyToStartContainers Initialized PodScheduled Pulled Created Started
            0.3   Running [a: running] PodReadyToStartContainers Initialized PodScheduled 
        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a transcript")]
fn the_first_status_in_full() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "generation": 1},
        "spec": {"containers": [{"name": "c", "image": "nginx", "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true}]}]},
        "status": {"phase": "Pending", "qosClass": "BestEffort", "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2025-12-31T23:59:59Z", "observedGeneration": 1},
        ]},
    }))
    .unwrap();
    let sight = Sight {
        first_seen: now(0.0),
        terminating_seen: None,
        pod_ip: Ipv4Addr::new(10, 244, 0, 2),
        host_ip: Ipv4Addr::new(172, 18, 0, 2),
    };
    let mut out = String::new();
    let mut pod = pod;
    for seconds in [0.0, 0.3] {
        let step = step(&pod, &sight, &Profile::default(), now(seconds));
        out.push_str(&serde_json::to_string_pretty(&status_patch(&pod, &step.status)).unwrap());
        out.push('\n');
        pod.status = Some(step.status);
    }
    expect![[r#"
        {
          "metadata": {
            "uid": "u"
          },
          "status": {
            "conditions": [
              {
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "observedGeneration": 1,
                "status": "False",
                "type": "PodReadyToStartContainers"
              },
              {
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "observedGeneration": 1,
                "status": "True",
                "type": "Initialized"
              },
              {
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "message": "containers with unready status: [c]",
                "observedGeneration": 1,
                "reason": "ContainersNotReady",
                "status": "False",
                "type": "Ready"
              },
              {
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "message": "containers with unready status: [c]",
                "observedGeneration": 1,
                "reason": "ContainersNotReady",
                "status": "False",
                "type": "ContainersReady"
              }
            ],
            "containerStatuses": [
              {
                "image": "nginx",
                "imageID": "",
                "lastState": {},
                "name": "c",
                "ready": false,
                "restartCount": 0,
                "started": false,
                "state": {
                  "waiting": {
                    "reason": "ContainerCreating"
                  }
                },
                "volumeMounts": [
                  {
                    "mountPath": "/v",
                    "name": "v",
                    "readOnly": true,
                    "recursiveReadOnly": "Disabled"
                  }
                ]
              }
            ],
            "hostIP": "172.18.0.2",
            "hostIPs": [
              {
                "ip": "172.18.0.2"
              }
            ],
            "observedGeneration": 1,
            "startTime": "2026-01-01T00:00:00Z"
          }
        }
        {
          "metadata": {
            "uid": "u"
          },
          "status": {
            "conditions": [
              {
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "observedGeneration": 1,
                "status": "True",
                "type": "PodReadyToStartContainers"
              },
              {
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "message": null,
                "observedGeneration": 1,
                "reason": null,
                "status": "True",
                "type": "Ready"
              },
              {
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "message": null,
                "observedGeneration": 1,
                "reason": null,
                "status": "True",
                "type": "ContainersReady"
              }
            ],
            "containerStatuses": [
              {
                "containerID": "containerd://d863b9545115f2445625e1cac66f8619c4d62f6bd54b1961b98303042bbeb290",
                "image": "docker.io/library/nginx:latest",
                "imageID": "docker.io/library/nginx@sha256:a38d700be45a7ec457bba1db35e81a873fc86ed623507677c3f94667734198c2",
                "lastState": {},
                "name": "c",
                "ready": true,
                "restartCount": 0,
                "started": true,
                "state": {
                  "running": {
                    "startedAt": "2026-01-01T00:00:00Z"
                  }
                },
                "volumeMounts": [
                  {
                    "mountPath": "/v",
                    "name": "v",
                    "readOnly": true,
                    "recursiveReadOnly": "Disabled"
                  }
                ]
              }
            ],
            "phase": "Running",
            "podIP": "10.244.0.2",
            "podIPs": [
              {
                "ip": "10.244.0.2"
              }
            ]
          }
        }
    "#]].assert_eq(&out);
}
