//! The group `networking.k8s.io`.

pub mod ingress;
pub mod ingressclass;
pub mod ipaddress;
pub mod networkpolicy;
pub mod servicecidr;

use crate::Strategy;

/// The strategy of a resource of this group, if it has one of its own.
pub fn strategy(resource: &str) -> Option<&'static dyn Strategy> {
    Some(match resource {
        "ingressclasses" => &ingressclass::IngressClass,
        "ingresses" => &ingress::Ingress,
        "ipaddresses" => &ipaddress::IpAddress,
        "networkpolicies" => &networkpolicy::NetworkPolicy,
        "servicecidrs" => &servicecidr::ServiceCidr,
        _ => return None,
    })
}
