//! The checks of the levels: which there are, since which version, and what they make of a pod together.
//!
//! Follows: pod-security-admission/policy (v0.35).

use super::policy::{Level, Standard, Version};
use super::{baseline, restricted};
use crate::pod::containers;
use pintle_apimachinery::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Why a check refuses a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    reason: Cow<'static, str>,
    detail: String,
}

/// What a check says: nothing when the pod passes.
pub(super) type Finding = Option<Violation>;

/// What checks look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pod<'a> {
    pub metadata: &'a Value,
    pub spec: &'a Value,
}

type Test = fn(Pod<'_>) -> Finding;

/// A check: its id, and its revisions by the first minor version that they are for.
struct Check {
    id: &'static str,
    revisions: &'static [(u32, Test)],
    /// The check of the baseline level that this one of the restricted level makes superfluous.
    overrides: Option<&'static str>,
}

const fn check(id: &'static str, revisions: &'static [(u32, Test)]) -> Check {
    Check { id, revisions, overrides: None }
}

const fn stricter(id: &'static str, overrides: &'static str, revisions: &'static [(u32, Test)]) -> Check {
    Check { id, revisions, overrides: Some(overrides) }
}

/// In the order of messages.
const BASELINE: [Check; 12] = [
    check("appArmorProfile", &[(0, baseline::app_armor)]),
    check("capabilities_baseline", &[(0, baseline::capabilities)]),
    check("hostNamespaces", &[(0, baseline::host_namespaces)]),
    check("hostPathVolumes", &[(0, baseline::host_path_volumes)]),
    check("hostPorts", &[(0, baseline::host_ports)]),
    check("hostProbesAndHostLifecycle", &[(34, baseline::probe_hosts)]),
    check("privileged", &[(0, baseline::privileged)]),
    check("procMount", &[(0, baseline::proc_mount), (35, baseline::proc_mount_outside_user_namespaces)]),
    check("seLinuxOptions", &[(0, baseline::se_linux_1_0), (31, baseline::se_linux_1_31)]),
    check("seccompProfile_baseline", &[(0, baseline::seccomp_annotations), (19, baseline::seccomp)]),
    check(
        "sysctls",
        &[
            (0, baseline::sysctls_1_0),
            (27, baseline::sysctls_1_27),
            (29, baseline::sysctls_1_29),
            (32, baseline::sysctls_1_32),
        ],
    ),
    check("windowsHostProcess", &[(0, baseline::host_process)]),
];

/// In the order of messages, after those of the baseline level.
const RESTRICTED: [Check; 7] = [
    check(
        "allowPrivilegeEscalation",
        &[(8, restricted::privilege_escalation), (25, restricted::privilege_escalation_1_25)],
    ),
    stricter(
        "capabilities_restricted",
        "capabilities_baseline",
        &[(22, restricted::capabilities), (25, restricted::capabilities_1_25)],
    ),
    stricter("procMount_restricted", "procMount", &[(35, baseline::proc_mount)]),
    stricter("restrictedVolumes", "hostPathVolumes", &[(0, restricted::volumes)]),
    check("runAsNonRoot", &[(0, restricted::run_as_non_root), (35, restricted::run_as_non_root_1_35)]),
    check("runAsUser", &[(23, restricted::run_as_user), (35, restricted::run_as_user_1_35)]),
    stricter(
        "seccompProfile_restricted",
        "seccompProfile_baseline",
        &[(19, restricted::seccomp), (25, restricted::seccomp_1_25)],
    ),
];

impl Check {
    fn at(&self, minor: u32) -> Option<Test> {
        self.revisions.iter().rev().find(|(since, _)| *since <= minor).map(|(_, test)| *test)
    }
}

/// What a standard refuses a pod for.
pub(super) fn evaluate(standard: Standard, pod: Pod<'_>) -> Vec<Violation> {
    let minor = match standard.version {
        Version::Latest => u32::MAX,
        Version::Minor(minor) => minor,
    };
    let stricter: &[Check] = match standard.level {
        Level::Privileged => return Vec::new(),
        Level::Baseline => &[],
        Level::Restricted => &RESTRICTED,
    };
    let is_overridden = |id: &str| stricter.iter().any(|c| c.overrides == Some(id) && c.at(minor).is_some());
    let checks = BASELINE.iter().filter(|check| !is_overridden(check.id)).chain(stricter);
    checks.filter_map(|check| check.at(minor)).filter_map(|test| test(pod)).collect()
}

/// The violations in one text, by reason and detail.
pub(super) fn details(violations: &[Violation]) -> String {
    let texts: Vec<String> = violations.iter().map(|v| format!("{} ({})", v.reason, v.detail)).collect();
    texts.join(", ")
}

/// The violations in one text, by reason.
pub(super) fn reasons(violations: &[Violation]) -> String {
    let texts: Vec<&str> = violations.iter().map(|v| &*v.reason).collect();
    texts.join(", ")
}

impl Violation {
    pub(super) fn new(reason: impl Into<Cow<'static, str>>, detail: String) -> Violation {
        Violation { reason: reason.into(), detail }
    }
}

/// `singular` for one, `plural` otherwise.
pub(super) fn plural<'a>(count: usize, singular: &'a str, plural: &'a str) -> &'a str {
    if count == 1 { singular } else { plural }
}

/// `"a", "b"`.
pub(super) fn quoted<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| format!("\"{}\"", item.as_ref())).collect();
    texts.join(", ")
}

/// The containers of a pod that a test finds fault with.
#[derive(Debug, Default)]
pub(super) struct Culprits<'a> {
    pub is_pod: bool,
    pub names: Vec<&'a str>,
}

impl<'a> Culprits<'a> {
    /// The containers for which `is_bad`.
    pub(super) fn containers(pod: Pod<'a>, mut is_bad: impl FnMut(&'a Value) -> bool) -> Culprits<'a> {
        let bad = containers(pod.spec).filter(|container| is_bad(container));
        Culprits { is_pod: false, names: bad.map(|container| container["name"].str_or_empty()).collect() }
    }

    /// The pod and the containers with a security context for which `is_bad`.
    pub(super) fn contexts(pod: Pod<'a>, mut is_bad: impl FnMut(&'a Value) -> bool) -> Culprits<'a> {
        let is_pod = is_bad(&pod.spec["securityContext"]);
        Culprits { is_pod, ..Culprits::containers(pod, |container| is_bad(&container["securityContext"])) }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_pod && self.names.is_empty()
    }

    /// `containers "a", "b"`.
    pub(super) fn container_text(&self) -> String {
        format!("{} {}", plural(self.names.len(), "container", "containers"), quoted(&self.names))
    }

    /// `pod`, `container "a"`: those there are.
    pub(super) fn texts(&self) -> Vec<String> {
        let pod = self.is_pod.then(|| "pod".to_owned());
        pod.into_iter().chain((!self.names.is_empty()).then(|| self.container_text())).collect()
    }

    /// `pod and containers "a", "b"`.
    pub(super) fn text(&self) -> String {
        self.texts().join(" and ")
    }
}

/// Distinct values in the order of their bytes.
pub(super) type Values<'a> = BTreeSet<&'a str>;

/// Whether the pod says that it runs on Windows.
pub(super) fn is_windows(pod: Pod<'_>) -> bool {
    pod.spec["os"]["name"].as_str() == Some("windows")
}

/// Whether the pod has users of its own, which are nobody outside it.
pub(super) fn has_own_users(pod: Pod<'_>) -> bool {
    pod.spec["hostUsers"].as_bool() == Some(false)
}
