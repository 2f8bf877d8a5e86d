//! Where a Service can be reached from here.
//!
//! Follows: apiserver/pkg/util/proxy/proxy.go (v0.35).

use pintle_apimachinery::env::Env;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{Str, Value};
use pintle_auth::Lookup;
use std::sync::Arc;

/// How services are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// At their cluster IP, which something on this machine has to route.
    #[default]
    ClusterIp,
    /// At one of their endpoints (`--enable-aggregator-routing`).
    Endpoints,
}

/// Finds the address of a Service.
#[derive(Clone, Debug)]
pub struct ServiceResolver {
    /// Where services and endpoints are.
    pub lookup: Arc<dyn Lookup>,
    /// How services are reached.
    pub routing: Routing,
    /// Host and port of this very server, which is the service `kubernetes` in the namespace `default`.
    pub own_address: Option<String>,
    /// Dice, for a choice among endpoints.
    pub env: Env,
}

impl ServiceResolver {
    /// `host:port` for a port of a Service.
    ///
    /// # Errors
    /// Why there is none, in upstream's words.
    pub async fn resolve(&self, namespace: &str, name: &str, port: i64) -> Result<String, String> {
        if let Some(own) =
            self.own_address.as_ref().filter(|_| (namespace, name, port) == ("default", "kubernetes", 443))
        {
            return Ok(own.clone());
        }
        let service = self.lookup.get("", "services", namespace, name).await;
        let service = service.ok_or_else(|| format!("service {} not found", go_quote(name)))?;
        let kind = service["spec"]["type"].str_or_empty();
        match (kind, self.routing) {
            ("ExternalName", Routing::ClusterIp) => {
                Ok(join_host_port(service["spec"]["externalName"].str_or_empty(), port))
            }
            ("ClusterIP" | "LoadBalancer" | "NodePort", Routing::ClusterIp) => cluster_address(&service, name, port),
            ("ClusterIP" | "LoadBalancer" | "NodePort", Routing::Endpoints) => {
                let port_name = Str::new(service_port(&service, name, port)?["name"].str_or_empty());
                self.endpoint(namespace, name, &port_name, &service).await
            }
            _ => Err(format!("unsupported service type {}", go_quote(kind))),
        }
    }

    /// A ready endpoint of the port of this name, by preference of the service's first address family.
    async fn endpoint(&self, namespace: &str, name: &str, port_name: &str, service: &Value) -> Result<String, String> {
        let slices = self.lookup.list("discovery.k8s.io", "endpointslices", namespace).await;
        let is_own =
            |slice: &&Arc<Value>| slice["metadata"]["labels"]["kubernetes.io/service-name"].as_str() == Some(name);
        let family = service["spec"]["ipFamilies"].items().first().map_or("", Value::str_or_empty);
        let mut slices: Vec<&Arc<Value>> = slices.iter().filter(is_own).collect();
        slices.sort_by_key(|slice| slice["addressType"].str_or_empty() != family);
        for slice in slices {
            let port = slice["ports"].items().iter().find(|port| port["name"].as_str() == Some(port_name));
            let Some(port) = port.and_then(|port| port["port"].as_i64()) else { continue };
            let is_ready = |endpoint: &&Value| endpoint["conditions"]["ready"].as_bool() != Some(false);
            let ready: Vec<&Value> = slice["endpoints"].items().iter().filter(is_ready).collect();
            let n_ready = u64::try_from(ready.len()).unwrap_or(u64::MAX);
            let Some(choice) = self.env.ids.random_u64().checked_rem(n_ready) else { continue };
            let address = usize::try_from(choice).ok().and_then(|choice| ready.get(choice));
            if let Some(address) = address.and_then(|endpoint| endpoint["addresses"].items().first()) {
                return Ok(join_host_port(address.str_or_empty(), port));
            }
        }
        Err(format!("no endpoints available for service {}", go_quote(name)))
    }
}

fn service_port<'a>(service: &'a Value, name: &str, port: i64) -> Result<&'a Value, String> {
    let mut ports = service["spec"]["ports"].items().iter();
    ports
        .find(|own| own["port"].as_i64() == Some(port))
        .ok_or_else(|| format!("no service port {port} found for service {}", go_quote(name)))
}

fn cluster_address(service: &Value, name: &str, port: i64) -> Result<String, String> {
    let address = service["spec"]["clusterIP"].str_or_empty();
    if address == "None" {
        return Err(r#"cannot route to service with ClusterIP "None""#.to_owned());
    }
    service_port(service, name, port)?;
    Ok(join_host_port(address, port))
}

/// `host:port`, with brackets around an IPv6 address.
pub(super) fn join_host_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use pintle_apimachinery::json;
    use pintle_auth::StaticLookup;

    #[tokio::test]
    async fn addresses_of_services() {
        let lookup = Arc::new(StaticLookup::default());
        let service = |name: &str, spec: Value| {
            lookup.put("", "services", json!({"metadata": {"namespace": "ns", "name": name}, "spec": spec}));
        };
        let ports = json!([{"name": "https", "port": 443}]);
        service("plain", json!({"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": ports.clone()}));
        service("six", json!({"type": "NodePort", "clusterIP": "fd00::7", "ports": ports.clone()}));
        service("headless", json!({"type": "ClusterIP", "clusterIP": "None", "ports": ports}));
        service("far", json!({"type": "ExternalName", "externalName": "far.example.com"}));
        let slice = |name: &str, endpoints: Value| {
            let labels = json!({"kubernetes.io/service-name": "plain"});
            let ports = json!([{"name": "other", "port": 1}, {"name": "https", "port": 8443}]);
            json!({
                "metadata": {"namespace": "ns", "name": name, "labels": labels},
                "addressType": "IPv4", "ports": ports, "endpoints": endpoints,
            })
        };
        let unready = json!({"addresses": ["10.1.0.1"], "conditions": {"ready": false}});
        let endpoints = json!([unready, {"addresses": ["10.1.0.2"]}]);
        lookup.put("discovery.k8s.io", "endpointslices", slice("plain-a", endpoints));
        let mut told = String::new();
        for routing in [Routing::ClusterIp, Routing::Endpoints] {
            let own_address = Some("127.0.0.1:6443".to_owned());
            let resolver = ServiceResolver { lookup: lookup.clone(), routing, own_address, env: Env::seeded(1) };
            for (name, port) in
                [("plain", 443), ("plain", 80), ("six", 443), ("headless", 443), ("far", 443), ("none", 443)]
            {
                let (Ok(text) | Err(text)) = resolver.resolve("ns", name, port).await;
                told += &format!("{name}:{port} {text}\n");
            }
            let (Ok(text) | Err(text)) = resolver.resolve("default", "kubernetes", 443).await;
            told += &format!("kubernetes {text}\n");
        }
        expect![[r#"
            plain:443 10.0.0.7:443
            plain:80 no service port 80 found for service "plain"
            six:443 [fd00::7]:443
            headless:443 cannot route to service with ClusterIP "None"
            far:443 far.example.com:443
            none:443 service "none" not found
            kubernetes 127.0.0.1:6443
            plain:443 10.1.0.2:8443
            plain:80 no service port 80 found for service "plain"
            six:443 no endpoints available for service "six"
            headless:443 no endpoints available for service "headless"
            far:443 unsupported service type "ExternalName"
            none:443 service "none" not found
            kubernetes 127.0.0.1:6443
        "#]]
        .assert_eq(&told);
    }
}
