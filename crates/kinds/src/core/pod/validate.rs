//! Validation of pods as they are created and of pod templates; the rules of a pod spec that have no file of their own.
//!
//! Follows: pkg/apis/core/validation/validation.go (v1.35), in its order.

use super::containers::{
    Surroundings, validate_containers, validate_ephemeral_containers, validate_image_is_trimmed,
    validate_init_containers,
};
use super::ephemeral::forbidden_pod;
use super::options::{PodOptions, has_valid_deletion_cost};
use super::resources::aggregate;
use super::scheduling::{
    validate_affinity, validate_readiness_gates, validate_scheduling_gates, validate_spread_constraints,
    validate_tolerations,
};
use super::security::{
    validate_annotations_match_fields, validate_optional_name, validate_pod_security_context,
    validate_profile_annotations,
};
use super::volumes::validate_volumes;
use super::windows::{validate_host_process, validate_os};
use super::{for_each_container, is_mirror};
use crate::common::checks::one_of_required;
use crate::common::goform::compact;
use crate::common::ip::ip_legacy;
use crate::common::resources::{Requirer, is_huge_pages, quantity, validate_requirements};
use crate::common::selectors::validate_labels;
use crate::common::{At, dns1123_label, dns1123_subdomain, push_faults};
use pintle_apimachinery::names::range_fault;
use pintle_apimachinery::{ErrorList, FieldError, Value, names};
use std::collections::BTreeSet;

const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";

/// A new pod. Its metadata is validated already.
pub(super) fn validate_create(pod: &Value, errors: &mut ErrorList) {
    validate_pod(pod, &PodOptions::POD, errors);
    let spec = At::top(pod, "spec");
    let ephemeral = spec.child("ephemeralContainers");
    if !ephemeral.items().is_empty() {
        errors.push(ephemeral.forbidden("cannot be set on create"));
    }
    let node = spec.child("nodeName");
    if !node.text().is_empty() && !spec["schedulingGates"].items().is_empty() {
        errors.push(node.forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    validate_annotations_match_fields(&pod["metadata"]["annotations"], &spec, errors);
}

/// What holds for a pod at any time.
pub(super) fn validate_pod(pod: &Value, options: &PodOptions, errors: &mut ErrorList) {
    let metadata = At::top(pod, "metadata");
    validate_annotations(&metadata.child("annotations"), &pod["spec"], options, errors);
    let spec = At::top(pod, "spec");
    validate_spec(&spec, Some(&pod["metadata"]), options, errors);
    if spec["serviceAccountName"].str_or_empty().is_empty() {
        for volume in spec.child("volumes").each() {
            for source in volume.descend("projected.sources").each() {
                let token = source.child("serviceAccountToken");
                if token.is_set() {
                    errors.push(token.forbidden("must not be specified when serviceAccountName is not set"));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        spec.child(list).each().for_each(|container| validate_image_is_trimmed(&container, errors));
    }
}

/// A pod template wherever one stands; `at` is the template.
pub fn validate_template(at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    validate_template_metadata(at, options, errors);
    let spec = at.child("spec");
    validate_spec(&spec, None, options, errors);
    validate_annotations_match_fields(&at["metadata"]["annotations"], &spec, errors);
    if !spec["ephemeralContainers"].items().is_empty() {
        errors.push(spec.child("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template"));
    }
}

/// The labels and annotations of a pod template. Upstream leaves `metadata` out of the paths.
pub fn validate_template_metadata(at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    let metadata = &at.value()["metadata"];
    validate_labels(&At::new(&metadata["labels"], at.path().child("labels")), errors);
    let annotations = At::new(&metadata["annotations"], at.path().child("annotations"));
    errors.extend(crate::meta::validate_annotations(annotations.value(), annotations.path()));
    validate_annotations(&annotations, &at.value()["spec"], options, errors);
}

/// The annotations that mean something to a pod.
pub(super) fn validate_annotations(at: &At<'_>, spec: &Value, options: &PodOptions, errors: &mut ErrorList) {
    if at.entries().len() == 0 {
        return;
    }
    let mirror = at.key(MIRROR);
    if mirror.is_set() && spec["nodeName"].str_or_empty().is_empty() {
        errors.push(mirror.invalid("must set spec.nodeName if mirror pod annotation is set"));
    }
    let tolerations = &at[TOLERATIONS];
    if !tolerations.str_or_empty().is_empty() {
        validate_annotated_tolerations(at, tolerations.str_or_empty(), options, errors);
    }
    if !options.allow_invalid_deletion_cost && !has_valid_deletion_cost(at) {
        errors.push(at.key("controller.kubernetes.io/pod-deletion-cost").invalid("must be a 32bit integer"));
    }
    validate_profile_annotations(at, spec, errors);
}

fn validate_annotated_tolerations(at: &At<'_>, text: &str, options: &PodOptions, errors: &mut ErrorList) {
    let parsed = match pintle_apimachinery::value::parse(text.as_bytes()) {
        Ok(parsed) => parsed,
        Err(why) => return errors.push(at.invalid_showing(TOLERATIONS, why.to_string())),
    };
    let wrong = match parsed {
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Object(_) => "object",
        _ => "",
    };
    if !wrong.is_empty() {
        let why = format!("json: cannot unmarshal {wrong} into Go value of type []core.Toleration");
        return errors.push(at.invalid_showing(TOLERATIONS, why));
    }
    validate_tolerations(&At::new(&parsed, at.path().child(TOLERATIONS)), options, errors);
}

/// A pod spec. `metadata` is the pod's, `None` for templates.
pub(super) fn validate_spec(spec: &At<'_>, metadata: Option<&Value>, options: &PodOptions, errors: &mut ErrorList) {
    let grace = spec.child("terminationGracePeriodSeconds");
    if !grace.is_set() {
        errors.push(grace.required(""));
    }
    let pod_name = metadata.map_or("", |metadata| metadata["name"].str_or_empty());
    let volumes = spec.child("volumes");
    let claims = spec.child("resourceClaims");
    let around = Surroundings {
        options,
        volumes: validate_volumes(&volumes, pod_name, options, errors),
        claim_names: claims
            .value()
            .items()
            .iter()
            .map(|c| c["name"].str_or_empty())
            .filter(|n| !n.is_empty())
            .collect(),
        grace_period: grace.as_i64(),
        restart_policy: spec.value()["restartPolicy"].str_or_empty(),
        has_host_users: spec["hostUsers"].as_bool() != Some(false),
        os: spec.value()["os"]["name"].str_or_empty(),
    };
    validate_resource_claims(&claims, metadata.is_some_and(is_mirror), errors);
    let containers = spec.child("containers");
    validate_containers(&containers, &around, errors);
    validate_init_containers(&spec.child("initContainers"), containers.value(), &around, errors);
    validate_ephemeral_containers(spec, &around, errors);
    validate_pod_resources(spec, &around.claim_names, options, errors);
    validate_host_network_ports(spec, options, errors);
    one_of_required(&spec.child("restartPolicy"), &["Always", "OnFailure", "Never"], errors);
    one_of_required(&spec.child("dnsPolicy"), &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    validate_labels(&spec.child("nodeSelector"), errors);
    validate_pod_security_context(spec, options, errors);
    validate_affinity(&spec.child("affinity"), options, errors);
    validate_dns_config(spec, errors);
    validate_readiness_gates(&spec.child("readinessGates"), errors);
    validate_scheduling_gates(&spec.child("schedulingGates"), errors);
    validate_spread_constraints(&spec.child("topologySpreadConstraints"), options, errors);
    validate_host_process(spec, errors);
    validate_user_namespace(spec, options, errors);
    validate_hostname_override(spec, errors);
    validate_names_and_limits(spec, options, errors);
    validate_os(spec, errors);
    validate_workload(&spec.child("workloadRef"), errors);
    validate_file_key_volumes(spec, errors);
}

fn validate_names_and_limits(spec: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    validate_optional_name(&spec.child("serviceAccountName"), errors);
    validate_optional_name(&spec.child("nodeName"), errors);
    let deadline = spec.child("activeDeadlineSeconds");
    if deadline.is_set() && !(1..=i64::from(i32::MAX)).contains(&deadline.int()) {
        errors.push(deadline.invalid_int(range_fault(1, i64::from(i32::MAX))));
    }
    for field in ["hostname", "subdomain"] {
        let field = spec.child(field);
        if !field.text().is_empty() {
            dns1123_label(&field, errors);
        }
    }
    validate_tolerations(&spec.child("tolerations"), options, errors);
    validate_host_aliases(&spec.child("hostAliases"), errors);
    validate_optional_name(&spec.child("priorityClassName"), errors);
    let runtime_class = spec.child("runtimeClassName");
    if runtime_class.is_set() {
        dns1123_subdomain(&runtime_class, errors);
    }
    let preemption = spec.child("preemptionPolicy");
    if preemption.is_set() {
        one_of_required(&preemption, &["PreemptLowerPriority", "Never"], errors);
    }
    let overhead = spec.child("overhead");
    if overhead.is_set() {
        validate_overhead(&overhead, options, errors);
    }
}

fn validate_overhead(at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    let mut limits = Value::object();
    limits.set("limits", at.value().clone());
    let at = At::new(&limits, *at.path());
    let allow = options.allow_indivisible_huge_pages;
    validate_requirements(&at, Requirer::Container, &BTreeSet::new(), allow, errors);
}

fn validate_resource_claims(at: &At<'_>, is_mirror: bool, errors: &mut ErrorList) {
    for (idx, claim) in at.each().enumerate() {
        if is_mirror {
            errors.push(forbidden_pod("static pods do not support resource claims"));
            continue;
        }
        let (name, claim_name, template) =
            (claim.child("name"), claim.child("resourceClaimName"), claim.child("resourceClaimTemplateName"));
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else if at.items()[..idx].iter().any(|before| before["name"] == *name.value()) {
            errors.push(name.duplicate());
        } else {
            dns1123_label(&name, errors);
        }
        let rule = match (claim_name.is_set(), template.is_set()) {
            (true, true) => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
            (false, false) => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            _ => None,
        };
        if let Some(rule) = rule {
            let shown = compact(claim.value(), "core/v1.PodResourceClaim");
            errors.push(FieldError { shown: Some(shown), ..claim.invalid(rule) });
        }
        for name in [&claim_name, &template] {
            if name.is_set() {
                push_faults(name, names::dns1123_subdomain(name.text()), errors);
            }
        }
    }
}

/// `resources` of the pod as a whole.
fn validate_pod_resources(spec: &At<'_>, claim_names: &BTreeSet<&str>, options: &PodOptions, errors: &mut ErrorList) {
    let at = spec.child("resources");
    if !at.is_set() {
        return;
    }
    if spec["os"]["name"].as_str() == Some("windows") {
        errors.push(at.forbidden("may not be set for a windows pod"));
        return;
    }
    let claims = at.child("claims");
    if claims.is_set() {
        errors.push(claims.forbidden("claims may not be set for Resources at pod-level"));
    }
    validate_requirements(&at, Requirer::Pod, claim_names, options.allow_indivisible_huge_pages, errors);
    let (requests, limits) = (at.child("requests"), at.child("limits"));
    for (name, needed) in aggregate(spec, "requests") {
        let request = requests.key(name);
        if request.is_set() && needed > quantity(request.value()) {
            let rule = format!("must be greater than or equal to aggregate container requests of {needed}");
            errors.push(request.invalid(rule));
        }
    }
    for (name, needed) in aggregate(spec, "limits").into_iter().filter(|(name, _)| is_huge_pages(name)) {
        let limit = limits.key(name);
        if limit.is_set() && needed > quantity(limit.value()) {
            errors.push(
                limit.invalid(format!("must be greater than or equal to aggregate container limits of {needed}")),
            );
        }
    }
    for (idx, container) in spec["containers"].items().iter().enumerate() {
        for (name, limit) in container["resources"]["limits"].entries() {
            let most = &limits[name];
            if !most.is_null() && quantity(limit) > quantity(most) {
                // upstream puts the name before the list
                let containers = at.path().child("containers");
                let container = containers.index(idx);
                let named = container.key(name);
                let rule = format!("must be less than or equal to pod limits of {}", most.str_or_empty());
                errors.push(FieldError::invalid(&named.child("limits"), limit, rule));
            }
        }
    }
}

/// On the host's network, container ports are host ports.
fn validate_host_network_ports(spec: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    if !spec["hostNetwork"].is_true() {
        return;
    }
    for container in spec.child("containers").each() {
        for port in container.child("ports").each() {
            let (host, own) = (port.child("hostPort"), port.child("containerPort"));
            if (options.is_pod || host.int() != 0) && host.int() != own.int() {
                errors.push(host.invalid_int("must match `containerPort` when `hostNetwork` is true"));
            }
        }
    }
}

/// Name servers of one pod.
const NAME_SERVERS_MAX: usize = 3;
/// Search domains of one pod.
const SEARCH_PATHS_MAX: usize = 32;
/// Search domains of one pod with spaces between.
const SEARCH_LIST_BYTES_MAX: usize = 2048;

fn validate_dns_config(spec: &At<'_>, errors: &mut ErrorList) {
    let at = spec.child("dnsConfig");
    let (servers, searches) = (at.child("nameservers"), at.child("searches"));
    if spec["dnsPolicy"].as_str() == Some("None") {
        if !at.is_set() {
            errors.push(at.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.items().is_empty() {
            errors.push(servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None"));
            return;
        }
    }
    if !at.is_set() {
        return;
    }
    if servers.items().len() > NAME_SERVERS_MAX {
        errors.push(servers.invalid(format!("must not have more than {NAME_SERVERS_MAX} nameservers")));
    }
    servers.each().for_each(|server| ip_legacy(&server, [], errors));
    if searches.items().len() > SEARCH_PATHS_MAX {
        errors.push(searches.invalid(format!("must not have more than {SEARCH_PATHS_MAX} search paths")));
    }
    let n_bytes: usize = searches.items().iter().map(|search| search.str_or_empty().len() + 1).sum();
    if n_bytes > SEARCH_LIST_BYTES_MAX + 1 {
        errors.push(searches.invalid(format!(
            "must not have more than {SEARCH_LIST_BYTES_MAX} characters (including spaces) in the search list"
        )));
    }
    for search in searches.each().filter(|search| search.text() != ".") {
        let domain = search.text().strip_suffix('.').unwrap_or_else(|| search.text());
        let faults = names::dns1123_subdomain_with_underscore(domain);
        errors.extend(faults.into_iter().map(|fault| search.invalid_showing(domain, fault)));
    }
    for option in at.child("options").each() {
        if option["name"].str_or_empty().is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

fn validate_host_aliases(at: &At<'_>, errors: &mut ErrorList) {
    for alias in at.each() {
        ip_legacy(&alias.child("ip"), [], errors);
        alias.child("hostnames").each().for_each(|name| dns1123_subdomain(&name, errors));
    }
}

/// What does not go together with a user namespace of the pod's own.
fn validate_user_namespace(spec: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    if spec["hostUsers"].as_bool() != Some(false) {
        return;
    }
    let rule = "when `hostUsers` is false";
    for (field, called) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        let field = spec.child_called(field, called);
        if field.is_true() && !(called == "hostNetwork" && options.allow_host_network_in_user_namespace) {
            errors.push(field.forbidden(rule));
        }
    }
    if !options.allow_volume_devices_in_user_namespace {
        for_each_container(spec, |container| {
            let devices = container.child("volumeDevices");
            if !devices.items().is_empty() {
                errors.push(devices.forbidden(rule));
            }
        });
    }
}

/// Longest host name of Linux.
const HOSTNAME_BYTES_MAX: usize = 64;

fn validate_hostname_override(spec: &At<'_>, errors: &mut ErrorList) {
    let at = spec.child("hostnameOverride");
    if !at.is_set() {
        return;
    }
    if spec["setHostnameAsFQDN"].is_true() {
        errors.push(at.forbidden("may not be specified when setHostnameAsFQDN is true"));
    }
    if spec["hostNetwork"].is_true() {
        errors.push(at.forbidden("may not be specified when hostNetwork is true"));
    }
    if at.text().len() > HOSTNAME_BYTES_MAX {
        errors.push(at.too_long(HOSTNAME_BYTES_MAX));
    }
    dns1123_subdomain(&at, errors);
}

fn validate_workload(at: &At<'_>, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    dns1123_subdomain(&at.child("name"), errors);
    dns1123_label(&at.child("podGroup"), errors);
    let key = at.child("podGroupReplicaKey");
    if !key.text().is_empty() {
        dns1123_label(&key, errors);
    }
}

/// Variables may be read from files of `emptyDir` volumes only.
fn validate_file_key_volumes(spec: &At<'_>, errors: &mut ErrorList) {
    for_each_container(spec, |container| {
        for var in container.child("env").each().filter(|var| var["valueFrom"].has("fileKeyRef")) {
            let name = var.descend("valueFrom.fileKeyRef.volumeName");
            let volumes = spec["volumes"].items();
            match volumes.iter().rfind(|volume| volume["name"].str_or_empty() == name.text()) {
                None => errors.push(name.not_found()),
                Some(volume) if !volume.has("emptyDir") => {
                    errors.push(name.invalid("referenced volume must be of type emptyDir"));
                }
                Some(_) => {}
            }
        }
    });
}
