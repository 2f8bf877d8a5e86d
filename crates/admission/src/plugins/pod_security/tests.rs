//! What is refused and warned of.

use super::*;
use crate::plugins::testing::Script;
use expect_test::{Expect, expect};
use pintle_apimachinery::json;

fn script(labels: Value) -> Script {
    let script = Script::new(|lookup| {
        Arc::new(PodSecurity { lookup, defaults: Policy::default(), exemptions: Exemptions::default() })
    });
    script.put("namespaces", json!({"metadata": {"name": "ns", "labels": labels}}));
    script
}

fn enforcing(standard: &str) -> Script {
    let (level, version) = standard.split_once(':').unwrap_or((standard, "latest"));
    script(json!({
        "pod-security.kubernetes.io/enforce": level,
        "pod-security.kubernetes.io/enforce-version": version,
    }))
}

fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})
}

async fn refuses(standard: &str, object: Value, expect: Expect) {
    let outcome = enforcing(standard).create("pods ns", object).await;
    let prefix = format!("pods \"p\" is forbidden: violates PodSecurity \"{standard}\": ");
    expect.assert_eq(outcome.status().message.strip_prefix(&prefix).expect("the usual message"));
}

#[tokio::test]
async fn the_baseline_level() {
    let everything = pod(json!({
        "hostNetwork": true, "hostPID": true, "hostIPC": true,
        "securityContext": {
            "appArmorProfile": {"type": "Unconfined"},
            "seLinuxOptions": {"type": "odd_t", "user": "u", "role": "r"},
            "sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}],
            "seccompProfile": {"type": "Unconfined"},
            "windowsOptions": {"hostProcess": true},
        },
        "volumes": [{"name": "v", "hostPath": {}}, {"name": "w", "hostPath": {}}],
        "initContainers": [{
            "name": "i", "ports": [{"hostPort": 90}],
            "securityContext": {"privileged": true, "procMount": "Unmasked", "seLinuxOptions": {"type": "container_t"}},
            "readinessProbe": {"tcpSocket": {"host": "b"}},
        }],
        "containers": [{
            "name": "c", "ports": [{"hostPort": 80}, {"hostPort": 1000}, {"hostPort": 0}],
            "securityContext": {
                "capabilities": {"add": ["SYS_TIME", "CHOWN", "NET_ADMIN"]},
                "appArmorProfile": {"type": "Unconfined"}, "seccompProfile": {"type": "Unconfined"},
                "windowsOptions": {"hostProcess": true},
            },
            "livenessProbe": {"httpGet": {"host": "a"}}, "lifecycle": {"preStop": {"tcpSocket": {"host": "b"}}},
        }],
    }));
    refuses("baseline:latest", everything, expect![[r#"forbidden AppArmor profile (pod and container "c" must not set AppArmor profile type to "Unconfined"), non-default capabilities (container "c" must not include "NET_ADMIN", "SYS_TIME" in securityContext.capabilities.add), host namespaces (hostNetwork=true, hostPID=true, hostIPC=true), hostPath volumes (volumes "v", "w"), hostPort (containers "i", "c" use hostPorts 1000, 80, 90), probe or lifecycle host (containers "c", "i" use probe or lifecycle hosts "a", "b"), privileged (container "i" must not set securityContext.privileged=true), procMount (container "i" must not set securityContext.procMount to "Unmasked"), seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "odd_t"; user may not be set; role may not be set), seccompProfile (pod and container "c" must not set securityContext.seccompProfile.type to "Unconfined"), forbidden sysctls (kernel.msgmax), hostProcess (pod and container "c" must not set securityContext.windowsOptions.hostProcess=true)"#]]).await;
}

#[tokio::test]
async fn annotations_count_as_well() {
    let annotated = json!({
        "metadata": {"name": "p", "annotations": {
            "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
            "container.apparmor.security.beta.kubernetes.io/a": "localhost/x",
            "container.seccomp.security.alpha.kubernetes.io/c": "unconfined",
            "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
        }},
        "spec": {"containers": [{"name": "c"}], "securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}},
    });
    refuses("baseline:v1.18", annotated, expect![[r#"forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/c="unconfined""), seccompProfile (forbidden annotation container.seccomp.security.alpha.kubernetes.io/c="unconfined"), forbidden sysctls (net.ipv4.tcp_rmem)"#]]).await;
}

#[tokio::test]
async fn the_restricted_level() {
    let plain = || pod(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    refuses("restricted:latest", plain(), expect![[r#"allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#]]).await;
    refuses("restricted:v1.18", plain(), expect![[r#"allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true)"#]]).await;
    let odd = pod(json!({
        "securityContext": {"runAsUser": 0, "runAsNonRoot": false},
        "volumes": [{"name": "n", "nfs": {}}, {"name": "h", "hostPath": {}}, {"name": "x"}, {"name": "e", "emptyDir": {}}],
        "containers": [{"name": "c", "securityContext": {
            "runAsUser": 0, "allowPrivilegeEscalation": false, "procMount": "Unmasked",
            "capabilities": {"add": ["CHOWN", "NET_BIND_SERVICE"]}, "seccompProfile": {"type": "Localhost"},
        }}],
    }));
    refuses("restricted:latest", odd, expect![[r#"unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; container "c" must not include "CHOWN" in securityContext.capabilities.add), procMount (container "c" must not set securityContext.procMount to "Unmasked"), restricted volume types (volumes "n", "h", "x" use restricted volume types "hostPath", "nfs", "unknown"), runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod and container "c" must not set runAsUser=0)"#]]).await;
    let windows = pod(json!({
        "os": {"name": "windows"}, "securityContext": {"runAsNonRoot": true}, "containers": [{"name": "c"}],
    }));
    enforcing("restricted:latest").create("pods ns", windows).await.ok();
    let own_users = pod(json!({"hostUsers": false, "containers": [{"name": "c", "securityContext": {
        "runAsUser": 0, "procMount": "Unmasked", "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    }}]}));
    enforcing("baseline:latest").create("pods ns", own_users.clone()).await.ok();
    refuses(
        "restricted:latest",
        own_users,
        expect![[r#"procMount (container "c" must not set securityContext.procMount to "Unmasked")"#]],
    )
    .await;
}

#[tokio::test]
async fn updates_that_leave_images_alone_pass() {
    let script = enforcing("restricted");
    let old = pod(json!({"containers": [{"name": "c", "image": "a"}]}));
    let mut labelled = old.clone();
    labelled.make("metadata.labels").set("a", "b");
    script.update("pods ns p", old.clone(), labelled).await.ok();
    let other_image = pod(json!({"containers": [{"name": "c", "image": "b"}]}));
    assert!(script.update("pods ns p", old.clone(), other_image).await.status().is("Forbidden"));
    let mut debugged = old.clone();
    debugged.make("spec").set("ephemeralContainers", json!([{"name": "e", "image": "a"}]));
    let refused = script.update("pods/ephemeralcontainers ns p", old.clone(), debugged.clone()).await;
    assert!(refused.status().message.contains(r#"(containers "c", "e" must"#));
    script.update("pods/status ns p", old, debugged).await.ok();
}

#[tokio::test]
async fn workloads_are_warned_of() {
    let script = enforcing("baseline");
    let deployment = |spec: Value| json!({"metadata": {"name": "d"}, "spec": {"template": {"spec": spec}}});
    let outcome = script.create("deployments.apps ns", deployment(json!({"hostPID": true}))).await;
    assert_eq!(outcome.warnings(), [r#"would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)"#]);
    let outcome = script.update("deployments.apps/scale ns d", json!({}), deployment(json!({"hostPID": true}))).await;
    assert!(outcome.warnings().is_empty());
    let outcome = script.create("replicationcontrollers ns", json!({"metadata": {"name": "d"}, "spec": {}})).await;
    assert!(outcome.warnings().is_empty());
    let laxer = script.create("pods nowhere", pod(json!({"containers": []}))).await;
    laxer.refused(expect![[r#"500 Internal error occurred: failed to lookup namespace "nowhere""#]]);
}

#[tokio::test]
async fn stricter_namespaces_warn_of_their_pods() {
    let script = script(json!({}));
    for (name, host) in [("b", true), ("a", true), ("c", false), ("d", true)] {
        let containers = json!([{"name": "c", "securityContext": {"privileged": name == "d"}}]);
        let spec = json!({"hostPID": host, "containers": containers});
        script.put("pods", json!({"metadata": {"name": name, "namespace": "ns"}, "spec": spec}));
    }
    let namespace =
        |level: &str| json!({"metadata": {"name": "ns", "labels": {"pod-security.kubernetes.io/enforce": level}}});
    let outcome = script.update("namespaces - ns", namespace("privileged"), namespace("baseline")).await;
    expect![[r#"
        [
            "existing pods in namespace \"ns\" violate the new PodSecurity enforce level \"baseline:latest\"",
            "a (and 1 other pod): host namespaces",
            "d: host namespaces, privileged",
        ]
    "#]]
    .assert_debug_eq(&outcome.warnings());
    assert!(
        script.update("namespaces - ns", namespace("restricted"), namespace("baseline")).await.warnings().is_empty()
    );
    let refused = script.update("namespaces - ns", namespace("baseline"), namespace("x")).await;
    refused.refused(expect![[r#"422 Namespace "ns" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of privileged, baseline, restricted"#]]);
    script.update("namespaces - ns", namespace("x"), namespace("x")).await.ok();
}
