//! What a Service may say.

use super::{is_externally_accessible, is_load_balancer, needs_health_check_port};
use crate::common::checks::{self, dns1123_label, one_of, one_of_required, port_number, qualified_name, required};
use crate::common::ip::{self, parse_ip, validate_endpoint_ip};
use crate::common::selectors::validate_labels;
use crate::common::{At, goform};
use crate::core::endpoints::PROTOCOLS;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, json, names};
use std::collections::BTreeSet;

/// Longest time that a client sticks to an endpoint: a day.
const AFFINITY_TIMEOUT_SECONDS_MAX: i64 = 86_400;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// What stands for "no address" in `clusterIP`.
pub(super) const NONE: &str = "None";

/// Whether the service has no address of its own.
pub(super) fn is_headless(spec: &Value) -> bool {
    matches!(spec["clusterIPs"].items(), [ip] if ip.as_str() == Some(NONE))
}

fn service_type(spec: &Value) -> &str {
    spec["type"].str_or_empty()
}

/// A service, new or changed. `old` is `null` for a new one.
pub(super) fn validate(object: &Value, old: &Value, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let old_spec = &old["spec"];
    validate_topology_annotations(object, errors);
    validate_type_fields(&spec, errors);
    let mut names = BTreeSet::new();
    let ports = spec.child("ports");
    for port in ports.each() {
        validate_port(&port, ports.items().len() > 1, &mut names, errors);
    }
    validate_labels(&spec.child("selector"), errors);
    validate_affinity(&spec, errors);
    validate_cluster_ips(&spec, old_spec, errors);
    for external in spec.child("externalIPs").each() {
        let n_before = errors.len();
        let kept = old_spec["externalIPs"].items().iter().map(Value::str_or_empty);
        ip::ip_legacy(&external, kept, errors);
        if errors.len() == n_before {
            validate_endpoint_ip(&external, errors);
        }
    }
    one_of_required(&spec.child("type"), &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], errors);
    validate_port_pairs(&spec, errors);
    validate_source_ranges(object, old, &spec, errors);
    let allocates = spec.child("allocateLoadBalancerNodePorts");
    if allocates.is_set() && !is_load_balancer(&spec) {
        errors.push(allocates.forbidden("may only be used when `type` is 'LoadBalancer'"));
    }
    if !allocates.is_set() && is_load_balancer(&spec) {
        // upstream leaves `spec` out
        errors.push(FieldError::required(&Path::new("allocateLoadBalancerNodePorts"), ""));
    }
    validate_load_balancer_class(&spec, &Value::NULL, errors);
    validate_traffic_policies(&spec, errors);
}

/// A change of a service.
pub(super) fn validate_update(object: &Value, old: &Value, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let old_spec = &old["spec"];
    let is_external = |spec: &Value| service_type(spec) == "ExternalName";
    if !is_external(&spec) && !is_external(old_spec) {
        validate_ip_changes(&spec, old_spec, errors);
        validate_family_changes(&spec, old_spec, errors);
    }
    validate_load_balancer_class(&spec, old_spec, errors);
    let port = spec.child("healthCheckNodePort");
    let is_needed = needs_health_check_port(old_spec) && needs_health_check_port(&spec);
    if is_needed && *port.value() != old_spec["healthCheckNodePort"] {
        errors.push(port.forbidden("field is immutable"));
    }
    validate(object, old, errors);
}

fn validate_topology_annotations(object: &Value, errors: &mut ErrorList) {
    if let (Some(mode), Some(hints)) = (object.annotation(TOPOLOGY_MODE), object.annotation(TOPOLOGY_HINTS))
        && mode != hints
    {
        let metadata = Path::new("metadata");
        let annotations = metadata.child("annotations");
        let rule = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.push(FieldError::invalid(&annotations.key(TOPOLOGY_MODE), mode, rule));
    }
}

/// What the type asks for and what it excludes.
fn validate_type_fields(spec: &At<'_>, errors: &mut ErrorList) {
    let (ips, is_headless) = (spec.child("clusterIPs"), is_headless(spec));
    let kind = service_type(spec);
    if spec["ports"].items().is_empty() && !is_headless && kind != "ExternalName" {
        errors.push(spec.child("ports").required(""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless => {
            errors.push(ips.index(0).invalid(format!("may not be set to 'None' for {kind} services")));
        }
        "ExternalName" => {
            for field in [ips, spec.child("ipFamilies")] {
                if !field.items().is_empty() {
                    errors.push(field.forbidden("may not be set for ExternalName services"));
                }
            }
            let policy = spec.child("ipFamilyPolicy");
            if policy.is_set() {
                errors.push(policy.forbidden("may not be set for ExternalName services"));
            }
            let name = spec.child("externalName");
            // a dot at the end marks a name as complete
            let cname = name.text().strip_suffix('.').unwrap_or_else(|| name.text());
            if cname.is_empty() {
                errors.push(name.required(""));
            }
            if !cname.is_empty() {
                let faults = names::dns1123_subdomain(cname);
                errors.extend(faults.into_iter().map(|fault| name.invalid_showing(cname, fault)));
            }
        }
        _ => {}
    }
}

fn validate_port<'a>(port: &At<'a>, is_name_required: bool, names: &mut BTreeSet<&'a str>, errors: &mut ErrorList) {
    let name = port.child("name");
    if is_name_required {
        required(&name, errors);
    }
    if !name.text().is_empty() {
        dns1123_label(&name, errors);
        if !names.insert(port.value()["name"].str_or_empty()) {
            errors.push(name.duplicate());
        }
    }
    port_number(&port.child("port"), errors);
    one_of_required(&port.child("protocol"), PROTOCOLS, errors);
    checks::port_number_or_name(&port.child("targetPort"), errors);
    let protocol = port.child("appProtocol");
    if protocol.is_set() {
        qualified_name(&protocol, errors);
    }
}

fn validate_affinity(spec: &At<'_>, errors: &mut ErrorList) {
    one_of_required(&spec.child("sessionAffinity"), &["ClientIP", "None"], errors);
    let config = spec.child("sessionAffinityConfig");
    match spec["sessionAffinity"].str_or_empty() {
        "None" if config.is_set() => {
            errors.push(config.forbidden("must not be set when session affinity is None"));
        }
        "ClientIP" => {
            let client = config.child("clientIP");
            let timeout = client.child("timeoutSeconds");
            match [&config, &client, &timeout].into_iter().find(|field| !field.is_set()) {
                Some(absent) => errors.push(absent.required("when session affinity type is ClientIP")),
                None if !(1..=AFFINITY_TIMEOUT_SECONDS_MAX).contains(&timeout.int()) => {
                    let rule = format!("must be greater than 0 and less than {AFFINITY_TIMEOUT_SECONDS_MAX}");
                    errors.push(timeout.invalid_int(rule));
                }
                None => {}
            }
        }
        _ => {}
    }
}

/// An error that shows a list of texts.
fn show_list(at: &At<'_>, list: &Value, rule: &str) -> FieldError {
    FieldError { shown: Some(goform::compact(list, "[]string")), ..at.invalid(rule) }
}

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` together; also checked before addresses are handed out.
pub(super) fn validate_cluster_ips(spec: &At<'_>, old_spec: &Value, errors: &mut ErrorList) {
    if service_type(spec) == "ExternalName" {
        return;
    }
    let (single, ips, families) =
        (spec["clusterIP"].str_or_empty(), spec.child("clusterIPs"), spec.child("ipFamilies"));
    let first = ips.items().first().map(Value::str_or_empty);
    match (single, first) {
        ("", None) => {}
        ("", Some(_)) => errors.push(show_list(&ips, &ips, "must be empty when `clusterIP` is not specified")),
        (_, None) => errors.push(ips.required("")),
        (single, Some(first)) if single != first => {
            errors.push(show_list(&ips, &ips, "first value must match `clusterIP`"));
        }
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for family in families.each() {
        one_of(&family, &["IPv4", "IPv6"], errors);
        if !seen.insert(family.value().str_or_empty()) {
            errors.push(family.duplicate());
        }
    }
    let policy = spec.child("ipFamilyPolicy");
    if policy.is_set() {
        one_of(&policy, &["PreferDualStack", "RequireDualStack", "SingleStack"], errors);
    }
    if are_well_formed(&ips, old_spec, errors) {
        validate_stack(spec, &ips, errors);
    }
}

/// Whether every address reads as one; the rules about several of them need that.
fn are_well_formed(ips: &At<'_>, old_spec: &Value, errors: &mut ErrorList) -> bool {
    let mut is_well = true;
    for (idx, ip) in ips.each().enumerate() {
        if idx == 0 && ip.text() == NONE {
            if ips.items().len() > 1 {
                is_well = false;
                errors.push(show_list(ips, ips, "'None' must be the first and only value"));
            }
            continue;
        }
        let n_before = errors.len();
        ip::ip_legacy(&ip, old_spec["clusterIPs"].items().iter().map(Value::str_or_empty), errors);
        is_well &= errors.len() == n_before;
    }
    if ips.items().len() > 2 {
        errors.push(show_list(ips, ips, "may only hold up to 2 values"));
    }
    is_well
}

fn is_ipv6(text: &str) -> bool {
    parse_ip(text).is_some_and(|ip| ip.is_ipv6())
}

/// One address of each family, as `ipFamilies` says.
fn validate_stack(spec: &At<'_>, ips: &At<'_>, errors: &mut ErrorList) {
    let texts = || ips.items().iter().map(Value::str_or_empty);
    if ips.items().len() > 1 {
        let parsed: Vec<_> = texts().map(parse_ip).collect();
        if let Some(idx) = parsed.iter().position(Option::is_none) {
            let shown = texts().nth(idx).unwrap_or_default();
            errors.push(FieldError::internal(
                ips.path(),
                format!("failed to check for dual stack with error:invalid IP[{idx}]: {shown}"),
            ));
        }
        let is_dual = parsed.iter().flatten().any(|ip| ip.is_ipv4()) && parsed.iter().flatten().any(|ip| ip.is_ipv6());
        if !is_dual {
            errors.push(show_list(ips, ips, "may specify no more than one IP for each IP family"));
        }
    }
    if is_headless(spec) {
        return;
    }
    for (idx, (ip, family)) in ips.each().zip(spec["ipFamilies"].items()).enumerate() {
        let expected = match (family.str_or_empty(), is_ipv6(ip.text())) {
            ("IPv4", true) => "IPv4",
            ("IPv6", false) => "IPv6",
            _ => continue,
        };
        errors.push(ip.invalid(format!("expected an {expected} value as indicated by `ipFamilies[{idx}]`")));
    }
}

/// No port and no node port twice with one protocol, no node ports where they cannot be.
fn validate_port_pairs(spec: &At<'_>, errors: &mut ErrorList) {
    let ports = spec.child("ports");
    if service_type(spec) == "ClusterIP" {
        for port in ports.each().filter(|port| !port["nodePort"].is_empty()) {
            errors.push(port.child("nodePort").forbidden("may not be used when `type` is 'ClusterIP'"));
        }
    }
    let is_twice = |idx: usize, field: &str| {
        let port = &ports.items()[idx];
        let is_same = |other: &Value| other["protocol"] == port["protocol"] && other[field] == port[field];
        ports.items()[..idx].iter().any(is_same)
    };
    for (idx, port) in ports.each().enumerate() {
        let node_port = port.child("nodePort");
        if !node_port.is_empty() && is_twice(idx, "nodePort") {
            errors.push(FieldError::duplicate(node_port.path(), node_port.int()));
        }
    }
    for (idx, port) in ports.each().enumerate() {
        if is_twice(idx, "port") {
            let key = json!({"protocol": port["protocol"].clone(), "port": port["port"].clone()});
            let shown = goform::compact(&key, "core/v1.ServicePort");
            errors.push(FieldError { shown: Some(shown), ..FieldError::duplicate(port.path(), "") });
        }
    }
}

fn validate_source_ranges(object: &Value, old: &Value, spec: &At<'_>, errors: &mut ErrorList) {
    const RULE: &str = "may only be used when `type` is 'LoadBalancer'";
    // upstream writes the field so
    let ranges = spec.child_called("loadBalancerSourceRanges", "LoadBalancerSourceRanges");
    if !ranges.items().is_empty() {
        if !is_load_balancer(spec) {
            errors.push(ranges.forbidden(RULE));
        }
        for range in ranges.each() {
            let trimmed = Value::from(range.text().trim());
            let kept = old.at("spec.loadBalancerSourceRanges").items().iter().map(|range| range.str_or_empty().trim());
            ip::cidr_legacy(&At::new(&trimmed, *range.path()), kept, errors);
        }
    } else if let Some(annotation) = object.annotation(SOURCE_RANGES) {
        let metadata = Path::new("metadata");
        let annotations = metadata.child("annotations");
        let path = annotations.key(SOURCE_RANGES);
        if !is_load_balancer(spec) {
            errors.push(FieldError::forbidden(&path, RULE));
        }
        if old.annotation(SOURCE_RANGES) == Some(annotation) || annotation.trim().is_empty() {
            return;
        }
        for range in annotation.trim().split(',') {
            ip::cidr_legacy(&At::new(&Value::from(range.trim()), path), None, errors);
        }
    }
}

fn validate_load_balancer_class(spec: &At<'_>, old_spec: &Value, errors: &mut ErrorList) {
    let class = spec.child("loadBalancerClass");
    if is_load_balancer(old_spec) && is_load_balancer(spec) && *class.value() != old_spec["loadBalancerClass"] {
        let shown = goform::compact(class.value(), "*string");
        errors.push(FieldError { shown: Some(shown), ..class.invalid("may not change once set") });
    }
    if class.is_set() {
        if is_load_balancer(spec) {
            qualified_name(&class, errors);
        } else {
            errors.push(class.forbidden("may only be used when `type` is 'LoadBalancer'"));
        }
    }
}

fn validate_traffic_policies(spec: &At<'_>, errors: &mut ErrorList) {
    const POLICIES: &[&str] = &["Cluster", "Local"];
    let (external, port) = (spec.child("externalTrafficPolicy"), spec.child("healthCheckNodePort"));
    if is_externally_accessible(spec) {
        one_of_required(&external, POLICIES, errors);
    } else if !external.text().is_empty() {
        errors.push(external.invalid("may only be set for externally-accessible services"));
    }
    if !needs_health_check_port(spec) {
        if port.int() != 0 {
            let rule = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(port.invalid_int(rule));
        }
    } else if port.int() == 0 {
        errors.push(port.required(""));
    } else {
        port_number(&port, errors);
    }
    let internal = spec.child("internalTrafficPolicy");
    if internal.is_set() {
        one_of(&internal, POLICIES, errors);
    } else if matches!(service_type(spec), "NodePort" | "LoadBalancer" | "ClusterIP") {
        errors.push(internal.required(""));
    }
    let distribution = spec.child("trafficDistribution");
    if distribution.is_set() {
        one_of(&distribution, &["PreferClose", "PreferSameZone", "PreferSameNode"], errors);
    }
}

const ONCE: &str = "may not change once set";

/// The first address never changes; a second one may come and go.
fn validate_ip_changes(spec: &At<'_>, old_spec: &Value, errors: &mut ErrorList) {
    if is_headless(spec) && is_headless(old_spec) {
        return;
    }
    let ips = spec.child("clusterIPs");
    let (new, old) = (ips.items(), old_spec["clusterIPs"].items());
    if new.len() == old.len() {
        for (idx, _) in old.iter().zip(new).enumerate().filter(|(_, (old, new))| old != new) {
            errors.push(show_list(&ips.index(idx), &ips, ONCE));
        }
        return;
    }
    if new.is_empty() {
        errors.push(show_list(&ips.index(0), &ips, "primary clusterIP can not be unset"));
    }
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && new != old
    {
        errors.push(show_list(&ips.index(0), &ips, ONCE));
    }
    if old.len() > new.len() && new.len() == 1 {
        require_single_stack(spec, "must be set to 'SingleStack' when releasing the secondary clusterIP", errors);
    }
}

fn require_single_stack(spec: &At<'_>, rule: &str, errors: &mut ErrorList) {
    let policy = spec.child("ipFamilyPolicy");
    if policy.text() != "SingleStack" {
        let shown = goform::compact(policy.value(), "*string");
        errors.push(FieldError { shown: Some(shown), ..policy.invalid(rule) });
    }
}

/// As the addresses, so their families.
fn validate_family_changes(spec: &At<'_>, old_spec: &Value, errors: &mut ErrorList) {
    if is_headless(spec) || is_headless(old_spec) {
        return;
    }
    let families = spec.child("ipFamilies");
    let (new, old) = (families.items(), old_spec["ipFamilies"].items());
    if new.len() == old.len() {
        for _ in old.iter().zip(new).filter(|(old, new)| old != new) {
            errors.push(show_list(&families.index(0), &families, ONCE));
        }
        return;
    }
    if old.len() > new.len() && spec["clusterIPs"].items().is_empty() {
        errors.push(show_list(&families.index(0), &families, "primary ipFamily can not be unset"));
    }
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && new != old
    {
        // upstream shows the addresses here
        errors.push(show_list(&families.index(0), &spec["clusterIPs"], ONCE));
    }
    if old.len() > new.len() && new.len() == 1 {
        require_single_stack(spec, "must be set to 'SingleStack' when releasing the secondary ipFamily", errors);
    }
}

/// What a load balancer says of itself. `spec` is the service's.
pub(super) fn validate_status(object: &Value, old: &Value, errors: &mut ErrorList) {
    let status = At::top(object, "status");
    let balancer = status.child("loadBalancer");
    let ingress = balancer.child("ingress");
    if !is_load_balancer(&object["spec"]) {
        if !ingress.items().is_empty() {
            errors.push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
        }
        return;
    }
    for point in ingress.each() {
        let (address, mode, hostname) = (point.child("ip"), point.child("ipMode"), point.child("hostname"));
        let has_ip = !address.text().is_empty();
        if has_ip {
            let kept = old.at("status.loadBalancer.ingress").items().iter().map(|old| old["ip"].str_or_empty());
            ip::ip_legacy(&address, kept.filter(|ip| !ip.is_empty()), errors);
        }
        match (mode.is_set(), has_ip) {
            (false, true) => errors.push(mode.required("must be specified when `ip` is set")),
            (true, false) => errors.push(mode.forbidden("may not be specified when `ip` is not set")),
            (true, true) => one_of(&mode, &["Proxy", "VIP"], errors),
            (false, false) => {}
        }
        validate_hostname(&hostname, errors);
    }
}

/// The name of a load balancer: no address.
pub(crate) fn validate_hostname(hostname: &At<'_>, errors: &mut ErrorList) {
    if hostname.text().is_empty() {
        return;
    }
    checks::dns1123_subdomain(hostname, errors);
    if parse_ip(hostname.text()).is_some() {
        errors.push(hostname.invalid("must be a DNS name, not an IP address"));
    }
}

/// What to warn of.
pub(super) fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = At::top(object, "spec");
    if object.annotation(TOPOLOGY_HINTS).is_some() {
        warnings.push(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    let kind = service_type(&spec);
    let has_ip = !matches!(spec["clusterIP"].str_or_empty(), NONE | "");
    let warn_of_ips = |field: &str, warnings: &mut Vec<String>| {
        spec.child(field).each().for_each(|ip| ip::warn_of_ip(ip.text(), ip.path(), warnings));
    };
    if has_ip {
        warn_of_ips("clusterIPs", &mut warnings);
    }
    let mut warn = |is_so: bool, text: &str| {
        if is_so {
            warnings.push(text.to_owned());
        }
    };
    if kind == "ClusterIP" && spec["clusterIP"].as_str() == Some(NONE) {
        warn(!spec["loadBalancerIP"].is_empty(), "spec.loadBalancerIP is ignored for headless services");
        warn(!spec["externalIPs"].items().is_empty(), "spec.externalIPs is ignored for headless services");
        let is_sticky = spec["sessionAffinity"].as_str() != Some("None");
        warn(is_sticky, "spec.SessionAffinity is ignored for headless services");
    }
    warn_of_ips("externalIPs", &mut warnings);
    let balancer_ip = spec.child("loadBalancerIP");
    if !balancer_ip.text().is_empty() {
        ip::warn_of_ip(balancer_ip.text(), balancer_ip.path(), &mut warnings);
    }
    for range in spec.child("loadBalancerSourceRanges").each() {
        ip::warn_of_cidr(range.text(), range.path(), &mut warnings);
    }
    let mut warn = |is_so: bool, text: &str| {
        if is_so {
            warnings.push(text.to_owned());
        }
    };
    let is_external = kind == "ExternalName";
    warn(
        is_external && !spec["externalIPs"].items().is_empty(),
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    warn(
        !is_external && !spec["externalName"].is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn(
        spec["trafficDistribution"].as_str() == Some("PreferClose"),
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    warnings
}

/// What to warn of in the addresses of load balancers.
pub(crate) fn status_warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let status = At::top(object, "status");
    let balancer = status.child("loadBalancer");
    for point in balancer.child("ingress").each() {
        let ip = point["ip"].str_or_empty();
        if !ip.is_empty() {
            ip::warn_of_ip(ip, point.path(), &mut warnings);
        }
    }
    warnings
}
