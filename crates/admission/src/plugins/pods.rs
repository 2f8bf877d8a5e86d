//! Small plugins that look at the object alone and are off by default: `AlwaysPullImages`,
//! `LimitPodHardAntiAffinityTopology`, `ExtendedResourceToleration`, `DenyServiceExternalIPs`.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::errors::forbidden;
use crate::pod::{CONTAINER_FIELDS, containers};
use async_trait::async_trait;
use pintle_apimachinery::field::aggregate;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{FieldError, Path, Status, Str, Value, json, names};
use std::collections::BTreeSet;

/// Every image is pulled by whoever uses it, so that nobody runs what only others may pull.
#[derive(Debug)]
pub struct AlwaysPullImages;

fn brings_new_images(attributes: &Attributes<'_>, pod: &Value) -> bool {
    let Some(old) = attributes.old.filter(|_| attributes.operation == Operation::Update) else { return true };
    let known: BTreeSet<&str> = containers(&old["spec"]).map(|c| c["image"].str_or_empty()).collect();
    containers(&pod["spec"]).any(|container| !known.contains(container["image"].str_or_empty()))
}

#[async_trait]
impl Plugin for AlwaysPullImages {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.is_write() && attributes.is_on("", "pods")
    }

    async fn mutate(&self, attributes: &Attributes<'_>, pod: &mut Value) -> Result<()> {
        if !brings_new_images(attributes, pod) {
            return Ok(());
        }
        for (field, _) in CONTAINER_FIELDS {
            for container in pod["spec"].get_mut(field).map(Value::items_mut).unwrap_or_default() {
                container.set("imagePullPolicy", "Always");
            }
        }
        for volume in pod["spec"].get_mut("volumes").map(Value::items_mut).unwrap_or_default() {
            if let Some(image) = volume.get_mut("image").filter(|image| !image.is_null()) {
                image.set("pullPolicy", "Always");
            }
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(pod) = object.filter(|pod| brings_new_images(attributes, pod)) else { return Ok(()) };
        let mut errors = Vec::new();
        let mut check = |path: Path<'_>, policy: &Value| {
            if policy.as_str() != Some("Always") {
                let error = FieldError::not_supported(&path, policy.str_or_empty(), &["Always"]);
                errors.push(forbidden(attributes, object, error).message);
            }
        };
        let spec = Path::new("spec");
        for (field, _) in CONTAINER_FIELDS {
            for (idx, container) in pod["spec"][field].items().iter().enumerate() {
                check(spec.child(field).index(idx).child("imagePullPolicy"), &container["imagePullPolicy"]);
            }
        }
        for (idx, volume) in pod["spec"]["volumes"].items().iter().enumerate() {
            if !volume["image"].is_null() {
                check(
                    spec.child("volumes").index(idx).child("image").child("pullPolicy"),
                    &volume["image"]["pullPolicy"],
                );
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(Box::new(Status::plain_error(aggregate(&errors)))) }
    }
}

/// Pods may keep away from each other by node only.
#[derive(Debug)]
pub struct LimitPodHardAntiAffinityTopology;

#[async_trait]
impl Plugin for LimitPodHardAntiAffinityTopology {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.is_write() && attributes.is_on("", "pods")
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(pod) = object else { return Ok(()) };
        let terms = &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let allowed = "kubernetes.io/hostname";
        let mut keys = terms.items().iter().map(|term| term["topologyKey"].str_or_empty());
        match keys.find(|key| *key != allowed) {
            None => Ok(()),
            Some(key) => {
                let why = format!(
                    "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {allowed} is allowed"
                );
                Err(Box::new(Status::forbidden(&attributes.resource.group_resource(), pod.name(), why)))
            }
        }
    }
}

/// Pods that ask for an extended resource tolerate the nodes set apart for it.
#[derive(Debug)]
pub struct ExtendedResourceToleration;

/// Whether the name is of a resource that Kubernetes itself does not know.
pub(crate) fn is_extended_resource(name: &str) -> bool {
    name.contains('/')
        && !name.contains("kubernetes.io/")
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

#[async_trait]
impl Plugin for ExtendedResourceToleration {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.is_write() && attributes.is_on("", "pods")
    }

    async fn mutate(&self, _: &Attributes<'_>, pod: &mut Value) -> Result<()> {
        let spec = &pod["spec"];
        let resources: BTreeSet<Str> = ["containers", "initContainers"]
            .into_iter()
            .flat_map(|field| spec[field].items())
            .flat_map(|container| container["resources"]["requests"].entries())
            .map(|(name, _)| name.clone())
            .filter(|name| is_extended_resource(name))
            .collect();
        for resource in resources {
            let toleration = json!({"key": resource, "operator": "Exists", "effect": "NoSchedule"});
            if !pod["spec"]["tolerations"].items().contains(&toleration) {
                pod.make("spec.tolerations").make_array().push(toleration);
            }
        }
        Ok(())
    }
}

/// Services may not take addresses from outside for themselves.
#[derive(Debug)]
pub struct DenyServiceExternalIps;

#[async_trait]
impl Plugin for DenyServiceExternalIps {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.is_write() && attributes.is_on("", "services")
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(service) = object else { return Ok(()) };
        let had = attributes.old.map_or(&[][..], |old| old["spec"]["externalIPs"].items());
        if service["spec"]["externalIPs"].items().iter().all(|ip| had.contains(ip)) {
            return Ok(());
        }
        Err(forbidden(attributes, object, "Use of external IPs is denied by admission control"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use std::sync::Arc;

    fn pod(spec: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": spec})
    }

    #[tokio::test]
    async fn images_are_always_pulled() {
        let script = Script::new(|_| Arc::new(AlwaysPullImages));
        let new = pod(json!({"containers": [{"image": "a"}], "volumes": [{"image": {"reference": "x"}}]}));
        script.create("pods ns", new.clone()).await.shows("spec", expect![[r#"{"containers":[{"image":"a","imagePullPolicy":"Always"}],"volumes":[{"image":{"pullPolicy":"Always","reference":"x"}}]}"#]]);
        script.update("pods ns", new.clone(), new).await.shows("spec.containers", expect![[r#"[{"image":"a"}]"#]]);
    }

    #[tokio::test]
    async fn anti_affinity() {
        let script = Script::new(|_| Arc::new(LimitPodHardAntiAffinityTopology));
        let by = |key: &str| {
            pod(
                json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key}]}}}),
            )
        };
        script.create("pods ns", by("kubernetes.io/hostname")).await.ok();
        script.create("pods ns", by("zone")).await.refused(expect![[r#"403 pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed"#]]);
    }

    #[tokio::test]
    async fn extended_resources() {
        let script = Script::new(|_| Arc::new(ExtendedResourceToleration));
        let spec = json!({"containers": [{"resources": {"requests": {"example.com/gpu": "1", "cpu": "1", "kubernetes.io/x": "1"}}}]});
        script.create("pods ns", pod(spec)).await.shows(
            "spec.tolerations",
            expect![[r#"[{"effect":"NoSchedule","key":"example.com/gpu","operator":"Exists"}]"#]],
        );
    }

    #[tokio::test]
    async fn external_ips() {
        let script = Script::new(|_| Arc::new(DenyServiceExternalIps));
        let service = |ips: Value| json!({"metadata": {"name": "s"}, "spec": {"externalIPs": ips}});
        script.create("services ns", service(json!([]))).await.ok();
        script.update("services ns", service(json!(["1.2.3.4", "5.6.7.8"])), service(json!(["5.6.7.8"]))).await.ok();
        script
            .create("services ns", service(json!(["1.2.3.4"])))
            .await
            .refused(expect![[r#"403 services "s" is forbidden: Use of external IPs is denied by admission control"#]]);
    }
}
