//! The cells of services, endpoints and the networking group.

use super::format::{Short, Subject, join, join_strings, labels, or, selector};
use pintle_apimachinery::Value;
use std::collections::BTreeSet;

/// Entries of a list of addresses or ports that are shown.
const ENTRIES_SHOWN: usize = 3;

pub(super) fn service(s: &Subject<'_>) -> Vec<Value> {
    let ports: Vec<String> = s.at("spec.ports").items().iter().map(service_port).collect();
    vec![
        s.name(),
        s.text("spec.type"),
        Value::from(s.at("spec.clusterIPs").items().first().and_then(Value::as_str).unwrap_or("<none>")),
        Value::from(external_ip(s)),
        Value::from(or(&ports.join(","), "<none>")),
        s.age(),
        labels(s.at("spec.selector")),
    ]
}

fn service_port(port: &Value) -> String {
    let number = |field: &str| port[field].as_i64().unwrap_or_default();
    let protocol = port["protocol"].str_or_empty();
    match number("nodePort") {
        node_port if node_port > 0 => format!("{}:{node_port}/{protocol}", number("port")),
        _ => format!("{}/{protocol}", number("port")),
    }
}

fn external_ip(s: &Subject<'_>) -> String {
    let external_ips = join_strings(s.at("spec.externalIPs"));
    match s.str("spec.type") {
        "ClusterIP" | "NodePort" => or(&external_ips, "<none>").to_owned(),
        "LoadBalancer" => {
            let balancer = load_balancer(s);
            match (balancer.is_empty(), external_ips.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (false, false) => format!("{balancer},{external_ips}"),
                _ => balancer + &external_ips,
            }
        }
        "ExternalName" => s.str("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses of a load balancer, sorted and each once.
fn load_balancer(s: &Subject<'_>) -> String {
    let ingress = s.at("status.loadBalancer.ingress").items().iter();
    let addresses: BTreeSet<&str> = ingress
        .map(|i| or(i["ip"].str_or_empty(), i["hostname"].str_or_empty()))
        .filter(|address| !address.is_empty())
        .collect();
    join(addresses.into_iter(), ",")
}

pub(super) fn endpoints(s: &Subject<'_>) -> Vec<Value> {
    let subsets = s.at("subsets").items();
    let mut shown = Short::new(ENTRIES_SHOWN);
    for subset in subsets {
        let addresses = || subset["addresses"].items().iter().map(|a| a["ip"].str_or_empty());
        if subset["ports"].items().is_empty() {
            addresses().for_each(|ip| shown.push(ip));
        }
        for port in subset["ports"].items() {
            let port = port["port"].as_i64().unwrap_or_default();
            addresses().for_each(|ip| {
                shown.push(if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") });
            });
        }
    }
    let empty = if subsets.is_empty() { "<none>" } else { "" };
    vec![s.name(), Value::from(shown.finish(",", empty)), s.age()]
}

pub(super) fn endpoint_slice(s: &Subject<'_>) -> Vec<Value> {
    let mut ports = Short::new(ENTRIES_SHOWN);
    for port in s.at("ports").items() {
        match (port["port"].as_i64(), port["name"].as_str()) {
            (Some(number), _) => ports.push(number.to_string()),
            (None, Some(name)) => ports.push(name),
            (None, None) => ports.push("*"),
        }
    }
    let mut addresses = Short::new(ENTRIES_SHOWN);
    for endpoint in s.at("endpoints").items() {
        endpoint["addresses"].items().iter().for_each(|a| addresses.push(a.str_or_empty()));
    }
    let [ports, addresses] = [ports, addresses].map(|list| Value::from(list.finish(",", "<unset>")));
    vec![s.name(), s.text("addressType"), ports, addresses, s.age()]
}

pub(super) fn ingress(s: &Subject<'_>) -> Vec<Value> {
    let ports = if s.at("spec.tls").items().is_empty() { "80" } else { "80, 443" };
    vec![
        s.name(),
        s.text_or("spec.ingressClassName", "<none>"),
        Value::from(ingress_hosts(s.at("spec.rules").items())),
        Value::from(load_balancer(s)),
        Value::from(ports),
        s.age(),
    ]
}

/// The first hosts. Rules without one are not shown, yet count among those that are left out.
fn ingress_hosts(rules: &[Value]) -> String {
    let mut hosts = Vec::new();
    let mut has_more = false;
    for rule in rules {
        has_more |= hosts.len() == ENTRIES_SHOWN;
        let host = rule["host"].str_or_empty();
        if !has_more && !host.is_empty() {
            hosts.push(host);
        }
    }
    match (hosts.is_empty(), has_more) {
        (true, _) => "*".to_owned(),
        (false, false) => hosts.join(","),
        (false, true) => format!("{} + {} more...", hosts.join(","), rules.len() - ENTRIES_SHOWN),
    }
}

pub(super) fn ingress_class(s: &Subject<'_>) -> Vec<Value> {
    let parameters = s.at("spec.parameters");
    let text = if parameters.is_null() {
        "<none>".to_owned()
    } else {
        let group = parameters["apiGroup"].as_str().map(|g| format!(".{g}")).unwrap_or_default();
        format!("{}{group}/{}", parameters["kind"].str_or_empty(), parameters["name"].str_or_empty())
    };
    vec![s.name(), s.text("spec.controller"), Value::from(text), s.age()]
}

pub(super) fn network_policy(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), selector(s.at("spec.podSelector")), s.age()]
}

pub(super) fn service_cidr(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), Value::from(join_strings(s.at("spec.cidrs"))), s.age()]
}

pub(super) fn ip_address(s: &Subject<'_>) -> Vec<Value> {
    let parent = s.at("spec.parentRef");
    let text = if parent.is_null() {
        "<none>".to_owned()
    } else {
        let part = |field: &str| parent[field].str_or_empty();
        let dot = if part("group").is_empty() { "" } else { "." };
        let slash = if part("namespace").is_empty() { "" } else { "/" };
        let resource = format!("{}{dot}{}", part("resource"), part("group")).to_lowercase();
        format!("{resource}{slash}{}/{}", part("namespace"), part("name"))
    };
    vec![s.name(), Value::from(text), s.age()]
}
