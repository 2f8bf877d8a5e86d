//! `NamespaceLifecycle`: nothing new in a namespace that goes or is not there; some namespaces never go.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::errors::forbidden;
use async_trait::async_trait;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, Status, Value};
use pintle_auth::Lookup;
use std::sync::Arc;

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The plugin.
#[derive(Debug)]
pub struct NamespaceLifecycle {
    /// Where namespaces are.
    pub lookup: Arc<dyn Lookup>,
}

fn is_namespace_kind(attributes: &Attributes<'_>) -> bool {
    attributes.kind.group.is_empty() && attributes.kind.kind == "Namespace"
}

fn not_found(name: &str) -> Box<Status> {
    Box::new(Status::not_found(&GroupResource::new("", "namespaces"), name))
}

#[async_trait]
impl Plugin for NamespaceLifecycle {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        if is_namespace_kind(attributes) {
            return attributes.operation == Operation::Delete;
        }
        attributes.is_write()
            && !attributes.namespace.is_empty()
            && !attributes.is_about("authorization.k8s.io", "localsubjectaccessreviews")
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()> {
        if is_namespace_kind(attributes) {
            if IMMORTAL.contains(&attributes.name) {
                let resource = attributes.resource.group_resource();
                let why = "this namespace may not be deleted";
                return Err(Box::new(Status::forbidden(&resource, attributes.name, why)));
            }
            return Ok(());
        }
        let name = attributes.namespace;
        let namespace = match self.lookup.get("", "namespaces", "", name).await {
            Some(namespace) => namespace,
            None => self.lookup.get_live("", "namespaces", "", name).await?.ok_or_else(|| not_found(name))?,
        };
        if attributes.operation != Operation::Create || namespace["status"]["phase"].as_str() != Some("Terminating") {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        let status = *forbidden(attributes, Some(object), why);
        let message = format!("namespace {name} is being terminated");
        Err(Box::new(status.with_cause("NamespaceTerminating", message, "metadata.namespace")))
    }
}

/// `NamespaceExists`: the part of [`NamespaceLifecycle`] that asks whether the namespace is there.
#[derive(Debug)]
pub struct NamespaceExists {
    /// Where namespaces are.
    pub lookup: Arc<dyn Lookup>,
}

#[async_trait]
impl Plugin for NamespaceExists {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation != Operation::Connect && !attributes.namespace.is_empty() && !is_namespace_kind(attributes)
    }

    async fn validate(&self, attributes: &Attributes<'_>, _: Option<&Value>) -> Result<()> {
        let name = attributes.namespace;
        if self.lookup.get("", "namespaces", "", name).await.is_some() {
            return Ok(());
        }
        let found = self.lookup.get_live("", "namespaces", "", name).await?;
        found.map(|_| ()).ok_or_else(|| not_found(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;

    fn script() -> Script {
        let script = Script::new(|lookup| Arc::new(NamespaceLifecycle { lookup }));
        script.put("namespaces", json!({"metadata": {"name": "on"}, "status": {"phase": "Active"}}));
        script.put("namespaces", json!({"metadata": {"name": "off"}, "status": {"phase": "Terminating"}}));
        script
    }

    #[tokio::test]
    async fn namespaces_that_go() {
        let map = || json!({"metadata": {"name": "a"}});
        let script = script();
        script.create("configmaps on", map()).await.ok();
        script.create("configmaps none", map()).await.refused(expect![[r#"404 namespaces "none" not found"#]]);
        let refused = script.create("configmaps off", map()).await;
        assert_eq!(refused.status().details.as_ref().unwrap().causes[0].reason, "NamespaceTerminating");
        refused.refused(expect![[r#"403 configmaps "a" is forbidden: unable to create new content in namespace off because it is being terminated"#]]);
        script.update("configmaps off", map(), map()).await.ok();
        script.delete("configmaps off a").await.ok();
    }

    #[tokio::test]
    async fn namespaces_that_stay() {
        script()
            .delete("namespaces - default")
            .await
            .refused(expect![[r#"403 namespaces "default" is forbidden: this namespace may not be deleted"#]]);
        script().delete("namespaces - kube-node-lease").await.ok();
    }
}
