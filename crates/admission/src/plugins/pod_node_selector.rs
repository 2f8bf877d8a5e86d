//! `PodNodeSelector`: the node selector of a namespace goes into its pods.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use async_trait::async_trait;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, Status, Str, Value};
use pintle_auth::Lookup;
use std::collections::BTreeMap;
use std::sync::Arc;

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

/// The plugin.
#[derive(Debug)]
pub struct PodNodeSelector {
    /// Where namespaces are.
    pub lookup: Arc<dyn Lookup>,
    /// The configuration: selectors (`a=b,c=d`) by namespace; under `clusterDefaultNodeSelector` that of namespaces
    /// without an annotation. The one under a namespace's name is all that its pods may ask for.
    pub cluster_selectors: BTreeMap<String, String>,
}

/// The labels that a selector of equalities asks for.
fn labels(selector: &str) -> Result<BTreeMap<Str, Str>> {
    let mut labels = BTreeMap::new();
    for part in selector.split(',').filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err(Box::new(Status::plain_error(format!("invalid selector: {selector}"))));
        };
        let value = value.strip_prefix('=').unwrap_or(value);
        labels.insert(Str::new(key.trim()), Str::new(value.trim()));
    }
    Ok(labels)
}

impl PodNodeSelector {
    async fn namespace_selector(&self, name: &str) -> Result<BTreeMap<Str, Str>> {
        let namespace = match self.lookup.get("", "namespaces", "", name).await {
            Some(namespace) => Some(namespace),
            None => self.lookup.get_live("", "namespaces", "", name).await?,
        };
        let Some(namespace) = namespace else {
            return Err(Box::new(Status::internal(format!("namespace {name} does not exist"))));
        };
        match namespace.annotation(ANNOTATION) {
            Some(selector) => labels(selector),
            None => labels(self.cluster_selectors.get("clusterDefaultNodeSelector").map_or("", String::as_str)),
        }
    }

    async fn check(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<BTreeMap<Str, Str>> {
        let refused = |why: &str| Box::new(Status::forbidden(&GroupResource::new("", "pods"), pod.name(), why));
        let selector = self.namespace_selector(attributes.namespace).await?;
        let own = &pod["spec"]["nodeSelector"];
        if selector.iter().any(|(key, value)| own[key.as_str()].as_str().is_some_and(|own| own != value)) {
            return Err(refused("pod node label selector conflicts with its namespace node label selector"));
        }
        Ok(selector)
    }
}

#[async_trait]
impl Plugin for PodNodeSelector {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Create && attributes.is_on("", "pods")
    }

    async fn mutate(&self, attributes: &Attributes<'_>, pod: &mut Value) -> Result<()> {
        let selector = self.check(attributes, pod).await?;
        for (key, value) in &selector {
            pod.make("spec.nodeSelector").set_default(key, value);
        }
        self.validate(attributes, Some(pod)).await
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(pod) = object else { return Ok(()) };
        self.check(attributes, pod).await?;
        let allowed = labels(self.cluster_selectors.get(attributes.namespace).map_or("", String::as_str))?;
        let is_allowed = |key: &str, value: &Value| allowed.get(key).map(Str::as_str) == value.as_str();
        if allowed.is_empty() || pod["spec"]["nodeSelector"].entries().all(|(key, value)| is_allowed(key, value)) {
            return Ok(());
        }
        let why = "pod node label selector labels conflict with its namespace whitelist";
        Err(Box::new(Status::forbidden(&GroupResource::new("", "pods"), pod.name(), why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[tokio::test]
    async fn the_namespaces_selector() {
        let cluster_selectors = [("clusterDefaultNodeSelector", "env=prod"), ("tight", "a=1")];
        let cluster_selectors = cluster_selectors.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let script = Script::new(|lookup| Arc::new(PodNodeSelector { lookup, cluster_selectors }));
        script.put("namespaces", json!({"metadata": {"name": "ns"}}));
        script.put("namespaces", json!({"metadata": {"name": "tight", "annotations": {(ANNOTATION): "a=1"}}}));
        let pod = |selector: Value| json!({"metadata": {"name": "p"}, "spec": {"nodeSelector": selector}});
        script
            .create("pods ns", pod(json!({"x": "y"})))
            .await
            .shows("spec.nodeSelector", expect![[r#"{"env":"prod","x":"y"}"#]]);
        script.create("pods ns", pod(json!({"env": "dev"}))).await.refused(expect![[
            r#"403 pods "p" is forbidden: pod node label selector conflicts with its namespace node label selector"#
        ]]);
        script.create("pods tight", pod(json!({}))).await.shows("spec.nodeSelector", expect![[r#"{"a":"1"}"#]]);
        script.create("pods tight", pod(json!({"x": "y"}))).await.refused(expect![[
            r#"403 pods "p" is forbidden: pod node label selector labels conflict with its namespace whitelist"#
        ]]);
    }
}
