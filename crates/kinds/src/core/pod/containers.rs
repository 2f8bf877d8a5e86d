//! Containers of a pod spec: regular ones, init containers (sidecars among them) and ephemeral ones.
//!
//! Not here: what stands inside one container, which is `container_parts`, `handlers` and `security`.

use super::container_parts::{
    validate_devices, validate_env, validate_env_from, validate_mounts, validate_ports, validate_pull_policy,
    validate_resize_policy, validate_restart_policy,
};
use super::handlers::{validate_lifecycle, validate_probes};
use super::options::PodOptions;
use super::resources::is_sidecar;
use super::security::validate_container_security_context;
use super::volumes::Volumes;
use crate::common::checks::required;
use crate::common::resources::{Requirer, validate_requirements};
use crate::common::{At, dns1123_label};
use pintle_apimachinery::{ErrorList, FieldError, Value};
use std::collections::BTreeSet;

/// What containers must know of the pod spec around them.
pub(super) struct Surroundings<'s> {
    pub(super) options: &'s PodOptions,
    /// The volumes that are well-formed.
    pub(super) volumes: Volumes<'s>,
    /// Names in `resourceClaims`.
    pub(super) claim_names: BTreeSet<&'s str>,
    pub(super) grace_period: Option<i64>,
    pub(super) restart_policy: &'s str,
    pub(super) has_host_users: bool,
    pub(super) os: &'s str,
}

/// The regular containers.
pub(super) fn validate_containers(at: &At<'_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    if at.items().is_empty() {
        errors.push(at.required(""));
        return;
    }
    for (idx, container) in at.each().enumerate() {
        validate_common(&container, around, errors);
        if at.items()[..idx].iter().any(|before| before["name"] == container["name"]) {
            errors.push(container.child("name").duplicate());
        }
        validate_lifecycle(&container, around.grace_period, around.os, errors);
        validate_probes(&container, errors);
        validate_restart_policy(&container, around.options, errors);
    }
    validate_host_ports(at.each(), errors);
}

/// The init containers; `others` are the regular ones.
pub(super) fn validate_init_containers(at: &At<'_>, others: &Value, around: &Surroundings<'_>, errors: &mut ErrorList) {
    for (idx, container) in at.each().enumerate() {
        validate_common(&container, around, errors);
        validate_init_restart_policy(&container, around.options, errors);
        let name = container.child("name");
        let is_same = |other: &Value| other["name"] == container["name"];
        if others.items().iter().any(is_same) || (!name.text().is_empty() && at.items()[..idx].iter().any(is_same)) {
            errors.push(name.duplicate());
        }
        // init containers run one by one: only ports of the same one can be in conflict, and upstream counts from zero
        validate_host_ports(std::iter::once(At::new(container.value(), at.path().index(0))), errors);
        if is_sidecar(&container) {
            validate_lifecycle(&container, around.grace_period, around.os, errors);
            validate_probes(&container, errors);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                let field = container.child(field);
                if field.is_set() {
                    errors.push(field.forbidden("may not be set for init containers without restartPolicy=Always"));
                }
            }
        }
    }
}

fn validate_init_restart_policy(container: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    let (policy, rules) = (container.child("restartPolicy"), container.child("restartPolicyRules"));
    let has_rules = !rules.items().is_empty();
    match policy.as_str() {
        None if has_rules => {
            errors.push(policy.required("must specify restartPolicy when restart rules are used"));
        }
        None => {}
        Some("Always") if !options.allow_restart_all_containers && has_rules => {
            let rule = "restartPolicyRules are not allowed for init containers with restart policy Always";
            errors.push(rules.forbidden(rule));
        }
        Some("Always") if !options.allow_restart_all_containers => {}
        Some(_) => validate_restart_policy(container, options, errors),
    }
}

/// Fields that ephemeral containers do not have, in the order of upstream's struct.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// The ephemeral containers of the pod spec `spec`.
pub(super) fn validate_ephemeral_containers(spec: &At<'_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    let at = spec.child("ephemeralContainers");
    for (idx, container) in at.each().enumerate() {
        validate_common(&container, around, errors);
        validate_image_is_trimmed(&container, errors);
        let is_named = |list: &str, name: &Value| spec.value()[list].items().iter().any(|other| other["name"] == *name);
        let name = container.child("name");
        if is_named("containers", name.value())
            || is_named("initContainers", name.value())
            || at.items()[..idx].iter().any(|before| before["name"] == *name.value())
        {
            errors.push(name.duplicate());
        }
        let target = container.child("targetContainerName");
        if !target.text().is_empty()
            && !is_named("containers", target.value())
            && !is_named("initContainers", target.value())
        {
            errors.push(target.not_found());
        }
        for name in NOT_EPHEMERAL {
            let field = container.child(name);
            // resources are always there
            if field.is_set() && !(name == "resources" && field.is_empty()) {
                errors.push(field.forbidden("cannot be set for an Ephemeral Container"));
            }
        }
        for mount in container.child("volumeMounts").each() {
            for field in ["subPath", "subPathExpr"] {
                let field = mount.child(field);
                if !field.text().is_empty() {
                    errors.push(field.forbidden("cannot be set for an Ephemeral Container"));
                }
            }
        }
    }
}

/// What holds for every container.
fn validate_common(container: &At<'_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    let name = container.child("name");
    if required(&name, errors) {
        dns1123_label(&name, errors);
    }
    required(&container.child("image"), errors);
    let message = container.child("terminationMessagePolicy");
    match message.text() {
        "File" | "FallbackToLogsOnError" => {}
        "" => errors.push(message.required("")),
        _ => errors.push(message.not_supported(&["File", "FallbackToLogsOnError"])),
    }
    validate_ports(&container.child("ports"), errors);
    validate_env(&container.child("env"), errors);
    validate_env_from(&container.child("envFrom"), errors);
    validate_mounts(container, &around.volumes, errors);
    validate_devices(container, &around.volumes, errors);
    validate_pull_policy(&container.child("imagePullPolicy"), errors);
    validate_requirements(
        &container.child("resources"),
        Requirer::Container,
        &around.claim_names,
        around.options.allow_indivisible_huge_pages,
        errors,
    );
    validate_resize_policy(&container.child("resizePolicy"), around.restart_policy, errors);
    validate_container_security_context(&container.child("securityContext"), around.has_host_users, errors);
}

/// Images of pods, though not of templates, have no space around them.
pub(super) fn validate_image_is_trimmed(container: &At<'_>, errors: &mut ErrorList) {
    let image = container.child("image");
    if image.text().trim() != image.text() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

/// No two ports of these containers may ask for the same port of the host.
fn validate_host_ports<'c>(containers: impl Iterator<Item = At<'c>>, errors: &mut ErrorList) {
    let mut seen: Vec<(&str, &str, i64)> = Vec::new();
    for container in containers {
        for port in container.value()["ports"].items().iter().enumerate() {
            let (idx, port) = port;
            let number = port["hostPort"].as_i64().unwrap_or_default();
            if number == 0 {
                continue;
            }
            let this = (port["protocol"].str_or_empty(), port["hostIP"].str_or_empty(), number);
            if seen.contains(&this) {
                let ports = container.path().child("ports");
                let at = ports.index(idx);
                let shown = format!("{}/{}/{number}", this.0, this.1);
                errors.push(FieldError::duplicate(&at.child("hostPort"), shown));
            } else {
                seen.push(this);
            }
        }
    }
}
