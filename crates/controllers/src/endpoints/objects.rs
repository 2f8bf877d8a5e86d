//! The controller of `Endpoints`.

use super::backends::{self, Port, families, is_told_of, publishes_not_ready};
use super::{BATCH_PERIOD, HEADLESS_LABEL, TRIGGER_TIME, WORKERS, is_headless, services_of_pod};
use crate::common::pods::is_ready;
use crate::common::selector::selector_of_map;
use crate::context::{Context, synced};
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service};
use pintle_apimachinery::env::Env;
use pintle_client::{Api, Client, Result};
use pintle_informer::handler::{enqueue, enqueue_by};
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};
use std::collections::BTreeMap;
use std::sync::Arc;

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";
/// Says that there are more addresses than are told.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// Addresses in one object; ready ones are kept before others.
const ADDRESSES_MAX: usize = 1000;

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("endpoint");
    let (services, pods) = (ctx.factory.informer::<Service>(), ctx.factory.informer::<Pod>());
    let endpoints = ctx.factory.informer::<Endpoints>();
    services.add_event_handler(enqueue(&queue));
    endpoints.add_event_handler(enqueue(&queue));
    let pods_queue = WorkQueue::<ObjectName>::new("endpoint_pods");
    let (lister, batches) = (services.lister(), queue.clone());
    pods.add_event_handler(enqueue_by(&pods_queue, move |pod: &Cached<Pod>| {
        for service in services_of_pod(&lister, pod) {
            batches.add_after(service, BATCH_PERIOD);
        }
        None
    }));
    let controller = Arc::new(EndpointsController {
        client: ctx.client_of("endpoint-controller"),
        services: services.lister(),
        pods: pods.lister(),
        endpoints: endpoints.lister(),
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(services, pods, endpoints), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
}

struct EndpointsController {
    client: Client,
    services: Lister<Cached<Service>>,
    pods: Lister<Cached<Pod>>,
    endpoints: Lister<Cached<Endpoints>>,
    env: Env,
}

impl EndpointsController {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let api = Api::<Endpoints>::namespaced(&self.client, &name.namespace);
        let known = self.endpoints.get_by_key(name);
        let Some(service) = self.services.get_by_key(name) else {
            // endpoints without a service are somebody's own, unless they are ours
            if known.is_some_and(|known| known.label(MANAGED_BY).as_deref() == Some(CONTROLLER)) {
                match api.delete(&name.name).await {
                    Err(error) if !error.is_not_found() => return Err(error),
                    _ => {}
                }
            }
            return Ok(Action::Done);
        };
        let service = service.object()?;
        let spec = service.spec.clone().unwrap_or_default();
        let selector = spec.selector.filter(|selector| !selector.is_empty()).and_then(|map| selector_of_map(&map));
        let Some(selector) = selector.filter(|_| spec.type_.as_deref() != Some("ExternalName")) else {
            return Ok(Action::Done);
        };
        let pods = self.pods.namespace(&name.namespace).select(&selector);
        let pods: std::result::Result<Vec<Arc<Pod>>, _> = pods.iter().map(Cached::object).collect();
        let mut subsets = subsets(&service, &pods?);
        let is_truncated = truncate(&mut subsets);
        let old = known.map(|known| known.to_owned_object()).transpose()?;
        let labels = labels(&service);
        if let Some(old) = &old
            && old.subsets.clone().unwrap_or_default() == subsets
            && old.metadata.labels.as_ref() == Some(&labels)
            && old.metadata.annotations.as_ref().is_some_and(|a| a.contains_key(OVER_CAPACITY)) == is_truncated
        {
            return Ok(Action::Done);
        }
        let is_new = old.is_none();
        let mut new = old.unwrap_or_default();
        new.metadata.name = Some(name.name.to_string());
        new.metadata.labels = Some(labels);
        let annotations = new.metadata.annotations.get_or_insert_default();
        annotations.insert(TRIGGER_TIME.to_owned(), self.env.clock.now().to_string());
        if is_truncated {
            annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
        } else {
            annotations.remove(OVER_CAPACITY);
        }
        new.subsets = Some(subsets).filter(|subsets| !subsets.is_empty());
        let result = if is_new { api.create(&new).await } else { api.update(&new).await };
        match result {
            Err(error) if error.is_namespace_terminating() || error.is_not_found() => Ok(Action::Done),
            Err(error) if error.is_already_exists() => Ok(Action::RequeueAfter(BATCH_PERIOD)),
            result => result.map(|_| Action::Done),
        }
    }
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    if is_headless(service) {
        labels.insert(HEADLESS_LABEL.to_owned(), String::new());
    } else {
        labels.remove(HEADLESS_LABEL);
    }
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    labels
}

/// One subset for each set of ports, addresses in order.
fn subsets(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let Some(family) = families(service).first().copied() else { return Vec::new() };
    let mut by_ports: BTreeMap<Vec<Port>, (Vec<EndpointAddress>, Vec<EndpointAddress>)> = BTreeMap::new();
    let has_ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref()).is_some_and(|ports| !ports.is_empty());
    for pod in pods.iter().filter(|pod| is_told_of(pod, publishes_not_ready(service))) {
        let Some(ip) = backends::address(pod, family) else { continue };
        let ports = backends::ports(service, pod);
        if ports.is_empty() && (has_ports || !is_headless(service)) {
            continue;
        }
        let address = EndpointAddress {
            ip,
            hostname: backends::hostname(service, pod),
            node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            target_ref: Some(backends::target(pod)),
        };
        let (ready, not_ready) = by_ports.entry(ports).or_default();
        if publishes_not_ready(service) || is_ready(pod) { ready.push(address) } else { not_ready.push(address) }
    }
    by_ports.into_iter().map(|(ports, (ready, not_ready))| subset(ports, ready, not_ready)).collect()
}

fn subset(ports: Vec<Port>, mut ready: Vec<EndpointAddress>, mut not_ready: Vec<EndpointAddress>) -> EndpointSubset {
    let some = |addresses: &mut Vec<EndpointAddress>| {
        addresses.sort_by(|a, b| a.ip.cmp(&b.ip));
        Some(std::mem::take(addresses)).filter(|addresses| !addresses.is_empty())
    };
    let port = |port: Port| EndpointPort {
        name: port.name,
        port: port.number,
        protocol: port.protocol,
        app_protocol: port.app_protocol,
    };
    EndpointSubset {
        addresses: some(&mut ready),
        not_ready_addresses: some(&mut not_ready),
        ports: Some(ports.into_iter().map(port).collect::<Vec<_>>()).filter(|ports| !ports.is_empty()),
    }
}

/// Keeps no more addresses than [`ADDRESSES_MAX`]. Whether there were more.
fn truncate(subsets: &mut Vec<EndpointSubset>) -> bool {
    let mut room = ADDRESSES_MAX;
    let mut is_truncated = false;
    let mut cut = |addresses: &mut Option<Vec<EndpointAddress>>| {
        let Some(list) = addresses else { return };
        is_truncated |= list.len() > room;
        list.truncate(room);
        room -= list.len();
        *addresses = addresses.take().filter(|list| !list.is_empty());
    };
    subsets.iter_mut().for_each(|subset| cut(&mut subset.addresses));
    subsets.iter_mut().for_each(|subset| cut(&mut subset.not_ready_addresses));
    subsets.retain(|subset| subset.addresses.is_some() || subset.not_ready_addresses.is_some());
    is_truncated
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ready_and_not_ready_by_ports() {
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}]},
        }))
        .unwrap();
        let pod = |name: &str, ip: &str, port: &str, ready: &str| {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": [{"name": port, "containerPort": 8080}]}]},
                "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap();
            Arc::new(pod)
        };
        let pods = [
            pod("b", "10.1.0.2", "http", "True"),
            pod("a", "10.1.0.1", "http", "True"),
            pod("c", "10.1.0.3", "http", "False"),
            pod("d", "10.1.0.4", "other", "True"),
            pod("e", "fd00::1", "http", "True"),
        ];
        let mut subsets = subsets(&service, &pods);
        assert!(!truncate(&mut subsets));
        expect_test::expect![[r#"[{"addresses":[{"ip":"10.1.0.1","nodeName":"n","targetRef":{"kind":"Pod","name":"a"}},{"ip":"10.1.0.2","nodeName":"n","targetRef":{"kind":"Pod","name":"b"}}],"notReadyAddresses":[{"ip":"10.1.0.3","nodeName":"n","targetRef":{"kind":"Pod","name":"c"}}],"ports":[{"name":"http","port":8080,"protocol":"TCP"}]}]"#]]
            .assert_eq(&serde_json::to_string(&subsets).unwrap());
    }
}
