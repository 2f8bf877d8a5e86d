//! `PodTopologyLabels`: zone and region of its node go into a pod's labels when it is bound.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use async_trait::async_trait;
use pintle_apimachinery::Value;
use pintle_apimachinery::meta::{Meta, set_label};
use pintle_apimachinery::status::Result;
use pintle_auth::Lookup;
use std::sync::Arc;

const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// The plugin.
#[derive(Debug)]
pub struct PodTopologyLabels {
    /// Where nodes are.
    pub lookup: Arc<dyn Lookup>,
}

#[async_trait]
impl Plugin for PodTopologyLabels {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Create
            && attributes.is_about("", "pods")
            && ["", "binding"].contains(&attributes.subresource)
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()> {
        let node_name = match attributes.subresource {
            "binding" if object["target"]["kind"].as_str() == Some("Node") => object["target"]["name"].str_or_empty(),
            "binding" => "",
            _ => object["spec"]["nodeName"].str_or_empty(),
        };
        if node_name.is_empty() {
            return Ok(());
        }
        let Some(node) = self.lookup.get("", "nodes", "", node_name).await else { return Ok(()) };
        for key in LABELS {
            if let Some(value) = node.label(key) {
                set_label(object, key, value);
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

    #[tokio::test]
    async fn bindings_and_bound_pods() {
        let script = Script::new(|lookup| Arc::new(PodTopologyLabels { lookup }));
        script.put(
            "nodes",
            json!({"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z", "other": "x"}}}),
        );
        let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
        script
            .create("pods/binding ns", binding)
            .await
            .shows("metadata.labels", expect![[r#"{"topology.kubernetes.io/zone":"z"}"#]]);
        let pod = |node: &str| json!({"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"nodeName": node}});
        script
            .create("pods ns", pod("n"))
            .await
            .shows("metadata.labels", expect![[r#"{"a":"b","topology.kubernetes.io/zone":"z"}"#]]);
        script.create("pods ns", pod("gone")).await.shows("metadata.labels", expect![[r#"{"a":"b"}"#]]);
    }
}
