//! `TaintNodesByCondition`: a new node is not ready until somebody says so.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use async_trait::async_trait;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Value, json};

/// The plugin.
#[derive(Debug)]
pub struct TaintNodesByCondition;

#[async_trait]
impl Plugin for TaintNodesByCondition {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Create && attributes.is_on("", "nodes")
    }

    async fn mutate(&self, _: &Attributes<'_>, object: &mut Value) -> Result<()> {
        let (key, effect) = ("node.kubernetes.io/not-ready", "NoSchedule");
        let is_it = |taint: &Value| taint["key"].as_str() == Some(key) && taint["effect"].as_str() == Some(effect);
        if !object["spec"]["taints"].items().iter().any(is_it) {
            object.make("spec.taints").make_array().push(json!({"key": key, "effect": effect}));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use std::sync::Arc;

    #[tokio::test]
    async fn new_nodes() {
        let script = Script::new(|_| Arc::new(TaintNodesByCondition));
        let once = script.create("nodes -", json!({"metadata": {"name": "n"}})).await.ok();
        script
            .create("nodes -", once)
            .await
            .shows("spec.taints", expect![[r#"[{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"}]"#]]);
    }
}
