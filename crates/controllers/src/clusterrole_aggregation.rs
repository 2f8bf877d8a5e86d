//! Gathers the rules of cluster roles into those that aggregate them.
//!
//! Follows: kubernetes/pkg/controller/clusterroleaggregation (v1.35).

use crate::common::selector::selector_of;
use crate::context::{Context, synced};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use pintle_client::{Api, Client, Object as _, Result};
use pintle_informer::handler::enqueue_by;
use pintle_informer::workqueue::{Action, WorkQueue};
use pintle_informer::{Cached, Lister, ObjectName};
use serde_json::json;

/// Who owns the rules that were gathered.
const FIELD_MANAGER: &str = "clusterrole-aggregation-controller";

/// Starts the controller.
pub(crate) fn start(ctx: &Context) {
    let queue = WorkQueue::<ObjectName>::new("ClusterRoleAggregator");
    let roles = ctx.factory.informer::<ClusterRole>();
    let lister = roles.lister();
    // any role may be part of any that aggregates
    roles.add_event_handler(enqueue_by(&queue, move |_: &Cached<ClusterRole>| {
        let aggregating = lister.list_where(|role| role.value_at(&["aggregationRule"]).is_some());
        aggregating.iter().map(Cached::object_name).collect::<Vec<_>>()
    }));
    let (client, lister) = (ctx.client_of("clusterrole-aggregation-controller"), roles.lister());
    ctx.work(queue, 1, synced!(roles), move |name| sync(client.clone(), lister.clone(), name));
}

async fn sync(client: Client, roles: Lister<Cached<ClusterRole>>, name: ObjectName) -> Result<Action> {
    let Some(cached) = roles.get_by_key(&name) else { return Ok(Action::Done) };
    let role = cached.object()?;
    if role.aggregation_rule.is_none() {
        return Ok(Action::Done);
    }
    let parts: std::result::Result<Vec<_>, _> = roles.list().iter().map(Cached::object).collect();
    let parts = parts?;
    let rules = gathered(&role, parts.iter().map(AsRef::as_ref));
    if role.rules.clone().unwrap_or_default() == rules {
        return Ok(Action::Done);
    }
    let fields = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": role.name()}, "rules": rules,
    });
    match Api::<ClusterRole>::all(&client).apply(role.name(), FIELD_MANAGER, &fields).force().await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Action::Done),
    }
}

/// The rules of the roles that a role aggregates, by selector, then name; each rule once.
fn gathered<'a>(role: &ClusterRole, all: impl Iterator<Item = &'a ClusterRole> + Clone) -> Vec<PolicyRule> {
    let selectors = role.aggregation_rule.iter().flat_map(|rule| rule.cluster_role_selectors.iter().flatten());
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in selectors.filter_map(selector_of) {
        let labels = |part: &ClusterRole| part.metadata.labels.clone().unwrap_or_default();
        let mut parts: Vec<&ClusterRole> =
            all.clone().filter(|part| part.name() != role.name() && selector.matches(&labels(part))).collect();
        parts.sort_by(|a, b| a.name().cmp(b.name()));
        for rule in parts.iter().flat_map(|part| part.rules.iter().flatten()) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_gathered_once() {
        let role = |value: serde_json::Value| -> ClusterRole { serde_json::from_value(value).unwrap() };
        let rule = |resource: &str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]});
        let all = [
            role(json!({"metadata": {"name": "b", "labels": {"to": "view"}}, "rules": [rule("pods"), rule("nodes")]})),
            role(json!({"metadata": {"name": "a", "labels": {"to": "view"}}, "rules": [rule("pods")]})),
            role(json!({"metadata": {"name": "c", "labels": {"to": "edit"}}, "rules": [rule("secrets")]})),
            role(json!({"metadata": {"name": "view", "labels": {"to": "view"}}, "rules": [rule("old")],
                "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "view"}}]}})),
        ];
        let rules = gathered(&all[3], all.iter());
        let resources: Vec<String> = rules.into_iter().flat_map(|rule| rule.resources.unwrap()).collect();
        assert_eq!(resources, ["pods", "nodes"]);
    }
}
