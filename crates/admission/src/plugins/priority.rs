//! `Priority`: the value and the policy of a pod's priority class go into the pod.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::errors::forbidden;
use async_trait::async_trait;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Str, Value};
use pintle_auth::Lookup;
use std::sync::Arc;

const GROUP: &str = "scheduling.k8s.io";
const RESOURCE: &str = "priorityclasses";

/// The plugin.
#[derive(Debug)]
pub struct Priority {
    /// Where priority classes are.
    pub lookup: Arc<dyn Lookup>,
}

#[async_trait]
impl Plugin for Priority {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.is_write() && (attributes.is_on("", "pods") || attributes.is_on(GROUP, RESOURCE))
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()> {
        if attributes.resource.resource != "pods" {
            return Ok(());
        }
        match attributes.old {
            Some(old) if attributes.operation == Operation::Update => {
                for field in ["priority", "preemptionPolicy"] {
                    if !old["spec"][field].is_null() {
                        object["spec"].set_default(field, old["spec"][field].clone());
                    }
                }
                Ok(())
            }
            _ => self.admit_new_pod(attributes, object).await,
        }
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(class) = object else { return Ok(()) };
        if attributes.resource.resource != RESOURCE || !class["globalDefault"].is_true() {
            return Ok(());
        }
        match self.default_class().await {
            Some(other) if attributes.operation == Operation::Create || other.name() != class.name() => {
                let why =
                    format!("PriorityClass {} is already marked as default. Only one default can exist", other.name());
                Err(forbidden(attributes, object, why))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Priority {
    /// The class that pods get which name none; of several that with the lowest value.
    async fn default_class(&self) -> Option<Arc<Value>> {
        let classes = self.lookup.list(GROUP, RESOURCE, "").await;
        let marked = classes.into_iter().filter(|class| class["globalDefault"].is_true());
        marked.min_by_key(|class| class["value"].as_i64().unwrap_or_default())
    }

    async fn admit_new_pod(&self, attributes: &Attributes<'_>, pod: &mut Value) -> Result<()> {
        let name = Str::new(pod["spec"]["priorityClassName"].str_or_empty());
        let class = if name.is_empty() {
            let class = self.default_class().await;
            if let Some(class) = &class {
                pod["spec"].set("priorityClassName", class.name());
            }
            class
        } else {
            let Some(class) = self.lookup.get(GROUP, RESOURCE, "", &name).await else {
                let why = format!("no PriorityClass with name {name} was found");
                return Err(forbidden(attributes, Some(pod), why));
            };
            Some(class)
        };
        let (priority, policy) = match &class {
            Some(class) => (class["value"].as_i64().unwrap_or_default(), class["preemptionPolicy"].as_str()),
            None => (0, Some("PreemptLowerPriority")),
        };
        if let Some(given) = pod["spec"]["priority"].as_i64().filter(|given| *given != priority) {
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
                 controller computed {priority} from the given PriorityClass name"
            );
            return Err(forbidden(attributes, Some(pod), why));
        }
        pod["spec"].set("priority", priority);
        let Some(policy) = policy else { return Ok(()) };
        if let Some(given) = pod["spec"]["preemptionPolicy"].as_str().filter(|given| *given != policy) {
            let why = format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
                 controller computed {policy} from the given PriorityClass name"
            );
            return Err(forbidden(attributes, Some(pod), why));
        }
        pod["spec"].set("preemptionPolicy", policy);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;

    fn script() -> Script {
        let script = Script::new(|lookup| Arc::new(Priority { lookup }));
        script.put(
            "priorityclasses.scheduling.k8s.io",
            json!({"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"}),
        );
        script
    }

    fn pod(spec: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": spec})
    }

    #[tokio::test]
    async fn pods() {
        let script = script();
        script
            .create("pods ns", pod(json!({})))
            .await
            .shows("spec", expect![[r#"{"preemptionPolicy":"PreemptLowerPriority","priority":0}"#]]);
        let named = |more: Value| {
            let mut pod = pod(more);
            pod["spec"].set("priorityClassName", "high");
            pod
        };
        script
            .create("pods ns", named(json!({"priority": 7})))
            .await
            .shows("spec", expect![[r#"{"preemptionPolicy":"Never","priority":7,"priorityClassName":"high"}"#]]);
        script.create("pods ns", named(json!({"priority": 5}))).await.refused(expect![[r#"403 pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 7 from the given PriorityClass name"#]]);
        script.create("pods ns", named(json!({"preemptionPolicy": "PreemptLowerPriority"}))).await.refused(expect![[r#"403 pods "p" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name"#]]);
        script
            .create("pods ns", pod(json!({"priorityClassName": "none"})))
            .await
            .refused(expect![[r#"403 pods "p" is forbidden: no PriorityClass with name none was found"#]]);
        script
            .update("pods ns", pod(json!({"priority": 3})), pod(json!({})))
            .await
            .shows("spec", expect![[r#"{"priority":3}"#]]);
    }

    #[tokio::test]
    async fn one_default() {
        let script = script();
        let class = |name: &str| json!({"metadata": {"name": name}, "value": 9, "globalDefault": true});
        script.create("priorityclasses.scheduling.k8s.io -", class("a")).await.ok();
        script.put("priorityclasses.scheduling.k8s.io", class("a"));
        script.update("priorityclasses.scheduling.k8s.io -", class("a"), class("a")).await.ok();
        script.create("priorityclasses.scheduling.k8s.io -", class("b")).await.refused(expect![[r#"403 priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. Only one default can exist"#]]);
        script
            .create("pods ns", pod(json!({})))
            .await
            .shows("spec", expect![[r#"{"priority":9,"priorityClassName":"a"}"#]]);
    }
}
