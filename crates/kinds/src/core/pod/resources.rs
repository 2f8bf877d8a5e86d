//! What a pod asks for as a whole: the requests and limits of its containers together, its quality of service.
//!
//! Follows: component-helpers/resource/helpers.go and pkg/apis/core/helper/qos (v1.35).

use crate::common::resources::quantity;
use pintle_apimachinery::Value;
use pintle_apimachinery::quantity::Quantity;
use std::collections::BTreeMap;

/// Amounts by resource name.
pub type Amounts<'v> = BTreeMap<&'v str, Quantity>;

/// Whether an init container keeps running beside the others.
pub fn is_sidecar(init_container: &Value) -> bool {
    init_container["restartPolicy"].as_str() == Some("Always")
}

/// What the containers of a pod spec need together of `list` (`requests` or `limits`): all of them and the sidecars at
/// once, or the hungriest init container with the sidecars started before it, whichever is more.
pub fn aggregate<'v>(spec: &'v Value, list: &str) -> Amounts<'v> {
    let mut total = Amounts::new();
    for container in spec.get("containers").items() {
        add(&mut total, &amounts(container, list));
    }
    let mut sidecars = Amounts::new();
    let mut most = Amounts::new();
    for container in spec.get("initContainers").items() {
        let own = amounts(container, list);
        if is_sidecar(container) {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut most, &sidecars);
        } else {
            let mut together = own;
            add(&mut together, &sidecars);
            raise(&mut most, &together);
        }
    }
    raise(&mut total, &most);
    total
}

fn amounts<'v>(container: &'v Value, list: &str) -> Amounts<'v> {
    container.get("resources").get(list).entries().map(|(name, amount)| (name.as_str(), quantity(amount))).collect()
}

fn add<'v>(total: &mut Amounts<'v>, other: &Amounts<'v>) {
    for (name, amount) in other {
        total.entry(name).and_modify(|sum| *sum = sum.plus(*amount)).or_insert(*amount);
    }
}

fn raise<'v>(most: &mut Amounts<'v>, other: &Amounts<'v>) {
    for (name, amount) in other {
        most.entry(name).and_modify(|m| *m = (*m).max(*amount)).or_insert(*amount);
    }
}

/// The quality of service of a pod, as its status says or, before there is one, as its spec demands.
pub fn qos_class(pod: &Value) -> &str {
    match pod["status"]["qosClass"].str_or_empty() {
        "" => compute_qos_class(&pod["spec"]),
        class => class,
    }
}

/// The quality of service that a pod spec demands.
pub fn compute_qos_class(spec: &Value) -> &'static str {
    let mut requests = Amounts::new();
    let mut limits = Amounts::new();
    let mut is_guaranteed = true;
    let mut count = |resources: &'_ Value, needs_limits: bool| {
        add_compute(&mut requests, &resources["requests"]);
        let n_limited = add_compute(&mut limits, &resources["limits"]);
        is_guaranteed &= !needs_limits || n_limited == 2;
    };
    let of_pod = &spec["resources"];
    if of_pod.is_null() {
        for list in ["containers", "initContainers"] {
            spec[list].items().iter().for_each(|container| count(&container["resources"], true));
        }
    } else {
        count(of_pod, of_pod["limits"].entries().len() > 0);
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if is_guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the positive amounts of CPU and memory; answers how many there were.
fn add_compute(total: &mut Amounts<'static>, list: &Value) -> usize {
    let mut n_found = 0;
    for name in ["cpu", "memory"] {
        let amount = quantity(&list[name]);
        if amount.sign() > 0 {
            total.entry(name).and_modify(|sum| *sum = sum.plus(amount)).or_insert(amount);
            n_found += 1;
        }
    }
    n_found
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    fn container(requests: &[(&str, &str)], limits: &[(&str, &str)]) -> Value {
        let list = |amounts: &[(&str, &str)]| amounts.iter().copied().collect::<pintle_apimachinery::Object>();
        json!({"resources": {"requests": (list(requests)), "limits": (list(limits))}})
    }

    #[test]
    fn quality_of_service() {
        let all: &[(&str, &str)] = &[("cpu", "1"), ("memory", "1Gi")];
        let class = |containers: Vec<Value>| compute_qos_class(&json!({"containers": containers}));
        assert_eq!(class(vec![container(&[], &[])]), "BestEffort");
        assert_eq!(class(vec![container(&[("cpu", "0")], &[])]), "BestEffort");
        assert_eq!(class(vec![container(all, all)]), "Guaranteed");
        assert_eq!(class(vec![container(all, all), container(&[], &[])]), "Burstable");
        assert_eq!(class(vec![container(all, &[("cpu", "2"), ("memory", "1Gi")])]), "Burstable");
        let of_pod =
            json!({"resources": {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}});
        assert_eq!(compute_qos_class(&of_pod), "Guaranteed");
        assert_eq!(qos_class(&json!({"status": {"qosClass": "Burstable"}})), "Burstable");
    }

    #[test]
    fn init_containers_run_one_by_one_and_sidecars_stay() {
        let mut sidecar = container(&[("cpu", "1")], &[]);
        sidecar.set("restartPolicy", "Always");
        let spec = json!({
            "containers": [(container(&[("cpu", "2")], &[])), (container(&[("cpu", "1")], &[]))],
            "initContainers": [(container(&[("cpu", "4")], &[])), sidecar, (container(&[("cpu", "3500m"), ("memory", "1")], &[]))],
        });
        let total = aggregate(&spec, "requests");
        assert_eq!(total["cpu"].canonical(), "4500m");
        assert_eq!(total["memory"].canonical(), "1");
    }
}
