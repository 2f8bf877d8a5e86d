//! The addresses and node ports of services: which ones a service needs, in which order they are asked for, and what
//! becomes of the fields. The pools themselves are the registry's, behind [`Allocator`].
//!
//! Called before the strategy prepares and validates the service, as upstream does: validation requires what is
//! filled in here. Follows: pkg/registry/core/service/storage/{storage,alloc}.go (v1.35).

use super::validation::{NONE, is_headless, validate_cluster_ips};
use super::{needs_cluster_ip, needs_health_check_port};
use crate::common::ip::parse_ip;
use crate::common::{At, goform};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{ErrorList, FieldError, GroupKind, Path, Status, Value};
use std::net::IpAddr;

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// As `ipFamilies` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    fn of_name(name: &str) -> Option<Family> {
        [Family::V4, Family::V6].into_iter().find(|family| family.name() == name)
    }

    /// The family of an address.
    pub fn of(ip: IpAddr) -> Family {
        if ip.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    fn other(self) -> Family {
        match self {
            Family::V4 => Family::V6,
            Family::V6 => Family::V4,
        }
    }
}

/// Why a pool did not hand something out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing is left.
    #[error("range is full")]
    Full,
    /// Somebody has the address.
    #[error("provided IP is already allocated")]
    AddressTaken,
    /// Somebody has the port.
    #[error("provided port is already allocated")]
    PortTaken,
    /// The pool does not have the address.
    #[error("the provided network does not match the current range")]
    AddressOutOfRange,
    /// The pool does not have the port. With the pool's range.
    #[error("provided port is not in the valid range. The range of valid ports is {0}")]
    PortOutOfRange(String),
}

/// The pools, for the length of one request. What is handed out is given back by the owner of the pools when the
/// request fails; what is released is free only once it succeeded.
pub trait Allocator {
    /// The families that have a pool, the default first. Never empty.
    fn families(&self) -> &[Family];

    /// Hands out `wanted`, or any address of the family.
    ///
    /// # Errors
    /// Why not.
    fn allocate_ip(&mut self, family: Family, wanted: Option<IpAddr>) -> std::result::Result<IpAddr, Refusal>;

    /// Takes an address back.
    fn release_ip(&mut self, ip: IpAddr);

    /// Hands out `wanted`, or any port.
    ///
    /// # Errors
    /// Why not.
    fn allocate_port(&mut self, wanted: Option<i64>) -> std::result::Result<u16, Refusal>;

    /// Takes a port back.
    fn release_port(&mut self, port: i64);
}

/// Fills in what a new service needs.
///
/// # Errors
/// 422 when the fields contradict each other or what they ask for cannot be had, 500 when nothing is left.
pub fn on_create(service: &mut Value, pools: &mut dyn Allocator) -> Result<()> {
    let spec = service.make("spec");
    if !spec["clusterIP"].is_empty() && spec["clusterIPs"].items().is_empty() {
        set_ips(spec, vec![spec["clusterIP"].str_or_empty().to_owned()]);
    }
    init_families(service, &Value::NULL, pools)?;
    allocate_ips(service, pools)?;
    allocate_ports(service, pools)?;
    if needs_health_check_port(&service["spec"]) {
        allocate_health_check_port(service, pools)?;
    }
    Ok(())
}

/// Fills in what a changed service needs, keeps what it had, gives back what it needs no more.
///
/// # Errors
/// As [`on_create`].
pub fn on_update(service: &mut Value, old: &Value, pools: &mut dyn Allocator) -> Result<()> {
    keep_allocated(service.make("spec"), &old["spec"]);
    follow_single_ip(service.make("spec"), &old["spec"]);
    init_families(service, old, pools)?;
    update_ips(service, old, pools)?;
    update_ports(service, old, pools)
}

/// Gives back everything that a deleted service had.
pub fn on_delete(service: &Value, pools: &mut dyn Allocator) {
    let spec = &service["spec"];
    if needs_cluster_ip(spec) {
        release_ips(spec["clusterIPs"].items(), pools);
    }
    node_ports(spec).for_each(|port| pools.release_port(port));
    let health_check = spec["healthCheckNodePort"].as_i64().unwrap_or_default();
    if needs_health_check_port(spec) && health_check > 0 {
        pools.release_port(health_check);
    }
}

fn release_ips(ips: &[Value], pools: &mut dyn Allocator) {
    ips.iter().filter_map(|ip| parse_ip(ip.str_or_empty())).for_each(|ip| pools.release_ip(ip));
}

fn invalid(service: &Value, errors: &ErrorList) -> Box<Status> {
    Box::new(Status::invalid(&GroupKind::new("", "Service"), service.name(), errors))
}

fn refuse(service: &Value, path: &Path<'_>, shown: String, rule: String) -> Box<Status> {
    invalid(service, &vec![FieldError { shown: Some(shown), ..FieldError::invalid(path, "", rule) }])
}

fn texts(list: &Value) -> Vec<String> {
    list.items().iter().map(|item| item.str_or_empty().to_owned()).collect()
}

fn set_ips(spec: &mut Value, ips: Vec<String>) {
    if ips.is_empty() {
        spec.remove("clusterIPs");
    } else {
        spec.set("clusterIPs", ips);
    }
}

fn policy(spec: &Value) -> &str {
    spec["ipFamilyPolicy"].str_or_empty()
}

/// Clients that do not know of allocated fields leave them out; they stay.
fn keep_allocated(spec: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(spec) {
        for field in ["clusterIP", "clusterIPs"] {
            if spec[field].is_empty() && !old[field].is_empty() {
                spec.set(field, old[field].clone());
            }
        }
    }
    if allocates_node_ports(old) && allocates_node_ports(spec) {
        let kept: Vec<i64> = node_ports(old).filter(|port| node_ports(spec).any(|other| other == *port)).collect();
        let old_port = |name: &Value| {
            old["ports"].items().iter().rev().find(|port| port["name"] == *name).map(|port| port["nodePort"].clone())
        };
        for port in spec.get_mut("ports").map_or(&mut [][..], Value::items_mut) {
            if let Some(old) = old_port(&port["name"]).filter(|_| port["nodePort"].is_empty())
                && old.as_i64().is_some_and(|old| old != 0 && !kept.contains(&old))
            {
                port.set("nodePort", old);
            }
        }
    }
    if needs_health_check_port(old) && needs_health_check_port(spec) && spec["healthCheckNodePort"].is_empty() {
        spec.set("healthCheckNodePort", old["healthCheckNodePort"].clone());
    }
}

/// A client that knows `clusterIP` alone changes `clusterIPs` with it.
fn follow_single_ip(spec: &mut Value, old: &Value) {
    let is_same_single = spec["clusterIP"].str_or_empty() == old["clusterIP"].str_or_empty();
    let is_cleared = !old["clusterIPs"].items().is_empty() && spec["clusterIPs"].items().is_empty();
    if is_cleared && is_same_single {
        spec.set("clusterIPs", old["clusterIPs"].clone());
    }
    if is_same_single || spec["clusterIPs"].items() != old["clusterIPs"].items() {
        return;
    }
    let single = spec["clusterIP"].str_or_empty().to_owned();
    let is_unset = single.is_empty() && !old["clusterIP"].is_empty();
    set_ips(spec, if is_unset { Vec::new() } else { vec![single] });
}

/// Whether a service of policy PreferDualStack stays as it is: such are not converted by a change of the cluster.
fn is_settled_dual(spec: &Value, old: &Value) -> bool {
    let is_preferring = |spec: &Value| matches!(policy(spec), "PreferDualStack");
    !old.is_null()
        && spec["type"] == old["type"]
        && matches!(spec["type"].str_or_empty(), "ClusterIP" | "NodePort" | "LoadBalancer")
        && is_preferring(spec)
        && (old["ipFamilyPolicy"].is_null() || is_preferring(old))
        && spec["clusterIPs"].items() == old["clusterIPs"].items()
        && spec["ipFamilies"].items() == old["ipFamilies"].items()
}

/// Settles `ipFamilyPolicy` and `ipFamilies`.
fn init_families(service: &mut Value, old: &Value, pools: &dyn Allocator) -> Result<()> {
    let old_spec = &old["spec"];
    if !needs_cluster_ip(&service["spec"]) || is_settled_dual(&service["spec"], old_spec) {
        return Ok(());
    }
    let spec = service.make("spec");
    let is_headless_unselective = spec["clusterIP"].as_str() == Some(NONE) && spec["selector"].is_empty();
    if spec["ipFamilyPolicy"].is_null() {
        let default = match policy(old_spec) {
            "" if is_headless_unselective => "RequireDualStack",
            "" => "SingleStack",
            old => old,
        };
        spec.set("ipFamilyPolicy", default);
    }
    let mut errors = ErrorList::new();
    validate_cluster_ips(&At::top(service, "spec"), old_spec, &mut errors);
    if !errors.is_empty() {
        return Err(invalid(service, &errors));
    }
    settle_stack(service.make("spec"), old_spec, pools, &mut errors);
    if !errors.is_empty() {
        return Err(invalid(service, &errors));
    }
    let default = pools.families().first().copied().unwrap_or(Family::V4);
    let mut families: Vec<Family> =
        service["spec"]["ipFamilies"].items().iter().filter_map(|f| Family::of_name(f.str_or_empty())).collect();
    let wants_both = policy(&service["spec"]) != "SingleStack";
    if !is_headless_unselective {
        check_configured(&At::top(service, "spec"), pools, &mut errors);
        if !errors.is_empty() {
            return Err(invalid(service, &errors));
        }
    }
    if families.is_empty() {
        families.push(default);
    }
    if let [only] = families[..]
        && wants_both
        && (is_headless_unselective || pools.families().len() == 2)
    {
        families.push(only.other());
    }
    let names: Vec<&str> = families.into_iter().map(Family::name).collect();
    service.make("spec").set("ipFamilies", names);
    Ok(())
}

/// Makes addresses, families and policy agree as far as the request is clear.
fn settle_stack(spec: &mut Value, old: &Value, pools: &dyn Allocator, errors: &mut ErrorList) {
    let is_single = policy(spec) == "SingleStack";
    let specs = Path::new("spec");
    let policy_path = specs.child("ipFamilyPolicy");
    let shown = policy(spec).to_owned();
    let mut tell = |rule: &str| errors.push(FieldError::invalid(&policy_path, &shown, rule));
    let n = |spec: &Value, field: &str| spec[field].items().len();
    if !old.is_null() {
        for (field, rule) in [
            ("clusterIPs", "must be 'SingleStack' to release the secondary cluster IP"),
            ("ipFamilies", "must be 'SingleStack' to release the secondary IP family"),
        ] {
            if is_single && spec[field].items() == old[field].items() && n(spec, field) > 1 {
                if let Some(list) = spec.get_mut(field).and_then(Value::as_array_mut) {
                    list.truncate(1);
                }
            } else if !is_single && n(spec, field) > 0 && n(spec, field) < n(old, field) {
                tell(rule);
            }
        }
    }
    if is_single {
        for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if n(spec, field) == 2 {
                tell(&format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"));
            }
        }
    }
    let ips = texts(&spec["clusterIPs"]);
    for (idx, ip) in ips.iter().enumerate().take_while(|(_, ip)| *ip != NONE) {
        let Some(family) = parse_ip(ip).map(Family::of).filter(|_| idx >= n(spec, "ipFamilies")) else { continue };
        if pools.families().contains(&family) {
            spec.make("ipFamilies").make_array().push(Value::from(family.name()));
        } else {
            let path = specs.child("clusterIPs");
            let shown = goform::compact(&spec["clusterIPs"], "[]string");
            let rule = format!("{} is not configured on this cluster", family.name());
            errors.push(FieldError { shown: Some(shown), ..FieldError::invalid(&path.index(idx), "", rule) });
        }
    }
}

fn check_configured(spec: &At<'_>, pools: &dyn Allocator, errors: &mut ErrorList) {
    if policy(spec) == "RequireDualStack" && pools.families().len() < 2 {
        errors.push(spec.child("ipFamilyPolicy").invalid("this cluster is not configured for dual-stack services"));
    }
    for family in spec.child("ipFamilies").each() {
        if Family::of_name(family.text()).is_none_or(|f| !pools.families().contains(&f)) {
            errors.push(family.invalid("not configured on this cluster"));
        }
    }
}

/// An address for each family: the one that stands there already, or any.
fn allocate_ips(service: &mut Value, pools: &mut dyn Allocator) -> Result<()> {
    let spec = &service["spec"];
    if !needs_cluster_ip(spec) || spec["clusterIPs"].items().first().is_some_and(|ip| ip.as_str() == Some(NONE)) {
        return Ok(());
    }
    let mut ips = texts(&spec["clusterIPs"]);
    ips.resize(ips.len().max(spec["ipFamilies"].items().len()), String::new());
    for (idx, family) in texts(&spec["ipFamilies"]).iter().enumerate() {
        ips[idx] = allocate_ip(service, family, &ips, idx, pools)?;
    }
    let spec = service.make("spec");
    spec.set("clusterIP", ips[0].as_str());
    set_ips(spec, ips);
    Ok(())
}

fn allocate_ip(service: &Value, family: &str, ips: &[String], idx: usize, pools: &mut dyn Allocator) -> Result<String> {
    let wanted = ips[idx].as_str();
    let ip = parse_ip(wanted);
    let Some(family) = Family::of_name(family) else { return Ok(wanted.to_owned()) };
    if !wanted.is_empty() && ip.is_none() {
        let quoted = pintle_apimachinery::field::go_quote(wanted);
        return Err(Box::new(Status::internal(format!("failed to parse service IP {quoted}"))));
    }
    match pools.allocate_ip(family, ip) {
        Ok(_) if ip.is_some() => Ok(wanted.to_owned()),
        Ok(ip) => Ok(ip.to_string()),
        Err(Refusal::Full) if ip.is_none() => {
            Err(Box::new(Status::internal(format!("failed to allocate a serviceIP: {}", Refusal::Full))))
        }
        Err(why) => {
            let specs = Path::new("spec");
            let list: Value = ips.iter().map(Value::from).collect();
            let asked = if wanted.is_empty() { String::new() } else { format!(" {wanted}") };
            let rule = format!("failed to allocate IP{asked}: {why}");
            Err(refuse(service, &specs.child("clusterIPs"), goform::compact(&list, "[]string"), rule))
        }
    }
}

fn update_ips(service: &mut Value, old: &Value, pools: &mut dyn Allocator) -> Result<()> {
    let (spec, old_spec) = (&service["spec"], &old["spec"]);
    if is_settled_dual(spec, old_spec) {
        return Ok(());
    }
    if !needs_cluster_ip(old_spec) && needs_cluster_ip(spec) {
        return allocate_ips(service, pools);
    }
    if is_headless(old_spec) {
        return Ok(());
    }
    if needs_cluster_ip(old_spec) && !needs_cluster_ip(spec) {
        release_ips(old_spec["clusterIPs"].items(), pools);
        return Ok(());
    }
    let n_families = |spec: &Value| spec["ipFamilies"].items().len();
    match (n_families(old_spec), n_families(spec)) {
        (1, 2) => {
            let mut ips = texts(&spec["clusterIPs"]);
            ips.resize(ips.len().max(2), String::new());
            let family = spec["ipFamilies"].items()[1].str_or_empty().to_owned();
            ips[1] = allocate_ip(service, &family, &ips, 1, pools)?;
            set_ips(service.make("spec"), ips);
        }
        (2, 1) => release_ips(old_spec["clusterIPs"].items().get(1..).unwrap_or_default(), pools),
        _ => {}
    }
    Ok(())
}

fn node_ports(spec: &Value) -> impl Iterator<Item = i64> {
    spec["ports"].items().iter().filter_map(|port| port["nodePort"].as_i64()).filter(|port| *port != 0)
}

/// Whether ports without a node port get one.
fn allocates_node_ports(spec: &Value) -> bool {
    match spec["type"].str_or_empty() {
        "NodePort" => true,
        "LoadBalancer" => spec["allocateLoadBalancerNodePorts"].as_bool() != Some(false),
        _ => false,
    }
}

fn take_port(service: &Value, idx: usize, wanted: Option<i64>, pools: &mut dyn Allocator) -> Result<i64> {
    match pools.allocate_port(wanted) {
        Ok(port) => Ok(i64::from(port)),
        Err(why) => Err(match wanted {
            Some(wanted) => {
                let (specs, ports) = (Path::new("spec"), "ports");
                let list = specs.child(ports);
                let path = list.index(idx);
                refuse(service, &path.child("nodePort"), wanted.to_string(), why.to_string())
            }
            None => Box::new(Status::internal(format!("failed to allocate a nodePort: {why}"))),
        }),
    }
}

fn set_node_port(service: &mut Value, idx: usize, node_port: i64) {
    if let Some(port) = service.at_mut("spec.ports").and_then(|ports| ports.items_mut().get_mut(idx)) {
        port.set("nodePort", node_port);
    }
}

/// Node ports of a new service. Ports of one number share one node port, whatever their protocols.
fn allocate_ports(service: &mut Value, pools: &mut dyn Allocator) -> Result<()> {
    if !super::needs_node_port(&service["spec"]) {
        return Ok(());
    }
    let mut shared: Vec<(i64, i64)> = Vec::new();
    for idx in 0..service["spec"]["ports"].items().len() {
        let number = |port: &Value, field: &str| port[field].as_i64().unwrap_or_default();
        let spec = &service["spec"];
        let port = &spec["ports"].items()[idx];
        let (node_port, port) = (number(port, "nodePort"), number(port, "port"));
        if node_port == 0 && !allocates_node_ports(spec) {
            continue;
        }
        match shared.iter().find(|(other, _)| *other == port) {
            None => {
                let asked = |other: &Value| number(other, "port") == port && number(other, "nodePort") != 0;
                let wanted = spec["ports"].items().iter().find(|other| asked(other)).map(|p| number(p, "nodePort"));
                let taken = take_port(service, idx, wanted, pools)?;
                set_node_port(service, idx, taken);
                shared.push((port, taken));
            }
            Some((_, taken)) if node_port == 0 => {
                let taken = *taken;
                set_node_port(service, idx, taken);
            }
            Some((_, taken)) if *taken != node_port => {
                take_port(service, idx, Some(node_port), pools)?;
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn update_ports(service: &mut Value, old: &Value, pools: &mut dyn Allocator) -> Result<()> {
    let old_spec = &old["spec"];
    let had: Vec<i64> = node_ports(old_spec).collect();
    let (needs, needed) = (super::needs_node_port(&service["spec"]), super::needs_node_port(old_spec));
    if needed && !needs {
        had.iter().for_each(|port| pools.release_port(*port));
    }
    if needs {
        change_ports(service, &had, pools)?;
    }
    match (needs_health_check_port(old_spec), needs_health_check_port(&service["spec"])) {
        (false, true) => allocate_health_check_port(service, pools)?,
        (true, false) => pools.release_port(old_spec["healthCheckNodePort"].as_i64().unwrap_or_default()),
        _ => {}
    }
    Ok(())
}

fn change_ports(service: &mut Value, had: &[i64], pools: &mut dyn Allocator) -> Result<()> {
    let mut taken: Vec<i64> = Vec::new();
    let mut pairs: Vec<(String, i64)> = Vec::new();
    for idx in 0..service["spec"]["ports"].items().len() {
        let port = &service["spec"]["ports"].items()[idx];
        let protocol = port["protocol"].str_or_empty().to_owned();
        let mut node_port = port["nodePort"].as_i64().unwrap_or_default();
        if node_port == 0 {
            if !allocates_node_ports(&service["spec"]) {
                continue;
            }
            node_port = take_port(service, idx, None, pools)?;
            set_node_port(service, idx, node_port);
        } else if !had.contains(&node_port) && !taken.contains(&node_port) {
            take_port(service, idx, Some(node_port), pools)?;
            taken.push(node_port);
        }
        let pair = (protocol, node_port);
        if pairs.contains(&pair) {
            return Err(Box::new(Status::plain_error(format!("duplicate nodePort: {{{} {}}}", pair.0, pair.1))));
        }
        pairs.push(pair);
    }
    let has: Vec<i64> = node_ports(&service["spec"]).collect();
    had.iter().filter(|port| !has.contains(port)).for_each(|port| pools.release_port(*port));
    Ok(())
}

fn allocate_health_check_port(service: &mut Value, pools: &mut dyn Allocator) -> Result<()> {
    let wanted = service["spec"]["healthCheckNodePort"].as_i64().filter(|port| *port != 0);
    match pools.allocate_port(wanted) {
        Ok(port) => {
            service.make("spec").set("healthCheckNodePort", port);
            Ok(())
        }
        Err(why) => Err(Box::new(Status::internal(match wanted {
            Some(port) => format!("failed to allocate requested HealthCheck NodePort {port}: {why}"),
            None => format!("failed to allocate a HealthCheck NodePort 0: {why}"),
        }))),
    }
}
