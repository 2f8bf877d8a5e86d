//! What a pod's specification asks of nodes and of other pods, in the form that is fast to evaluate.

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorTerm, PodAffinityTerm, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use pintle_apimachinery::Str;
use pintle_apimachinery::labels::{Labels, Operator, Requirement, Selector};
use std::collections::BTreeMap;

/// Labels by key.
pub type LabelMap = BTreeMap<String, String>;

/// The selector of a `LabelSelector`; one that cannot be read selects nothing, as the server lets none in.
pub fn selector(selector: &LabelSelector) -> Selector {
    let mut requirements = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        requirements.push(Requirement::new(key, Operator::Equals, [Str::new(value)].into()));
    }
    for expression in selector.match_expressions.iter().flatten() {
        let values = expression.values.iter().flatten().map(Str::new).collect();
        requirements.push(match operator(&expression.operator) {
            Some(operator) => Requirement::new(&expression.key, operator, values),
            None => return Selector::nothing(),
        });
    }
    match requirements.into_iter().collect::<Result<Vec<Requirement>, _>>() {
        Ok(requirements) => Selector::of(requirements),
        Err(_) => Selector::nothing(),
    }
}

fn operator(text: &str) -> Option<Operator> {
    Some(match text {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::GreaterThan,
        "Lt" => Operator::LessThan,
        _ => return None,
    })
}

/// One alternative of a node affinity: labels and fields.
#[derive(Clone, Debug)]
pub struct NodeTerm {
    labels: Selector,
    /// Names that the node must (or must not) have.
    names: Vec<(bool, Vec<Str>)>,
    /// An empty term matches nothing.
    is_empty: bool,
}

impl NodeTerm {
    /// Reads a term.
    pub fn new(term: &NodeSelectorTerm) -> NodeTerm {
        let mut requirements = Vec::new();
        let mut is_readable = true;
        for expression in term.match_expressions.iter().flatten() {
            let values = expression.values.iter().flatten().map(Str::new).collect();
            let read =
                operator(&expression.operator).map(|operator| Requirement::new(&expression.key, operator, values));
            match read {
                Some(Ok(requirement)) => requirements.push(requirement),
                Some(Err(_)) | None => is_readable = false,
            }
        }
        let names = term
            .match_fields
            .iter()
            .flatten()
            .map(|field| (field.operator == "In", field.values.iter().flatten().map(Str::new).collect()));
        let names: Vec<(bool, Vec<Str>)> = names.collect();
        let is_empty = requirements.is_empty() && names.is_empty();
        let labels = if is_readable { Selector::of(requirements) } else { Selector::nothing() };
        NodeTerm { labels, names, is_empty }
    }

    /// Whether the node is such a one.
    pub fn matches(&self, name: &str, labels: &LabelMap) -> bool {
        !self.is_empty
            && self.names.iter().all(|(is_in, names)| names.iter().any(|known| known == name) == *is_in)
            && self.labels.matches(labels)
    }

    /// The nodes that alone can match, if the term names them.
    fn named(&self) -> Option<&[Str]> {
        self.names.iter().find(|(is_in, _)| *is_in).map(|(_, names)| names.as_slice())
    }
}

/// The alternatives of a required node affinity.
pub fn node_terms(selector: &NodeSelector) -> Vec<NodeTerm> {
    selector.node_selector_terms.iter().map(NodeTerm::new).collect()
}

/// The nodes that alone can match one of the terms, if every term names some.
pub fn named_nodes(terms: &[NodeTerm]) -> Option<Vec<Str>> {
    let mut all = Vec::new();
    for term in terms {
        all.extend(term.named()?.iter().cloned());
    }
    (!terms.is_empty()).then_some(all)
}

/// A term of a pod affinity or anti-affinity: pods of these labels in these namespaces, on the same topology.
#[derive(Clone, Debug)]
pub struct PodTerm {
    /// The label of nodes whose values are the places.
    pub topology_key: Str,
    selector: Selector,
    namespaces: Vec<Str>,
    namespace_selector: Option<Selector>,
    /// How much it weighs; 0 for those that are required.
    pub weight: i64,
}

impl PodTerm {
    /// Reads a term of a pod in `namespace`.
    pub fn new(term: &PodAffinityTerm, namespace: &str, weight: i32) -> PodTerm {
        let mut namespaces: Vec<Str> = term.namespaces.iter().flatten().map(Str::new).collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(Str::new(namespace));
        }
        PodTerm {
            topology_key: Str::new(&term.topology_key),
            selector: term.label_selector.as_ref().map_or_else(Selector::nothing, selector),
            namespaces,
            namespace_selector: term.namespace_selector.as_ref().map(selector),
            weight: i64::from(weight),
        }
    }

    /// Whether a pod is such a one.
    pub fn matches(&self, namespace: &str, labels: &LabelMap, namespaces: &Namespaces) -> bool {
        let is_in_namespace = self.namespaces.iter().any(|known| known == namespace)
            || self.namespace_selector.as_ref().is_some_and(|selector| namespaces.matches(selector, namespace));
        is_in_namespace && self.selector.matches(labels)
    }
}

/// The labels of namespaces.
#[derive(Clone, Debug, Default)]
pub struct Namespaces {
    labels: BTreeMap<String, LabelMap>,
}

impl Namespaces {
    /// Sets a namespace's labels.
    pub fn set(&mut self, name: &str, labels: LabelMap) {
        self.labels.insert(name.to_owned(), labels);
    }

    /// Forgets a namespace.
    pub fn remove(&mut self, name: &str) {
        self.labels.remove(name);
    }

    fn matches(&self, selector: &Selector, name: &str) -> bool {
        match self.labels.get(name) {
            Some(labels) => selector.matches(labels),
            None => selector.matches(&LabelMap::new()),
        }
    }
}

/// Whether one of the tolerations bears the taint.
pub fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| bears(toleration, taint))
}

fn bears(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    let (effect, key) = (text(&toleration.effect), text(&toleration.key));
    if !effect.is_empty() && effect != taint.effect || !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "" | "Equal" => text(&toleration.value) == text(&taint.value),
        "Exists" => true,
        _ => false,
    }
}

/// Whether a pod's labels have a value for each of the keys, and which.
pub fn label_values(labels: &LabelMap, keys: &[String]) -> Vec<Requirement> {
    let of = |key: &String| Requirement::new(key, Operator::In, [Str::new(labels.label(key)?)].into()).ok();
    keys.iter().filter_map(of).collect()
}
