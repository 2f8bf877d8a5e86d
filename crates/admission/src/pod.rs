//! Reading pods: their containers and what they ask for.
//!
//! Follows: component-helpers/resource/helpers.go (v0.35).

use pintle_apimachinery::quantity::Quantity;
use pintle_apimachinery::{Str, Value};
use std::collections::BTreeMap;

/// Amounts by resource name.
pub type ResourceList = BTreeMap<Str, Quantity>;

/// The annotation of a pod that a node runs by itself.
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// The three lists of containers: the field's name, and what messages call one.
pub const CONTAINER_FIELDS: [(&str, &str); 3] =
    [("initContainers", "init container"), ("containers", "container"), ("ephemeralContainers", "ephemeral container")];

/// All containers of a pod spec: init containers, containers, ephemeral containers.
pub fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    CONTAINER_FIELDS.iter().flat_map(|(field, _)| spec[field].items())
}

/// An amount as it stands in an object.
pub fn quantity(value: &Value) -> Quantity {
    let parse = |text: &str| Quantity::parse(text).unwrap_or(Quantity::ZERO);
    match value {
        Value::String(text) => parse(text),
        Value::Int(_) | Value::Float(_) => parse(&value.to_json_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Quantity::ZERO,
    }
}

/// The amounts of an object such as `resources.requests`.
pub fn resource_list(value: &Value) -> ResourceList {
    value.entries().map(|(name, amount)| (name.clone(), quantity(amount))).collect()
}

/// The amounts as an object.
pub fn resource_value(list: &ResourceList) -> Value {
    Value::Object(list.iter().map(|(name, amount)| (name.clone(), Value::from(amount.canonical()))).collect())
}

/// Adds `other` to `list`.
pub fn add(list: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        let sum = list.get(name).map_or(*amount, |own| own.plus(*amount));
        list.insert(name.clone(), sum);
    }
}

/// Raises `list` to at least `other`.
pub fn raise(list: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        if list.get(name).is_none_or(|own| amount > own) {
            list.insert(name.clone(), *amount);
        }
    }
}

/// Requests or limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What a container is promised.
    Requests,
    /// What it may use at most.
    Limits,
}

impl Side {
    /// The member of `resources`.
    pub fn field(self) -> &'static str {
        match self {
            Side::Requests => "requests",
            Side::Limits => "limits",
        }
    }
}

/// What counts when a pod's amounts are added up.
#[derive(Clone, Copy, Debug)]
pub struct Counting {
    /// What the node says it has given counts as well as what the spec asks for.
    pub with_status: bool,
    /// The overhead of the pod's runtime counts.
    pub with_overhead: bool,
    /// Huge pages may be asked for at the level of the pod.
    pub with_pod_level_huge_pages: bool,
}

/// The amounts of a pod: of its containers together, or of its init containers where those need more; what is asked for
/// at the level of the pod goes before.
pub fn pod_resources(pod: &Value, side: Side, counting: Counting) -> ResourceList {
    let spec = &pod["spec"];
    let of = |container: &Value| container_resources(pod, container, side, counting);
    let mut total = ResourceList::new();
    for container in spec["containers"].items() {
        add(&mut total, &of(container));
    }
    let (mut sidecars, mut init) = (ResourceList::new(), ResourceList::new());
    for container in spec["initContainers"].items() {
        let amounts = of(container);
        if container["restartPolicy"].as_str() == Some("Always") {
            add(&mut total, &amounts);
            add(&mut sidecars, &amounts);
            raise(&mut init, &sidecars);
        } else {
            let mut together = amounts;
            add(&mut together, &sidecars);
            raise(&mut init, &together);
        }
    }
    raise(&mut total, &init);
    for (name, amount) in resource_list(&spec["resources"][side.field()]) {
        let is_huge_pages = counting.with_pod_level_huge_pages && name.starts_with("hugepages-");
        if is_huge_pages || matches!(name.as_str(), "cpu" | "memory") {
            total.insert(name, amount);
        }
    }
    if counting.with_overhead {
        add_overhead(&mut total, &resource_list(&spec["overhead"]), side);
    }
    total
}

fn add_overhead(total: &mut ResourceList, overhead: &ResourceList, side: Side) {
    match side {
        Side::Requests => add(total, overhead),
        Side::Limits => {
            // what has no limit gets none through the overhead
            for (name, amount) in overhead {
                if let Some(own) = total.get_mut(name).filter(|own| !own.is_zero()) {
                    *own = own.plus(*amount);
                }
            }
        }
    }
}

/// Whether cpu, memory or huge pages are asked for at the level of the pod.
pub fn has_pod_level_resources(pod: &Value) -> bool {
    let resources = &pod["spec"]["resources"];
    let mut names = ["requests", "limits"].into_iter().flat_map(|field| resources[field].entries());
    names.any(|(name, _)| matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-"))
}

fn container_resources(pod: &Value, container: &Value, side: Side, counting: Counting) -> ResourceList {
    let asked = resource_list(&container["resources"][side.field()]);
    if !counting.with_status {
        return asked;
    }
    let name = container["name"].str_or_empty();
    let status = ["containerStatuses", "initContainerStatuses"]
        .into_iter()
        .flat_map(|field| pod["status"][field].items())
        .find(|status| status["name"].str_or_empty() == name && !status["resources"].is_null());
    let Some(status) = status else { return asked };
    let mut effective = if is_resize_infeasible(pod) { ResourceList::new() } else { asked };
    raise(&mut effective, &resource_list(&status["resources"][side.field()]));
    if side == Side::Requests {
        raise(&mut effective, &resource_list(&status["allocatedResources"]));
    }
    effective
}

fn is_resize_infeasible(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].items().iter();
    let pending = conditions.find(|condition| condition["type"].as_str() == Some("PodResizePending"));
    pending.is_some_and(|condition| condition["reason"].as_str() == Some("Infeasible"))
}

/// Whether the pod's quality of service is BestEffort: it asks for neither cpu nor memory.
pub fn is_best_effort(pod: &Value) -> bool {
    if let Some(class) = pod["status"]["qosClass"].as_str().filter(|class| !class.is_empty()) {
        return class == "BestEffort";
    }
    let asks = |resources: &Value| {
        ["requests", "limits"].into_iter().any(|field| {
            resources[field]
                .entries()
                .any(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && quantity(amount).sign() > 0)
        })
    };
    let spec = &pod["spec"];
    if !spec["resources"].is_null() {
        return !asks(&spec["resources"]);
    }
    !["containers", "initContainers"].into_iter().flat_map(|f| spec[f].items()).any(|c| asks(&c["resources"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn init_containers_sidecars_and_overhead() {
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}, "limits": {"cpu": amount}});
        let pod = json!({"spec": {
            "containers": [{"name": "a", "resources": cpu("100m")}, {"name": "b", "resources": cpu("200m")}],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "resources": cpu("50m")},
                {"name": "i", "resources": cpu("1")},
            ],
            "overhead": {"cpu": "10m", "memory": "1Mi"},
        }});
        let show = |side, with_overhead| {
            let counting = Counting { with_status: false, with_overhead, with_pod_level_huge_pages: true };
            resource_value(&pod_resources(&pod, side, counting)).to_json_string()
        };
        assert_eq!(show(Side::Requests, false), r#"{"cpu":"1050m"}"#);
        assert_eq!(show(Side::Requests, true), r#"{"cpu":"1060m","memory":"1Mi"}"#);
        assert_eq!(show(Side::Limits, true), r#"{"cpu":"1060m"}"#);
    }

    #[test]
    fn what_the_node_has_given_counts() {
        let pod = json!({
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}]},
        });
        let counting = Counting { with_status: true, with_overhead: true, with_pod_level_huge_pages: true };
        let cpu = |pod: &Value| pod_resources(pod, Side::Requests, counting)["cpu"].canonical();
        assert_eq!(cpu(&pod), "3");
        let mut infeasible = pod;
        infeasible.make("spec.containers").items_mut()[0]["resources"]["requests"].set("cpu", "9");
        assert_eq!(cpu(&infeasible), "9");
        infeasible["status"].set("conditions", json!([{"type": "PodResizePending", "reason": "Infeasible"}]));
        assert_eq!(cpu(&infeasible), "3");
    }
}
