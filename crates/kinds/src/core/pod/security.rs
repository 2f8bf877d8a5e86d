//! Security contexts of pods and containers: users and groups, sysctls, seccomp and AppArmor profiles, and the
//! annotations that said the same before there were fields.
//!
//! Follows: pkg/apis/core/validation/validation.go (v1.35), with `--allow-privileged` on.

use super::options::PodOptions;
use super::prepare::{APP_ARMOR_PREFIX, is_windows};
use super::windows::validate_windows_options;
use super::{annotation_key, for_each_container, has_container};
use crate::common::checks::{one_of, required};
use crate::common::goform::compact;
use crate::common::{At, dns1123_subdomain};
use pintle_apimachinery::names::range_fault;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// Largest user or group id.
const ID_MAX: i64 = 2_147_483_647;
/// Longest sysctl name.
const SYSCTL_BYTES_MAX: usize = 253;
/// Longest name of a local AppArmor profile.
const APP_ARMOR_PROFILE_BYTES_MAX: usize = 4095;

/// The annotation of a pod's seccomp profile.
pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The annotation of a container's seccomp profile, up to the container's name.
pub(super) const SECCOMP_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";

const PROFILE_TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];

/// A user or group id, if it is set.
pub(super) fn validate_id(at: &At<'_>, errors: &mut ErrorList) {
    if at.is_set() && !(0..=ID_MAX).contains(&at.int()) {
        errors.push(at.invalid_int(range_fault(0, ID_MAX)));
    }
}

/// The security context of a pod; `spec` is the pod spec around it.
pub(super) fn validate_pod_security_context(spec: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    let at = spec.child("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        validate_id(&at.child(field), errors);
    }
    at.child("supplementalGroups").each().for_each(|group| validate_id(&group, errors));
    if spec["shareProcessNamespace"].is_true() && spec["hostPID"].is_true() {
        let shared = at.child("shareProcessNamespace");
        errors.push(shared.invalid_showing(true, "ShareProcessNamespace and HostPID cannot both be enabled"));
    }
    validate_sysctls(spec, &at.child("sysctls"), options, errors);
    optional_one_of(&at.child("fsGroupChangePolicy"), &["Always", "OnRootMismatch"], errors);
    validate_seccomp_profile(&at.child("seccompProfile"), errors);
    validate_windows_options(&at.child("windowsOptions"), errors);
    validate_app_armor_profile(&at.child("appArmorProfile"), errors);
    optional_one_of(&at.child("supplementalGroupsPolicy"), &["Merge", "Strict"], errors);
    let policies: &[&str] =
        if options.allow_any_selinux_change_policy { &["MountOption", "Recursive"] } else { &["Recursive"] };
    optional_one_of(&at.child("seLinuxChangePolicy"), policies, errors);
}

/// [`one_of`] for a field that may be absent.
pub(super) fn optional_one_of(at: &At<'_>, supported: &[&str], errors: &mut ErrorList) {
    if at.is_set() {
        one_of(at, supported, errors);
    }
}

fn validate_sysctls(spec: &At<'_>, at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    for (idx, sysctl) in at.each().enumerate() {
        let name = sysctl.child("name");
        if required(&name, errors) {
            if !is_sysctl_name(name.text()) {
                errors.push(name.invalid(format!(
                    r"must have at most {SYSCTL_BYTES_MAX} characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
                )));
            } else if at.items()[..idx].iter().any(|before| before["name"] == sysctl["name"]) {
                errors.push(name.duplicate());
            }
        }
        if !options.allow_namespaced_sysctls {
            errors.extend(host_sysctl_fault(spec, name.text()).map(|rule| name.invalid(rule)));
        }
    }
}

fn is_sysctl_name(name: &str) -> bool {
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        let is_alnum = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        bytes.first().is_some_and(is_alnum)
            && bytes.last().is_some_and(is_alnum)
            && bytes.iter().all(|b| is_alnum(b) || matches!(b, b'-' | b'_'))
    };
    name.len() <= SYSCTL_BYTES_MAX && name.split(['.', '/']).all(is_segment)
}

/// Why a sysctl of a kernel namespace that the pod shares with its host may not be set.
pub(super) fn host_sysctl_fault(spec: &Value, sysctl: &str) -> Option<&'static str> {
    if spec["hostNetwork"].is_true() && is_net_sysctl(sysctl) {
        return Some("may not be specified when 'hostNetwork' is true");
    }
    (spec["hostIPC"].is_true() && is_ipc_sysctl(sysctl)).then_some("may not be specified when 'hostIPC' is true")
}

/// The name with dots between its parts: `net/ipv4/conf` is `net.ipv4.conf`.
fn normal_sysctl(name: &str) -> String {
    let is_slashed = name.find(['.', '/']).is_some_and(|at| name.as_bytes()[at] == b'/');
    let swap = |c: char| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let name: String = if is_slashed { name.chars().map(swap).collect() } else { name.to_owned() };
    name.split('*').next().unwrap_or_default().to_owned()
}

fn is_net_sysctl(name: &str) -> bool {
    normal_sysctl(name).starts_with("net.")
}

fn is_ipc_sysctl(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ];
    let name = normal_sysctl(name);
    NAMES.contains(&name.as_str()) || name.starts_with("fs.mqueue.")
}

/// The security context of a container, if it has one.
pub(super) fn validate_container_security_context(at: &At<'_>, has_host_users: bool, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    validate_id(&at.child("runAsUser"), errors);
    validate_id(&at.child("runAsGroup"), errors);
    let proc_mount = at.child("procMount");
    optional_one_of(&proc_mount, &["Default", "Unmasked"], errors);
    if has_host_users && proc_mount.text() == "Unmasked" {
        errors.push(proc_mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    validate_seccomp_profile(&at.child("seccompProfile"), errors);
    validate_privilege_escalation(at, errors);
    validate_windows_options(&at.child("windowsOptions"), errors);
    validate_app_armor_profile(&at.child("appArmorProfile"), errors);
}

fn validate_privilege_escalation(at: &At<'_>, errors: &mut ErrorList) {
    if at["allowPrivilegeEscalation"].as_bool() != Some(false) {
        return;
    }
    let mut told = |rule: &str| {
        let shown = compact(at.value(), "core/v1.SecurityContext");
        errors.push(FieldError { shown: Some(shown), ..at.invalid(rule) });
    };
    if at["privileged"].is_true() {
        told("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    for capability in at["capabilities"]["add"].items() {
        if capability.as_str() == Some("CAP_SYS_ADMIN") {
            told("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
        }
    }
}

fn validate_seccomp_profile(at: &At<'_>, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    let (kind, local) = (at.child("type"), at.child("localhostProfile"));
    if kind.text().is_empty() {
        errors.push(kind.required("type is required when seccompProfile is set"));
    } else {
        one_of(&kind, PROFILE_TYPES, errors);
    }
    if kind.text() != "Localhost" {
        if local.is_set() {
            let shown = compact(at.value(), "core/v1.SeccompProfile");
            errors.push(FieldError {
                shown: Some(shown),
                ..local.invalid("can only be set when seccomp type is Localhost")
            });
        }
    } else if local.is_set() {
        validate_descending_path(&local, errors);
    } else {
        errors.push(local.required("must be set when seccomp type is Localhost"));
    }
}

/// A path below some folder: not absolute, no `..` inside.
pub(super) fn validate_descending_path(at: &At<'_>, errors: &mut ErrorList) {
    if at.text().starts_with('/') {
        errors.push(at.invalid("must be a relative path"));
    }
    validate_no_backsteps(at, errors);
}

/// A path without `..` inside.
pub fn validate_no_backsteps(at: &At<'_>, errors: &mut ErrorList) {
    if at.text().split('/').any(|part| part == "..") {
        errors.push(at.invalid("must not contain '..'"));
    }
}

/// [`validate_descending_path`] that does not even start with two dots.
pub(super) fn validate_local_path(at: &At<'_>, errors: &mut ErrorList) {
    validate_descending_path(at, errors);
    if at.text().starts_with("..") && !at.text().starts_with("../") {
        errors.push(at.invalid("must not start with '..'"));
    }
}

fn validate_app_armor_profile(at: &At<'_>, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    let (kind, local) = (at.child("type"), at.child("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            let name = local.text();
            if local.is_set() && name.trim() != name {
                errors.push(local.invalid("must not be padded with whitespace"));
            } else if name.is_empty() {
                errors.push(local.required("must be set when AppArmor type is Localhost"));
            }
            if name.len() > APP_ARMOR_PROFILE_BYTES_MAX {
                errors.push(local.too_long(APP_ARMOR_PROFILE_BYTES_MAX));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if local.is_set() {
                errors.push(local.invalid("can only be set when AppArmor type is Localhost"));
            }
        }
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        _ => errors.push(kind.not_supported(PROFILE_TYPES)),
    }
}

/// Whether an AppArmor profile is malformed.
pub(super) fn is_app_armor_invalid(profile: &Value) -> bool {
    let mut errors = ErrorList::new();
    validate_app_armor_profile(&At::new(profile, Path::ROOT), &mut errors);
    !errors.is_empty()
}

/// The annotations of a pod or template that hold profiles. `annotations` is where they stand, `spec` the pod spec.
pub(super) fn validate_profile_annotations(annotations: &At<'_>, spec: &Value, errors: &mut ErrorList) {
    let pod = annotations.child_called(SECCOMP_POD, SECCOMP_POD);
    if pod.is_set() {
        validate_seccomp_annotation(&pod, errors);
    }
    for (key, profile) in annotations.entries().filter(|(key, _)| key.starts_with(SECCOMP_PREFIX)) {
        validate_seccomp_annotation(&At::new(profile, annotations.path().child(key)), errors);
    }
    for (key, profile) in annotations.each_entry() {
        let Some(container) = key.strip_prefix(APP_ARMOR_PREFIX) else { continue };
        if !has_container(spec, container) {
            errors.push(profile.invalid_showing(container, "container not found"));
        }
        let is_known = matches!(profile.text(), "" | "runtime/default" | "unconfined");
        if !is_known && !profile.text().starts_with("localhost/") {
            let shown = pintle_apimachinery::field::go_quote(profile.text());
            errors.push(profile.invalid(format!("invalid AppArmor profile name: {shown}")));
        }
    }
}

fn validate_seccomp_annotation(at: &At<'_>, errors: &mut ErrorList) {
    match at.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        profile => match profile.strip_prefix("localhost/") {
            Some(path) => {
                let path = Value::from(path);
                validate_descending_path(&At::new(&path, *at.path()), errors);
            }
            None => errors.push(at.invalid("must be a valid seccomp profile")),
        },
    }
}

/// Annotations and fields that say the same must say the same. `spec` is where the pod spec stands.
pub(super) fn validate_annotations_match_fields(annotations: &Value, spec: &At<'_>, errors: &mut ErrorList) {
    if annotations.entries().len() == 0 {
        return;
    }
    let context = spec.child("securityContext");
    let pod_seccomp = context.child("seccompProfile");
    if let (true, Some(annotation)) = (pod_seccomp.is_set(), annotations[SECCOMP_POD].as_str()) {
        validate_match(&pod_seccomp, annotation, "seccomp", &["runtime/default", "docker/default"], errors);
    }
    for_each_container(spec, |container| {
        let context = container.child("securityContext");
        let seccomp = context.child("seccompProfile");
        let key = annotation_key(SECCOMP_PREFIX, container);
        if let (true, Some(annotation)) = (seccomp.is_set(), annotations[key.as_str()].as_str()) {
            validate_match(&seccomp, annotation, "seccomp", &["runtime/default", "docker/default"], errors);
        }
    });
    if is_windows(spec) {
        return;
    }
    for_each_container(spec, |container| {
        let own = container.child("securityContext");
        let own = own.child("appArmorProfile");
        let effective = if own.is_set() { own.value() } else { &context.value()["appArmorProfile"] };
        let key = annotation_key(APP_ARMOR_PREFIX, container);
        if let (false, Some(annotation)) = (effective.is_null(), annotations[key.as_str()].as_str()) {
            validate_match(&At::new(effective, *own.path()), annotation, "apparmor", &["runtime/default"], errors);
        }
    });
}

fn validate_match(profile: &At<'_>, annotation: &str, what: &str, defaults: &[&str], errors: &mut ErrorList) {
    let kind = profile.child("type");
    let is_same_type = match kind.text() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => defaults.contains(&annotation),
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(path) => {
                let local = profile.child("localhostProfile");
                if local.as_str() != Some(path) {
                    errors.push(local.forbidden(format!("{what} profile in annotation and field must match")));
                }
                true
            }
            None => false,
        },
        _ => true,
    };
    if !is_same_type {
        errors.push(kind.forbidden(format!("{what} type in annotation and field must match")));
    }
}

/// A runtime class, service account or other object by name.
pub(super) fn validate_optional_name(at: &At<'_>, errors: &mut ErrorList) {
    if !at.text().is_empty() {
        dns1123_subdomain(at, errors);
    }
}
