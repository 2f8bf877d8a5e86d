//! Amounts of resources: what pods ask for and what nodes have.

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use pintle_apimachinery::Str;
use pintle_apimachinery::quantity;
use std::collections::BTreeMap;

/// CPU that a container without a request counts for in scores, in thousandths.
const DEFAULT_MILLI_CPU: i64 = 100;
/// Memory that a container without a request counts for in scores, in bytes.
const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// CPU in thousandths.
    pub milli_cpu: i64,
    /// Memory in bytes.
    pub memory: i64,
    /// Local storage in bytes.
    pub ephemeral_storage: i64,
    /// Everything else, by name, ordered.
    pub others: Vec<(Str, i64)>,
}

impl Resources {
    /// Reads a list of quantities. What is no quantity counts as nothing: the server does not let it in.
    pub fn of(list: &BTreeMap<String, Quantity>) -> Resources {
        let mut resources = Resources::default();
        for (name, text) in list {
            let Ok(quantity) = quantity::Quantity::parse(&text.0) else { continue };
            match name.as_str() {
                "cpu" => resources.milli_cpu = quantity.milli_value(),
                "memory" => resources.memory = quantity.value(),
                "ephemeral-storage" => resources.ephemeral_storage = quantity.value(),
                "pods" => {}
                other => resources.others.push((Str::new(other), quantity.value())),
            }
        }
        resources
    }

    fn of_option(list: Option<&BTreeMap<String, Quantity>>) -> Resources {
        list.map(Resources::of).unwrap_or_default()
    }

    /// Adds `factor` times `other`.
    pub fn add(&mut self, other: &Resources, factor: i64) {
        self.milli_cpu += factor * other.milli_cpu;
        self.memory += factor * other.memory;
        self.ephemeral_storage += factor * other.ephemeral_storage;
        for (name, amount) in &other.others {
            *self.other_mut(name) += factor * amount;
        }
    }

    /// Makes every amount at least what it is in `other`.
    pub fn raise_to(&mut self, other: &Resources) {
        self.milli_cpu = self.milli_cpu.max(other.milli_cpu);
        self.memory = self.memory.max(other.memory);
        self.ephemeral_storage = self.ephemeral_storage.max(other.ephemeral_storage);
        for (name, amount) in &other.others {
            let mine = self.other_mut(name);
            *mine = (*mine).max(*amount);
        }
    }

    /// The amount of a resource other than CPU, memory and local storage.
    pub fn other(&self, name: &str) -> i64 {
        self.others.iter().find(|(known, _)| known == name).map_or(0, |(_, amount)| *amount)
    }

    fn other_mut(&mut self, name: &Str) -> &mut i64 {
        let idx = match self.others.binary_search_by(|(known, _)| known.cmp(name)) {
            Ok(idx) => idx,
            Err(idx) => {
                self.others.insert(idx, (name.clone(), 0));
                idx
            }
        };
        &mut self.others[idx].1
    }
}

/// What a container asks for.
fn requests(container: &Container) -> Resources {
    Resources::of_option(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
}

/// As [`requests`], with what a container without requests counts for in scores.
fn requests_or_defaults(container: &Container) -> Resources {
    let asked = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let has = |name: &str| asked.is_some_and(|asked| asked.contains_key(name));
    let mut requests = requests(container);
    if !has("cpu") {
        requests.milli_cpu = DEFAULT_MILLI_CPU;
    }
    if !has("memory") {
        requests.memory = DEFAULT_MEMORY;
    }
    requests
}

/// What a pod needs, and what it counts for in scores.
pub fn pod_requests(spec: &PodSpec) -> (Resources, Resources) {
    (sum(spec, requests), sum(spec, requests_or_defaults))
}

/// The containers together, or the init containers if those need more: each runs beside the sidecars before it.
fn sum(spec: &PodSpec, of: fn(&Container) -> Resources) -> Resources {
    let mut total = Resources::default();
    for container in &spec.containers {
        total.add(&of(container), 1);
    }
    let (mut sidecars, mut peak) = (Resources::default(), Resources::default());
    for container in spec.init_containers.iter().flatten() {
        let mut at_once = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            total.add(&at_once, 1);
            sidecars.add(&at_once, 1);
            at_once = sidecars.clone();
        } else {
            at_once.add(&sidecars, 1);
        }
        peak.raise_to(&at_once);
    }
    total.raise_to(&peak);
    // what is asked for the pod as a whole stands instead of the sum
    if let Some(whole) = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()) {
        let amounts = Resources::of(whole);
        if whole.contains_key("cpu") {
            total.milli_cpu = amounts.milli_cpu;
        }
        if whole.contains_key("memory") {
            total.memory = amounts.memory;
        }
    }
    total.add(&Resources::of_option(spec.overhead.as_ref()), 1);
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_pods_ask_for() {
        let container = |cpu: &str, policy: Option<&str>| json!({"name": "c", "restartPolicy": policy, "resources": {"requests": {"cpu": cpu, "example.org/x": "1"}}});
        let spec: PodSpec = serde_json::from_value(json!({
            "containers": [container("100m", None), container("200m", None)],
            "initContainers": [container("50m", Some("Always")), container("1", None)],
            "overhead": {"memory": "1Ki"},
        }))
        .unwrap();
        let (needs, counts) = pod_requests(&spec);
        assert_eq!((needs.milli_cpu, needs.memory, needs.other("example.org/x")), (1050, 1024, 3));
        assert_eq!(counts.memory, 3 * DEFAULT_MEMORY + 1024);
        let whole: PodSpec = serde_json::from_value(
            json!({"containers": [container("1", None)], "resources": {"requests": {"cpu": "3"}}}),
        )
        .unwrap();
        assert_eq!(pod_requests(&whole).0.milli_cpu, 3000);
    }
}
