//! Nobody gives away what they have not got: the check on writes of roles and bindings.
//!
//! Follows: pkg/registry/rbac/{escalation_check,validation/rule}.go and the policybased storages (v1.35).

use super::index::Missing;
use super::rule::{Rule, covers, full_authority, quoted};
use super::{GROUP, Rbac};
use crate::authz::{Attributes, Authorizer};
use crate::user;
use pintle_apimachinery::field::{aggregate, go_quote};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, Status, Value};
use pintle_kinds::UserInfo;

/// A write of a role or binding. For updates and patches the check runs on the object as it shall become, before
/// metadata that the server owns is put back.
#[derive(Clone, Copy, Debug)]
pub struct RoleWrite<'a> {
    /// Who asks.
    pub user: &'a UserInfo,
    /// `roles`, `clusterroles`, `rolebindings` or `clusterrolebindings`; other resources pass.
    pub resource: &'a str,
    /// The namespace in the path.
    pub namespace: &'a str,
    /// The name in the path; empty for a create.
    pub path_name: &'a str,
    /// The object as it shall become, defaults filled in.
    pub object: &'a Value,
    /// The object as it is, for updates.
    pub old: Option<&'a Value>,
}

/// Whether the user may write this role or binding.
///
/// # Errors
/// 403 with the rules that the user has not got; 404 when a binding names a role that is not there.
pub fn check_escalation(rbac: &Rbac, authorizer: &dyn Authorizer, write: &RoleWrite<'_>) -> Result<()> {
    if user::is_member(write.user, user::MASTERS) {
        return Ok(());
    }
    match write.resource {
        "roles" | "clusterroles" => check_role(rbac, authorizer, write),
        "rolebindings" | "clusterrolebindings" => check_binding(rbac, authorizer, write),
        _ => Ok(()),
    }
}

fn check_role(rbac: &Rbac, authorizer: &dyn Authorizer, write: &RoleWrite<'_>) -> Result<()> {
    let escalate =
        Attributes::resource(write.user, "escalate", GROUP, write.resource).at(write.namespace, write.path_name);
    if authorizer.authorize(&escalate).is_allowed() || is_only_for_collection(write) {
        return Ok(());
    }
    confirm_held(rbac, write, &Rule::list_from(write.object)).map_err(|why| forbidden(write, &why))?;
    // an aggregated role gathers anything, so to make or change one takes everything
    let is_aggregated = |role: &Value| !role["aggregationRule"]["clusterRoleSelectors"].is_empty();
    if write.resource == "clusterroles" && (is_aggregated(write.object) || write.old.is_some_and(is_aggregated)) {
        confirm_held(rbac, write, &full_authority())
            .map_err(|_| forbidden(write, "must have cluster-admin privileges to use the aggregationRule"))?;
    }
    Ok(())
}

fn check_binding(rbac: &Rbac, authorizer: &dyn Authorizer, write: &RoleWrite<'_>) -> Result<()> {
    if is_only_for_collection(write) {
        return Ok(());
    }
    let role = &write.object["roleRef"];
    let (kind, name) = (role["kind"].str_or_empty(), role["name"].str_or_empty());
    let resource = match kind {
        "ClusterRole" => Some("clusterroles"),
        "Role" => Some("roles"),
        _ => None,
    };
    let may_bind = resource.is_some_and(|resource| {
        let bind = Attributes::resource(write.user, "bind", role["apiGroup"].str_or_empty(), resource);
        authorizer.authorize(&bind.at(write.namespace, name)).is_allowed()
    });
    if may_bind {
        return Ok(());
    }
    let rules =
        rbac.role_rules(kind, name, write.namespace).map_err(|missing| Box::new(missing.live(write.resource)))?;
    confirm_held(rbac, write, &rules).map_err(|why| forbidden(write, &why))
}

fn forbidden(write: &RoleWrite<'_>, why: &str) -> Box<Status> {
    Box::new(Status::forbidden(&GroupResource::new(GROUP, write.resource), write.object.name(), why))
}

/// `Err` tells which of the rules the user has not got.
fn confirm_held(rbac: &Rbac, write: &RoleWrite<'_>, wanted: &[Rule]) -> Result<(), String> {
    let (owned, unresolved) = rbac.user_rules(write.user, write.namespace);
    let missing = covers(&owned, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let mut texts: Vec<String> = missing.iter().map(Rule::to_string).collect();
    texts.sort();
    texts.dedup();
    let mut why = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        go_quote(&write.user.name),
        quoted(&write.user.groups),
        texts.join("\n")
    );
    if !unresolved.is_empty() {
        let errors: Vec<String> =
            unresolved.iter().map(|missing: &Missing| missing.live(write.resource).message).collect();
        why.push_str(&format!("; resolution errors: [{}]", aggregate(&errors)));
    }
    Err(why)
}

/// Whether an update changes only what garbage collection changes: finalizers and owner references.
fn is_only_for_collection(write: &RoleWrite<'_>) -> bool {
    let Some(old) = write.old else { return false };
    let strip = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
            object.remove_at(&format!("metadata.{field}"));
        }
        object
    };
    strip(write.object) == strip(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::Chain;
    use expect_test::{Expect, expect};
    use pintle_apimachinery::json;
    use std::sync::Arc;

    fn world() -> (Arc<Rbac>, Chain) {
        let rbac = Arc::new(Rbac::new());
        let roles = |verbs: Value, resources: Value| json!({"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": resources});
        rbac.put("roles", &json!({"metadata": {"namespace": "ns", "name": "own"}, "rules": [
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
            roles(json!(["create"]), json!(["roles", "rolebindings"])),
            {"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "resourceNames": ["free"]},
        ]}));
        for name in ["big", "free"] {
            rbac.put("roles", &json!({"metadata": {"namespace": "ns", "name": name}, "rules": [{"verbs": ["*"], "apiGroups": [""], "resources": ["secrets"]}]}));
        }
        rbac.put("rolebindings", &json!({"metadata": {"namespace": "ns", "name": "b"}, "roleRef": {"kind": "Role", "name": "own"}, "subjects": [{"kind": "User", "name": "jane"}]}));
        let chain = Chain::of_modes(&["RBAC"], &[("RBAC", Arc::clone(&rbac) as Arc<dyn Authorizer>)]).unwrap();
        (rbac, chain)
    }

    fn check(resource: &str, object: Value, old: Option<&Value>, expect: Expect) {
        let (rbac, chain) = world();
        let user = user::named("jane", &["system:authenticated"]);
        let write = RoleWrite { user: &user, resource, namespace: "ns", path_name: "", object: &object, old };
        let text = match check_escalation(&rbac, &chain, &write) {
            Ok(()) => "ok".to_owned(),
            Err(status) => format!("{} {}", status.code, status.message),
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn roles() {
        let role = |rules: Value| json!({"metadata": {"name": "x"}, "rules": rules});
        check(
            "roles",
            role(json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])),
            None,
            expect!["ok"],
        );
        let big = role(json!([{"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["secrets", "pods"]}]));
        check(
            "roles",
            big.clone(),
            None,
            expect![[r#"
            403 roles.rbac.authorization.k8s.io "x" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
            {APIGroups:[""], Resources:["pods"], Verbs:["delete"]}
            {APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}"#]],
        );
        let mut finalized = big.clone();
        finalized.make("metadata").set("finalizers", json!(["a/b"]));
        check("roles", finalized, Some(&big), expect!["ok"]);
        let aggregated = json!({"metadata": {"name": "x"}, "aggregationRule": {"clusterRoleSelectors": [{}]}});
        check(
            "clusterroles",
            aggregated,
            None,
            expect![[
                r#"403 clusterroles.rbac.authorization.k8s.io "x" is forbidden: must have cluster-admin privileges to use the aggregationRule"#
            ]],
        );
    }

    #[test]
    fn bindings() {
        let binding = |role: &str| json!({"metadata": {"name": "x"}, "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role}});
        check("rolebindings", binding("own"), None, expect!["ok"]);
        check("rolebindings", binding("free"), None, expect!["ok"]);
        check(
            "rolebindings",
            binding("big"),
            None,
            expect![[r#"
            403 rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
            {APIGroups:[""], Resources:["secrets"], Verbs:["*"]}"#]],
        );
        check(
            "rolebindings",
            binding("gone"),
            None,
            expect![[r#"404 rolebindings.rbac.authorization.k8s.io "gone" not found"#]],
        );
    }
}
