//! The controller of `EndpointSlices`.

use super::backends::{self, Family, Port, families, is_told_of};
use super::{BATCH_PERIOD, HEADLESS_LABEL, TRIGGER_TIME, WORKERS, is_headless, services_of_pod};
use crate::common::owner::controller_ref;
use crate::common::selector::selector_of_map;
use crate::context::{Context, synced};
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use pintle_apimachinery::Str;
use pintle_apimachinery::env::Env;
use pintle_client::{Api, Client, Object as _, Result};
use pintle_informer::handler::{enqueue, enqueue_by};
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// The index of slices by the service that they are of.
const BY_SERVICE: &str = "service";

/// Endpoints in one slice; more make another slice.
const ENDPOINTS_PER_SLICE_MAX: usize = 100;

/// What was written is waited for in the cache for so long; then the cache counts.
const WRITES_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("endpoint_slice");
    let (services, pods) = (ctx.factory.informer::<Service>(), ctx.factory.informer::<Pod>());
    let (slices, nodes) = (ctx.factory.informer::<EndpointSlice>(), ctx.factory.informer::<Node>());
    slices.add_index(BY_SERVICE, |slice: &Cached<EndpointSlice>| {
        service_of(slice).map(|name| Str::new(name.to_string())).into_iter().collect()
    });
    services.add_event_handler(enqueue(&queue));
    slices.add_event_handler(enqueue_by(&queue, service_of));
    let (lister, batches) = (services.lister(), queue.clone());
    let unused = WorkQueue::<ObjectName>::new("endpoint_slice_pods");
    pods.add_event_handler(enqueue_by(&unused, move |pod: &Cached<Pod>| {
        for service in services_of_pod(&lister, pod) {
            batches.add_after(service, BATCH_PERIOD);
        }
        None
    }));
    let controller = Arc::new(SliceController {
        client: ctx.client_of("endpointslice-controller"),
        services: services.lister(),
        pods: pods.lister(),
        slices: slices.lister(),
        nodes: nodes.lister(),
        writes: Mutex::default(),
        env: ctx.env().clone(),
    });
    ctx.work(queue, WORKERS, synced!(services, pods, slices, nodes), move |name| {
        let controller = Arc::clone(&controller);
        async move { controller.sync(&name).await }
    });
}

/// The service of a slice that is ours.
fn service_of(slice: &Cached<EndpointSlice>) -> Option<ObjectName> {
    let is_ours = slice.label(MANAGED_BY).as_deref() == Some(CONTROLLER);
    let service = slice.label(SERVICE_NAME).filter(|_| is_ours)?;
    Some(ObjectName::new(slice.namespace(), service))
}

struct SliceController {
    client: Client,
    services: Lister<Cached<Service>>,
    pods: Lister<Cached<Pod>>,
    slices: Lister<Cached<EndpointSlice>>,
    nodes: Lister<Cached<Node>>,
    /// What was written for each service and may not be in the cache yet.
    writes: Mutex<BTreeMap<ObjectName, Writes>>,
    env: Env,
}

struct Writes {
    since: Instant,
    /// Name and generation of what was made or changed; the name alone of what was deleted.
    slices: Vec<(String, Option<i64>)>,
}

/// What is to be written.
#[derive(Debug, Default, PartialEq)]
struct Changes {
    create: Vec<EndpointSlice>,
    update: Vec<EndpointSlice>,
    delete: Vec<String>,
}

impl SliceController {
    async fn sync(&self, name: &ObjectName) -> Result<Action> {
        let Some(service) = self.services.get_by_key(name) else {
            // the garbage collector deletes the slices
            self.writes.lock().remove(name);
            return Ok(Action::Done);
        };
        let service = service.object()?;
        let spec = service.spec.clone().unwrap_or_default();
        let selector = spec.selector.filter(|selector| !selector.is_empty()).and_then(|map| selector_of_map(&map));
        let Some(selector) = selector.filter(|_| spec.type_.as_deref() != Some("ExternalName")) else {
            return Ok(Action::Done);
        };
        let cached = self.slices.by_index(BY_SERVICE, &name.to_string()).unwrap_or_default();
        if self.is_behind(name, &cached) {
            return Ok(Action::RequeueAfter(BATCH_PERIOD));
        }
        let slices: std::result::Result<Vec<EndpointSlice>, _> = cached.iter().map(Cached::to_owned_object).collect();
        let pods = self.pods.namespace(&name.namespace).select(&selector);
        let pods: std::result::Result<Vec<Arc<Pod>>, _> = pods.iter().map(Cached::object).collect();
        let zone = |node: &str| self.nodes.get(node)?.label(ZONE_LABEL).map(|zone| zone.into_owned());
        let changes = plan(&service, &pods?, slices?, &zone);
        self.write(name, changes).await
    }

    /// Whether the cache does not show all that was written.
    fn is_behind(&self, name: &ObjectName, cached: &[Cached<EndpointSlice>]) -> bool {
        let mut writes = self.writes.lock();
        let Some(written) = writes.get(name) else { return false };
        let find = |wanted: &str| cached.iter().find(|slice| slice.name() == wanted);
        let generation = |slice: &Cached<EndpointSlice>| {
            let text = slice.value_at(&["metadata", "generation"]).and_then(|raw| std::str::from_utf8(raw).ok());
            text.and_then(|text| text.parse::<i64>().ok()).unwrap_or_default()
        };
        let is_seen = |(slice, wanted): &(String, Option<i64>)| match wanted {
            None => find(slice).is_none(),
            Some(wanted) => find(slice).is_some_and(|slice| generation(slice) >= *wanted),
        };
        let is_behind = written.since.elapsed() < WRITES_TIMEOUT && !written.slices.iter().all(is_seen);
        if !is_behind {
            writes.remove(name);
        }
        is_behind
    }

    async fn write(&self, name: &ObjectName, changes: Changes) -> Result<Action> {
        let api = Api::<EndpointSlice>::namespaced(&self.client, &name.namespace);
        let mut written = Vec::new();
        let result = self.write_all(&api, changes, &mut written).await;
        if !written.is_empty() {
            self.writes.lock().insert(name.clone(), Writes { since: Instant::now(), slices: written });
        }
        match result {
            Err(error) if error.is_namespace_terminating() || error.is_not_found() => Ok(Action::Done),
            result => result.map(|()| Action::Done),
        }
    }

    async fn write_all(
        &self,
        api: &Api<EndpointSlice>,
        changes: Changes,
        written: &mut Vec<(String, Option<i64>)>,
    ) -> Result<()> {
        let now = self.env.clock.now().to_string();
        let stamp = |slice: &mut EndpointSlice| {
            slice.metadata.annotations.get_or_insert_default().insert(TRIGGER_TIME.to_owned(), now.clone());
        };
        let seen =
            |slice: &EndpointSlice| (slice.name().to_owned(), Some(slice.metadata.generation.unwrap_or_default()));
        for mut slice in changes.create {
            stamp(&mut slice);
            written.push(seen(&api.create(&slice).await?));
        }
        for mut slice in changes.update {
            stamp(&mut slice);
            written.push(seen(&api.update(&slice).await?));
        }
        for name in changes.delete {
            match api.delete(&name).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => written.push((name, None)),
            }
        }
        Ok(())
    }
}

/// What must be written so that the slices tell of the pods. Pure.
fn plan(
    service: &Service,
    pods: &[Arc<Pod>],
    known: Vec<EndpointSlice>,
    zone: &dyn Fn(&str) -> Option<String>,
) -> Changes {
    let families = families(service);
    let mut changes = Changes::default();
    let mut by_type: BTreeMap<String, Vec<EndpointSlice>> = BTreeMap::new();
    for slice in known {
        by_type.entry(slice.address_type.clone()).or_default().push(slice);
    }
    for family in &families {
        let known = by_type.remove(family.address_type()).unwrap_or_default();
        plan_family(service, *family, wanted(service, pods, *family, zone), known, &mut changes);
    }
    // a family that the service has no more
    changes.delete.extend(by_type.into_values().flatten().map(|slice| slice.name().to_owned()));
    changes
}

/// The endpoints by their ports.
fn wanted(
    service: &Service,
    pods: &[Arc<Pod>],
    family: Family,
    zone: &dyn Fn(&str) -> Option<String>,
) -> BTreeMap<Vec<Port>, Vec<Endpoint>> {
    let mut wanted: BTreeMap<Vec<Port>, Vec<Endpoint>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| is_told_of(pod, true)) {
        let Some(address) = backends::address(pod, family) else { continue };
        let (ready, serving, terminating) = backends::conditions(service, pod);
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).filter(|node| !node.is_empty());
        let endpoint = Endpoint {
            addresses: vec![address],
            conditions: Some(EndpointConditions {
                ready: Some(ready),
                serving: Some(serving),
                terminating: Some(terminating),
            }),
            hostname: backends::hostname(service, pod),
            zone: node.as_deref().and_then(zone),
            node_name: node,
            target_ref: Some(backends::target(pod)),
            ..Endpoint::default()
        };
        wanted.entry(backends::ports(service, pod)).or_default().push(endpoint);
    }
    wanted
}

/// Keeps endpoints where they are, so that a change of one pod changes one slice.
fn plan_family(
    service: &Service,
    family: Family,
    mut wanted: BTreeMap<Vec<Port>, Vec<Endpoint>>,
    known: Vec<EndpointSlice>,
    changes: &mut Changes,
) {
    let labels = labels(service);
    if wanted.is_empty() {
        return keep_placeholder(service, family, known, &labels, changes);
    }
    let mut kept: BTreeMap<Vec<Port>, Vec<(EndpointSlice, bool)>> = BTreeMap::new();
    for mut slice in known {
        let ports = ports_of(&slice);
        let Some(wanted) = wanted.get_mut(&ports) else {
            changes.delete.push(slice.name().to_owned());
            continue;
        };
        let mut is_changed = slice.metadata.labels.as_ref() != Some(&labels);
        let uid = |endpoint: &Endpoint| endpoint.target_ref.as_ref().and_then(|target| target.uid.clone());
        let before = std::mem::take(&mut slice.endpoints);
        let mut stay = Vec::new();
        for old in before {
            let at = wanted.iter().position(|new| uid(new) == uid(&old) && new.addresses == old.addresses);
            match at {
                Some(at) => {
                    let new = wanted.swap_remove(at);
                    is_changed |= new != old;
                    stay.push(new);
                }
                None => is_changed = true,
            }
        }
        slice.endpoints = stay;
        kept.entry(ports).or_default().push((slice, is_changed));
    }
    for (ports, mut new) in wanted {
        let mut slices = kept.remove(&ports).unwrap_or_default();
        // slices that change anyway are filled first, the fullest before the others
        slices.sort_by_key(|(slice, is_changed)| (!is_changed, std::cmp::Reverse(len(slice))));
        for (slice, is_changed) in &mut slices {
            let room = ENDPOINTS_PER_SLICE_MAX.saturating_sub(len(slice)).min(new.len());
            if room > 0 {
                slice.endpoints.extend(new.drain(..room));
                *is_changed = true;
            }
        }
        for chunk in new.chunks(ENDPOINTS_PER_SLICE_MAX) {
            changes.create.push(new_slice(service, family, &ports, chunk.to_vec(), &labels));
        }
        for (mut slice, is_changed) in slices {
            if len(&slice) == 0 {
                changes.delete.push(slice.name().to_owned());
                continue;
            }
            if is_changed {
                slice.metadata.labels = Some(labels.clone());
                changes.update.push(slice);
            }
        }
    }
}

/// A service without pods has one slice without endpoints.
fn keep_placeholder(
    service: &Service,
    family: Family,
    known: Vec<EndpointSlice>,
    labels: &BTreeMap<String, String>,
    changes: &mut Changes,
) {
    let is_placeholder = |slice: &EndpointSlice| {
        slice.endpoints.is_empty() && slice.ports.is_none() && slice.metadata.labels.as_ref() == Some(labels)
    };
    let kept = known.iter().position(is_placeholder);
    if kept.is_none() {
        changes.create.push(new_slice(service, family, &[], Vec::new(), labels));
    }
    let others = known.iter().enumerate().filter(|(idx, _)| Some(*idx) != kept);
    changes.delete.extend(others.map(|(_, slice)| slice.name().to_owned()));
}

fn len(slice: &EndpointSlice) -> usize {
    slice.endpoints.len()
}

fn ports_of(slice: &EndpointSlice) -> Vec<Port> {
    let port = |port: &EndpointPort| Port {
        name: port.name.clone().filter(|name| !name.is_empty()),
        number: port.port.unwrap_or_default(),
        protocol: port.protocol.clone(),
        app_protocol: port.app_protocol.clone(),
    };
    let mut ports: Vec<Port> = slice.ports.iter().flatten().map(port).collect();
    ports.sort();
    ports
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    for reserved in [SERVICE_NAME, MANAGED_BY, HEADLESS_LABEL] {
        labels.remove(reserved);
    }
    if is_headless(service) {
        labels.insert(HEADLESS_LABEL.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), service.name().to_owned());
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    labels
}

fn new_slice(
    service: &Service,
    family: Family,
    ports: &[Port],
    endpoints: Vec<Endpoint>,
    labels: &BTreeMap<String, String>,
) -> EndpointSlice {
    let port = |port: &Port| EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(port.number),
        protocol: port.protocol.clone(),
        app_protocol: port.app_protocol.clone(),
    };
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(crate::common::pods::name_prefix(service.name())),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            owner_references: Some(vec![controller_ref(service)]),
            ..ObjectMeta::default()
        },
        address_type: family.address_type().to_owned(),
        endpoints,
        ports: Some(ports.iter().map(port).collect::<Vec<_>>()).filter(|ports| !ports.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service() -> Service {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "ns", "uid": "s"},
            "spec": {"clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}]},
        }))
        .unwrap()
    }

    fn pods(range: std::ops::Range<usize>) -> Vec<Arc<Pod>> {
        let pod = |n: usize| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": format!("p{n}"), "uid": format!("p{n}")},
                "status": {"podIP": format!("10.1.{}.{}", n / 250, n % 250), "conditions": [{"type": "Ready", "status": "True"}]},
            }))
            .unwrap()
        };
        range.map(|n| Arc::new(pod(n))).collect()
    }

    /// The slices after changes were written.
    fn apply(mut slices: Vec<EndpointSlice>, changes: Changes, next: &mut usize) -> Vec<EndpointSlice> {
        slices.retain(|slice| !changes.delete.contains(&slice.name().to_owned()));
        for slice in changes.update {
            let at = slices.iter().position(|known| known.name() == slice.name()).unwrap();
            slices[at] = slice;
        }
        for mut slice in changes.create {
            *next += 1;
            slice.metadata.name = Some(format!("web-{next}"));
            slices.push(slice);
        }
        slices
    }

    fn show(changes: &Changes) -> String {
        let names = |slices: &[EndpointSlice]| {
            slices.iter().map(|s| format!("{}({})", s.name(), len(s))).collect::<Vec<_>>().join(" ")
        };
        format!("create [{}] update [{}] delete {:?}\n", names(&changes.create), names(&changes.update), changes.delete)
    }

    #[test]
    fn slices_change_as_little_as_possible() {
        let (mut slices, mut next, mut log) = (Vec::new(), 0, String::new());
        for range in [0..0, 0..2, 0..2, 0..150, 1..151, 0..1, 0..0] {
            let changes = plan(&service(), &pods(range.clone()), slices.clone(), &|_| None);
            log.push_str(&format!("{range:?}: {}", show(&changes)));
            slices = apply(slices, changes, &mut next);
            let n: usize = slices.iter().map(len).sum();
            assert_eq!(n, range.len());
            let again = plan(&service(), &pods(range.clone()), slices.clone(), &|_| None);
            assert_eq!(again, Changes::default(), "{range:?} does not come to rest");
        }
        expect_test::expect![[r#"
            0..0: create [(0)] update [] delete []
            0..2: create [(2)] update [] delete ["web-1"]
            0..2: create [] update [] delete []
            0..150: create [(50)] update [web-2(100)] delete []
            1..151: create [] update [web-2(100)] delete []
            0..1: create [] update [web-2(1)] delete ["web-3"]
            0..0: create [(0)] update [] delete ["web-2"]
        "#]]
        .assert_eq(&log);
    }
}
