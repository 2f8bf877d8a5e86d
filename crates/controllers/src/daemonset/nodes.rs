//! Whether a pod belongs on a node: selectors, affinity, taints. Pure.

use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};
use pintle_client::Object as _;

/// What daemon pods tolerate beside what their template says: key, effect.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Tolerated by daemon pods on the host's network.
const NETWORK_UNAVAILABLE: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Adds what daemon pods tolerate.
pub(super) fn add_tolerations(spec: &mut PodSpec) {
    let on_host_network = spec.host_network.unwrap_or_default().then_some(NETWORK_UNAVAILABLE);
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.into_iter().chain(on_host_network) {
        let toleration = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
}

/// Binds a pod to a node by affinity: the scheduler does the rest.
pub(super) fn pin(spec: &mut PodSpec, node: &str) {
    let requirement = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let affinity: &mut Affinity = spec.affinity.get_or_insert_default();
    let node_affinity: &mut NodeAffinity = affinity.node_affinity.get_or_insert_default();
    let selector = node_affinity.required_during_scheduling_ignored_during_execution.get_or_insert_default();
    // the terms were looked at when the node was chosen
    *selector = NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm { match_fields: Some(vec![requirement]), match_expressions: None }],
    };
}

/// The node to which a pod is pinned.
pub(super) fn pinned_to(spec: &PodSpec) -> Option<&str> {
    let node_affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let selector = node_affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = selector.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let field = fields.into_iter().find(|field| field.key == "metadata.name" && field.operator == "In")?;
    field.values.as_ref()?.first().map(String::as_str)
}

/// Whether a pod of this template should run on a node, and whether one that runs there may stay.
pub(super) fn should_run(template: &PodSpec, node: &Node) -> (bool, bool) {
    let mut spec = template.clone();
    add_tolerations(&mut spec);
    let names_other = spec.node_name.as_deref().is_some_and(|name| !name.is_empty() && name != node.name());
    if names_other || !fits_affinity(&spec, node) {
        return (false, false);
    }
    let is_blocked = |effects: &[&str]| untolerated(&spec, node, effects).is_some();
    if is_blocked(&["NoSchedule", "NoExecute"]) {
        return (false, !is_blocked(&["NoExecute"]));
    }
    (true, true)
}

fn untolerated<'a>(spec: &PodSpec, node: &'a Node, effects: &[&str]) -> Option<&'a Taint> {
    let taints = node.spec.as_ref()?.taints.as_ref()?;
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    taints
        .iter()
        .find(|taint| effects.contains(&taint.effect.as_str()) && !tolerations.iter().any(|t| tolerates(t, taint)))
}

/// Whether a toleration is of a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (effect, key) = (text(&toleration.effect), text(&toleration.key));
    if (!effect.is_empty() && effect != taint.effect) || (!key.is_empty() && key != taint.key) {
        return false;
    }
    match text(&toleration.operator).as_str() {
        "Exists" => true,
        // a key is needed to compare values
        "" | "Equal" => !key.is_empty() && text(&toleration.value) == text(&taint.value),
        _ => false,
    }
}

fn fits_affinity(spec: &PodSpec, node: &Node) -> bool {
    let label = |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let mut wanted = spec.node_selector.iter().flatten();
    if !wanted.all(|(key, value)| label(key) == Some(value)) {
        return false;
    }
    let node_affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let Some(selector) = node_affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref())
    else {
        return true;
    };
    let field = |key: &str| (key == "metadata.name").then(|| node.name());
    selector.node_selector_terms.iter().any(|term| {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        // a term without conditions matches nothing
        (!expressions.is_empty() || !fields.is_empty())
            && expressions.iter().all(|requirement| meets(requirement, label(&requirement.key)))
            && fields.iter().all(|requirement| meets(requirement, field(&requirement.key)))
    })
}

fn meets(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let bound = number(values.first().map(String::as_str));
    let is_in = value.is_some_and(|value| values.iter().any(|wanted| wanted == value));
    match requirement.operator.as_str() {
        "In" => is_in,
        "NotIn" => !is_in,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number(value).zip(bound).is_some_and(|(value, bound)| value > bound),
        "Lt" => number(value).zip(bound).is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn where_daemons_run() {
        let node = |spec: Value| -> Node {
            serde_json::from_value(
                json!({"metadata": {"name": "n1", "labels": {"disk": "ssd", "cpus": "8"}}, "spec": spec}),
            )
            .unwrap()
        };
        let run = |template: Value, spec: Value| {
            let mut whole = json!({"containers": []});
            whole.as_object_mut().unwrap().extend(template.as_object().unwrap().clone());
            should_run(&serde_json::from_value(whole).unwrap(), &node(spec))
        };
        let affinity = |requirement: Value| {
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}}})
        };
        let taint = |effect: &str| json!({"taints": [{"key": "k", "value": "v", "effect": effect}]});
        assert_eq!(run(json!({}), json!({})), (true, true));
        assert_eq!(run(json!({"nodeSelector": {"disk": "hdd"}}), json!({})), (false, false));
        assert_eq!(run(affinity(json!({"key": "cpus", "operator": "Gt", "values": ["4"]})), json!({})), (true, true));
        assert_eq!(run(affinity(json!({"key": "cpus", "operator": "Lt", "values": ["4"]})), json!({})), (false, false));
        assert_eq!(run(json!({}), taint("NoSchedule")), (false, true));
        assert_eq!(run(json!({}), taint("NoExecute")), (false, false));
        assert_eq!(run(json!({"tolerations": [{"key": "k", "value": "v"}]}), taint("NoExecute")), (true, true));
        let unready = json!({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]});
        assert_eq!(run(json!({}), unready), (true, true));
    }

    #[test]
    fn pinned_pods_say_where() {
        let mut spec = PodSpec::default();
        pin(&mut spec, "n7");
        assert_eq!(pinned_to(&spec), Some("n7"));
    }
}
