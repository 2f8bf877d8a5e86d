//! `StorageObjectInUseProtection` and `PersistentVolumeClaimResize`.

use super::default_storage_class::CLASS_ANNOTATION;
use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::errors::forbidden;
use crate::pod::quantity;
use async_trait::async_trait;
use pintle_apimachinery::Value;
use pintle_apimachinery::meta::{Meta, add_finalizer};
use pintle_apimachinery::status::Result;
use pintle_auth::Lookup;
use std::sync::Arc;

/// Puts a finalizer on volumes, claims and attribute classes, so that none goes while it is used.
#[derive(Debug)]
pub struct StorageObjectInUseProtection;

/// The finalizer of a resource.
fn finalizer(attributes: &Attributes<'_>) -> Option<&'static str> {
    match (attributes.resource.group.as_str(), attributes.resource.resource.as_str()) {
        ("", "persistentvolumes") => Some("kubernetes.io/pv-protection"),
        ("", "persistentvolumeclaims") => Some("kubernetes.io/pvc-protection"),
        ("storage.k8s.io", "volumeattributesclasses") => Some("kubernetes.io/vac-protection"),
        _ => None,
    }
}

#[async_trait]
impl Plugin for StorageObjectInUseProtection {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Create
            && attributes.subresource.is_empty()
            && finalizer(attributes).is_some()
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()> {
        if let Some(finalizer) = finalizer(attributes) {
            add_finalizer(object, finalizer);
        }
        Ok(())
    }
}

/// Lets claims grow only where their class allows it.
#[derive(Debug)]
pub struct PersistentVolumeClaimResize {
    /// Where storage classes are.
    pub lookup: Arc<dyn Lookup>,
}

fn class_of(claim: &Value) -> &str {
    match claim.annotation(CLASS_ANNOTATION) {
        Some(class) => class,
        None => claim["spec"]["storageClassName"].str_or_empty(),
    }
}

#[async_trait]
impl Plugin for PersistentVolumeClaimResize {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Update && attributes.is_on("", "persistentvolumeclaims")
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let (Some(claim), Some(old)) = (object, attributes.old) else { return Ok(()) };
        let size = |claim: &Value| quantity(&claim["spec"]["resources"]["requests"]["storage"]);
        if size(claim) <= size(old) {
            return Ok(());
        }
        if old["status"]["phase"].as_str() != Some("Bound") {
            return Err(forbidden(attributes, object, "Only bound persistent volume claims can be expanded"));
        }
        let name = class_of(claim);
        let is_allowed = !name.is_empty()
            && name == class_of(old)
            && self
                .lookup
                .get("storage.k8s.io", "storageclasses", "", name)
                .await
                .is_some_and(|class| class["allowVolumeExpansion"].is_true());
        if is_allowed {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                   support resize";
        Err(forbidden(attributes, object, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[tokio::test]
    async fn protection() {
        let script = Script::new(|_| Arc::new(StorageObjectInUseProtection));
        let object = || json!({"metadata": {"name": "x"}});
        script
            .create("persistentvolumeclaims ns", object())
            .await
            .shows("metadata.finalizers", expect![[r#"["kubernetes.io/pvc-protection"]"#]]);
        script
            .create("persistentvolumes -", object())
            .await
            .shows("metadata.finalizers", expect![[r#"["kubernetes.io/pv-protection"]"#]]);
        script
            .create("volumeattributesclasses.storage.k8s.io -", object())
            .await
            .shows("metadata.finalizers", expect![[r#"["kubernetes.io/vac-protection"]"#]]);
        script.create("pods ns", object()).await.shows("metadata.finalizers", expect!["null"]);
    }

    #[tokio::test]
    async fn growth() {
        let script = Script::new(|lookup| Arc::new(PersistentVolumeClaimResize { lookup }));
        script.put("storageclasses.storage.k8s.io", json!({"metadata": {"name": "yes"}, "allowVolumeExpansion": true}));
        script.put("storageclasses.storage.k8s.io", json!({"metadata": {"name": "no"}}));
        let claim = |class: &str, phase: &str, size: &str| json!({"metadata": {"name": "c"}, "spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}}, "status": {"phase": phase}});
        let target = "persistentvolumeclaims ns";
        script.update(target, claim("yes", "Bound", "1Gi"), claim("yes", "Bound", "2Gi")).await.ok();
        script.update(target, claim("no", "Bound", "2Gi"), claim("no", "Bound", "1Gi")).await.ok();
        script.update(target, claim("no", "Bound", "1Gi"), claim("no", "Bound", "2Gi")).await.refused(expect![[r#"403 persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"#]]);
        script.update(target, claim("yes", "Pending", "1Gi"), claim("yes", "Pending", "2Gi")).await.refused(expect![[
            r#"403 persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded"#
        ]]);
    }
}
