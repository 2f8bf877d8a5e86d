//! What is particular to Windows: options of its security contexts, host process pods, and which fields a pod of each
//! operating system may not have.

use super::for_each_container;
use crate::common::At;
use crate::common::checks::required;
use pintle_apimachinery::{ErrorList, FieldError, names};

/// Largest GMSA credential spec.
const GMSA_SPEC_BYTES_MAX: usize = 64 * 1024;
/// Domains must be shorter than this.
const DOMAIN_BYTES_MAX: usize = 256;
/// Longest user name.
const USER_BYTES_MAX: usize = 104;

/// `windowsOptions` of a security context, if they are there.
pub(super) fn validate_windows_options(at: &At<'_>, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    let name = at.child("gmsaCredentialSpecName");
    if name.is_set() {
        errors.extend(names::dns1123_subdomain(name.text()).into_iter().map(|fault| name.invalid(fault)));
    }
    let spec = at.child("gmsaCredentialSpec");
    if spec.is_set() && spec.text().is_empty() {
        errors.push(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
    } else if spec.text().len() > GMSA_SPEC_BYTES_MAX {
        errors.push(spec.invalid("gmsaCredentialSpec size must be under 64 KiB"));
    }
    let user = at.child("runAsUserName");
    if user.is_set() {
        validate_user_name(&user, errors);
    }
}

fn validate_user_name(at: &At<'_>, errors: &mut ErrorList) {
    let name = at.text();
    if name.is_empty() {
        errors.push(at.invalid("runAsUserName cannot be an empty string"));
        return;
    }
    if name.bytes().any(|b| b.is_ascii_control()) {
        errors.push(at.invalid("runAsUserName cannot contain control characters"));
        return;
    }
    let (domain, user) = match name.split('\\').collect::<Vec<_>>()[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => {
            errors.push(at.invalid("runAsUserName cannot contain more than one backslash"));
            return;
        }
    };
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_BYTES_MAX) {
        errors.push(at.invalid("runAsUserName's Domain length must be under 256 characters"));
    }
    if domain.is_some_and(|domain| !is_net_bios_name(domain) && !is_dns_name(domain)) {
        errors.push(at.invalid("runAsUserName's Domain doesn't match the NetBios nor the DNS format"));
    }
    if user.is_empty() {
        errors.push(at.invalid("runAsUserName's User cannot be empty"));
    } else if user.len() > USER_BYTES_MAX {
        errors.push(at.invalid("runAsUserName's User length must not be longer than 104 characters"));
    }
    if !user.is_empty() && user.bytes().all(|b| matches!(b, b'.' | b' ')) {
        errors.push(at.invalid("runAsUserName's User cannot contain only periods or spaces"));
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        errors.push(at.invalid(r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#));
    }
}

fn is_net_bios_name(domain: &str) -> bool {
    let n_chars = domain.chars().count();
    (1..=15).contains(&n_chars)
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_dns_name(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.len() <= 63
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    })
}

/// Host process containers: all of them or none, and on the host's network.
pub(super) fn validate_host_process(spec: &At<'_>, errors: &mut ErrorList) {
    let of_pod = spec["securityContext"]["windowsOptions"]["hostProcess"].as_bool();
    let (mut n_containers, mut n_host_process) = (0, 0);
    for_each_container(spec, |container| {
        n_containers += 1;
        let own = container.descend("securityContext.windowsOptions.hostProcess");
        if let (Some(of_pod), Some(of_container)) = (of_pod, own.as_bool())
            && of_pod != of_container
        {
            let rule = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            errors.push(own.invalid(rule));
        }
        n_host_process += i32::from(own.as_bool().or(of_pod).unwrap_or_default());
    });
    if n_host_process == 0 {
        return;
    }
    if n_host_process != n_containers {
        let rule = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(spec.invalid_showing("", rule));
    }
    if !spec["hostNetwork"].is_true() {
        let rule = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(spec.child("hostNetwork").invalid_showing(false, rule));
    }
}

/// The operating system a pod says it is for, and the fields that this one does not have.
pub(super) fn validate_os(spec: &At<'_>, errors: &mut ErrorList) {
    let os = spec.child("os");
    if !os.is_set() {
        return;
    }
    let name = os.child("name");
    if !required(&name, errors) {
        return;
    }
    match name.text() {
        "linux" => validate_linux(spec, errors),
        "windows" => validate_windows(spec, errors),
        other => errors.push(FieldError::not_supported(os.path(), other, &["linux", "windows"])),
    }
}

fn validate_linux(spec: &At<'_>, errors: &mut ErrorList) {
    let mut check = |owner: &At<'_>| {
        let context = owner.child("securityContext");
        let options = context.child("windowsOptions");
        if options.is_set() {
            errors.push(options.forbidden("windows options cannot be set for a linux pod"));
        }
    };
    check(spec);
    for_each_container(spec, |container| check(container));
}

/// Fields of a pod spec that Windows does not have, in the order in which upstream looks at them.
const POD_FIELDS: [&str; 15] = [
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];

/// Fields of a container that Windows does not have.
const CONTAINER_FIELDS: [&str; 10] = [
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "securityContext.seccompProfile",
    "securityContext.capabilities",
    "securityContext.readOnlyRootFilesystem",
    "securityContext.privileged",
    "securityContext.allowPrivilegeEscalation",
    "securityContext.procMount",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
];

fn validate_windows(spec: &At<'_>, errors: &mut ErrorList) {
    let mut check = |owner: &At<'_>, fields: &[&str]| {
        for field in fields.iter().map(|name| owner.descend(name)).filter(At::is_set) {
            errors.push(field.forbidden("cannot be set for a windows pod"));
        }
    };
    check(spec, &POD_FIELDS);
    for_each_container(spec, |container| check(container, &CONTAINER_FIELDS));
}
