//! Warnings about pod specs that are valid but most likely not meant.
//!
//! Follows: pkg/api/pod/warnings.go (v1.35), in its order.

use super::prepare::{APP_ARMOR_PREFIX, app_armor_profile};
use super::security::{SECCOMP_POD, SECCOMP_PREFIX};
use super::{annotation_key, for_each_container};
use crate::common::At;
use crate::common::ip::warn_of_ip;
use crate::common::node_labels::{deprecation, warn_of_node_selector_term};
use crate::common::resources::quantity;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{Path, Value};

/// Warnings about a pod, whose paths have no prefix.
pub fn of_pod(pod: &Value) -> Vec<String> {
    of(&At::new(pod, Path::ROOT), false)
}

/// Warnings about a pod template at its place.
pub fn of_template(template: &At<'_>) -> Vec<String> {
    of(template, true)
}

/// Annotations that mean nothing any more.
const DEAD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    ("security.alpha.kubernetes.io/sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
    ("security.alpha.kubernetes.io/unsafe-sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
];

/// Volume sources that are old or gone: the member, what it is called in warnings, what to say.
const OLD_SOURCES: [(&str, &str, &str); 7] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
];

const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";

fn of(owner: &At<'_>, is_template: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = owner.child("spec");
    let metadata = owner.child("metadata");
    let annotations = metadata.child("annotations");
    warn_of_node_labels(&spec, &mut warnings);
    for (key, message) in DEAD_ANNOTATIONS.iter().filter(|(key, _)| annotations.has(key)) {
        warnings.push(format!("{}: {message}", annotations.path().key(key)));
    }
    warn_of_volumes(&spec, &mut warnings);
    super::overlaps::warn_of_overlapping_paths(&spec["volumes"], &mut warnings);
    warn_of_lists(&spec, &mut warnings);
    for name in ["memory", "ephemeral-storage"] {
        warn_of_fraction(&spec.child("overhead").key(name), &mut warnings);
    }
    if spec["securityContext"]["seccompProfile"].is_null() && annotations.has(SECCOMP_POD) {
        let path = annotations.path().key(SECCOMP_POD);
        warnings.push(format!(r#"{path}: non-functional in v1.27+; use the "seccompProfile" field instead"#));
    }
    for_each_container(&spec, |container| {
        warn_of_profiles(container, &annotations, &spec, is_template, &mut warnings);
        for name in ["memory", "ephemeral-storage"] {
            for list in ["limits", "requests"] {
                let resources = container.child("resources");
                warn_of_fraction(&resources.child(list).key(name), &mut warnings);
            }
        }
        warn_of_hidden_variables(&container.child("env"), &mut warnings);
    });
    warn_of_ports(&spec, &mut warnings);
    let grace = spec.child("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        let path = grace.path();
        warnings.push(format!("{path}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    warn_of_affinities(&spec, &mut warnings);
    for server in spec.descend("dnsConfig.nameservers").each() {
        warn_of_ip(server.text(), server.path(), &mut warnings);
    }
    for alias in spec.child("hostAliases").each() {
        let ip = alias.child("ip");
        warn_of_ip(ip.text(), ip.path(), &mut warnings);
    }
    warnings
}

fn warn_of_node_labels(spec: &At<'_>, warnings: &mut Vec<String>) {
    for (label, at) in spec.child("nodeSelector").each_entry() {
        warnings.extend(deprecation(label).map(|message| format!("{}: {message}", at.path())));
    }
    let affinity = spec.child("affinity");
    let affinity = affinity.child("nodeAffinity");
    let required = affinity.child("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.child("nodeSelectorTerms").each() {
        warn_of_node_selector_term(&term, false, warnings);
    }
    for term in affinity.child("preferredDuringSchedulingIgnoredDuringExecution").each() {
        warn_of_node_selector_term(&term.child("preference"), true, warnings);
    }
    for constraint in spec.child("topologySpreadConstraints").each() {
        let key = constraint.child("topologyKey");
        if let Some(message) = deprecation(key.text()) {
            warnings.push(format!("{}: {} is {message}", key.path(), key.text()));
        }
        warn_of_null_selector(&constraint.child("labelSelector"), warnings);
    }
}

fn warn_of_null_selector(at: &At<'_>, warnings: &mut Vec<String>) {
    if !at.is_set() {
        warnings.push(format!("{}: {NULL_SELECTOR}", at.path()));
    }
}

fn warn_of_affinities(spec: &At<'_>, warnings: &mut Vec<String>) {
    let affinity = spec.child("affinity");
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = affinity.child(kind);
        for term in affinity.child("requiredDuringSchedulingIgnoredDuringExecution").each() {
            warn_of_null_selector(&term.child("labelSelector"), warnings);
        }
        for term in affinity.child("preferredDuringSchedulingIgnoredDuringExecution").each() {
            warn_of_null_selector(&term.descend("podAffinityTerm.labelSelector"), warnings);
        }
    }
}

fn warn_of_volumes(spec: &At<'_>, warnings: &mut Vec<String>) {
    for volume in spec.child("volumes").each() {
        for (source, called, message) in OLD_SOURCES.iter().filter(|(source, ..)| volume.has(source)) {
            warnings.push(format!("{}: {message}", volume.child_called(source, called).path()));
        }
        warn_of_claim(&volume.descend("ephemeral.volumeClaimTemplate.spec"), warnings);
        for source in ["cephfs", "rbd"].iter().filter(|source| volume.has(source)) {
            let path = volume.path().child(source);
            warnings.push(format!("{path}: deprecated in v1.28, non-functional in v1.31+"));
        }
    }
}

/// Warnings about the spec of a claim.
pub fn warn_of_claim(spec: &At<'_>, warnings: &mut Vec<String>) {
    let resources = spec.child("resources");
    for list in ["requests", "limits"] {
        warn_of_fraction(&resources.child(list).key("storage"), warnings);
    }
}

fn warn_of_fraction(at: &At<'_>, warnings: &mut Vec<String>) {
    if at.is_set() && quantity(at.value()).milli_value() % 1000 != 0 {
        let shown = go_quote(at.text());
        warnings.push(format!("{}: fractional byte value {shown} is invalid, must be an integer", at.path()));
    }
}

fn warn_of_lists(spec: &At<'_>, warnings: &mut Vec<String>) {
    for (list, field) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let at = spec.child(list);
        for (idx, item) in at.each().enumerate() {
            let item = item.child(field);
            let is_seen = |other: &Value| other[field].str_or_empty() == item.text();
            if at.items()[..idx].iter().any(is_seen) {
                warnings.push(format!("{}: duplicate {field} {}", item.path(), go_quote(item.text())));
            }
        }
    }
    for secret in spec.child("imagePullSecrets").each() {
        let name = secret.child("name");
        if name.text().is_empty() {
            warnings.push(format!("{}: invalid empty name \"\"", name.path()));
        }
    }
}

fn warn_of_profiles(
    container: &At<'_>,
    annotations: &At<'_>,
    spec: &Value,
    is_template: bool,
    warnings: &mut Vec<String>,
) {
    if annotations.entries().len() == 0 {
        return;
    }
    let context = &container["securityContext"];
    let seccomp = annotation_key(SECCOMP_PREFIX, container);
    if context["seccompProfile"].is_null() && annotations.has(&seccomp) {
        let path = annotations.path().key(&seccomp);
        warnings.push(format!(r#"{path}: non-functional in v1.27+; use the "seccompProfile" field instead"#));
    }
    // for pods this was told when the annotation became a field
    let app_armor = annotation_key(APP_ARMOR_PREFIX, container);
    let annotation = annotations.key(&app_armor);
    if is_template && context["appArmorProfile"].is_null() && annotation.is_set() {
        let of_pod = &spec["securityContext"]["appArmorProfile"];
        if of_pod.is_null() || *of_pod != app_armor_profile(annotation.text()) {
            warnings.push(deprecated_app_armor(annotation.path()));
        }
    }
}

/// What to say of an AppArmor annotation.
pub(super) fn deprecated_app_armor(path: &Path<'_>) -> String {
    format!(r#"{path}: deprecated since v1.30; use the "appArmorProfile" field instead"#)
}

fn warn_of_hidden_variables(env: &At<'_>, warnings: &mut Vec<String>) {
    for (idx, var) in env.each().enumerate() {
        let name = var["name"].str_or_empty();
        if !env.items()[..idx].iter().any(|before| before["name"].str_or_empty() == name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = var["value"].str_or_empty();
        if !var["valueFrom"].is_null() || value == reference || !value.contains(&reference) {
            let shown = go_quote(name);
            warnings.push(format!(
                "{}: hides previous definition of {shown}, which may be dropped when using apply",
                var.path()
            ));
        }
    }
}

/// A port of some container and where it is.
struct PlacedPort<'v> {
    port: &'v Value,
    place: String,
}

impl PlacedPort<'_> {
    fn host_ip(&self) -> &str {
        self.port["hostIP"].str_or_empty()
    }

    fn number(&self, field: &str) -> i64 {
        self.port[field].as_i64().unwrap_or_default()
    }

    fn text(&self, field: &str) -> &str {
        self.port[field].str_or_empty()
    }

    fn is_same_service(&self, other: &PlacedPort<'_>) -> bool {
        self.number("containerPort") == other.number("containerPort") && self.text("protocol") == other.text("protocol")
    }

    /// How two definitions of one port are at odds.
    fn clash(&self, other: &PlacedPort<'_>) -> Option<&'static str> {
        let (host_port, others) = (self.number("hostPort"), other.number("hostPort"));
        if self.host_ip() == other.host_ip() && host_port == others {
            Some("duplicate")
        } else if host_port == 0 || others == 0 {
            Some("overlapping")
        } else if host_port == others && (self.host_ip().is_empty() != other.host_ip().is_empty()) {
            Some("dangerously ambiguous")
        } else {
            None
        }
    }
}

fn warn_of_ports(spec: &At<'_>, warnings: &mut Vec<String>) {
    let mut ports: Vec<PlacedPort<'_>> = Vec::new();
    let root = spec.value();
    for list in super::CONTAINER_LISTS {
        let containers = spec.child(list);
        for (container, value) in containers.each().zip(root[list].items()) {
            for (port, value) in container.child("ports").each().zip(value["ports"].items()) {
                ports.push(PlacedPort { port: value, place: port.path().to_string() });
            }
        }
    }
    for (idx, port) in ports.iter().enumerate() {
        if !port.host_ip().is_empty() && port.number("hostPort") == 0 {
            warnings.push(format!(
                "{}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{}}}",
                port.place,
                port.text("name"),
                port.number("containerPort"),
                port.text("protocol"),
                port.host_ip(),
            ));
        }
        for other in ports[..idx].iter().filter(|other| port.is_same_service(other)) {
            if let Some(clash) = port.clash(other) {
                warnings.push(format!("{}: {clash} port definition with {}", port.place, other.place));
            }
        }
    }
    for (idx, port) in ports.iter().enumerate().filter(|(_, port)| !port.text("name").is_empty()) {
        if let Some(other) = ports[..idx].iter().find(|other| other.text("name") == port.text("name")) {
            let (name, first) = (go_quote(port.text("name")), &other.place);
            warnings.push(format!(
                "{}: duplicate port name {name} with {first}, services and probes that select ports by name will use {first}",
                port.place
            ));
        }
    }
}
