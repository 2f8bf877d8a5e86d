//! What a container does, as far as can be told from its specification: for how long it runs, how it ends, what it
//! prints. Nothing is run.

use crate::profile::Profile;
use crate::shell::{Event, Machine, Script, Variables};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::time::Duration;

/// Annotation: the exit code of a pod's containers. With `.NAME` behind it, of one container.
pub const EXIT_CODE: &str = "pintle.dev/exit-code";
/// Annotation: seconds for which a pod's containers run before they exit. With `.NAME` behind it, for one container.
pub const RUN_SECONDS: &str = "pintle.dev/run-seconds";
/// Annotation: seconds that a pod takes to stop, no more than its grace period.
pub const STOP_SECONDS: &str = "pintle.dev/stop-seconds";
/// Annotation: seconds that a pod takes to start.
pub const START_SECONDS: &str = "pintle.dev/start-seconds";
/// Annotation: `false` keeps a pod's containers from becoming ready. With `.NAME` behind it, one container.
pub const READY: &str = "pintle.dev/ready";
/// Annotation: a reason such as `ImagePullBackOff` for which a pod's containers never start.
pub const WAITING_REASON: &str = "pintle.dev/waiting-reason";

/// Virtual time after which a script that is still running counts as running for ever.
const RUN_MAX: Duration = Duration::from_secs(400 * 86_400);

/// Programs that serve until they are stopped: images that need no command for it. Their last path segment, without tag.
const SERVERS: [&str; 33] = [
    "alertmanager",
    "caddy",
    "cassandra",
    "consul",
    "coredns",
    "elasticsearch",
    "envoy",
    "etcd",
    "grafana",
    "haproxy",
    "httpbin",
    "httpd",
    "influxdb",
    "jenkins",
    "kafka",
    "mariadb",
    "memcached",
    "minio",
    "mongo",
    "mysql",
    "nats",
    "nginx",
    "node-exporter",
    "pause",
    "postgres",
    "prometheus",
    "rabbitmq",
    "redis",
    "registry",
    "tomcat",
    "traefik",
    "vault",
    "zookeeper",
];

/// Subcommands of the image that conformance tests use, which serve until they are stopped.
const AGNHOST_SERVERS: [&str; 8] =
    ["pause", "netexec", "serve-hostname", "test-webserver", "porter", "webhook", "guestbook", "liveness"];

/// When and how a container ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Only when it is stopped.
    Never,
    /// By itself.
    Exit {
        /// How long after its start.
        after: Duration,
        /// Its exit code.
        code: i32,
    },
}

/// The annotation of a pod, the one for this container before the one for all.
pub fn annotation<'a>(pod: &'a Pod, key: &str, container: &str) -> Option<&'a str> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let found = annotations.get(&format!("{key}.{container}")).or_else(|| annotations.get(key));
    found.map(|value| value.trim())
}

/// Seconds in an annotation; what is no number is passed over.
pub fn seconds(pod: &Pod, key: &str, container: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(annotation(pod, key, container)?.parse().ok()?).ok()
}

/// When and how a container ends that started at `started`.
pub fn end(pod: &Pod, container: &Container, may_serve: bool, profile: &Profile) -> End {
    let code = annotation(pod, EXIT_CODE, &container.name).and_then(|code| code.parse().ok());
    let after = seconds(pod, RUN_SECONDS, &container.name);
    if code.is_some() || after.is_some() {
        return End::Exit { after: after.unwrap_or(profile.run_time), code: code.unwrap_or_default() };
    }
    let default = End::Exit { after: profile.run_time, code: 0 };
    let Some(script) = script(container) else {
        return if may_serve || serves(container) { End::Never } else { default };
    };
    let mut machine = Machine::new(script, variables(pod, container), Timestamp::UNIX_EPOCH);
    if machine.is_endless() {
        return End::Never;
    }
    loop {
        match machine.run(RUN_MAX) {
            Event::Printed(_) => {}
            Event::Exited { at, code } => return End::Exit { after: at, code },
            Event::Unknown { .. } if may_serve || serves(container) => return End::Never,
            Event::Unknown { .. } => machine.conclude_unknown(0, profile.run_time),
            Event::Waiting => return End::Never,
        }
    }
}

/// The container's program as a running script that began at `started`, to see what it prints. `None` when nothing is
/// known of what it prints.
pub fn machine(pod: &Pod, container: &Container, started: Timestamp) -> Option<Machine> {
    Some(Machine::new(script(container)?, variables(pod, container), started))
}

/// The container's command as a script; `None` for the image's own command.
fn script(container: &Container) -> Option<Script> {
    let words: Vec<String> = container.command.iter().chain(&container.args).flatten().cloned().collect();
    let has_command = container.command.as_ref().is_some_and(|command| !command.is_empty());
    if !has_command && !image_name(&container.image).is_some_and(|name| SHELL_IMAGES.contains(&name)) {
        return None;
    }
    script_of(&words)
}

/// A command as a script. `sh -c TEXT` is compiled, anything else is a single command.
pub fn script_of(words: &[String]) -> Option<Script> {
    let (first, rest) = words.split_first()?;
    let base = first.rsplit('/').next().unwrap_or(first);
    let is_shell = matches!(base, "sh" | "bash" | "ash" | "dash");
    if is_shell && let Some(idx) = rest.iter().position(|word| word.starts_with('-') && word.ends_with('c')) {
        return Script::parse(rest.get(idx + 1)?).ok().or_else(|| Some(Script::of_command(words)));
    }
    Some(Script::of_command(words))
}

/// Images whose entry point runs the arguments as a command.
const SHELL_IMAGES: [&str; 8] = ["alpine", "bash", "busybox", "debian", "fedora", "perl", "python", "ubuntu"];

/// The last path segment of an image, without tag and digest.
fn image_name(image: &Option<String>) -> Option<&str> {
    let name = image.as_deref()?.rsplit('/').next()?;
    name.split(['@', ':']).next()
}

/// Whether the container looks like a server.
fn serves(container: &Container) -> bool {
    if container.ports.as_ref().is_some_and(|ports| !ports.is_empty()) {
        return true;
    }
    match image_name(&container.image) {
        Some("agnhost") => {
            container.command.iter().chain(&container.args).flatten().any(|w| AGNHOST_SERVERS.contains(&w.as_str()))
        }
        Some(name) => container.command.is_none() && SERVERS.contains(&name),
        None => false,
    }
}

/// The environment of a container, as far as it stands in the pod.
pub fn variables(pod: &Pod, container: &Container) -> Variables {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let spec = pod.spec.as_ref();
    let mut variables = Variables::new();
    variables.insert("PATH".to_owned(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
    variables.insert("HOSTNAME".to_owned(), spec.and_then(|spec| spec.hostname.clone()).unwrap_or(name));
    variables.insert("HOME".to_owned(), "/root".to_owned());
    for variable in container.env.iter().flatten() {
        let field = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
        let value = match (&variable.value, field) {
            (Some(value), _) => references(value, &variables),
            (None, Some(field)) => field_of(pod, &field.field_path),
            (None, None) => String::new(),
        };
        variables.insert(variable.name.clone(), value);
    }
    variables
}

/// Puts `$(NAME)` in.
fn references(text: &str, variables: &Variables) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("$(") {
        out.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let known = after.find(')').and_then(|len| Some((variables.get(&after[..len])?, len)));
        match known {
            Some((value, len)) => {
                out.push_str(value);
                rest = &after[len + 1..];
            }
            None => {
                out.push_str("$(");
                rest = after;
            }
        }
    }
    out + rest
}

/// The fields that the downward API offers.
fn field_of(pod: &Pod, path: &str) -> String {
    let (meta, spec, status) = (&pod.metadata, pod.spec.as_ref(), pod.status.as_ref());
    let quoted = |prefix: &str| path.strip_prefix(prefix)?.strip_suffix("']");
    let value = match path {
        "metadata.name" => meta.name.clone(),
        "metadata.namespace" => meta.namespace.clone(),
        "metadata.uid" => meta.uid.clone(),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.podIP" => status.and_then(|status| status.pod_ip.clone()),
        "status.hostIP" => status.and_then(|status| status.host_ip.clone()),
        _ => None,
    };
    let of = |map: &Option<std::collections::BTreeMap<String, String>>, key: &str| map.as_ref()?.get(key).cloned();
    let label = || of(&meta.labels, quoted("metadata.labels['")?);
    let annotation = || of(&meta.annotations, quoted("metadata.annotations['")?);
    value.or_else(label).or_else(annotation).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn how_containers_end() {
        let mut out = String::new();
        for (container, annotations) in [
            (json!({"image": "nginx:1.27"}), json!({})),
            (json!({"image": "nginx", "command": ["sh", "-c", "exit 1"]}), json!({})),
            (json!({"image": "busybox"}), json!({})),
            (json!({"image": "busybox", "args": ["sleep", "3600"]}), json!({})),
            (json!({"image": "busybox", "command": ["/bin/false"]}), json!({})),
            (json!({"image": "perl:5.34", "command": ["perl", "-wle", "print 1"]}), json!({})),
            (json!({"image": "example.org:5000/app@sha256:00", "ports": [{"containerPort": 80}]}), json!({})),
            (json!({"image": "registry.k8s.io/e2e-test-images/agnhost:2.53", "args": ["netexec"]}), json!({})),
            (json!({"image": "a", "command": ["/bin/sh", "-ec", "while true; do date; sleep 1; done"]}), json!({})),
            (
                json!({"image": "a", "command": ["sh", "-c", "exit $CODE"], "env": [{"name": "CODE", "value": "4"}]}),
                json!({}),
            ),
            (json!({"image": "a", "command": ["sh", "-c", "a | b"]}), json!({})),
            (json!({"image": "a"}), json!({"pintle.dev/exit-code": "3"})),
            (json!({"image": "a"}), json!({"pintle.dev/run-seconds": "1", "pintle.dev/run-seconds.c": "0.5"})),
        ] {
            let mut named = container.clone();
            named["name"] = json!("c");
            let pod: Pod =
                serde_json::from_value(json!({"metadata": {"name": "p", "annotations": annotations}})).unwrap();
            let parsed: Container = serde_json::from_value(named).unwrap();
            let ends = [true, false].map(|may_serve| match end(&pod, &parsed, may_serve, &Profile::default()) {
                End::Never => "runs".to_owned(),
                End::Exit { after, code } => format!("{code} after {after:?}"),
            });
            out.push_str(&format!("{container} {annotations}: {}, once: {}\n", ends[0], ends[1]));
        }
        expect![[r#"
            {"image":"nginx:1.27"} {}: runs, once: runs
            {"command":["sh","-c","exit 1"],"image":"nginx"} {}: 1 after 0ns, once: 1 after 0ns
            {"image":"busybox"} {}: runs, once: 0 after 1s
            {"args":["sleep","3600"],"image":"busybox"} {}: 0 after 3600s, once: 0 after 3600s
            {"command":["/bin/false"],"image":"busybox"} {}: 1 after 0ns, once: 1 after 0ns
            {"command":["perl","-wle","print 1"],"image":"perl:5.34"} {}: runs, once: 0 after 1s
            {"image":"example.org:5000/app@sha256:00","ports":[{"containerPort":80}]} {}: runs, once: runs
            {"args":["netexec"],"image":"registry.k8s.io/e2e-test-images/agnhost:2.53"} {}: runs, once: runs
            {"command":["/bin/sh","-ec","while true; do date; sleep 1; done"],"image":"a"} {}: runs, once: runs
            {"command":["sh","-c","exit $CODE"],"env":[{"name":"CODE","value":"4"}],"image":"a"} {}: 4 after 0ns, once: 4 after 0ns
            {"command":["sh","-c","a | b"],"image":"a"} {}: runs, once: 0 after 1s
            {"image":"a"} {"pintle.dev/exit-code":"3"}: 3 after 1s, once: 3 after 1s
            {"image":"a"} {"pintle.dev/run-seconds":"1","pintle.dev/run-seconds.c":"0.5"}: 0 after 500ms, once: 0 after 500ms
        "#]].assert_eq(&out);
    }
}
