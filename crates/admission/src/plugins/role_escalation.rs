//! Roles and bindings give nobody more than their author has. No flag switches this off: it is not among upstream's
//! plugins, where it belongs to the storage of these kinds.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use async_trait::async_trait;
use pintle_apimachinery::Value;
use pintle_apimachinery::status::Result;
use pintle_auth::authz::Authorizer;
use pintle_auth::authz::rbac::{Rbac, RoleWrite, check_escalation};
use std::sync::Arc;

/// The check. It goes behind all plugins, with [`crate::Chain::followed_by`], because it judges what they have made.
#[derive(Debug)]
pub struct RoleEscalation {
    /// The rules in force.
    pub rbac: Arc<Rbac>,
    /// Answers who may `escalate` and `bind`.
    pub authorizer: Arc<dyn Authorizer>,
}

#[async_trait]
impl Plugin for RoleEscalation {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.is_write() && attributes.resource.group == "rbac.authorization.k8s.io"
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()> {
        let write = RoleWrite {
            user: attributes.user,
            resource: &attributes.resource.resource,
            namespace: attributes.namespace,
            path_name: if attributes.operation == Operation::Create { "" } else { attributes.name },
            object,
            old: attributes.old,
        };
        check_escalation(&self.rbac, &*self.authorizer, &write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[tokio::test]
    async fn nobody_gives_what_they_have_not() {
        let rbac = Arc::new(Rbac::new());
        let pods = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        rbac.put("roles", &json!({"metadata": {"namespace": "ns", "name": "reader"}, "rules": pods.clone()}));
        rbac.put(
            "rolebindings",
            &json!({
                "metadata": {"namespace": "ns", "name": "jane"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
            }),
        );
        let script = Script::new(|_| Arc::new(RoleEscalation { rbac: rbac.clone(), authorizer: rbac }));
        let role = |rules: &Value| json!({"metadata": {"namespace": "ns", "name": "new"}, "rules": rules.clone()});
        script.create("roles.rbac.authorization.k8s.io ns", role(&pods)).await.ok();
        let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        let refused = script.update("roles.rbac.authorization.k8s.io ns new", role(&pods), role(&all)).await;
        refused.refused(expect![[r#"
            403 roles.rbac.authorization.k8s.io "new" is forbidden: user "jane" (groups=[]) is attempting to grant RBAC permissions not currently held:
            {APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#]]);
    }
}
