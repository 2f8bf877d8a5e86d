//! The parts of a container: ports, environment, mounts and devices, restart and resize policies.

use super::options::PodOptions;
use super::security::{optional_one_of, validate_descending_path, validate_no_backsteps};
use super::volumes::Volumes;
use crate::common::checks::{one_of_required, required};
use crate::common::resources::quantity;
use crate::common::{At, dns1123_label, one_of, port_number, push_faults, qualified_name};
use pintle_apimachinery::{ErrorList, FieldError, Value, names};

/// Restart rules of one container.
const RESTART_RULES_MAX: usize = 20;
/// Exit codes of one restart rule.
const EXIT_CODES_MAX: usize = 255;

/// The ports of a container.
pub(super) fn validate_ports(at: &At<'_>, errors: &mut ErrorList) {
    for (idx, port) in at.each().enumerate() {
        let name = port.child("name");
        if !name.text().is_empty() {
            let faults = names::port_name(name.text());
            if !faults.is_empty() {
                push_faults(&name, faults, errors);
            } else if at.items()[..idx].iter().any(|before| before["name"] == *name.value()) {
                errors.push(name.duplicate());
            }
        }
        let number = port.child("containerPort");
        if number.int() == 0 {
            errors.push(number.required(""));
        } else {
            port_number(&number, errors);
        }
        let host_port = port.child("hostPort");
        if host_port.int() != 0 {
            port_number(&host_port, errors);
        }
        one_of_required(&port.child("protocol"), &["SCTP", "TCP", "UDP"], errors);
    }
}

/// Fields of a pod that an environment variable may take its value from, sorted.
const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The environment of a container.
pub(super) fn validate_env(at: &At<'_>, errors: &mut ErrorList) {
    for var in at.each() {
        let name = var.child("name");
        if required(&name, errors) {
            push_faults(&name, names::relaxed_env_var_name(name.text()), errors);
        }
        let source = var.child("valueFrom");
        if source.is_set() {
            validate_env_source(&source, !var["value"].is_empty(), errors);
        }
    }
}

fn validate_env_source(at: &At<'_>, has_value: bool, errors: &mut ErrorList) {
    let mut n_sources = 0;
    for kind in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"] {
        let source = at.child(kind);
        if !source.is_set() {
            continue;
        }
        n_sources += 1;
        match kind {
            "fieldRef" => validate_field_ref(&source, ENV_FIELDS, errors),
            "resourceFieldRef" => validate_resource_field_ref(&source, false, errors),
            "fileKeyRef" => validate_file_key_ref(&source, errors),
            _ => validate_key_ref(&source, errors),
        }
    }
    if n_sources == 0 {
        let kinds = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(at.invalid_showing("", format!("must specify one of: {kinds}")));
    } else if has_value {
        errors.push(at.invalid_showing("", "may not be specified when `value` is not empty"));
    } else if n_sources > 1 {
        errors.push(at.invalid_showing("", "may not have more than one field specified at a time"));
    }
}

/// Fields of a pod that upstream knows by name.
const POD_FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];

/// A `fieldRef`: one of `allowed`, or one label or annotation by key.
pub(super) fn validate_field_ref(at: &At<'_>, allowed: &[&str], errors: &mut ErrorList) {
    let (version, path) = (at.child("apiVersion"), at.child("fieldPath"));
    if !required(&version, errors) || !required(&path, errors) {
        return;
    }
    let subscripted = split_subscript(path.text());
    let fault = match (version.text(), subscripted) {
        ("v1", Some(("metadata.annotations" | "metadata.labels", _))) => None,
        ("v1", Some(_)) => Some(format!("field label does not support subscript: {}", path.text())),
        ("v1", None) if POD_FIELDS.contains(&path.text()) => None,
        ("v1", None) => Some(format!("field label not supported: {}", path.text())),
        (other, _) => Some(format!("unsupported pod version: {other}")),
    };
    if let Some(fault) = fault {
        errors.push(path.invalid(format!("error converting fieldPath: {fault}")));
        return;
    }
    match subscripted {
        Some((field, key)) => {
            let key = if field == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
            qualified_name(&At::new(&Value::from(key), *at.path()), errors);
        }
        None => {
            let field = if path.text() == "spec.host" { "spec.nodeName" } else { path.text() };
            if !allowed.contains(&field) {
                errors.push(FieldError::not_supported(path.path(), field, allowed));
            }
        }
    }
}

/// `metadata.labels` and `a` of `metadata.labels['a']`.
fn split_subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(field, _)| !field.is_empty())
}

/// Resources of a container that may be told inside, sorted.
const RESOURCE_FIELDS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// A `resourceFieldRef`, in a volume or in the environment.
pub(super) fn validate_resource_field_ref(at: &At<'_>, is_in_volume: bool, errors: &mut ErrorList) {
    let (container, resource) = (at.child("containerName"), at.child("resource"));
    let name = resource.text();
    let is_huge_pages = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if is_in_volume && container.text().is_empty() {
        errors.push(container.required(""));
    } else if name.is_empty() {
        errors.push(resource.required(""));
    } else if !RESOURCE_FIELDS.contains(&name) && !is_huge_pages {
        errors.push(resource.not_supported(RESOURCE_FIELDS));
    }
    let divisor = at.child("divisor");
    if quantity(divisor.value()).is_zero() {
        return;
    }
    const BYTES: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let (what, allowed): (&str, &[&str]) = match name.split_once('.').map_or("", |(_, resource)| resource) {
        _ if is_huge_pages => ("hugepages", &BYTES),
        "cpu" => ("cpu", &["1m", "1"]),
        "memory" => ("memory", &BYTES),
        "ephemeral-storage" => ("local ephemeral storage", &BYTES),
        _ => return,
    };
    if (is_huge_pages || RESOURCE_FIELDS.contains(&name)) && !allowed.contains(&divisor.text()) {
        let list = if what == "cpu" { "1m and 1".to_owned() } else { allowed.join(", ") };
        let rule = format!("only divisor's values {list} are supported with the {what} resource");
        errors.push(divisor.invalid_showing(name, rule));
    }
}

fn validate_key_ref(at: &At<'_>, errors: &mut ErrorList) {
    let (name, key) = (at.child("name"), at.child("key"));
    push_faults(&name, names::dns1123_subdomain(name.text()), errors);
    if required(&key, errors) {
        push_faults(&key, names::config_map_key(key.text()), errors);
    }
}

fn validate_file_key_ref(at: &At<'_>, errors: &mut ErrorList) {
    let (key, volume, path) = (at.child("key"), at.child("volumeName"), at.child("path"));
    if required(&key, errors) {
        push_faults(&key, names::relaxed_env_var_name(key.text()), errors);
    }
    if required(&volume, errors) {
        dns1123_label(&volume, errors);
    }
    if required(&path, errors) {
        validate_no_backsteps(&path, errors);
    }
}

/// The sources of a container's environment.
pub(super) fn validate_env_from(at: &At<'_>, errors: &mut ErrorList) {
    for source in at.each() {
        let prefix = source.child("prefix");
        if !prefix.text().is_empty() {
            push_faults(&prefix, names::relaxed_env_var_name(prefix.text()), errors);
        }
        let mut n_sources = 0;
        for kind in ["configMapRef", "secretRef"] {
            let reference = source.child(kind);
            if reference.is_set() {
                n_sources += 1;
                let name = reference.child("name");
                if required(&name, errors) {
                    let masked = names::mask_trailing_dash(name.text());
                    push_faults(&name, names::dns1123_subdomain(&masked), errors);
                }
            }
        }
        // upstream names the list, not the item
        if n_sources == 0 {
            errors.push(at.invalid_showing("", "must specify one of: `configMapRef` or `secretRef`"));
        } else if n_sources > 1 {
            errors.push(at.invalid_showing("", "may not have more than one field specified at a time"));
        }
    }
}

/// The mounts of a container.
pub(super) fn validate_mounts(container: &At<'_>, volumes: &Volumes<'_>, errors: &mut ErrorList) {
    let at = container.child("volumeMounts");
    let devices = container["volumeDevices"].items();
    for (idx, mount) in at.each().enumerate() {
        let (name, path) = (mount.child("name"), mount.child("mountPath"));
        required(&name, errors);
        if volumes.get(name.text()).is_none() {
            errors.push(name.not_found());
        }
        required(&path, errors);
        if at.items()[..idx].iter().any(|before| before["mountPath"] == *path.value()) {
            errors.push(path.invalid("must be unique"));
        }
        if devices.iter().any(|device| device["name"] == *name.value()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if last_of_each(devices, "devicePath").any(|device| device == path.value()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        validate_mount_options(&mount, &at, container, errors);
    }
}

/// The values of `field`, of several items of one name only the last one's.
fn last_of_each<'v>(items: &'v [Value], field: &'static str) -> impl Iterator<Item = &'v Value> {
    items.iter().enumerate().filter_map(move |(idx, item)| {
        let is_last = !items[idx + 1..].iter().any(|later| later["name"] == item["name"]);
        is_last.then(|| item.get(field))
    })
}

/// Upstream names fields of the list here, not of the item.
fn validate_mount_options(mount: &At<'_>, list: &At<'_>, container: &At<'_>, errors: &mut ErrorList) {
    let in_list = |name: &'static str| At::new(mount.value().get(name), list.path().child(name));
    let (sub_path, expression) = (in_list("subPath"), in_list("subPathExpr"));
    if !sub_path.text().is_empty() {
        validate_descending_path(&sub_path, errors);
    }
    if !expression.text().is_empty() {
        if !sub_path.text().is_empty() {
            let expression = mount.child("subPathExpr");
            errors.push(expression.invalid("subPathExpr and subPath are mutually exclusive"));
        }
        validate_descending_path(&expression, errors);
    }
    let propagation = in_list("mountPropagation");
    optional_one_of(&propagation, &["Bidirectional", "HostToContainer", "None"], errors);
    if propagation.text() == "Bidirectional" && !container["securityContext"]["privileged"].is_true() {
        errors
            .push(propagation.forbidden("Bidirectional mount propagation is available only to privileged containers"));
    }
    let recursive = in_list("recursiveReadOnly");
    match recursive.as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount["readOnly"].is_true() {
                errors.push(recursive.forbidden("may only be specified when readOnly is true"));
            }
            if !matches!(propagation.as_str(), None | Some("None")) {
                let rule = "may only be specified when mountPropagation is None or not specified";
                errors.push(recursive.forbidden(rule));
            }
        }
        Some(_) => errors.push(recursive.not_supported(&["Disabled", "Enabled", "IfPossible"])),
    }
}

/// The block devices of a container.
pub(super) fn validate_devices(container: &At<'_>, volumes: &Volumes<'_>, errors: &mut ErrorList) {
    let at = container.child("volumeDevices");
    let mounts = container["volumeMounts"].items();
    for (idx, device) in at.each().enumerate() {
        let (name, path) = (device.child("name"), device.child("devicePath"));
        let before = &at.items()[..idx];
        required(&name, errors);
        if !name.text().is_empty() && before.iter().any(|other| other["name"] == *name.value()) {
            errors.push(name.invalid("must be unique"));
        }
        match volumes.get(name.text()) {
            Some(volume) if volume.has("persistentVolumeClaim") || volume.has("ephemeral") => {}
            Some(_) => errors.push(
                name.invalid("can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"),
            ),
            None => errors.push(name.not_found()),
        }
        required(&path, errors);
        let has_backsteps = |path: &str| path.split('/').any(|part| part == "..");
        let is_seen = |other: &Value| other["devicePath"] == *path.value() && !has_backsteps(path.text());
        if before.iter().any(is_seen) {
            errors.push(path.invalid("must be unique"));
        }
        if has_backsteps(path.text()) {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        }
        if mounts.iter().any(|mount| mount["name"] == *name.value()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if last_of_each(mounts, "mountPath").any(|mount| mount == path.value()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
    }
}

/// When an image is pulled.
pub(super) fn validate_pull_policy(at: &At<'_>, errors: &mut ErrorList) {
    one_of_required(at, &["Always", "IfNotPresent", "Never"], errors);
}

/// What a change of resources does to a running container. Upstream names the list, not the item.
pub(super) fn validate_resize_policy(at: &At<'_>, pod_restart_policy: &str, errors: &mut ErrorList) {
    for (idx, policy) in at.each().enumerate() {
        let in_list = |name: &str| At::new(policy.value().get(name), *at.path());
        let (resource, restart) = (in_list("resourceName"), in_list("restartPolicy"));
        if at.items()[..idx].iter().any(|before| before["resourceName"] == *resource.value()) {
            errors.push(FieldError::duplicate(policy.path(), resource.text()));
        }
        one_of_required(&resource, &["cpu", "memory"], errors);
        one_of_required(&restart, &["NotRequired", "RestartContainer"], errors);
        if pod_restart_policy == "Never" && restart.text() != "NotRequired" {
            errors.push(restart.invalid("must be 'NotRequired' when `restartPolicy` is 'Never'"));
        }
    }
}

/// The restart policy and restart rules of a container.
pub(super) fn validate_restart_policy(container: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    let (policy, rules) = (container.child("restartPolicy"), container.child("restartPolicyRules"));
    if policy.is_set() {
        one_of(&policy, &["Always", "Never", "OnFailure"], errors);
    } else if !rules.items().is_empty() {
        errors.push(policy.required("must specify restartPolicy when restart rules are used"));
    }
    if rules.items().len() > RESTART_RULES_MAX {
        errors.push(rules.too_long(RESTART_RULES_MAX));
    }
    for rule in rules.each() {
        let action = rule.child("action");
        let is_known = action.text() == "Restart"
            || (options.allow_restart_all_containers && action.text() == "RestartAllContainers");
        if !is_known {
            errors.push(action.not_supported(&["Restart"]));
        }
        let codes = rule.child("exitCodes");
        if codes.is_set() {
            one_of(&codes.child("operator"), &["In", "NotIn"], errors);
            let values = codes.child("values");
            if values.items().len() > EXIT_CODES_MAX {
                errors.push(values.too_long(EXIT_CODES_MAX));
            }
        } else {
            errors.push(codes.required("must be specified"));
        }
    }
}
