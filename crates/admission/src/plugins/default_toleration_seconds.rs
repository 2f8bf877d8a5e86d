//! `DefaultTolerationSeconds`: pods stay for a while on a node that is not ready or cannot be reached.

use crate::attributes::Attributes;
use crate::chain::Plugin;
use async_trait::async_trait;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Value, json};

/// The plugin.
#[derive(Debug)]
pub struct DefaultTolerationSeconds {
    /// `--default-not-ready-toleration-seconds`.
    pub not_ready_seconds: i64,
    /// `--default-unreachable-toleration-seconds`.
    pub unreachable_seconds: i64,
}

impl Default for DefaultTolerationSeconds {
    fn default() -> DefaultTolerationSeconds {
        DefaultTolerationSeconds { not_ready_seconds: 300, unreachable_seconds: 300 }
    }
}

#[async_trait]
impl Plugin for DefaultTolerationSeconds {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.is_write() && attributes.is_on("", "pods")
    }

    async fn mutate(&self, _: &Attributes<'_>, object: &mut Value) -> Result<()> {
        let given = object["spec"]["tolerations"].clone();
        for (key, seconds) in [
            ("node.kubernetes.io/not-ready", self.not_ready_seconds),
            ("node.kubernetes.io/unreachable", self.unreachable_seconds),
        ] {
            let covers = |toleration: &Value| {
                ["", key].contains(&toleration["key"].str_or_empty())
                    && ["", "NoExecute"].contains(&toleration["effect"].str_or_empty())
            };
            if !given.items().iter().any(covers) {
                let toleration =
                    json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
                object.make("spec.tolerations").make_array().push(toleration);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use std::sync::Arc;

    #[tokio::test]
    async fn tolerations_that_are_not_there_yet() {
        let script = Script::new(|_| Arc::new(DefaultTolerationSeconds::default()));
        for (given, added) in [
            (json!([]), 2),
            (json!([{"operator": "Exists"}]), 0),
            (
                json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]),
                1,
            ),
            (json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoSchedule"}]), 2),
        ] {
            let pod = json!({"metadata": {"name": "p"}, "spec": {"tolerations": given.clone()}});
            let admitted = script.create("pods ns", pod).await.ok();
            assert_eq!(admitted["spec"]["tolerations"].items().len(), given.items().len() + added, "{given}");
        }
    }
}
