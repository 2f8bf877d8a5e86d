//! The checks of the baseline level.

use super::checks::{Culprits, Finding, Pod, Values, Violation, has_own_users, plural, quoted};
use pintle_apimachinery::Value;
use pintle_apimachinery::field::go_quote;
use std::collections::BTreeSet;

const APP_ARMOR_ANNOTATION_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD_ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER_ANNOTATION_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";

pub(super) fn app_armor(pod: Pod<'_>) -> Finding {
    let mut values = Values::new();
    let culprits = Culprits::contexts(pod, |context| {
        let profile = &context["appArmorProfile"];
        is_unconfined(profile) && {
            values.insert(profile["type"].str_or_empty());
            true
        }
    });
    let is_fine = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let mut annotations: Vec<String> = Vec::new();
    for (key, value) in pod.metadata["annotations"].entries() {
        let value = value.str_or_empty();
        if key.starts_with(APP_ARMOR_ANNOTATION_PREFIX) && !is_fine(value) {
            annotations.push(format!("{key}={}", go_quote(value)));
        }
    }
    annotations.sort();
    let mut setters = culprits.texts();
    if !annotations.is_empty() {
        setters.push(plural(annotations.len(), "annotation", "annotations").to_owned());
    }
    if setters.is_empty() {
        return None;
    }
    let profiles: Vec<&str> = values.into_iter().chain(annotations.iter().map(String::as_str)).collect();
    let reason = plural(profiles.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    let setters = setters.join(" and ");
    Some(Violation::new(reason, format!("{setters} must not set AppArmor profile type to {}", quoted(&profiles))))
}

/// Whether a profile (of AppArmor or seccomp) is there and is none that confines.
pub(super) fn is_unconfined(profile: &Value) -> bool {
    !profile.is_null() && !matches!(profile["type"].str_or_empty(), "RuntimeDefault" | "Localhost")
}

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The containers that add other capabilities than `allowed`, and which.
pub(super) fn added_capabilities<'a>(pod: Pod<'a>, allowed: &[&str]) -> (Culprits<'a>, Values<'a>) {
    let mut forbidden = Values::new();
    let culprits = Culprits::containers(pod, |container| {
        let added = container["securityContext"]["capabilities"]["add"].items();
        let bad: Vec<&str> = added.iter().map(Value::str_or_empty).filter(|c| !allowed.contains(c)).collect();
        forbidden.extend(&bad);
        !bad.is_empty()
    });
    (culprits, forbidden)
}

/// What is wrong with adding capabilities.
pub(super) fn added_capabilities_text(culprits: &Culprits<'_>, forbidden: &Values<'_>) -> String {
    let containers = culprits.container_text();
    format!("{containers} must not include {} in securityContext.capabilities.add", quoted(forbidden))
}

pub(super) fn capabilities(pod: Pod<'_>) -> Finding {
    let (culprits, forbidden) = added_capabilities(pod, &CAPABILITIES);
    let detail = || added_capabilities_text(&culprits, &forbidden);
    (!culprits.is_empty()).then(|| Violation::new("non-default capabilities", detail()))
}

pub(super) fn host_namespaces(pod: Pod<'_>) -> Finding {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| pod.spec[*field].is_true());
    let texts: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    (!texts.is_empty()).then(|| Violation::new("host namespaces", texts.join(", ")))
}

pub(super) fn host_path_volumes(pod: Pod<'_>) -> Finding {
    let volumes = pod.spec["volumes"].items().iter().filter(|volume| !volume["hostPath"].is_null());
    let names: Vec<&str> = volumes.map(|volume| volume["name"].str_or_empty()).collect();
    let detail = || format!("{} {}", plural(names.len(), "volume", "volumes"), quoted(&names));
    (!names.is_empty()).then(|| Violation::new("hostPath volumes", detail()))
}

pub(super) fn host_ports(pod: Pod<'_>) -> Finding {
    let mut ports: BTreeSet<String> = BTreeSet::new();
    let culprits = Culprits::containers(pod, |container| {
        let own = container["ports"].items().iter().filter_map(|port| port["hostPort"].as_i64());
        let own: Vec<i64> = own.filter(|port| *port != 0).collect();
        ports.extend(own.iter().map(i64::to_string));
        !own.is_empty()
    });
    if culprits.is_empty() {
        return None;
    }
    let verb = plural(culprits.names.len(), "uses", "use");
    let noun = plural(ports.len(), "hostPort", "hostPorts");
    let ports: Vec<String> = ports.into_iter().collect();
    Some(Violation::new("hostPort", format!("{} {verb} {noun} {}", culprits.container_text(), ports.join(", "))))
}

const HANDLERS: [&str; 5] =
    ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"];

pub(super) fn probe_hosts(pod: Pod<'_>) -> Finding {
    let mut hosts = Values::new();
    let mut culprits = Culprits::containers(pod, |container| {
        let handlers = HANDLERS.iter().map(|path| container.at(path));
        let own = handlers.flat_map(|handler| [&handler["httpGet"]["host"], &handler["tcpSocket"]["host"]]);
        let own: Vec<&str> = own.map(Value::str_or_empty).filter(|host| !host.is_empty()).collect();
        hosts.extend(&own);
        !own.is_empty()
    });
    if culprits.is_empty() {
        return None;
    }
    culprits.names.sort_unstable();
    culprits.names.dedup();
    let verb = plural(culprits.names.len(), "uses", "use");
    let noun = plural(hosts.len(), "probe or lifecycle host", "probe or lifecycle hosts");
    let detail = format!("{} {verb} {noun} {}", culprits.container_text(), quoted(&hosts));
    Some(Violation::new("probe or lifecycle host", detail))
}

pub(super) fn privileged(pod: Pod<'_>) -> Finding {
    let culprits = Culprits::containers(pod, |container| container["securityContext"]["privileged"].is_true());
    let detail = || format!("{} must not set securityContext.privileged=true", culprits.container_text());
    (!culprits.is_empty()).then(|| Violation::new("privileged", detail()))
}

pub(super) fn proc_mount(pod: Pod<'_>) -> Finding {
    let mut values = Values::new();
    let culprits = Culprits::containers(pod, |container| {
        let value = container["securityContext"]["procMount"].as_str().filter(|value| *value != "Default");
        values.extend(value);
        value.is_some()
    });
    let detail =
        || format!("{} must not set securityContext.procMount to {}", culprits.container_text(), quoted(&values));
    (!culprits.is_empty()).then(|| Violation::new("procMount", detail()))
}

pub(super) fn proc_mount_outside_user_namespaces(pod: Pod<'_>) -> Finding {
    if has_own_users(pod) { None } else { proc_mount(pod) }
}

const SE_LINUX_TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

fn se_linux(pod: Pod<'_>, types: &[&str]) -> Finding {
    let mut bad_types = Values::new();
    let (mut has_user, mut has_role) = (false, false);
    let culprits = Culprits::contexts(pod, |context| {
        let options = &context["seLinuxOptions"];
        let kind = options["type"].str_or_empty();
        let is_bad_type = !types.contains(&kind);
        if is_bad_type {
            bad_types.insert(kind);
        }
        let (sets_user, sets_role) = (!options["user"].is_empty(), !options["role"].is_empty());
        has_user |= sets_user;
        has_role |= sets_role;
        is_bad_type || sets_user || sets_role
    });
    if culprits.is_empty() {
        return None;
    }
    let mut faults = Vec::new();
    if !bad_types.is_empty() {
        faults.push(format!("{} {}", plural(bad_types.len(), "type", "types"), quoted(&bad_types)));
    }
    faults.extend(has_user.then(|| "user may not be set".to_owned()));
    faults.extend(has_role.then(|| "role may not be set".to_owned()));
    let setters = culprits.text();
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", faults.join("; "));
    Some(Violation::new("seLinuxOptions", detail))
}

pub(super) fn se_linux_1_0(pod: Pod<'_>) -> Finding {
    se_linux(pod, &SE_LINUX_TYPES[..4])
}

pub(super) fn se_linux_1_31(pod: Pod<'_>) -> Finding {
    se_linux(pod, &SE_LINUX_TYPES)
}

pub(super) fn seccomp_annotations(pod: Pod<'_>) -> Finding {
    let is_fine =
        |value: &str| matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
    let names = crate::pod::containers(pod.spec).map(|container| container["name"].str_or_empty());
    let keys = names.map(|name| format!("{SECCOMP_CONTAINER_ANNOTATION_PREFIX}{name}"));
    let mut forbidden: BTreeSet<String> = BTreeSet::new();
    for key in std::iter::once(SECCOMP_POD_ANNOTATION.to_owned()).chain(keys) {
        let value = pod.metadata["annotations"][key.as_str()].as_str().filter(|value| !is_fine(value));
        forbidden.extend(value.map(|value| format!("{key}={}", go_quote(value))));
    }
    if forbidden.is_empty() {
        return None;
    }
    let noun = plural(forbidden.len(), "annotation", "annotations");
    let list: Vec<String> = forbidden.into_iter().collect();
    Some(Violation::new("seccompProfile", format!("forbidden {noun} {}", list.join(", "))))
}

pub(super) fn seccomp(pod: Pod<'_>) -> Finding {
    let mut values = Values::new();
    let culprits = Culprits::contexts(pod, |context| {
        let profile = &context["seccompProfile"];
        is_unconfined(profile) && {
            values.insert(profile["type"].str_or_empty());
            true
        }
    });
    let detail =
        || format!("{} must not set securityContext.seccompProfile.type to {}", culprits.text(), quoted(&values));
    (!culprits.is_empty()).then(|| Violation::new("seccompProfile", detail()))
}

/// In the order in which versions came to allow them.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

fn sysctls(pod: Pod<'_>, allowed: &[&str]) -> Finding {
    let names = pod.spec["securityContext"]["sysctls"].items().iter().map(|sysctl| sysctl["name"].str_or_empty());
    let forbidden: Vec<&str> = names.filter(|name| !allowed.contains(name)).collect();
    (!forbidden.is_empty()).then(|| Violation::new("forbidden sysctls", forbidden.join(", ")))
}

pub(super) fn sysctls_1_0(pod: Pod<'_>) -> Finding {
    sysctls(pod, &SYSCTLS[..5])
}

pub(super) fn sysctls_1_27(pod: Pod<'_>) -> Finding {
    sysctls(pod, &SYSCTLS[..6])
}

pub(super) fn sysctls_1_29(pod: Pod<'_>) -> Finding {
    sysctls(pod, &SYSCTLS[..10])
}

pub(super) fn sysctls_1_32(pod: Pod<'_>) -> Finding {
    sysctls(pod, &SYSCTLS)
}

pub(super) fn host_process(pod: Pod<'_>) -> Finding {
    let culprits = Culprits::contexts(pod, |context| context["windowsOptions"]["hostProcess"].is_true());
    let detail = || format!("{} must not set securityContext.windowsOptions.hostProcess=true", culprits.text());
    (!culprits.is_empty()).then(|| Violation::new("hostProcess", detail()))
}
