//! The other objects of a new cluster.

use super::Seed;
use jiff::Timestamp;
use pintle_apimachinery::{Value, json};
use std::net::IpAddr;

/// The namespaces that exist from the start and cannot stay away.
pub fn namespaces() -> Vec<Seed> {
    ["kube-system", "kube-public", "kube-node-lease", "default"]
        .into_iter()
        .map(|name| Seed {
            group: "",
            version: "v1",
            resource: "namespaces",
            object: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        })
        .collect()
}

/// The priority classes of the system.
pub fn priority_classes() -> Vec<Seed> {
    [
        (
            "system-node-critical",
            2_000_001_000i64,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ]
    .into_iter()
    .map(|(name, value, description)| Seed {
        group: "scheduling.k8s.io",
        version: "v1",
        resource: "priorityclasses",
        object: json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }),
    })
    .collect()
}

/// Where the server can be reached from within the cluster.
#[derive(Clone, Debug)]
pub struct KubernetesService {
    /// The service's address: the first of the service range.
    pub cluster_ip: IpAddr,
    /// The address that the server is advertised under.
    pub advertise_address: IpAddr,
    /// The port that it listens on.
    pub port: u16,
}

/// The `kubernetes` service in `default` with its Endpoints and EndpointSlice.
pub fn kubernetes_service(at: &KubernetesService) -> Vec<Seed> {
    let family = if at.cluster_ip.is_ipv4() { "IPv4" } else { "IPv6" };
    let slice_family = if at.advertise_address.is_ipv4() { "IPv4" } else { "IPv6" };
    let (cluster_ip, address) = (at.cluster_ip.to_string(), at.advertise_address.to_string());
    let port = json!({"name": "https", "port": at.port, "protocol": "TCP"});
    let metadata = |labels: Value| json!({"namespace": "default", "name": "kubernetes", "labels": labels});
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(json!({"component": "apiserver", "provider": "kubernetes"})),
        "spec": {
            "clusterIP": cluster_ip.as_str(),
            "clusterIPs": [cluster_ip.as_str()],
            "ipFamilies": [family],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "type": "ClusterIP",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": at.port}],
        },
    });
    let endpoints = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": metadata(json!({"endpointslice.kubernetes.io/skip-mirror": "true"})),
        "subsets": [{"addresses": [{"ip": address.as_str()}], "ports": [port.clone()]}],
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata(json!({"kubernetes.io/service-name": "kubernetes"})),
        "addressType": slice_family,
        "endpoints": [{"addresses": [address.as_str()], "conditions": {"ready": true}}],
        "ports": [port],
    });
    vec![
        Seed { group: "", version: "v1", resource: "services", object: service },
        Seed { group: "", version: "v1", resource: "endpoints", object: endpoints },
        Seed { group: "discovery.k8s.io", version: "v1", resource: "endpointslices", object: slice },
    ]
}

/// What the server believes an authenticating proxy, as it tells extension servers.
#[derive(Clone, Debug)]
pub struct RequestHeader {
    /// PEM of the authorities of proxies.
    pub client_ca: String,
    /// Common names of proxies.
    pub allowed_names: Vec<String>,
    /// Headers with the user's name.
    pub username_headers: Vec<String>,
    /// Headers with the user's uid.
    pub uid_headers: Vec<String>,
    /// Headers with groups.
    pub group_headers: Vec<String>,
    /// What headers with extras begin with.
    pub extra_header_prefixes: Vec<String>,
}

/// The ConfigMap by which extension servers learn whom to believe.
pub fn extension_apiserver_authentication(client_ca: Option<&str>, proxy: Option<&RequestHeader>) -> Seed {
    let mut data = Value::object();
    if let Some(client_ca) = client_ca {
        data.set("client-ca-file", client_ca);
    }
    if let Some(proxy) = proxy {
        data.set("requestheader-client-ca-file", proxy.client_ca.as_str());
        let list = |items: &[String]| json!(items.to_vec()).to_json_string();
        for (key, items) in [
            ("requestheader-username-headers", &proxy.username_headers),
            ("requestheader-group-headers", &proxy.group_headers),
            ("requestheader-extra-headers-prefix", &proxy.extra_header_prefixes),
            ("requestheader-allowed-names", &proxy.allowed_names),
            ("requestheader-uid-headers", &proxy.uid_headers),
        ] {
            data.set(key, list(items));
        }
    }
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "extension-apiserver-authentication"},
    });
    if !data.is_empty() {
        object.set("data", data);
    }
    Seed { group: "", version: "v1", resource: "configmaps", object }
}

/// The ConfigMap that tells since when the use of tokens in secrets is tracked.
pub fn legacy_token_tracking(now: Timestamp) -> Seed {
    let today = pintle_apimachinery::time::format_time(now);
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "kube-apiserver-legacy-service-account-token-tracking"},
        "data": {"since": today.get(..10).unwrap_or_default()},
    });
    Seed { group: "", version: "v1", resource: "configmaps", object }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn objects() {
        let at = KubernetesService {
            cluster_ip: [10, 0, 0, 1].into(),
            advertise_address: [192, 0, 2, 2].into(),
            port: 6443,
        };
        let seeds: Vec<String> = kubernetes_service(&at).iter().map(|seed| seed.object.to_json_string()).collect();
        expect![[r#"
            {"apiVersion":"v1","kind":"Service","metadata":{"labels":{"component":"apiserver","provider":"kubernetes"},"name":"kubernetes","namespace":"default"},"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"https","port":443,"protocol":"TCP","targetPort":6443}],"sessionAffinity":"None","type":"ClusterIP"}}
            {"apiVersion":"v1","kind":"Endpoints","metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":"true"},"name":"kubernetes","namespace":"default"},"subsets":[{"addresses":[{"ip":"192.0.2.2"}],"ports":[{"name":"https","port":6443,"protocol":"TCP"}]}]}
            {"addressType":"IPv4","apiVersion":"discovery.k8s.io/v1","endpoints":[{"addresses":["192.0.2.2"],"conditions":{"ready":true}}],"kind":"EndpointSlice","metadata":{"labels":{"kubernetes.io/service-name":"kubernetes"},"name":"kubernetes","namespace":"default"},"ports":[{"name":"https","port":6443,"protocol":"TCP"}]}"#]]
        .assert_eq(&seeds.join("\n"));
        let map = extension_apiserver_authentication(Some("PEM"), None);
        assert_eq!(map.object["data"], json!({"client-ca-file": "PEM"}));
        assert_eq!(
            legacy_token_tracking("2026-03-04T05:06:07Z".parse().unwrap()).object["data"]["since"].as_str(),
            Some("2026-03-04")
        );
    }
}
