//! `LabelSelector` objects as selectors.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use pintle_apimachinery::Str;
use pintle_apimachinery::labels::{Operator, Requirement, Selector};
use std::collections::{BTreeMap, BTreeSet};

/// The selector that an object spells; `None` when it breaks a rule, which the server has refused long ago.
pub(crate) fn selector_of(selector: &LabelSelector) -> Option<Selector> {
    let labels = selector.match_labels.iter().flatten();
    let equal = labels.map(|(key, value)| Requirement::new(key, Operator::In, BTreeSet::from([Str::new(value)])));
    let expressions = selector.match_expressions.iter().flatten().map(|expression| {
        let operator = match expression.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            // an unknown operator is refused by the server
            _ => Operator::DoesNotExist,
        };
        let values = expression.values.iter().flatten().map(Str::new).collect();
        Requirement::new(&expression.key, operator, values)
    });
    let requirements: Result<Vec<Requirement>, _> = equal.chain(expressions).collect();
    requirements.ok().map(Selector::of)
}

/// As [`selector_of`]; nothing is selected by a selector that is not there.
pub(crate) fn selector_of_optional(selector: Option<&LabelSelector>) -> Option<Selector> {
    selector.map_or_else(|| Some(Selector::nothing()), selector_of)
}

/// The selector of objects that have all these labels.
pub(crate) fn selector_of_map(labels: &BTreeMap<String, String>) -> Option<Selector> {
    let equal =
        labels.iter().map(|(key, value)| Requirement::new(key, Operator::Equals, BTreeSet::from([Str::new(value)])));
    let requirements: Result<Vec<Requirement>, _> = equal.collect();
    requirements.ok().map(Selector::of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_become_selectors() {
        let object = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d", "e"]}]});
        let selector = selector_of(&serde_json::from_value(object).unwrap()).unwrap();
        assert_eq!(selector.to_string(), "a in (b),c notin (d,e)");
        assert!(selector_of(&LabelSelector::default()).unwrap().is_everything());
    }
}
