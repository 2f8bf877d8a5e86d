//! The pods behind a service, as addresses and ports. Pure.

use crate::common::pods::{is_finished, is_ready};
use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pintle_client::Object as _;
use std::net::IpAddr;

/// A port of a backend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: Option<String>,
    pub(super) number: i32,
    pub(super) protocol: Option<String>,
    pub(super) app_protocol: Option<String>,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// The name in slices.
    pub(super) fn address_type(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }
}

/// The families of a service.
pub(super) fn families(service: &Service) -> Vec<Family> {
    let named = service.spec.as_ref().and_then(|spec| spec.ip_families.clone()).unwrap_or_default();
    let families: Vec<Family> = named.iter().map(|name| if name == "IPv6" { Family::V6 } else { Family::V4 }).collect();
    if families.is_empty() { vec![Family::V4] } else { families }
}

/// A pod's address of a family.
pub(super) fn address(pod: &Pod, family: Family) -> Option<String> {
    let status = pod.status.as_ref()?;
    let of_family = |ip: &str| match ip.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => family == Family::V4,
        Ok(IpAddr::V6(_)) => family == Family::V6,
        Err(_) => false,
    };
    let all = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str()).chain(status.pod_ip.as_deref());
    all.into_iter().find(|ip| of_family(ip)).map(str::to_owned)
}

/// Whether a pod is told of at all. `with_terminating`: also when it goes away.
pub(super) fn is_told_of(pod: &Pod, with_terminating: bool) -> bool {
    !is_finished(pod) && (with_terminating || !pod.is_terminating())
}

/// Whether not being ready does not matter.
pub(super) fn publishes_not_ready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses).unwrap_or_default()
}

/// Ready, serving, terminating.
pub(super) fn conditions(service: &Service, pod: &Pod) -> (bool, bool, bool) {
    let (serving, terminating) = (is_ready(pod), pod.is_terminating());
    (publishes_not_ready(service) || (serving && !terminating), serving, terminating)
}

/// The name that DNS gives to a pod of this service.
pub(super) fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let is_subdomain = spec.subdomain.as_deref() == Some(service.name());
    spec.hostname.clone().filter(|hostname| !hostname.is_empty() && is_subdomain)
}

/// What an endpoint stands for.
pub(super) fn target(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The ports of a service on a pod; those whose name the pod does not have are left out.
pub(super) fn ports(service: &Service, pod: &Pod) -> Vec<Port> {
    let wanted = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let mut ports: Vec<Port> = wanted
        .filter_map(|port| {
            Some(Port {
                name: port.name.clone(),
                number: find_port(pod, port)?,
                protocol: port.protocol.clone(),
                app_protocol: port.app_protocol.clone(),
            })
        })
        .collect();
    ports.sort();
    ports
}

fn find_port(pod: &Pod, wanted: &ServicePort) -> Option<i32> {
    match wanted.target_port.as_ref() {
        None => Some(wanted.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let spec = pod.spec.as_ref()?;
            let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
            let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
            let mut ports =
                spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
            let protocol = |protocol: &Option<String>| protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            let is_wanted = |port: &&k8s_openapi::api::core::v1::ContainerPort| {
                port.name.as_ref() == Some(name) && protocol(&port.protocol) == protocol(&wanted.protocol)
            };
            ports.find(is_wanted).map(|port| port.container_port)
        }
    }
}
