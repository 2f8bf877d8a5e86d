//! `OwnerReferencesPermissionEnforcement` (off by default): owner references take rights, too.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::errors::forbidden;
use async_trait::async_trait;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Value};
use pintle_auth::authz::{self, Authorizer};
use std::sync::Arc;

/// A resource that a kind is served as.
#[derive(Clone, Debug)]
pub struct RestMapping {
    /// The resource.
    pub resource: GroupVersionResource,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

/// Knows which resources serve a kind.
pub trait RestMappings: Send + Sync + std::fmt::Debug {
    /// The resources of a kind; none when it is not served.
    fn mappings(&self, kind: &GroupVersionKind) -> Vec<RestMapping>;
}

/// The plugin.
#[derive(Debug)]
pub struct OwnerReferencesPermissionEnforcement {
    /// Who decides about rights.
    pub authorizer: Arc<dyn Authorizer>,
    /// Where kinds are looked up.
    pub mappings: Arc<dyn RestMappings>,
}

fn owners(object: &Value) -> &[Value] {
    object.metadata()["ownerReferences"].items()
}

/// The owner references that block their owner's deletion and did not before.
fn newly_blocking<'o>(object: &'o Value, old: Option<&Value>) -> Vec<&'o Value> {
    let did_block = |owner: &Value| {
        let was = old.map_or(&[][..], owners).iter().find(|was| was["uid"] == owner["uid"]);
        was.is_some_and(|was| was["blockOwnerDeletion"].is_true())
    };
    owners(object).iter().filter(|owner| owner["blockOwnerDeletion"].is_true() && !did_block(owner)).collect()
}

#[async_trait]
impl Plugin for OwnerReferencesPermissionEnforcement {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        let is_pod_status = attributes.subresource == "status" && attributes.is_about("", "pods");
        attributes.is_write() && !is_pod_status
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(new) = object else { return Ok(()) };
        if owners(new) == attributes.old.map_or(&[][..], owners) {
            return Ok(());
        }
        let resource = attributes.resource;
        if attributes.operation != Operation::Create {
            let delete = authz::Attributes::resource(attributes.user, "delete", &resource.group, &resource.resource)
                .at(attributes.namespace, attributes.name)
                .with_subresource(attributes.subresource);
            let verdict = self.authorizer.authorize(&delete);
            if !verdict.is_allowed() {
                let why = format!("cannot set an ownerRef on a resource you can't delete: {}, <nil>", verdict.reason);
                return Err(forbidden(attributes, object, why));
            }
        }
        let blocking = newly_blocking(new, attributes.old);
        let anything = authz::Attributes::resource(attributes.user, "update", "*", "*").with_subresource("finalizers");
        if blocking.is_empty() || self.authorizer.authorize(&anything.at("", "*")).is_allowed() {
            return Ok(());
        }
        blocking.into_iter().try_for_each(|owner| self.check_owner(attributes, new, owner))
    }
}

impl OwnerReferencesPermissionEnforcement {
    fn check_owner(&self, attributes: &Attributes<'_>, object: &Value, owner: &Value) -> Result<()> {
        let (version, kind) = (owner["apiVersion"].str_or_empty(), owner["kind"].str_or_empty());
        let mappings = pintle_apimachinery::GroupVersion::parse(version)
            .map(|version| self.mappings.mappings(&version.with_kind(kind)))
            .unwrap_or_default();
        if mappings.is_empty() {
            let why = format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {version} \
                 Kind {kind}: no matches for kind \"{kind}\" in version \"{version}\""
            );
            return Err(forbidden(attributes, Some(object), why));
        }
        for mapping in mappings {
            let namespace = if mapping.is_namespaced { attributes.namespace } else { "" };
            let resource = &mapping.resource;
            let update = authz::Attributes::resource(attributes.user, "update", &resource.group, &resource.resource)
                .at(namespace, owner["name"].str_or_empty())
                .with_subresource("finalizers");
            let verdict = self.authorizer.authorize(&update);
            if !verdict.is_allowed() {
                let why = format!(
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers \
                     on: {}, <nil>",
                    verdict.reason
                );
                return Err(forbidden(attributes, Some(object), why));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;
    use pintle_auth::authz::rbac::Rbac;

    #[derive(Debug)]
    struct Known;

    impl RestMappings for Known {
        fn mappings(&self, kind: &GroupVersionKind) -> Vec<RestMapping> {
            let resource = GroupVersionResource::new("", "v1", "configmaps");
            if kind.kind == "ConfigMap" { vec![RestMapping { resource, is_namespaced: true }] } else { Vec::new() }
        }
    }

    fn script(rules: Value) -> Script {
        let rbac = Rbac::new();
        rbac.put("clusterroles", &json!({"metadata": {"name": "r"}, "rules": rules}));
        rbac.put("clusterrolebindings", &json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "jane"}]}));
        Script::new(|_| {
            Arc::new(OwnerReferencesPermissionEnforcement { authorizer: Arc::new(rbac), mappings: Arc::new(Known) })
        })
    }

    fn owned(kind: &str, is_blocking: bool) -> Value {
        json!({"metadata": {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "blockOwnerDeletion": is_blocking}]}})
    }

    #[tokio::test]
    async fn rights_that_owner_references_take() {
        let none = script(json!([]));
        none.create("pods ns", owned("ConfigMap", false)).await.ok();
        none.create("pods ns", owned("ConfigMap", true)).await.refused(expect![[r#"403 pods "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"#]]);
        none.create("pods ns", owned("Odd", true)).await.refused(expect![[r#"403 pods "a" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 Kind Odd: no matches for kind "Odd" in version "v1""#]]);
        none.update("pods ns", json!({"metadata": {"name": "a"}}), owned("ConfigMap", false)).await.refused(expect![[
            r#"403 pods "a" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>"#
        ]]);
        none.update("pods ns", owned("ConfigMap", true), owned("ConfigMap", true)).await.ok();
        let some = script(json!([{"verbs": ["update"], "apiGroups": [""], "resources": ["configmaps/finalizers"]}]));
        some.create("pods ns", owned("ConfigMap", true)).await.ok();
    }
}
