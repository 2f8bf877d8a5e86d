//! Tells which pods are behind a service: `Endpoints` and `EndpointSlices`.
//!
//! Follows: kubernetes/pkg/controller/{endpoint,endpointslice} and k8s.io/endpointslice (v1.35). Differs: topology hints
//! are not made.

mod backends;
mod objects;
mod slices;

use k8s_openapi::api::core::v1::{Pod, Service};
use pintle_client::wire::{members, text_of};
use pintle_informer::{Cached, Lister, ObjectName};
use std::time::Duration;

pub(crate) use objects::start as start_endpoints;
pub(crate) use slices::start as start_slices;

/// Changes of pods are gathered for so long before a service's endpoints are written.
const BATCH_PERIOD: Duration = Duration::from_millis(100);

/// Services worked on at once.
const WORKERS: usize = 5;

/// The label of endpoints of services without a cluster IP.
const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";

/// The annotation with the time of the change that led to a write.
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The services whose selector matches a pod.
fn services_of_pod(services: &Lister<Cached<Service>>, pod: &Cached<Pod>) -> Vec<ObjectName> {
    let selects = |service: &Cached<Service>| {
        let selector = service.value_at(&["spec", "selector"]).unwrap_or_default();
        let mut wanted = members(selector).peekable();
        wanted.peek().is_some()
            && wanted.all(|(key, value)| {
                let key = std::str::from_utf8(key).unwrap_or_default();
                pod.label(key).is_some_and(|label| Some(label) == text_of(value))
            })
    };
    let selecting = services.namespace(pod.namespace()).list_where(selects);
    selecting.iter().map(Cached::object_name).collect()
}

/// Whether the service has no cluster IP.
fn is_headless(service: &Service) -> bool {
    let ip = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    ip.is_empty() || ip == "None"
}
