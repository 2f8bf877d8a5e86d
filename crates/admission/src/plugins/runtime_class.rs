//! `RuntimeClass`: what a pod's runtime costs and where it runs go into the pod.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::errors::forbidden;
use crate::pod::resource_list;
use async_trait::async_trait;
use pintle_apimachinery::Value;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::status::Result;
use pintle_auth::Lookup;
use std::sync::Arc;

/// The plugin.
#[derive(Debug)]
pub struct RuntimeClass {
    /// Where runtime classes are.
    pub lookup: Arc<dyn Lookup>,
}

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

impl RuntimeClass {
    /// The class that the pod names.
    async fn class(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<Option<Arc<Value>>> {
        let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
        let found = match self.lookup.get("node.k8s.io", "runtimeclasses", "", name).await {
            Some(class) => Some(class),
            None => self.lookup.get_live("node.k8s.io", "runtimeclasses", "", name).await?,
        };
        match found {
            Some(class) => Ok(Some(class)),
            None => {
                let why = format!("pod rejected: RuntimeClass {} not found", go_quote(name));
                Err(forbidden(attributes, Some(pod), why))
            }
        }
    }
}

fn is_same_overhead(class: &Value, pod: &Value) -> bool {
    resource_list(&class["overhead"]["podFixed"]) == resource_list(&pod["spec"]["overhead"])
}

#[async_trait]
impl Plugin for RuntimeClass {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Create && attributes.is_on("", "pods")
    }

    async fn mutate(&self, attributes: &Attributes<'_>, pod: &mut Value) -> Result<()> {
        let Some(class) = self.class(attributes, pod).await? else { return Ok(()) };
        if !class["overhead"].is_null() {
            if !pod["spec"]["overhead"].is_empty() && !is_same_overhead(&class, pod) {
                return Err(forbidden(attributes, Some(pod), MISMATCH));
            }
            pod["spec"].set("overhead", class["overhead"]["podFixed"].clone());
        }
        for (key, value) in class["scheduling"]["nodeSelector"].entries() {
            let (own, value) = (&pod["spec"]["nodeSelector"][key], value.str_or_empty());
            if let Some(own) = own.as_str().filter(|own| *own != value) {
                let why = format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
                );
                return Err(forbidden(attributes, Some(pod), why));
            }
            pod["spec"]["nodeSelector"].set(key, value);
        }
        if !class["scheduling"].is_null() {
            let tolerations = class["scheduling"]["tolerations"].items();
            let merged = merge_tolerations(pod["spec"]["tolerations"].items(), tolerations);
            if !merged.is_empty() {
                pod["spec"].set("tolerations", merged);
            }
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(pod) = object else { return Ok(()) };
        match self.class(attributes, pod).await? {
            Some(class) if !class["overhead"].is_null() => {
                if is_same_overhead(&class, pod) {
                    return Ok(());
                }
                Err(forbidden(attributes, object, MISMATCH))
            }
            Some(_) | None if pod["spec"]["overhead"].is_null() => Ok(()),
            Some(_) | None => {
                let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(forbidden(attributes, object, why))
            }
        }
    }
}

/// Both lists, without those that another one makes superfluous.
fn merge_tolerations(first: &[Value], second: &[Value]) -> Value {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<&Value> = Vec::new();
    for (idx, toleration) in all.iter().enumerate() {
        let is_covered = merged.iter().any(|kept| tolerates_all_of(kept, toleration))
            || all[idx + 1..].iter().any(|later| later != toleration && tolerates_all_of(later, toleration));
        if !is_covered {
            merged.push(toleration);
        }
    }
    merged.into_iter().cloned().collect()
}

/// Whether `wide` tolerates everything that `narrow` does.
fn tolerates_all_of(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text = |toleration: &Value, field: &str| toleration[field].str_or_empty().to_owned();
    let operator = text(wide, "operator");
    let is_any_key = text(wide, "key").is_empty() && operator == "Exists";
    if text(wide, "key") != text(narrow, "key") && !is_any_key {
        return false;
    }
    let effect = text(wide, "effect");
    if !effect.is_empty() && effect != text(narrow, "effect") {
        return false;
    }
    if effect == "NoExecute"
        && let Some(wide_seconds) = wide["tolerationSeconds"].as_i64()
        && narrow["tolerationSeconds"].as_i64().is_none_or(|seconds| seconds > wide_seconds)
    {
        return false;
    }
    match operator.as_str() {
        "Equal" | "" => text(narrow, "operator") == "Equal" && text(wide, "value") == text(narrow, "value"),
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[tokio::test]
    async fn what_the_class_says_goes_into_the_pod() {
        let script = Script::new(|lookup| Arc::new(RuntimeClass { lookup }));
        script.put(
            "runtimeclasses.node.k8s.io",
            json!({
                "metadata": {"name": "rt"}, "overhead": {"podFixed": {"cpu": "10m"}},
                "scheduling": {"nodeSelector": {"rt": "x"}, "tolerations": [{"key": "rt", "operator": "Exists"}]},
            }),
        );
        let pod = |spec: Value| json!({"metadata": {"name": "p"}, "spec": spec});
        script.create("pods ns", pod(json!({"runtimeClassName": "rt", "nodeSelector": {"a": "b"}}))).await.shows("spec", expect![[r#"{"nodeSelector":{"a":"b","rt":"x"},"overhead":{"cpu":"10m"},"runtimeClassName":"rt","tolerations":[{"key":"rt","operator":"Exists"}]}"#]]);
        script.create("pods ns", pod(json!({"runtimeClassName": "rt", "nodeSelector": {"rt": "y"}}))).await.refused(expect![[r#"403 pods "p" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[rt] = x; pod.spec.nodeSelector[rt] = y"#]]);
        script
            .create("pods ns", pod(json!({"runtimeClassName": "none"})))
            .await
            .refused(expect![[r#"403 pods "p" is forbidden: pod rejected: RuntimeClass "none" not found"#]]);
        script.create("pods ns", pod(json!({"runtimeClassName": "rt", "overhead": {"cpu": "1m"}}))).await.refused(expect![[r#"403 pods "p" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"#]]);
        script.create("pods ns", pod(json!({"runtimeClassName": "rt", "overhead": {"cpu": "0.01"}}))).await.ok();
        script.create("pods ns", pod(json!({"overhead": {"cpu": "1m"}}))).await.refused(expect![[r#"403 pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"#]]);
    }

    #[test]
    fn merging_keeps_the_wider_toleration() {
        let key = |seconds: Value| json!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        let any = json!({"operator": "Exists"});
        let show = |first: &[Value], second: &[Value]| merge_tolerations(first, second).items().len();
        assert_eq!(show(&[key(json!(5))], &[key(json!(9))]), 1);
        assert_eq!(show(&[key(json!(5))], std::slice::from_ref(&any)), 1);
        assert_eq!(show(std::slice::from_ref(&any), &[key(Value::Null)]), 1);
        assert_eq!(
            show(
                &[json!({"key": "a", "operator": "Equal", "value": "x"})],
                &[json!({"key": "a", "operator": "Equal", "value": "y"})]
            ),
            2
        );
    }
}
