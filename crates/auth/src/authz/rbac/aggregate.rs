//! What the aggregation controller writes: the rules of ClusterRoles that are put together from others.

use pintle_apimachinery::Value;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::Meta;

/// The rules that the aggregated `role` should have, given every ClusterRole of the cluster: for each selector, in
/// order, the rules of the selected roles by name, each rule once. `None` when `role` has no aggregation rule or has
/// these rules already.
///
/// # Errors
/// The fault of a selector that cannot be read.
pub fn aggregated_rules<'a>(
    role: &Value,
    all: impl IntoIterator<Item = &'a Value> + Clone,
) -> Result<Option<Value>, String> {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].items();
    if role["aggregationRule"].is_null() {
        return Ok(None);
    }
    let mut rules: Vec<&Value> = Vec::new();
    for selector in selectors {
        let selector = Selector::from_object(selector)?;
        let mut parts: Vec<&Value> = all
            .clone()
            .into_iter()
            .filter(|part| part.name() != role.name() && selector.matches(&part.metadata()["labels"]))
            .collect();
        parts.sort_by_key(|part| part.name());
        for rule in parts.iter().flat_map(|part| part["rules"].items()) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    if role["rules"].items().iter().eq(rules.iter().copied()) {
        return Ok(None);
    }
    Ok(Some(rules.into_iter().cloned().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn rules_of_the_selected_roles_by_name_each_once() {
        let rule = |verb: &str| json!({"verbs": [verb], "apiGroups": [""], "resources": ["pods"]});
        let role = json!({"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"agg": "b"}}, {"matchLabels": {"agg": "a"}}]}});
        let part = |name: &str, agg: &str, rules: Value| json!({"metadata": {"name": name, "labels": {"agg": agg}}, "rules": rules});
        let all = [
            part("z", "a", json!([rule("get"), rule("list")])),
            part("y", "b", json!([rule("watch")])),
            part("x", "b", json!([rule("list")])),
            part("w", "c", json!([rule("delete")])),
        ];
        let rules = aggregated_rules(&role, &all).unwrap().unwrap();
        assert_eq!(rules, json!([rule("list"), rule("watch"), rule("get")]));
        let mut done = role;
        done.set("rules", rules);
        assert_eq!(aggregated_rules(&done, &all), Ok(None));
        assert_eq!(aggregated_rules(&all[0], &all), Ok(None));
    }
}
