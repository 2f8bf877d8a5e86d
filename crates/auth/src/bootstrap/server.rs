//! What a server tells of itself in objects: the API versions that it serves, the range of its services' addresses,
//! and that it is alive.
//!
//! Follows: pkg/controlplane/apiserver/aggregator.go, pkg/controlplane/apiserver/server.go (v1.35).

use super::Seed;
use jiff::Timestamp;
use pintle_apimachinery::time::{micro_time_value, time_value};
use pintle_apimachinery::{Str, Value, json};
use std::time::Duration;

/// How often a server renews its identity lease.
pub const IDENTITY_RENEWAL: Duration = Duration::from_secs(10);

/// How long a server counts as alive after the last renewal (seconds).
const IDENTITY_SECONDS: i64 = 3600;

/// API group, version, and their priorities among groups and versions.
const API_SERVICES: [(&str, &str, i64, i64); 38] = [
    ("", "v1", 18000, 1),
    ("apps", "v1", 17800, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("events.k8s.io", "v1beta1", 17750, 5),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authentication.k8s.io", "v1beta1", 17700, 9),
    ("authentication.k8s.io", "v1alpha1", 17700, 1),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("certificates.k8s.io", "v1beta1", 17300, 9),
    ("certificates.k8s.io", "v1alpha1", 17300, 1),
    ("networking.k8s.io", "v1", 17200, 15),
    ("networking.k8s.io", "v1beta1", 17200, 12),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("storage.k8s.io", "v1", 16800, 15),
    ("storage.k8s.io", "v1beta1", 16800, 10),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("admissionregistration.k8s.io", "v1beta1", 16700, 12),
    ("admissionregistration.k8s.io", "v1alpha1", 16700, 9),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("scheduling.k8s.io", "v1alpha1", 16600, 9),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("coordination.k8s.io", "v1beta1", 16500, 13),
    ("coordination.k8s.io", "v1alpha2", 16500, 12),
    ("node.k8s.io", "v1", 16300, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("resource.k8s.io", "v1beta2", 16200, 15),
    ("resource.k8s.io", "v1beta1", 16200, 9),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("internal.apiserver.k8s.io", "v1alpha1", 16000, 9),
    ("resource.k8s.io", "v1alpha3", 15900, 9),
    ("storagemigration.k8s.io", "v1beta1", 15800, 9),
];

/// The APIServices of the built-in API versions that are served, each as group and version.
pub fn api_services(is_served: impl Fn(&str, &str) -> bool) -> Vec<Seed> {
    let served = API_SERVICES.iter().filter(|(group, version, ..)| is_served(group, version));
    served
        .map(|(group, version, group_priority, version_priority)| {
            let mut spec = json!({
                "version": *version, "groupPriorityMinimum": *group_priority, "versionPriority": *version_priority,
            });
            if !group.is_empty() {
                spec.set("group", *group);
            }
            Seed {
                group: "apiregistration.k8s.io",
                version: "v1",
                resource: "apiservices",
                object: json!({
                    "apiVersion": "apiregistration.k8s.io/v1",
                    "kind": "APIService",
                    "metadata": {
                        "name": format!("{version}.{group}"),
                        "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
                    },
                    "spec": spec,
                }),
            }
        })
        .collect()
}

/// The ServiceCIDR `kubernetes`: where the addresses of services come from.
pub fn service_cidr(cidrs: &[String], now: Timestamp) -> Seed {
    let condition = json!({
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": time_value(now),
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    });
    Seed {
        group: "networking.k8s.io",
        version: "v1",
        resource: "servicecidrs",
        object: json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": cidrs.to_vec()},
            "status": {"conditions": [condition]},
        }),
    }
}

/// The lease by which a server on `host` shows that it is alive. `uid` tells this run of it from others.
pub fn identity_lease(host: &str, uid: &str, now: Timestamp) -> Seed {
    let name = identity(host);
    Seed {
        group: "coordination.k8s.io",
        version: "v1",
        resource: "leases",
        object: json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "namespace": "kube-system",
                "name": name.clone(),
                "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": host},
            },
            "spec": identity_spec(&name, uid, now),
        }),
    }
}

/// The `spec` of an identity lease, renewed.
pub fn identity_spec(name: &str, uid: &str, now: Timestamp) -> Value {
    json!({
        "holderIdentity": format!("{name}_{uid}"),
        "leaseDurationSeconds": IDENTITY_SECONDS,
        "renewTime": micro_time_value(now),
    })
}

/// The name of the identity lease of a server on `host`.
pub fn identity(host: &str) -> Str {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut hashed = Vec::new();
    for part in [host, "kube-apiserver"] {
        hashed.extend(u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        hashed.extend(part.as_bytes());
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, &hashed);
    let bytes = &digest.as_ref()[..16];
    let mut name = Str::const_new("apiserver-");
    for bit in (0..bytes.len() * 8).step_by(5) {
        let of = |idx: usize| u16::from(bytes.get(idx).copied().unwrap_or_default());
        let window = (of(bit / 8) << 8) | of(bit / 8 + 1);
        let value = (window >> (11 - bit % 8)) & 0x1f;
        name.push(char::from(ALPHABET[usize::from(value)]));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn what_a_server_tells_of_itself() {
        assert_eq!(identity("vm"), "apiserver-wlv32tlttr4jl3gtroqexyxapa");
        let now: Timestamp = "2026-01-01T00:00:00.5Z".parse().expect("a time");
        let mut told = String::new();
        let services = api_services(|group, version| version == "v1" && (group.is_empty() || group == "apps"));
        for seed in
            services.into_iter().chain([service_cidr(&["10.0.0.0/24".to_owned()], now), identity_lease("vm", "u", now)])
        {
            told += &format!("{}\n", seed.object.to_json_string());
        }
        expect![[r#"
            {"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":"onstart"},"name":"v1."},"spec":{"groupPriorityMinimum":18000,"version":"v1","versionPriority":1}}
            {"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":"onstart"},"name":"v1.apps"},"spec":{"group":"apps","groupPriorityMinimum":17800,"version":"v1","versionPriority":15}}
            {"apiVersion":"networking.k8s.io/v1","kind":"ServiceCIDR","metadata":{"name":"kubernetes"},"spec":{"cidrs":["10.0.0.0/24"]},"status":{"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"Kubernetes default Service CIDR is ready","reason":"","status":"True","type":"Ready"}]}}
            {"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"labels":{"apiserver.kubernetes.io/identity":"kube-apiserver","kubernetes.io/hostname":"vm"},"name":"apiserver-wlv32tlttr4jl3gtroqexyxapa","namespace":"kube-system"},"spec":{"holderIdentity":"apiserver-wlv32tlttr4jl3gtroqexyxapa_u","leaseDurationSeconds":3600,"renewTime":"2026-01-01T00:00:00.500000Z"}}
        "#]].assert_eq(&told);
    }
}
