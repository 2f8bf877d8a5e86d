//! Bringing the roles and bindings of an existing cluster up to date: what is missing is added, what somebody has added
//! stays, and whoever sets the annotation `autoupdate` to `false` is left alone.
//!
//! Follows: component-helpers/auth/rbac/reconciliation (v0.35).

use crate::authz::rbac::{Rule, covers};
use pintle_apimachinery::Value;
use pintle_apimachinery::meta::Meta;

/// What there is to do with a seeded object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing.
    Keep,
    /// Create it as it is seeded.
    Create(Value),
    /// Write this in place of what is there.
    Update(Value),
    /// Delete what is there and create it as it is seeded: a binding's role cannot change.
    Recreate(Value),
}

/// The annotation by which an object asks to be left alone.
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What there is to do with a seeded role or binding.
pub fn reconcile(existing: Option<&Value>, wanted: &Value) -> Action {
    let Some(existing) = existing else { return Action::Create(wanted.clone()) };
    if existing.annotation(AUTOUPDATE) == Some("false") {
        return Action::Keep;
    }
    let is_binding = wanted.has("roleRef");
    if is_binding && wanted["roleRef"] != existing["roleRef"] {
        return Action::Recreate(wanted.clone());
    }
    let mut object = existing.clone();
    for field in ["annotations", "labels"] {
        for (key, value) in wanted["metadata"][field].entries() {
            object["metadata"][field].set_default(key, value.clone());
        }
    }
    if is_binding {
        add_missing(&mut object, wanted, "subjects");
    } else {
        reconcile_rules(&mut object, existing, wanted);
    }
    if object == *existing { Action::Keep } else { Action::Update(object) }
}

/// Appends the items of `wanted`'s list that `object`'s has not.
fn add_missing(object: &mut Value, wanted: &Value, field: &str) {
    for item in wanted[field].items() {
        if !object[field].items().contains(item) {
            object[field].make_array().push(item.clone());
        }
    }
}

fn reconcile_rules(object: &mut Value, existing: &Value, wanted: &Value) {
    let missing = covers(&Rule::list_from(existing), &Rule::list_from(wanted));
    if !missing.is_empty() {
        object["rules"].make_array().extend(missing.iter().map(Rule::to_value));
    }
    if wanted["aggregationRule"].is_null() {
        object.remove("aggregationRule");
        return;
    }
    let selectors = wanted["aggregationRule"]["clusterRoleSelectors"].items();
    for selector in selectors {
        if !existing["aggregationRule"]["clusterRoleSelectors"].items().contains(selector) {
            object.make("aggregationRule.clusterRoleSelectors").make_array().push(selector.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::policy;
    use pintle_apimachinery::json;

    #[test]
    fn everything_as_seeded_is_kept() {
        for seed in policy() {
            assert_eq!(reconcile(Some(&seed.object), &seed.object), Action::Keep);
            assert_eq!(reconcile(None, &seed.object), Action::Create(seed.object.clone()));
        }
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_more_stays() {
        let rule = |verbs: Value| json!({"verbs": verbs, "apiGroups": [""], "resources": ["pods"]});
        let wanted = json!({"metadata": {"name": "r", "labels": {"a": "1"}}, "rules": [rule(json!(["get", "list"]))]});
        let existing = json!({"metadata": {"name": "r", "labels": {"a": "2", "b": "3"}}, "rules": [rule(json!(["get", "delete"]))]});
        let mut updated = existing.clone();
        updated["rules"].make_array().push(rule(json!(["list"])));
        assert_eq!(reconcile(Some(&existing), &wanted), Action::Update(updated));
        let mut left_alone = existing;
        left_alone["metadata"].set("annotations", json!({(AUTOUPDATE): "false"}));
        assert_eq!(reconcile(Some(&left_alone), &wanted), Action::Keep);
    }

    #[test]
    fn a_binding_of_another_role_is_made_anew() {
        let binding = |role: &str, subjects: Value| json!({"metadata": {"name": "b"}, "roleRef": {"name": role}, "subjects": subjects});
        let wanted = binding("r", json!([{"name": "x"}]));
        assert_eq!(reconcile(Some(&binding("s", json!([]))), &wanted), Action::Recreate(wanted.clone()));
        assert_eq!(
            reconcile(Some(&binding("r", json!([{"name": "y"}]))), &wanted),
            Action::Update(binding("r", json!([{"name": "y"}, {"name": "x"}])))
        );
    }
}
