//! Validation of updates through `status`.
//!
//! Follows: pkg/apis/core/validation/validation.go, ValidatePodStatusUpdate (v1.35).

use super::options::PodOptions;
use super::security::validate_id;
use super::update::validate_annotation_update;
use crate::common::checks::changed;
use crate::common::goform::compact;
use crate::common::ip::{ip_legacy, parse_ip, warn_of_ip};
use crate::common::{At, push_faults, qualified_name};
use pintle_apimachinery::{ErrorList, FieldError, Value, names};

const NONNEGATIVE: &str = "must be a non-negative integer";

/// An update through `status`. The metadata is validated already.
pub(super) fn validate_status_update(pod: &Value, old: &Value, errors: &mut ErrorList) {
    validate_annotation_update(pod, old, &PodOptions::of_pod(old), errors);
    let (status, old_status) = (At::top(pod, "status"), &old["status"]);
    validate_conditions(&status.child("conditions"), errors);
    validate_nominated_node(&status, old, errors);
    let generation = status.child("observedGeneration");
    if generation.int() < 0 {
        errors.push(generation.invalid_int(NONNEGATIVE));
    }
    let class = status.child("qosClass");
    if *class.value() != old_status["qosClass"] {
        errors.push(changed(&class, "string"));
    }
    let spec = &old["spec"];
    validate_transitions(&status.child("containerStatuses"), old_status, Some(&spec["containers"]), spec, errors);
    validate_transitions(
        &status.child("initContainerStatuses"),
        old_status,
        Some(&spec["initContainers"]),
        spec,
        errors,
    );
    validate_transitions(&status.child("ephemeralContainerStatuses"), old_status, None, spec, errors);
    validate_claim_statuses(&status.child("resourceClaimStatuses"), &pod["spec"]["resourceClaims"], errors);
    validate_ips(&status.child("podIPs"), &old_status["podIPs"], "core/v1.PodIP", errors);
    validate_host_ips(&status, old_status, errors);
    for list in super::drop::STATUS_LISTS {
        validate_users(&status.child(list), pod["spec"]["os"]["name"].str_or_empty(), errors);
    }
}

fn validate_conditions(at: &At<'_>, errors: &mut ErrorList) {
    for condition in at.each() {
        let generation = condition.child("observedGeneration");
        if generation.int() < 0 {
            errors.push(generation.invalid_int(NONNEGATIVE));
        }
        let kind = condition.child_called("type", "Type");
        if !matches!(kind.text(), "PodScheduled" | "Ready" | "Initialized") {
            qualified_name(&kind, errors);
        }
    }
}

fn validate_nominated_node(status: &At<'_>, old: &Value, errors: &mut ErrorList) {
    let node = status.child("nominatedNodeName");
    if node.text().is_empty() || *node.value() == old["status"]["nominatedNodeName"] {
        return;
    }
    push_faults(&node, names::dns1123_subdomain(node.text()), errors);
    if !old["spec"]["nodeName"].str_or_empty().is_empty() {
        errors.push(node.forbidden("may not be set on pods that are already bound to a node"));
    }
}

/// What has ended may start again only where the pod's restart rules say so. `containers` are those of the spec that
/// the statuses belong to; `None` for ephemeral ones, which never start again.
fn validate_transitions(
    at: &At<'_>,
    old_status: &Value,
    containers: Option<&Value>,
    spec: &Value,
    errors: &mut ErrorList,
) {
    let list = at.path().to_string();
    let list = list.strip_prefix("status.").unwrap_or_default();
    for (idx, before) in old_status[list].items().iter().enumerate() {
        let ended = &before["state"]["terminated"];
        if ended.is_null() {
            continue;
        }
        let starts = |now: &&Value| now["name"] == before["name"] && now["state"]["terminated"].is_null();
        let n_started = at.items().iter().filter(starts).count();
        if n_started == 0 {
            continue;
        }
        let told = || at.index(idx).child("state").forbidden("may not be transitioned to non-terminated state");
        match containers {
            Some(containers) => {
                let container = containers.items().iter().find(|container| container["name"] == before["name"]);
                let exit_code = ended["exitCode"].as_i64().unwrap_or_default();
                if !container.is_some_and(|container| should_restart(container, spec, exit_code)) {
                    errors.push(told());
                }
            }
            None => errors.extend((0..n_started).map(|_| told())),
        }
    }
}

/// Whether a container that ended with this code starts again.
fn should_restart(container: &Value, spec: &Value, exit_code: i64) -> bool {
    let policy = match container["restartPolicy"].as_str() {
        None => spec["restartPolicy"].str_or_empty(),
        Some(policy) => {
            let has_rule = container["restartPolicyRules"].items().iter().any(|rule| {
                let (codes, action) = (&rule["exitCodes"], rule["action"].str_or_empty());
                let is_listed = codes["values"].items().iter().any(|code| code.as_i64() == Some(exit_code));
                let is_match = match codes["operator"].str_or_empty() {
                    "In" => is_listed,
                    "NotIn" => !is_listed,
                    _ => false,
                };
                is_match && action == "Restart"
            });
            if has_rule {
                return true;
            }
            policy
        }
    };
    match policy {
        "Always" => true,
        "OnFailure" => exit_code != 0,
        _ => false,
    }
}

fn validate_claim_statuses(at: &At<'_>, claims: &Value, errors: &mut ErrorList) {
    for (idx, status) in at.each().enumerate() {
        let name = status.child("name");
        if !claims.items().iter().any(|claim| claim["name"] == *name.value()) {
            errors.push(name.invalid("must match the name of an entry in `spec.resourceClaims`"));
        }
        if at.items()[..idx].iter().any(|before| before["name"] == *name.value()) {
            errors.push(name.duplicate());
        }
        // upstream calls the claim's name `name`
        let claim = At::new(&status.value()["resourceClaimName"], *name.path());
        if claim.is_set() {
            push_faults(&claim, names::dns1123_subdomain(claim.text()), errors);
        }
    }
}

/// `podIPs` and `hostIPs`: addresses, at most one of each family.
fn validate_ips(at: &At<'_>, old: &Value, type_name: &str, errors: &mut ErrorList) {
    for ip in at.each() {
        let kept = old.items().iter().map(|old| old["ip"].str_or_empty());
        ip_legacy(&At::new(&ip.value()["ip"], *ip.path()), kept, errors);
    }
    if at.items().len() < 2 {
        return;
    }
    let families: Vec<Option<bool>> =
        at.items().iter().map(|ip| parse_ip(ip["ip"].str_or_empty()).map(|ip| ip.is_ipv6())).collect();
    if let Some(bad) = families.iter().position(Option::is_none) {
        let shown = at.items()[bad]["ip"].str_or_empty();
        let why = format!("failed to check for dual stack with error:invalid IP[{bad}]: {shown}");
        errors.push(FieldError::internal(at.path(), why));
    }
    let is_dual = families.contains(&Some(true)) && families.contains(&Some(false)) && !families.contains(&None);
    if !is_dual || families.len() > 2 {
        let shown = compact(at.value(), &format!("[]{type_name}"));
        let rule = "may specify no more than one IP for each IP family";
        errors.push(FieldError { shown: Some(shown), ..at.invalid(rule) });
    }
}

fn validate_host_ips(status: &At<'_>, old: &Value, errors: &mut ErrorList) {
    let ips = status.child("hostIPs");
    let first = ips.index(0);
    let first = first.child("ip");
    if ips.items().is_empty() {
        return;
    }
    if status["hostIP"].str_or_empty() != first.text() {
        errors.push(first.invalid("must be equal to `hostIP`"));
    }
    validate_ips(&ips, &old["hostIPs"], "core/v1.HostIP", errors);
}

fn validate_users(at: &At<'_>, os: &str, errors: &mut ErrorList) {
    for status in at.each() {
        let user = status.child("user");
        let linux = user.child("linux");
        if !linux.is_set() {
            continue;
        }
        match os {
            "windows" => errors.push(linux.forbidden("cannot be set for a windows pod")),
            "" | "linux" => {
                validate_id(&linux.child("uid"), errors);
                validate_id(&linux.child("gid"), errors);
                linux.child("supplementalGroups").each().for_each(|group| validate_id(&group, errors));
            }
            _ => {}
        }
    }
}

/// Addresses that newer versions will not take.
pub(super) fn warnings(pod: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let status = At::top(pod, "status");
    for list in ["podIPs", "hostIPs"] {
        for ip in status.child(list).each() {
            let ip = ip.child("ip");
            warn_of_ip(ip.text(), ip.path(), &mut warnings);
        }
    }
    warnings
}
