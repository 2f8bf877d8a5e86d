//! Where what is asked for is to be found.
//!
//! Follows: kubernetes pkg/registry/core/{pod,node,service} and pkg/kubelet/client (v1.35), texts included.

use super::backend::Target;
use super::options::{LogOptions, StreamOptions};
use super::scheme_name_port::split;
use crate::resources::Request;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, Status, Value};
use std::net::IpAddr;

/// The port of a node's agent that does not say which it has.
const KUBELET_PORT: i64 = 10_250;

/// Kinds of a node's addresses, the most wanted first.
const ADDRESS_TYPES: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];

/// Where a container's log is; `None` for a pod that is on no node.
pub(super) async fn log(request: &Request<'_>, options: &LogOptions) -> Result<Option<Target>> {
    let pod = this_pod(request).await?;
    let container = container(&pod, &options.container)?;
    let Some(node) = node_of(&pod) else { return Ok(None) };
    let path = format!("/containerLogs/{}/{container}?{}", path_of(&pod), options.to_query());
    Ok(Some(Target { path, ..agent(request, node).await? }))
}

/// Where a container can be attached to, or something be executed in it.
pub(super) async fn stream(request: &Request<'_>, kind: &str, options: &StreamOptions) -> Result<Target> {
    let pod = this_pod(request).await?;
    let container = container(&pod, &options.container)?;
    let node = host_of(&pod)?;
    let path = format!("/{kind}/{}/{container}?{}", path_of(&pod), options.to_query());
    Ok(Target { path, ..agent(request, node).await? })
}

/// Where a pod's ports can be reached.
pub(super) async fn port_forward(request: &Request<'_>) -> Result<Target> {
    let pod = this_pod(request).await?;
    let node = host_of(&pod)?;
    let ports: Vec<&str> = request.incoming.query.split('&').filter_map(|pair| pair.strip_prefix("ports=")).collect();
    let query = if ports.is_empty() { String::new() } else { format!("?port={}", ports.join(",")) };
    let path = format!("/portForward/{}{query}", path_of(&pod));
    Ok(Target { path, ..agent(request, node).await? })
}

/// Where a node, a pod or a service answers.
pub(super) async fn proxied(request: &Request<'_>) -> Result<Target> {
    let id = request.incoming.info.path_name();
    let kind = request.incoming.info.resource.as_str();
    let what = kind.strip_suffix('s').unwrap_or(kind);
    let invalid = || Box::new(Status::bad_request(format!("invalid {what} request {id:?}")));
    let (scheme, name, port) = split(id).ok_or_else(invalid)?;
    match kind {
        "nodes" => node(request, scheme, name, port).await,
        "pods" => pod(request, scheme, name, port).await,
        _ => service(request, scheme, name, port).await,
    }
}

async fn node(request: &Request<'_>, scheme: &str, name: &str, port: &str) -> Result<Target> {
    let agent = agent(request, name).await?;
    let may_be_local = request.incoming.state.backends.allows_local_nodes;
    let is_local = agent.host.parse::<IpAddr>().is_ok_and(|ip| !is_global(ip));
    if is_local && !(may_be_local && (port.is_empty() || port == agent.port.to_string())) {
        return Err(Box::new(Status::bad_request("address not allowed")));
    }
    if port.is_empty() || port == agent.port.to_string() {
        return Ok(agent);
    }
    let port = port.parse().map_err(|_| Box::new(Status::bad_request(format!("invalid port {port:?}"))))?;
    Ok(Target { port, is_tls: scheme == "https", is_agent: false, ..agent })
}

async fn pod(request: &Request<'_>, scheme: &str, name: &str, port: &str) -> Result<Target> {
    let pod = read(request, "pods", name).await?;
    let first_port = || {
        let containers = pod["spec"]["containers"].items().iter();
        containers.flat_map(|container| container["ports"].items()).find_map(|port| port["containerPort"].as_i64())
    };
    let ip = pod["status"]["podIPs"].items().first().map(|ip| ip["ip"].str_or_empty());
    let ip = ip.unwrap_or_else(|| pod["status"]["podIP"].str_or_empty());
    if !ip.parse().is_ok_and(is_global) {
        return Err(Box::new(Status::bad_request("address not allowed")));
    }
    let default = if scheme == "https" { 443 } else { 80 };
    let port = match port {
        "" => first_port().and_then(|port| u16::try_from(port).ok()).unwrap_or(default),
        text => text.parse().map_err(|_| Box::new(Status::bad_request(format!("invalid port {text:?}"))))?,
    };
    if let Some(simulated) = simulated(request, &pod, port).await {
        return Ok(simulated);
    }
    Ok(Target { host: ip.to_owned(), port, is_tls: scheme == "https", is_agent: false, path: String::new() })
}

/// Where the agent of a simulated node answers for one of its pods, which nobody else can reach.
async fn simulated(request: &Request<'_>, pod: &Value, port: u16) -> Option<Target> {
    let name = node_of(pod).filter(|_| request.incoming.state.backends.allows_local_nodes)?;
    let node = read(request, "nodes", name).await.ok()?;
    let runtime = node["status"]["nodeInfo"]["containerRuntimeVersion"].str_or_empty();
    let agent = agent_of(&node).ok().filter(|_| runtime.starts_with("pintle://"))?;
    Some(Target { path: format!("/simulated/{}/{port}", path_of(pod)), ..agent })
}

async fn service(request: &Request<'_>, scheme: &str, name: &str, port: &str) -> Result<Target> {
    let mut port_name = port.to_owned();
    if let Ok(number) = port.parse::<i64>() {
        let service = read(request, "services", name).await?;
        let found = service["spec"]["ports"].items().iter().find(|port| port["port"].as_i64() == Some(number));
        let Some(found) = found else {
            let text = format!("no service port {number} found for service {name:?}");
            return Err(Box::new(Status::unavailable(text)));
        };
        found["name"].str_or_empty().clone_into(&mut port_name);
    }
    // upstream words it so
    let absent = |_| Box::new(Status::not_found(&GroupResource::new("", "services"), name));
    let endpoints = read(request, "endpoints", name).await.map_err(absent)?;
    let subsets = endpoints["subsets"].items();
    let none = |what: &str| Box::new(Status::unavailable(format!("no endpoints available for service {what:?}")));
    if subsets.is_empty() {
        return Err(none(name));
    }
    let mut candidates = Vec::new();
    for subset in subsets {
        for port in subset["ports"].items().iter().filter(|port| port["name"].str_or_empty() == port_name) {
            let Some(number) = port["port"].as_i64().and_then(|port| u16::try_from(port).ok()) else { continue };
            // only addresses of pods: others are none of a proxy's business
            let pods = subset["addresses"].items().iter().filter(|a| a["targetRef"]["kind"].as_str() == Some("Pod"));
            let usable = pods.filter(|a| a["ip"].str_or_empty().parse().is_ok_and(is_global));
            candidates.extend(usable.map(|a| (a.clone(), number)));
        }
    }
    let random = usize::try_from(request.incoming.state.env.ids.random_u64()).unwrap_or(usize::MAX);
    let chosen = random.checked_rem(candidates.len()).and_then(|idx| candidates.into_iter().nth(idx));
    let (address, port) = chosen.ok_or_else(|| none(request.incoming.info.path_name()))?;
    if let Ok(pod) = read(request, "pods", address["targetRef"]["name"].str_or_empty()).await
        && let Some(simulated) = simulated(request, &pod, port).await
    {
        return Ok(simulated);
    }
    let host = address["ip"].str_or_empty().to_owned();
    Ok(Target { host, port, is_tls: scheme == "https", is_agent: false, path: String::new() })
}

/// Whether an address is one of the network: neither this machine's own nor a group's.
fn is_global(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(is_link_local || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast())
}

async fn this_pod(request: &Request<'_>) -> Result<Value> {
    read(request, "pods", request.incoming.info.path_name()).await
}

/// An object of the core group, in the request's namespace if its kind has one.
async fn read(request: &Request<'_>, resource: &str, name: &str) -> Result<Value> {
    let served = request.incoming.state.catalog.served().get("", "v1", resource).cloned();
    let resource = served.ok_or_else(|| Box::new(Status::not_found_path()))?;
    let record = request
        .with_call(async |call| {
            let namespace = if resource.is_namespaced { &request.incoming.info.namespace } else { "" };
            let call = pintle_registry::Call { namespace, name, subresource: "", ..*call };
            resource.get(&call, None).await
        })
        .await?;
    pintle_apimachinery::value::parse(&record.value).map_err(|why| Box::new(Status::internal(why)))
}

/// Namespace and name, as they stand in the paths of a node's agent.
fn path_of(pod: &Value) -> String {
    format!("{}/{}", pod["metadata"]["namespace"].str_or_empty(), pod["metadata"]["name"].str_or_empty())
}

fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())
}

fn host_of(pod: &Value) -> Result<&str> {
    let name = pod["metadata"]["name"].str_or_empty();
    node_of(pod).ok_or_else(|| Box::new(Status::bad_request(format!("pod {name} does not have a host assigned"))))
}

/// The container that is meant: the only one, or the one of this name.
fn container<'p>(pod: &'p Value, wanted: &'p str) -> Result<&'p str> {
    let (spec, pod_name) = (&pod["spec"], pod["metadata"]["name"].str_or_empty());
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let mut names = lists.iter().flat_map(|list| spec[*list].items()).map(|c| c["name"].str_or_empty());
    if !wanted.is_empty() {
        if names.any(|name| name == wanted) {
            return Ok(wanted);
        }
        let text = format!("container {wanted} is not valid for pod {pod_name}");
        return Err(Box::new(Status::bad_request(text)));
    }
    match spec["containers"].items() {
        [only] => Ok(only["name"].str_or_empty()),
        [] => {
            let text = format!("a container name must be specified for pod {pod_name}");
            Err(Box::new(Status::bad_request(text)))
        }
        _ => {
            let names: Vec<&str> = names.collect();
            let choice = names.join(" ");
            let text = format!("a container name must be specified for pod {pod_name}, choose one of: [{choice}]");
            Err(Box::new(Status::bad_request(text)))
        }
    }
}

/// Where the agent of a node answers.
async fn agent(request: &Request<'_>, name: &str) -> Result<Target> {
    agent_of(&read(request, "nodes", name).await?)
}

fn agent_of(node: &Value) -> Result<Target> {
    let addresses = node["status"]["addresses"].items();
    let of_type = |wanted: &str| addresses.iter().find(|address| address["type"].str_or_empty() == wanted);
    let Some(address) = ADDRESS_TYPES.iter().find_map(|wanted| of_type(wanted)) else {
        let known: Vec<String> = addresses
            .iter()
            .map(|a| format!("{{{} {}}}", a["type"].str_or_empty(), a["address"].str_or_empty()))
            .collect();
        let text = format!("no preferred addresses found; known addresses: [{}]", known.join(" "));
        return Err(Box::new(Status::plain_error(text)));
    };
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_i64().filter(|port| *port > 0);
    let port = u16::try_from(port.unwrap_or(KUBELET_PORT)).unwrap_or_default();
    let host = address["address"].str_or_empty().to_owned();
    Ok(Target { host, port, is_tls: true, is_agent: true, path: String::new() })
}
