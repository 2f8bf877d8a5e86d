//! The checks that the restricted level adds.

use super::baseline::{added_capabilities, added_capabilities_text, is_unconfined, seccomp as seccomp_values};
use super::checks::{Culprits, Finding, Pod, Values, Violation, has_own_users, is_windows, plural, quoted};
use pintle_apimachinery::Value;

pub(super) fn privilege_escalation(pod: Pod<'_>) -> Finding {
    let culprits = Culprits::containers(pod, |container| {
        container["securityContext"]["allowPrivilegeEscalation"].as_bool() != Some(false)
    });
    let detail = || format!("{} must set securityContext.allowPrivilegeEscalation=false", culprits.container_text());
    (!culprits.is_empty()).then(|| Violation::new("allowPrivilegeEscalation != false", detail()))
}

pub(super) fn privilege_escalation_1_25(pod: Pod<'_>) -> Finding {
    if is_windows(pod) { None } else { privilege_escalation(pod) }
}

pub(super) fn capabilities(pod: Pod<'_>) -> Finding {
    let keepers = Culprits::containers(pod, |container| {
        let dropped = container["securityContext"]["capabilities"]["drop"].items();
        !dropped.iter().any(|capability| capability.as_str() == Some("ALL"))
    });
    let (adders, forbidden) = added_capabilities(pod, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keepers.is_empty() {
        details.push(format!(r#"{} must set securityContext.capabilities.drop=["ALL"]"#, keepers.container_text()));
    }
    if !adders.is_empty() {
        details.push(added_capabilities_text(&adders, &forbidden));
    }
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

pub(super) fn capabilities_1_25(pod: Pod<'_>) -> Finding {
    if is_windows(pod) { None } else { capabilities(pod) }
}

const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// In the order in which a volume that has several is named after one.
const RESTRICTED_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn volumes(pod: Pod<'_>) -> Finding {
    let mut types = Values::new();
    let mut names = Vec::new();
    for volume in pod.spec["volumes"].items() {
        let is_source = |kind: &&&str| !volume[**kind].is_null();
        if VOLUMES.iter().any(|kind| is_source(&kind)) {
            continue;
        }
        names.push(volume["name"].str_or_empty());
        types.insert(RESTRICTED_VOLUMES.iter().find(is_source).copied().unwrap_or("unknown"));
    }
    if names.is_empty() {
        return None;
    }
    let (noun, verb) = (plural(names.len(), "volume", "volumes"), plural(names.len(), "uses", "use"));
    let kinds = plural(types.len(), "restricted volume type", "restricted volume types");
    let detail = format!("{noun} {} {verb} {kinds} {}", quoted(&names), quoted(&types));
    Some(Violation::new("restricted volume types", detail))
}

pub(super) fn run_as_non_root(pod: Pod<'_>) -> Finding {
    const REASON: &str = "runAsNonRoot != true";
    let deniers = Culprits::contexts(pod, |context| context["runAsNonRoot"].as_bool() == Some(false));
    if !deniers.is_empty() {
        let detail = format!("{} must not set securityContext.runAsNonRoot=false", deniers.text());
        return Some(Violation::new(REASON, detail));
    }
    if pod.spec["securityContext"]["runAsNonRoot"].is_true() {
        return None;
    }
    let silent = Culprits::containers(pod, |container| container["securityContext"]["runAsNonRoot"].is_null());
    let detail = || format!("pod or {} must set securityContext.runAsNonRoot=true", silent.container_text());
    (!silent.is_empty()).then(|| Violation::new(REASON, detail()))
}

pub(super) fn run_as_non_root_1_35(pod: Pod<'_>) -> Finding {
    if has_own_users(pod) { None } else { run_as_non_root(pod) }
}

pub(super) fn run_as_user(pod: Pod<'_>) -> Finding {
    let culprits = Culprits::contexts(pod, |context| context["runAsUser"].as_i64() == Some(0));
    let detail = || format!("{} must not set runAsUser=0", culprits.text());
    (!culprits.is_empty()).then(|| Violation::new("runAsUser=0", detail()))
}

pub(super) fn run_as_user_1_35(pod: Pod<'_>) -> Finding {
    if has_own_users(pod) { None } else { run_as_user(pod) }
}

pub(super) fn seccomp(pod: Pod<'_>) -> Finding {
    if let Some(violation) = seccomp_values(pod) {
        return Some(violation);
    }
    let profile = |holder: &Value| holder["securityContext"]["seccompProfile"].is_null();
    if !profile(pod.spec) && !is_unconfined(&pod.spec["securityContext"]["seccompProfile"]) {
        return None;
    }
    let silent = Culprits::containers(pod, profile);
    let detail = || {
        let containers = silent.container_text();
        format!(
            r#"pod or {containers} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost""#
        )
    };
    (!silent.is_empty()).then(|| Violation::new("seccompProfile", detail()))
}

pub(super) fn seccomp_1_25(pod: Pod<'_>) -> Finding {
    if is_windows(pod) { None } else { seccomp(pod) }
}
